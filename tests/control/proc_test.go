// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

const (
	procDir  = "/proc/net/smc/"
	confFile = procDir + "pnet_conf"
	missing  = "No such file or directory"
	exists   = "File exists"
)

// pnetConf makes each change that the grammar has, and those that it has not.
func pnetConf(t *testing.T, lt *lab.Test) {
	do := func(text, err string) {
		t.Helper()
		write{confFile, text, err}.do(t, lt)
	}
	do(`add pnet0 eth eth4\n`, "")
	do(`add pnet0 ib mlx4_0 2\n`, "")
	do(`  add\t pnet0  ib mlx4_1 \n`, "")
	const table = "PNET0 eth eth4\nPNET0 ib mlx4_0 2\nPNET0 ib mlx4_1 1"
	expect(t, lt, confFile, table)
	if got := lt.Must("a", "smc_pnet export"); !strings.Contains(got, "PNET0 ib mlx4_0 2") {
		t.Errorf("netlink has %q", got)
	}

	do("add other eth eth4", exists)
	do("add other ib mlx4_0 1", exists)
	for _, text := range []string{
		`\n`, " ", "add", "del", "add a", "add a eth", "del a eth", "flush", "add a eth b c d",
		"foo a eth b", "ADD a eth b",
		"add a wlan b", "add a eth b 1", "add a ib b 0", "add a ib b 3", "add a ib b x",
		"add a ib b 99999999999", "add a-b eth c",
		"add a2345678901234567 eth c", "add a eth a234567890123456", "add a ib " + strings.Repeat("i", 64),
		"add a eth b" + strings.Repeat(" ", 300), `add a eth b\nadd a eth c\n`, `add a eth b\0000`,
		`add a eth b\0000c`,
	} {
		do(text, invalid)
	}
	do("del nosuch", missing)
	do("del pnet0 eth nosuch", missing)
	do("del other eth eth4", missing)
	do("del pnet0 ib mlx4_0 1", missing)
	expect(t, lt, confFile, table)

	do("del pnet0 ib mlx4_0 2", "")
	do("del pnet0 ib mlx4_1", "")
	do("add second eth eth5", "")
	do("del PNET0", "")
	expect(t, lt, confFile, "SECOND eth eth5")
	do("del second eth eth5", "")
	expect(t, lt, confFile, "")
}

// procSettings checks that the files are views of the settings.
func procSettings(t *testing.T, lt *lab.Test) {
	for _, c := range []struct{ file, sysctl, good, bad string }{
		{"sndbuf", "wmem", "131068", "1"},
		{"rcvbuf", "rmem", "131068", "1"},
		{"ctrl_buffer_count", "smcr_max_send_wr", "128", "4096"},
		{"max_conn_per_lgr", "smcr_max_conns_per_lgr", "32", "256"},
		{"port_add_delay", "", "30", "4294967295"},
	} {
		init := strings.TrimSpace(lt.Must("a", "cat "+procDir+c.file))
		write{procDir + c.file, c.good + `\n`, ""}.do(t, lt)
		for _, bad := range []string{c.bad, "-1", "x", "1 2", `1\n2`, `\n`, "99999999999", `30\0000`} {
			write{procDir + c.file, bad, invalid}.do(t, lt)
		}
		expect(t, lt, procDir+c.file, c.good)
		if c.sysctl != "" {
			expect(t, lt, "/proc/sys/net/smc/"+c.sysctl, c.good)
		}
		if got := strings.TrimSpace(lt.Must("a", "unshare --net cat "+procDir+c.file)); got != init {
			t.Errorf("%s in a new namespace: %q, want %q", c.file, got, init)
		}
		write{procDir + c.file, init, ""}.do(t, lt)
	}
}

// owners checks who may change the table of a namespace: a process with CAP_NET_ADMIN over it.
func owners(t *testing.T, lt *lab.Test) {
	const add = "echo add A eth lo | tee " + confFile + " >/dev/null; cat " + confFile
	for _, c := range []struct{ as, want string }{
		{"unshare --net", "A eth lo\n"},
		{"unshare --map-root-user --net", "A eth lo\n"},
		{"unshare --map-root-user", ""},
		{"unshare --net setpriv --bounding-set=-net_admin --inh-caps=-all", ""},
		{"setpriv --reuid 65534 --regid 65534 --clear-groups", ""},
	} {
		r := lt.Run("a", "/bin/sh", "-c", c.as+" sh -c '"+add+"'")
		refused := strings.Contains(r.Stderr, "permitted") || strings.Contains(r.Stderr, "denied")
		if r.Stdout != c.want || refused != (c.want == "") {
			t.Errorf("%s: %+v, want %q", c.as, r, c.want)
		}
	}
	r := lt.Run("a", "/bin/sh", "-c", "unshare --net sh -c 'echo add A ib x | tee "+confFile+"'")
	if !strings.Contains(r.Stderr, exists) {
		t.Errorf("an RDMA device in another namespace: %+v", r)
	}
}
