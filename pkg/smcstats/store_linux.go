// SPDX-License-Identifier: Apache-2.0

package smcstats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"
	"github.com/smckit/smckit/pkg/smcerr"
	"golang.org/x/sys/unix"
)

// maxFile is the maximum size of a baseline file; real ones have a few KiB.
const maxFile = 256 << 10

// Store keeps the baseline of one name (the command it belongs to) for one user and one Origin.
//
// The file is in a directory that only the user can enter, and is replaced as a whole: readers never see half of it and never
// wait for a lock, and no other user can put a file or a link in its place. Resets lock the directory against each other.
type Store struct {
	// Dir is the directory; Reset creates it.
	Dir string
	// Name identifies the baseline in Dir, such as "smcr". It must be valid in a file name.
	Name string
	// Origin identifies the counters to compare.
	Origin Origin
	// UID is the user who must own the files.
	UID int
	// Legacy is the baseline file of smc-tools, used as long as there is none of ours; empty for none.
	Legacy string
	// Booted is the time when the kernel was started; an older Legacy file is not used.
	Booted time.Time
	// Now is the clock.
	Now func() time.Time
}

// NewStore returns the store of the calling user for the network namespace it is in. It reads the environment for the
// directory only; see Dir.
func NewStore(name string, getenv func(string) string) (*Store, error) {
	origin, err := ReadOrigin()
	if err != nil {
		return nil, err
	}
	uid := os.Geteuid()
	dir, err := Dir(uid, getenv)
	if err != nil {
		return nil, err
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return nil, fmt.Errorf("reading the uptime: %w", err)
	}
	return &Store{
		Dir: dir, Name: name, Origin: origin, UID: uid,
		Legacy: fmt.Sprintf("/tmp/.smcstats.u%d", os.Getuid()),
		Booted: time.Now().Add(-time.Duration(info.Uptime) * time.Second),
		Now:    time.Now,
	}, nil
}

// Dir returns the directory for the baselines of user uid: /run/smckit for root, whose baselines need not outlive the
// boot, else smckit in $XDG_STATE_HOME or ~/.local/state.
func Dir(uid int, getenv func(string) string) (string, error) {
	if uid == 0 {
		return "/run/smckit", nil
	}
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "smckit"), nil
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "smckit"), nil
	}
	return "", &smcerr.Error{
		Err: errors.New("no directory for a statistics baseline"), Remedy: "set HOME or XDG_STATE_HOME to a directory of yours",
	}
}

// Reading is a Snapshot and the start of its counting.
type Reading struct {
	*Snapshot
	// Since is the time when the baseline was taken; zero if the counters are those since the module was loaded.
	Since time.Time
	// Note is the reason why an existing baseline was not used, so that the reading is absolute. It is nil if there is no such
	// reason.
	Note error
}

// Reduce returns cur minus the baseline, or cur itself if there is none that fits. If a baseline can never fit again, because
// the module was reloaded, Reduce removes it and sets Note. It never creates a file.
func (s *Store) Reduce(cur *Snapshot) Reading {
	base, err := s.load()
	if errors.Is(err, os.ErrNotExist) {
		return s.reduceLegacy(cur)
	}
	if err != nil {
		return Reading{Snapshot: cur, Note: fmt.Errorf(
			"statistics baseline not used: %w; figures count from module load, 'reset' makes a new baseline", err)}
	}
	var out *Snapshot
	if !s.Origin.sameLife(base.Origin) {
		err = errors.New("the SMC module was reloaded")
	} else {
		out, err = Sub(cur, &base.Snapshot)
	}
	if err != nil {
		if rerr := os.Remove(s.path()); rerr != nil {
			err = errors.Join(err, rerr)
		}
		return Reading{Snapshot: cur, Note: fmt.Errorf(
			"statistics baseline of %s dropped: %w; figures count from module load", base.Taken.Format(time.RFC3339), err)}
	}
	return Reading{Snapshot: out, Since: base.Taken}
}

// reduceLegacy is Reduce for the file of smc-tools. It never changes the file, which belongs to smc-tools.
func (s *Store) reduceLegacy(cur *Snapshot) Reading {
	if !s.legacyFits() {
		return Reading{Snapshot: cur}
	}
	base, err := s.loadLegacy()
	if errors.Is(err, os.ErrNotExist) || err == nil && base == nil {
		return Reading{Snapshot: cur}
	}
	var out *Snapshot
	if err == nil {
		out, err = Sub(cur, &base.Snapshot)
	}
	if err != nil {
		return Reading{Snapshot: cur, Note: fmt.Errorf(
			"baseline of smc-tools %s not used: %w; figures count from module load", s.Legacy, err)}
	}
	return Reading{Snapshot: out, Since: base.Taken}
}

// Baseline returns the counters at the last reset. Like Reduce it also uses the baseline of smc-tools. The error is
// os.ErrNotExist if there was no reset that fits the Origin, smcerr.ErrMalformed if the file is damaged, and
// smcerr.ErrPermission if the user may not read it.
func (s *Store) Baseline() (*Snapshot, error) {
	base, err := s.baseline()
	return base, smcerr.With(err, smcerr.Kind(err))
}

func (s *Store) baseline() (*Snapshot, error) {
	base, err := s.load()
	if errors.Is(err, os.ErrNotExist) && s.legacyFits() {
		if base, err = s.loadLegacy(); err == nil && base == nil {
			err = os.ErrNotExist
		}
		if err != nil {
			return nil, err
		}
		return &base.Snapshot, nil
	}
	if err != nil {
		return nil, err
	}
	if !s.Origin.sameLife(base.Origin) {
		return nil, os.ErrNotExist
	}
	return &base.Snapshot, nil
}

// Reset makes cur the baseline. While another reset is in progress, it waits until that reset is done, ctx ends, or ten seconds
// have passed. The error is smcerr.ErrPermission if the user may not write to Dir.
func (s *Store) Reset(ctx context.Context, cur *Snapshot) error {
	data, err := MarshalBaseline(&Baseline{Snapshot: *cur, Taken: s.Now(), Origin: s.Origin})
	if err != nil {
		return err
	}
	if err := s.save(ctx, data); err != nil {
		return fmt.Errorf("statistics baseline not stored: %w", smcerr.With(err, smcerr.Kind(err)))
	}
	return nil
}

// legacyFits reports whether the file of smc-tools may belong to this Origin. The file does not name its network namespace, so
// it is used only in the initial one.
func (s *Store) legacyFits() bool { return s.Legacy != "" && s.Origin.NetNS == initialNetNS }

func (s *Store) save(ctx context.Context, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(s.Dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(s.Dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := s.checkDir(); err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s.prune()
	return renameio.WriteFile(s.path(), data, 0o600, renameio.WithTempDir(s.Dir), renameio.WithStaticPermissions(0o600))
}

// lockTimeout is how long a reset waits for others, each of which takes milliseconds.
const lockTimeout = 10 * time.Second

// lock keeps other resets from the directory, until unlock is called or this process ends.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	// The directory itself, so that no file is left behind.
	dir := flock.New(s.Dir, flock.SetFlag(os.O_RDONLY))
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	if _, err := dir.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return nil, fmt.Errorf("waiting for another reset, which has locked %s: %w", s.Dir, err)
	}
	return func() { _ = dir.Close() }, nil
}

// path is the baseline's file. The boot and the namespace are part of the name, so that those of other namespaces stay and
// those of other boots are recognised without opening them.
func (s *Store) path() string {
	return filepath.Join(s.Dir, s.boot()+"."+s.Origin.NetNS+"."+s.Name)
}

func (s *Store) boot() string { return strings.ReplaceAll(s.Origin.Boot, "/", "_") }

// prune removes the files of former boots and of resets that were killed. The directory must be locked: the temporary file of
// a reset looks like that. Failing to prune is no reason not to store a baseline.
func (s *Store) prune() {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), s.boot()+".") && e.Type().IsRegular() {
			_ = os.Remove(filepath.Join(s.Dir, e.Name()))
		}
	}
}

// checkDir refuses a directory that others could write to.
func (s *Store) checkDir() error {
	info, err := os.Lstat(s.Dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(st.Uid) != s.UID || info.Mode().Perm()&0o022 != 0 {
		return &smcerr.Error{Err: fmt.Errorf("%s is not a directory that only you (user %d) can write to", s.Dir, s.UID), Remedy: "move it away"}
	}
	return nil
}

func (s *Store) load() (*Baseline, error) {
	if err := s.checkDir(); err != nil {
		return nil, err
	}
	data, _, err := s.readFile(s.path())
	if err != nil {
		return nil, err
	}
	base, err := UnmarshalBaseline(data)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", s.path(), err)
	}
	return base, nil
}

// loadLegacy returns os.ErrNotExist also for a file of a former boot.
func (s *Store) loadLegacy() (*Baseline, error) {
	data, written, err := s.readFile(s.Legacy)
	if err != nil {
		return nil, err
	}
	if written.Before(s.Booted) {
		return nil, os.ErrNotExist
	}
	base, err := ParseLegacy(data)
	if base != nil {
		base.Taken = written
	}
	return base, err
}

// readFile reads a file, which must be a regular file that belongs to the user. It never waits: not for the other end of a
// FIFO, nor for a lock, which smc-tools holds while it writes. If the file is locked, it returns an error.
func (s *Store) readFile(path string) (data []byte, written time.Time, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, time.Time{}, &smcerr.Error{Err: fmt.Errorf("%s is a symbolic link", path), Remedy: "remove it"}
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || !ok || int(st.Uid) != s.UID {
		return nil, time.Time{}, fmt.Errorf("%s is not a file of yours (user %d)", path, s.UID)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		return nil, time.Time{}, fmt.Errorf("%s is in use by another program", path)
	}
	data, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is too large for a baseline", path)
	}
	return data, info.ModTime(), err
}
