// SPDX-License-Identifier: Apache-2.0

package smcdbg

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/internal/version"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// host reads files of the host.
type host struct {
	// root is the root directory of the host.
	root string
}

func (h host) path(elem ...string) string { return filepath.Join(append([]string{h.root}, elem...)...) }

// line returns the content of a file without the white space around it, "" if it cannot be read.
func (h host) line(elem ...string) string {
	b, err := os.ReadFile(h.path(elem...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// relevant matches modules and words of the kernel's command line that concern SMC and RDMA.
var relevant = regexp.MustCompile(`^(smc$|smc[._]|dibs|ism|ib_|iw_|rdma|roce|rxe|siw|mlx|bnxt|irdma|ice$|erdma|qed|hns|` +
	`ipv6|nf_tables|xt_TCPOPTSTRIP)`)

func (h host) version(context.Context) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "smc_dbg utility, smckit-%s\n%s\n", version.Version, runtime.GOARCH)
	// Do not use /proc/version: it contains the user and the host that built the kernel.
	fmt.Fprintf(&b, "Linux %s %s\n", h.line("proc/sys/kernel/osrelease"), h.line("proc/sys/kernel/version"))
	for line := range strings.Lines(h.line("etc/os-release")) {
		if strings.HasPrefix(line, "PRETTY_NAME=") || strings.HasPrefix(line, "VERSION_ID=") {
			b.WriteString(strings.TrimSpace(line) + "\n")
		}
	}
	var words []string
	for w := range strings.FieldsSeq(h.line("proc/cmdline")) {
		if relevant.MatchString(w) {
			words = append(words, w)
		}
	}
	fmt.Fprintf(&b, "kernel's command line, of SMC and RDMA: %s\n", strings.Join(words, " "))
	fmt.Fprintf(&b, "tainted: %s\nprocessors: %d\n", h.line("proc/sys/kernel/tainted"), runtime.NumCPU())
	for line := range strings.Lines(h.line("proc/meminfo")) {
		if strings.HasPrefix(line, "MemTotal") || strings.HasPrefix(line, "MemAvailable") {
			b.WriteString(strings.TrimSpace(line) + "\n")
		}
	}
	return b.String(), nil
}

// modules describes the relevant modules: those of AF_SMC with their files in sysfs, others with their line in procfs.
func (h host) modules(context.Context) (string, error) {
	data, err := os.ReadFile(h.path("proc/modules"))
	if errors.Is(err, os.ErrNotExist) {
		return "", errors.New("the kernel has no modules")
	}
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		// The last word is an address.
		if f := strings.Fields(line); len(f) > 4 && relevant.MatchString(f[0]) {
			fmt.Fprintln(&b, strings.Join(f[:5], " "))
		}
	}
	for _, m := range []string{"smc", "smc_diag"} {
		for _, pattern := range []string{"version", "srcversion", "taint", "refcnt", "parameters/*"} {
			found, _ := filepath.Glob(h.path("sys/module", m, pattern))
			for _, path := range found {
				name, _ := filepath.Rel(h.root, path)
				fmt.Fprintf(&b, "%s = %s\n", name, h.line(name))
			}
		}
	}
	release := h.line("proc/sys/kernel/osrelease")
	for _, list := range []string{"modules.dep", "modules.builtin"} {
		lines, err := h.matching(filepath.Join("lib/modules", release, list), regexp.MustCompile(`^[^:]*/smc(_diag)?\.ko`))
		if err == nil {
			b.WriteString(lines)
		}
	}
	return b.String(), nil
}

// matching returns the lines of a file that match.
func (h host) matching(name string, pattern *regexp.Regexp) (string, error) {
	f, err := os.Open(h.path(name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	return grep(f, pattern)
}

func grep(r io.Reader, pattern *regexp.Regexp) (string, error) {
	var b strings.Builder
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if pattern.MatchString(lines.Text()) {
			b.WriteString(lines.Text() + "\n")
		}
	}
	return b.String(), lines.Err()
}

// modprobe returns the lines of modprobe's configuration that concern AF_SMC and RDMA.
func (h host) modprobe(context.Context) (string, error) {
	pattern := regexp.MustCompile(`^\s*[a-z]+\s+(smc|net-pf-43|dibs|ism|ib_|rdma|mlx|rxe)`)
	var b strings.Builder
	for _, dir := range []string{"etc/modprobe.d", "run/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d"} {
		files, _ := filepath.Glob(h.path(dir, "*.conf"))
		for _, file := range files {
			name, _ := filepath.Rel(h.root, file)
			if lines, err := h.matching(name, pattern); err == nil && lines != "" {
				fmt.Fprintf(&b, "# /%s\n%s", name, lines)
			}
		}
	}
	return b.String(), nil
}

// config returns the options of the kernel's configuration that affect SMC.
func (h host) config(context.Context) (string, error) {
	pattern := regexp.MustCompile(`CONFIG_(SMC|DIBS|ISM|INFINIBAND|RDMA|MLX[45]|IPV6\b|XFRM\b|NF_TABLES\b|NETFILTER\b|NET_NS|INET_DIAG|` +
		`MODULE_SIG|MODVERSIONS|SECURITY_LOCKDOWN_LSM|DEBUG_INFO_BTF|PREEMPT\b)`)
	if f, err := os.Open(h.path("proc/config.gz")); err == nil {
		defer f.Close()
		if zip, err := gzip.NewReader(f); err == nil {
			return grep(zip, pattern)
		}
	}
	release := h.line("proc/sys/kernel/osrelease")
	modules := "lib/modules/" + release
	for _, name := range []string{"boot/config-" + release, modules + "/config", modules + "/build/.config"} {
		if text, err := h.matching(name, pattern); err == nil {
			return text, nil
		}
	}
	return "", fmt.Errorf("no configuration of kernel %s: neither /proc/config.gz nor /boot/config-%s", release, release)
}

// logLine matches lines of the kernel's log that concern SMC and RDMA, and lines of oopses and warnings.
var logLine = regexp.MustCompile(`(?i:\b(smc|smcr|smcd|smc_diag|dibs|ism|rdma|roce|infiniband|ib_\w+)\b)|` +
	`(?i:\b(rxe|siw|mlx[45]\w*|bnxt\w*|irdma|erdma)\b)|` +
	`\b(BUG|WARNING|Oops|Call Trace|RIP|smc_\w+\+0x[0-9a-f]+)\b`)

// commandLine matches log lines with the kernel's command line, which may contain secrets.
var commandLine = regexp.MustCompile(`(?i)command line:`)

// kernelLog returns the lines of the kernel's log that concern SMC and RDMA.
func kernelLog(context.Context) (string, error) {
	const readAll, size = 3, 10
	n, err := unix.Klogctl(size, nil)
	if err != nil {
		return "", logError(err)
	}
	b := make([]byte, n)
	if n, err = unix.Klogctl(readAll, b); err != nil {
		return "", logError(err)
	}
	return filterLog(string(b[:n]))
}

// filterLog returns the lines of a log that belong in a report.
func filterLog(log string) (string, error) {
	var b strings.Builder
	for line := range strings.Lines(log) {
		if !commandLine.MatchString(line) {
			b.WriteString(line)
		}
	}
	return grep(strings.NewReader(b.String()), logLine)
}

func logError(err error) error {
	if errors.Is(err, unix.EPERM) {
		return remedy.Errorf("run as root", "%w", err)
	}
	return err
}

// sysctls returns the settings that affect SMC and the TCP connections below it.
func (h host) sysctls(context.Context) (string, error) {
	var names []string
	for _, pattern := range []string{
		"net/smc/*", "net/core/[rw]mem_*", "net/core/somaxconn", "net/ipv4/tcp_[rw]mem", "net/ipv4/tcp_syncookies",
		"net/ipv4/tcp_timestamps", "net/ipv4/tcp_fastopen", "net/ipv4/tcp_fin_timeout", "net/ipv4/tcp_keepalive_*",
		"net/ipv4/tcp_mtu_probing", "net/ipv4/conf/*/rp_filter", "net/mptcp/enabled", "vm/overcommit_memory",
		"kernel/modules_disabled",
	} {
		found, _ := filepath.Glob(h.path("proc/sys", pattern))
		names = append(names, found...)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, path := range names {
		name, _ := filepath.Rel(h.path("proc/sys"), path)
		fmt.Fprintf(&b, "%s = %s\n", strings.ReplaceAll(name, "/", "."), h.line("proc/sys", name))
	}
	if !strings.Contains(b.String(), "net.smc.") {
		return b.String(), errors.New("there is no net.smc: the module is not loaded")
	}
	return b.String(), nil
}

// proc returns the files in procfs of smckit's module.
func (h host) proc(context.Context) (string, error) {
	var b strings.Builder
	files, _ := filepath.Glob(h.path("proc/net/smc/*"))
	for _, path := range files {
		name, _ := filepath.Rel(h.root, path)
		fmt.Fprintf(&b, "# /%s\n%s\n", name, h.line(name))
	}
	return b.String(), nil
}

// interfaces describes network interfaces and their addresses.
func interfaces(context.Context) (string, error) {
	links, err := netlink.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return "", err
	}
	var b strings.Builder
	for _, l := range links {
		a := l.Attrs()
		fmt.Fprintf(&b, "%d: %s %s %s mtu %d state %s master %d link %d address %s\n",
			a.Index, a.Name, l.Type(), a.Flags, a.MTU, a.OperState, a.MasterIndex, a.ParentIndex, a.HardwareAddr)
		addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return b.String(), err
		}
		for _, addr := range addrs {
			fmt.Fprintf(&b, "    %s\n", addr.IPNet)
		}
	}
	return b.String(), nil
}

// routes returns the routes of all tables except the local one, and the rules that choose a table.
func routes(context.Context) (string, error) {
	list, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return "", err
	}
	var b strings.Builder
	for _, r := range list {
		if r.Table != unix.RT_TABLE_LOCAL {
			fmt.Fprintln(&b, r.String())
		}
	}
	rules, err := netlink.RuleList(netlink.FAMILY_ALL)
	for _, r := range rules {
		fmt.Fprintln(&b, r.String())
	}
	if errors.Is(err, netlink.ErrDumpInterrupted) {
		err = nil
	}
	return b.String(), err
}
