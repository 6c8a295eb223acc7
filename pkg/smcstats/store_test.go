// SPDX-License-Identifier: Apache-2.0

package smcstats

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/pkg/smcerr"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

var testOrigin = Origin{Boot: "boot", NetNS: "1", Module: "77"}

func testStore(t *testing.T) *Store {
	t.Helper()
	dir := t.TempDir()
	return &Store{
		Dir: filepath.Join(dir, "state", "smckit"), Name: "smcr", Origin: testOrigin, UID: os.Geteuid(),
		Legacy: filepath.Join(dir, ".smcstats"),
		Now:    func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	}
}

func reset(t *testing.T, s *Store, cur *Snapshot) {
	t.Helper()
	if err := s.Reset(t.Context(), cur); err != nil {
		t.Fatal(err)
	}
}

// TestResetsAtOnce has many resets, each of which would remove what others have written and not yet renamed.
func TestResetsAtOnce(t *testing.T) {
	s := testStore(t)
	var resets errgroup.Group
	for range 8 {
		resets.Go(func() error {
			for i := range 50 {
				if err := s.Reset(t.Context(), numbered(uint64(i))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := resets.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := s.Baseline(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(s.Dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestStore(t *testing.T) {
	s := testStore(t)
	cur := numbered(10)
	if r := s.Reduce(cur); r.Snapshot != cur || r.Note != nil || !r.Since.IsZero() {
		t.Errorf("without a baseline: %+v", r)
	}
	if _, err := os.Stat(filepath.Dir(s.Dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("showing has created something: %v", err)
	}
	if _, err := s.Baseline(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Baseline: %v", err)
	}
	reset(t, s, cur)
	if r := s.Reduce(numbered(15)); r.Note != nil || r.SMCR.TxCount != 5 || !r.Since.Equal(s.Now()) {
		t.Errorf("with a baseline: %d, %v, %v", r.SMCR.TxCount, r.Since, r.Note)
	}
	if b, err := s.Baseline(); err != nil || b.SMCR.TxCount != cur.SMCR.TxCount {
		t.Errorf("Baseline: %+v, %v", b, err)
	}
	for path, want := range map[string]os.FileMode{s.Dir: 0o700 | os.ModeDir, s.path(): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	// Another command and another namespace have their own.
	other := *s
	other.Name = "smcd"
	foreign := *s
	foreign.Origin.NetNS = "2"
	for _, o := range []*Store{&other, &foreign} {
		if r := o.Reduce(cur); r.Snapshot != cur || r.Note != nil {
			t.Errorf("%s in %s uses a foreign baseline", o.Name, o.Origin.NetNS)
		}
	}
}

// TestStoreDropped checks that a baseline of another life of the module is removed, with a note.
func TestStoreDropped(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *Store, cur *Snapshot)
		note   string
	}{
		"counters below": {func(_ *Store, cur *Snapshot) { cur.SMCR.TxCount = 0 }, "SMC_TX_CNT is 0"},
		"module reload":  {func(s *Store, _ *Snapshot) { s.Origin.Module = "78" }, "reloaded"},
	} {
		s := testStore(t)
		reset(t, s, numbered(10))
		cur := numbered(10)
		tc.change(s, cur)
		r := s.Reduce(cur)
		if r.Snapshot != cur || r.Note == nil || !strings.Contains(r.Note.Error(), tc.note) ||
			!strings.Contains(r.Note.Error(), "dropped") {
			t.Errorf("%s: %v", name, r.Note)
		}
		if r := s.Reduce(cur); r.Snapshot != cur || r.Note != nil {
			t.Errorf("%s: second time: %v", name, r.Note)
		}
	}
}

// TestResetCancelled ends the context of a reset that waits for another one.
func TestResetCancelled(t *testing.T) {
	s := testStore(t)
	reset(t, s, numbered(1))
	unlock, err := s.lock(t.Context())
	must(t, err)
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.Reset(ctx, numbered(2)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if b, err := s.Baseline(); err != nil || b.SMCR.TxCount != numbered(1).SMCR.TxCount {
		t.Errorf("the baseline has changed: %v", err)
	}
}

// TestStorePrunes checks that a reset removes what former boots have left, and nothing else.
func TestStorePrunes(t *testing.T) {
	s := testStore(t)
	before := *s
	before.Origin.Boot = "former"
	reset(t, &before, numbered(1))
	second := *s
	second.Origin.NetNS = "2"
	reset(t, &second, numbered(1))
	reset(t, s, numbered(1))
	for _, tc := range []struct {
		s      *Store
		exists bool
	}{{&before, false}, {&second, true}, {s, true}} {
		if _, err := os.Stat(tc.s.path()); (err == nil) != tc.exists {
			t.Errorf("%s: %v", tc.s.path(), err)
		}
	}
}

// TestStoreHostile checks files and directories that another user could have prepared.
func TestStoreHostile(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(t *testing.T, s *Store)
		note    string
		heals   bool // a reset puts things right
		remedy  string
	}{
		"damaged": {func(t *testing.T, s *Store) { write(t, s.path(), "{") }, "is damaged", true, ""},
		"empty":   {func(t *testing.T, s *Store) { write(t, s.path(), "") }, "is damaged", true, ""},
		"huge":    {func(t *testing.T, s *Store) { write(t, s.path(), strings.Repeat(" ", maxFile+1)) }, "too large", true, ""},
		"symlink": {func(t *testing.T, s *Store) {
			must(t, os.Remove(s.path()))
			must(t, os.Symlink("/etc/passwd", s.path()))
		}, "symbolic link", true, "remove it"},
		"fifo": {func(t *testing.T, s *Store) {
			must(t, os.Remove(s.path()))
			must(t, unix.Mkfifo(s.path(), 0o600))
		}, "not a file of yours", true, ""},
		"locked": {func(t *testing.T, s *Store) {
			f, err := os.Open(s.path())
			must(t, err)
			must(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
			t.Cleanup(func() { f.Close() })
		}, "in use", true, ""},
		"writable directory": {func(t *testing.T, s *Store) { must(t, os.Chmod(s.Dir, 0o777)) }, "only you", false, "move it away"},
		"foreign directory":  {func(_ *testing.T, s *Store) { s.UID++ }, "only you", false, "move it away"},
		"linked directory": {func(t *testing.T, s *Store) {
			must(t, os.Rename(s.Dir, s.Dir+"2"))
			must(t, os.Symlink(s.Dir+"2", s.Dir))
		}, "only you", false, "move it away"},
	} {
		t.Run(name, func(t *testing.T) {
			s := testStore(t)
			reset(t, s, numbered(10))
			tc.prepare(t, s)
			cur := numbered(20)
			r := s.Reduce(cur)
			if r.Snapshot != cur || r.Note == nil || !strings.Contains(r.Note.Error(), tc.note) {
				t.Errorf("note: %v", r.Note)
			}
			if e, ok := errors.AsType[*smcerr.Error](r.Note); ok != (tc.remedy != "") || ok && e.Remedy != tc.remedy {
				t.Errorf("the remedy of %q is not %q", r.Note, tc.remedy)
			}
			if err := s.Reset(t.Context(), cur); (err == nil) != tc.heals {
				t.Errorf("Reset: %v", err)
			}
			if tc.heals {
				if r := s.Reduce(cur); r.Note != nil || r.SMCR.TxCount != 0 {
					t.Errorf("after a reset: %d, %v", r.SMCR.TxCount, r.Note)
				}
			}
			if data, err := os.ReadFile("/etc/passwd"); err != nil || strings.Contains(string(data), "schema") {
				t.Errorf("a link was followed: %v", err)
			}
		})
	}
}

func TestStoreLegacy(t *testing.T) {
	file := legacyFile(numbered(10), legacyGauges)
	for name, tc := range map[string]struct {
		prepare func(t *testing.T, s *Store)
		want    uint64 // of a counter that has grown by 5 to 77
		note    string
	}{
		"used":           {func(*testing.T, *Store) {}, 5, ""},
		"own wins":       {func(t *testing.T, s *Store) { reset(t, s, numbered(14)) }, 1, ""},
		"other netns":    {func(_ *testing.T, s *Store) { s.Origin.NetNS = "2" }, 77, ""},
		"former boot":    {func(_ *testing.T, s *Store) { s.Booted = time.Now().Add(time.Hour) }, 77, ""},
		"left by show":   {func(t *testing.T, s *Store) { write(t, s.Legacy, "") }, 77, ""},
		"damaged":        {func(t *testing.T, s *Store) { write(t, s.Legacy, "x\n") }, 77, "1 lines"},
		"not ours":       {func(_ *testing.T, s *Store) { s.UID++ }, 77, "not a file of yours"},
		"counters below": {func(t *testing.T, s *Store) { write(t, s.Legacy, legacyFile(numbered(99), 0)) }, 77, "lower"},
	} {
		t.Run(name, func(t *testing.T) {
			s := testStore(t)
			write(t, s.Legacy, file)
			tc.prepare(t, s)
			r := s.Reduce(numbered(15))
			if r.SMCR.TxCount != tc.want {
				t.Errorf("counter %d, want %d", r.SMCR.TxCount, tc.want)
			}
			if (r.Note == nil) != (tc.note == "") || r.Note != nil && !strings.Contains(r.Note.Error(), tc.note) {
				t.Errorf("note: %v", r.Note)
			}
			if _, err := os.Stat(s.Legacy); err != nil {
				t.Errorf("the file of smc-tools is gone: %v", err)
			}
		})
	}
}

func TestDir(t *testing.T) {
	for _, tc := range []struct {
		uid  int
		env  map[string]string
		want string
	}{
		{0, map[string]string{"HOME": "/root"}, "/run/smckit"},
		{7, map[string]string{"HOME": "/h", "XDG_STATE_HOME": "/s"}, "/s/smckit"},
		{7, map[string]string{"HOME": "/h", "XDG_STATE_HOME": "relative"}, "/h/.local/state/smckit"},
		{7, map[string]string{"HOME": "."}, ""},
		{7, nil, ""},
	} {
		got, err := Dir(tc.uid, func(k string) string { return tc.env[k] })
		if got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%d %v: %q, %v", tc.uid, tc.env, got, err)
		}
	}
}

// TestReadOrigin reads the real thing, which needs no SMC.
func TestReadOrigin(t *testing.T) {
	a, err := ReadOrigin()
	if err != nil {
		t.Fatal(err)
	}
	b, err := ReadOrigin()
	if err != nil || a != b || a.Boot == "" || a.NetNS == "" {
		t.Errorf("%+v, then %+v, %v", a, b, err)
	}
	if name := moduleName(t.TempDir()); name == "" {
		t.Error("no name for a directory that exists")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, data string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(data), 0o600))
}
