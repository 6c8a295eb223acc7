// SPDX-License-Identifier: Apache-2.0

//go:build linux

package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// rules has rules of smc_policy make SMC sockets of ordinary ones on host a. For that, the module hooks a function of the kernel, whose
// arguments each architecture passes in its own way.
func rules(t *testing.T, lt *lab.Test) {
	lt.Must("a", fmt.Sprintf("printf %s >/run/smckit-smcd", lab.LengthShort))
	lt.GoTest(t, "a", "github.com/smckit/smckit/tests/onehost/inside", "^TestRules(Convert|Hook|Off)$")
}

// units runs the unit tests of the packages that decode what kernels send, and of the commands that show it, on host a.
func units(t *testing.T, lt *lab.Test) {
	for _, name := range []string{
		"pkg/internal/nlconn", "pkg/ism", "pkg/netlinksmc", "pkg/pnet", "pkg/policy", "pkg/smcerr", "pkg/smcstats",
		"internal/check", "internal/smctrace", "internal/tool/smcchk", "internal/tool/smcrd", "internal/tool/smcss",
	} {
		t.Run(strings.TrimPrefix(name, "pkg/"), func(t *testing.T) { lt.UnitTests(t, "a", name) })
	}
}

// programs has smc_run give AF_SMC sockets to programs that were built for the architecture of host a.
func programs(t *testing.T, lt *lab.Test, a side) {
	out := t.TempDir()
	if err := lab.CrossLibrary(t.Context(), a.arch, out, func(s string) { t.Log(s) }); err != nil {
		t.Fatal(err)
	}
	library, err := os.ReadFile(filepath.Join(out, "libsmc-preload.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := lt.Host("a").WriteFile(t.Context(), "/usr/local/lib/libsmc-preload.so.1", library, 0o755); err != nil {
		t.Fatal(err)
	}
	const port = "5003"
	server := lt.Serve("a", "", "echo", "127.0.0.1:"+port)
	defer lab.Kill(t, server)
	const ask = `bash -c 'exec 3<>/dev/tcp/127.0.0.1/` + port + `; echo hello >&3; read -r answer <&3; echo "$answer"'`
	for name, command := range map[string]string{
		"preload":          "smc_run --require --method preload " + ask,
		"seccomp":          "smc_run --require --method seccomp " + ask,
		"a static program": "echo hello | smc_run --require busybox nc 127.0.0.1 " + port,
	} {
		t.Run(name, func(t *testing.T) {
			before := lt.Counters("a")
			r := lt.Run("a", "sh", "-c", command)
			now := lt.Counters("a")
			conns := now.Connections.ClientV2 - before.Connections.ClientV2
			if r.Stdout != "hello\n" || conns != 1 || now.FellBack() != before.FellBack() {
				t.Errorf("%+v, %d connections by SMC-D: before %+v, then %+v", r, conns, before, now)
			}
		})
	}
}
