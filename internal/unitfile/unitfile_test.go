// SPDX-License-Identifier: Apache-2.0

package unitfile

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/sysfstest"
)

func TestParse(t *testing.T) {
	const text = "\ufeff# comment\n[Unit]\nDescription=a = b\n\n[Service]\n  ExecStart = /bin/a \\\n# within\n  ; too\n   -x \\\n -y  \nbad line\n" +
		"Path=C:\\\\\nExecStart=\n[Install]\nWantedBy=x\\\n"
	want := []option{
		{"Unit", "Description", "a = b"},
		{"Service", "ExecStart", "/bin/a  -x  -y"},
		{"Service", "Path", `C:\\`},
		{"Service", "ExecStart", ""},
	}
	if diff := cmp.Diff(want, parse(text), cmp.AllowUnexported(option{})); diff != "" {
		t.Error(diff)
	}
}

func TestWords(t *testing.T) {
	for value, want := range map[string][]string{
		"":                           nil,
		" /bin/a  b\tc ":             {"/bin/a", "b", "c"},
		`/bin/a "b c" 'd "e' f"g h"`: {"/bin/a", `"b c"`, `'d "e'`, `f"g h"`},
		`/bin/a b\ c \" \; ; d`:      {"/bin/a", `b\ c`, `\"`, `\;`, ";", "d"},
		`"unclosed a`:                {`"unclosed a`},
		`a\`:                         {`a\`},
	} {
		if diff := cmp.Diff(want, words(value)); diff != "" {
			t.Errorf("%s: %s", value, diff)
		}
	}
}

func TestWrap(t *testing.T) {
	for value, want := range map[string]string{
		"/bin/a -x $MORE %i":         "/usr/bin/smc_run -d /bin/a -x $MORE %i",
		"-/bin/a":                    "-/usr/bin/smc_run -d /bin/a",
		"@/bin/a name -x":            "/usr/bin/smc_run -d --argv0 name /bin/a -x",
		"-@:+/bin/a 'n m' b":         "-:+/usr/bin/smc_run -d --argv0 'n m' /bin/a b",
		"!!/bin/a":                   "!!/usr/bin/smc_run -d /bin/a",
		`"-/opt/a b/c" "d e"`:        `-/usr/bin/smc_run -d "/opt/a b/c" "d e"`,
		"/opt/$x/a $y":               "/usr/bin/smc_run -d /opt/$$x/a $y",
		":/opt/$x/a $y":              ":/usr/bin/smc_run -d /opt/$x/a $y",
		"/opt/%i/a%%b":               "/usr/bin/smc_run -d /opt/%i/a%%b",
		"/bin/a ; -/bin/b \\; ; ":    "/usr/bin/smc_run -d /bin/a|-/usr/bin/smc_run -d /bin/b \\;",
		"redis-server /etc/r.conf":   "/usr/bin/smc_run -d redis-server /etc/r.conf",
		"|/bin/a":                    "error",
		"@/bin/a":                    "error",
		`/bin/sh -c "a; b" ; /bin/b`: `/usr/bin/smc_run -d /bin/sh -c "a; b"|/usr/bin/smc_run -d /bin/b`,
	} {
		list, err := commands(value)
		var lines []string
		for _, c := range list {
			lines = append(lines, c.wrap([]string{"/usr/bin/smc_run", "-d"}))
		}
		got := strings.Join(lines, "|")
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %s, want %s (%v)", value, got, want, err)
		}
	}
}

// put writes the files of a system.
func put(t *testing.T, files map[string]string) Search {
	t.Helper()
	return Search{Root: sysfstest.Files(t, files)}
}

func TestLoad(t *testing.T) {
	s := put(t, map[string]string{
		"lib/systemd/system/mariadb.service":                        "[Service]\nExecStart=/bin/m\n",
		"etc/systemd/system/mysql.service":                          "-> /lib/systemd/system/mariadb.service",
		"etc/systemd/system/loop.service":                           "-> loop2.service",
		"etc/systemd/system/loop2.service":                          "-> loop.service",
		"etc/systemd/system/mysql.service.d/b.conf":                 "b",
		"etc/systemd/system/mariadb.service.d/c.conf":               "etc",
		"etc/systemd/system/mariadb.service.d/zz-smc.conf":          marker + "x",
		"usr/lib/systemd/system/mariadb.service.d/c.conf":           "usr",
		"usr/lib/systemd/system/service.d/a.conf":                   "all",
		"usr/lib/systemd/system/mariadb.service.d/masked.conf":      "not used",
		"etc/systemd/system/mariadb.service.d/masked.conf":          "-> /dev/null",
		"usr/lib/systemd/system/pg@.service":                        "[Service]\nExecStart=/bin/p %i\n",
		"usr/lib/systemd/system/pg@.service.d/t.conf":               "template",
		"usr/lib/systemd/system/pg@.socket":                         "[Socket]\n",
		"etc/systemd/system/pg@one.service.d/i.conf":                "instance",
		"etc/systemd/system/multi-user.target.wants/pg@two.service": "-> /usr/lib/systemd/system/pg@.service",
		"etc/systemd/system/pg@two.service":                         "-> ../../../usr/lib/systemd/system/pg@.service",
		"etc/systemd/system/postgres@.service":                      "-> pg@.service",
		"etc/systemd/system/off.service":                            "-> /dev/null",
		"etc/systemd/system/empty.service":                          "\n",
		"etc/systemd/system/lost.service":                           "-> /nowhere/lost.service",
		"usr/lib/systemd/system/foo-bar-baz.service":                "[Service]\n",
		"usr/lib/systemd/system/foo-.service.d/1.conf":              "dash",
		"usr/lib/systemd/system/foo-bar-.service.d/2.conf":          "dashes",
		"usr/lib/systemd/system/redis-server.service":               "[Service]\n",
	})
	for name, want := range map[string]string{
		"mariadb.service":     "mariadb.service: all etc masked",
		"mysql.service":       "mariadb.service: all b etc masked",
		"pg@one.service":      "pg@one.service: all instance template",
		"pg@two.service":      "pg@two.service: all template",
		"postgres@x.service":  "pg@x.service: all template",
		"pg@.service":         "pg@.service: all template",
		"foo-bar-baz.service": "foo-bar-baz.service: dash dashes all",
		"loop.service":        "loop.service: too many symbolic links",
		"off.service":         "off.service is masked: run 'systemctl unmask off.service' first",
		"empty.service":       "empty.service is masked",
		"lost.service":        "a symbolic link to a file that does not exist",
		"redis.service":       "redis.service: there is no such service; did you mean redis-server?",
		"mariabd.service":     "there is no such service; did you mean mariadb?",
		"nothing.service":     "there is no such service: 'systemctl list-unit-files --type=service' lists them",
	} {
		u, err := s.Load(name)
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
			continue
		}
		got := u.Name + ":"
		for _, f := range u.DropIns {
			if text := f.Text; text != "" {
				got += " " + text
			} else {
				got += " masked"
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if u.Socket != (u.Name == "pg@.service") {
			t.Errorf("%s: socket %v", name, u.Socket)
		}
	}
	if _, err := s.Load("x.service"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestServiceName(t *testing.T) {
	for name, want := range map[string]string{
		"redis-server": "redis-server.service", "a@b": "a@b.service", "a.service": "a.service", "a.b": "a.b.service", "": "", "a/b": "",
		"../x": "", "ssh.socket": "", "a b": "",
	} {
		if got, err := ServiceName(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

func TestDropIn(t *testing.T) {
	const head = marker + "x.service, which removes it with --undo.\n[Service]\nExecStart=\n"
	const run = "ExecStart=/usr/bin/smc_run -d /bin/a\n"
	for _, test := range []struct {
		name, unit string
		supervised bool
		runner     string
		want, note string
	}{
		{name: "plain", want: run},
		{name: "oneshot", unit: "ExecStart=-/bin/b x\n", want: run + "ExecStart=-/usr/bin/smc_run -d /bin/b x\n"},
		{name: "replaced", unit: "ExecStart=\nExecStart=/bin/b\n", want: "ExecStart=/usr/bin/smc_run -d /bin/b\n"},
		{name: "none", unit: "ExecStart=\n", note: "error: x.service: it has no ExecStart="},
		{name: "twice", unit: "ExecStart=\nExecStart=/usr/bin/smc_run /bin/a\n", note: "error: x.service runs smc_run already"},
		{name: "families", unit: "RestrictAddressFamilies=AF_UNIX AF_INET\n", want: run + "RestrictAddressFamilies=AF_SMC\n"},
		{name: "families known", unit: "RestrictAddressFamilies=AF_INET AF_SMC\n", want: run},
		{name: "families lifted", unit: "RestrictAddressFamilies=AF_INET\nRestrictAddressFamilies=\n", want: run},
		{name: "no families", unit: "RestrictAddressFamilies=none\n", want: run, note: "no TCP sockets"},
		{name: "no families, then some", unit: "RestrictAddressFamilies=none\nRestrictAddressFamilies=AF_INET6\n", want: run + "RestrictAddressFamilies=AF_SMC\n"},
		{name: "families denied", unit: "RestrictAddressFamilies=~AF_PACKET\n", want: run},
		{name: "SMC denied", unit: "RestrictAddressFamilies=~AF_PACKET AF_SMC\n", want: run + "RestrictAddressFamilies=AF_SMC\n"},
		{name: "SMC denied, then allowed", unit: "RestrictAddressFamilies=~AF_SMC\nRestrictAddressFamilies=AF_SMC\n", want: run},
		{name: "family taken away", unit: "RestrictAddressFamilies=AF_INET AF_SMC\nRestrictAddressFamilies=~AF_SMC\n", want: run + "RestrictAddressFamilies=AF_SMC\n"},
		{name: "calls, preloaded", unit: "SystemCallFilter=@system-service\n", want: run},
		{name: "calls, supervised", unit: "SystemCallFilter=@system-service\n", supervised: true, want: run + "SystemCallFilter=seccomp pidfd_getfd process_vm_readv\n"},
		{name: "no calls, supervised", supervised: true, want: run},
		{name: "exec", unit: "NoExecPaths=/\n", want: run + "ExecPaths=/usr/bin/smc_run /lib/libsmc.so\n"},
		{name: "forking", unit: "Type=forking\n", want: run},
		{name: "forking, supervised", unit: "Type=forking\n", supervised: true, want: run, note: "set PIDFile="},
		{name: "forking with a file", unit: "Type=forking\nPIDFile=/run/a\n", supervised: true, want: run},
		{name: "root", unit: "RootDirectory=/srv\n", note: "error: x.service has a root directory of its own (RootDirectory=)"},
		{name: "home", unit: "ProtectHome=yes\n", runner: "/run/user/1/smc_run", note: "error: x.service does not see /run/user/1/smc_run (ProtectHome=)"},
		{name: "home to read", unit: "ProtectHome=read-only\n", runner: "/run/user/1/smc_run", want: "ExecStart=/run/user/1/smc_run -d /bin/a\n"},
		{name: "temporary", unit: "PrivateTmp=1\n", runner: "/tmp/smc_run", note: "error: x.service does not see /tmp/smc_run (PrivateTmp=)"},
		{name: "profile", unit: "AppArmorProfile=redis\n", want: run, note: "the AppArmor profile redis must allow 'network smc,'"},
		{name: "filter", unit: "IPAddressDeny=any\n", want: run, note: "IPAddressDeny= applies to the handshake only"},
		{name: "other section", unit: "[Install]\nExecStart=/bin/x\n", want: run},
		{name: "percent", runner: "/opt/a%b/smc_run", want: "ExecStart=/opt/a%%b/smc_run -d /bin/a\n"},
	} {
		u := &Unit{Name: "x.service", Fragment: File{Text: "[Service]\nExecStart=/bin/a\n" + test.unit}}
		r := Runner{Command: []string{"/usr/bin/smc_run", "-d"}, Library: "/lib/libsmc.so", Supervised: func(string) bool { return test.supervised }}
		if test.runner != "" {
			r.Command[0] = test.runner
		}
		text, notes, err := u.DropIn(r)
		if err != nil {
			text, notes = head, []string{"error: " + err.Error()}
		}
		if text != head+test.want {
			t.Errorf("%s: %s", test.name, text)
		}
		if note := strings.Join(notes, "\n"); (note == "") != (test.note == "") || !strings.Contains(note, test.note) {
			t.Errorf("%s: %s, want %s", test.name, note, test.note)
		}
	}
}

// TestIgnoredSignals checks the note if smc_run does not keep signals ignored.
func TestIgnoredSignals(t *testing.T) {
	for option, want := range map[string]int{"": 1, "IgnoreSIGPIPE=yes": 1, "IgnoreSIGPIPE=no": 0} {
		u := &Unit{Name: "x.service", Fragment: File{Text: "[Service]\nExecStart=/bin/a\n" + option}}
		_, notes, err := u.DropIn(Runner{Command: []string{"/smc_run"}, SignalsLost: true, Supervised: func(string) bool { return false }})
		if err != nil || len(notes) != want {
			t.Errorf("%q: %q, %v", option, notes, err)
		}
	}
}

// TestLaterDropIn checks that a drop-in which would override the commands is refused.
func TestLaterDropIn(t *testing.T) {
	u := &Unit{
		Name: "x.service", Fragment: File{Text: "[Service]\nExecStart=/bin/a\n"},
		DropIns: []File{{Path: "/etc/systemd/system/x.service.d/zzz.conf", Text: "[Service]\nExecStart=\nExecStart=/bin/b\n"}},
	}
	if _, _, err := u.DropIn(Runner{Command: []string{"/smc_run"}}); err == nil || !strings.Contains(err.Error(), "zzz.conf: it would override the drop-in zz-smc.conf") {
		t.Error(err)
	}
}
