// SPDX-License-Identifier: Apache-2.0

//go:build linux

package programs

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// cluster is an empty PostgreSQL cluster on this machine, and the directory of the programs that have made it.
type cluster struct{ data, programs string }

// makeCluster makes the cluster here: initdb takes the better part of a minute in an emulated guest. The server refuses
// to run as root, and so does initdb.
func makeCluster(t *testing.T) cluster {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		t.Fatal("no PostgreSQL: run tests/deps.sh")
	}
	dir, err := os.MkdirTemp("", "smckit-postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := cluster{data: filepath.Join(dir, "data"), programs: filepath.Dir(slices.Max(found))}
	args := []string{"-D", c.data, "--no-sync", "--auth", "trust", "--username", "postgres", "--locale", "C", "--encoding", "UTF8"}
	cmd := exec.CommandContext(t.Context(), filepath.Join(c.programs, "initdb"), args...)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: account(t, dir)}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	return c
}

// account returns the account that Debian's package has made for the server, and makes it the owner of dir.
func account(t *testing.T, dir string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, uidErr := strconv.Atoi(u.Uid)
	gid, gidErr := strconv.Atoi(u.Gid)
	if uidErr != nil || gidErr != nil {
		t.Fatal(uidErr, gidErr)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func postgres(c cluster) program {
	const data = workInside + "/pgdata"
	server := []string{
		"runuser", "-u", "postgres", "--", c.programs + "/postgres", "-D", data, "-F", "-k", "", "-h", "127.0.0.1,::1",
		// Reduce the memory that the server needs, because the guest is small.
		"-c", "shared_buffers=16MB", "-c", "autovacuum=off",
	}
	return program{
		name:  "postgresql",
		shown: []string{"postgres", "psql"},
		prepare: func(_ *testing.T, g *guest) {
			g.Must("a", "cp -r '"+c.data+"' "+data+"; echo host all all samenet trust >>"+data+"/pg_hba.conf; chown -R postgres "+data+"; chmod 700 "+data)
		},
		server:  server,
		port:    5432,
		ready:   "pg_isready -q -h 127.0.0.1 -U postgres",
		stop:    unix.SIGINT,
		client:  usePostgres,
		hold:    []string{"psql", "-h", "127.0.0.1", "-U", "postgres", "-c", "select pg_sleep(600)"},
		atLeast: 10,
		slow:    true,
	}
}

// usePostgres runs pgbench and compares the tables with its report.
func usePostgres(t *testing.T, s *session) {
	const pgbench = "pgbench -h 127.0.0.1 -U postgres "
	s.sh(t, pgbench+"-i -q postgres 2>&1")
	for _, args := range []string{"-n -c 4 -j 2 -t 20", "-n -c 4 -t 20 -M prepared", "-n -c 2 -t 4 -C -h ::1"} {
		out := s.sh(t, pgbench+args+" postgres 2>&1")
		if !regexp.MustCompile(`number of failed transactions: 0 `).MatchString(out) {
			t.Errorf("pgbench %s:\n%s", args, out)
		}
	}
	const psql = "psql -h 127.0.0.1 -U postgres -qAtX -v ON_ERROR_STOP=1 "
	const count = 80 + 80 + 8
	got := s.sh(t, psql+`-c 'select count(*), sum(delta) = (select sum(abalance) from pgbench_accounts) from pgbench_history'`)
	if want := strconv.Itoa(count) + "|t"; strings.TrimSpace(got) != want {
		t.Errorf("the history says %q, want %q", got, want)
	}
	// Transfer megabytes in one answer, and back.
	s.sh(t, psql+`-c 'drop table if exists again'
`+psql+`-c 'copy (select * from pgbench_accounts limit 30000) to stdout' >accounts
`+psql+`-c 'create table again (like pgbench_accounts)'
`+psql+`-c 'copy again from stdin' <accounts
`+psql+`-c 'copy again to stdout' | cmp - accounts`)
}
