// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// process is a process that has a socket open.
type process struct {
	PID  int
	Name string
	// FD is the descriptor of the socket in the process.
	FD int
}

// dirBatch is how many directory entries are read at once: a process may have a million descriptors.
const dirBatch = 512

// procScan finds the owners of sockets in a procfs.
type procScan struct {
	root string
	// want is sorted.
	want  []uint64
	found map[uint64][]process
}

// scanProcesses returns the processes below root, a procfs, that have a socket with one of the given inodes open, ordered by
// process. It sorts inodes. It leaves out processes that it may not inspect, or that end while it reads them.
func scanProcesses(ctx context.Context, root string, inodes []uint64) (map[uint64][]process, error) {
	slices.Sort(inodes)
	s := procScan{root: root, want: slices.Compact(inodes), found: map[uint64][]process{}}
	if len(s.want) == 0 {
		return s.found, nil
	}
	err := readNumbers(root, func(pid int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.scan(pid)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, list := range s.found {
		slices.SortFunc(list, func(a, b process) int {
			if a.PID != b.PID {
				return a.PID - b.PID
			}
			return a.FD - b.FD
		})
	}
	return s.found, nil
}

// scan records the sockets of one process. An error means that the process has ended or belongs to another user.
func (s *procScan) scan(pid int) {
	dir := filepath.Join(s.root, strconv.Itoa(pid))
	name, named := "", false
	_ = readNumbers(filepath.Join(dir, "fd"), func(fd int) error {
		inode, ok := socketInode(filepath.Join(dir, "fd", strconv.Itoa(fd)))
		if !ok {
			return nil
		}
		if _, wanted := slices.BinarySearch(s.want, inode); !wanted {
			return nil
		}
		if !named {
			name, named = processName(dir), true
		}
		s.found[inode] = append(s.found[inode], process{PID: pid, Name: name, FD: fd})
		return nil
	})
}

// readNumbers calls visit for each entry of dir whose name is a number.
func readNumbers(dir string, visit func(n int) error) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(dirBatch)
		for _, name := range names {
			n, nerr := strconv.Atoi(name)
			if nerr != nil {
				continue
			}
			if verr := visit(n); verr != nil {
				return verr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// socketInode returns the inode if path, an entry of /proc/PID/fd, is a socket.
func socketInode(path string) (uint64, bool) {
	target, err := os.Readlink(path)
	if err != nil {
		return 0, false
	}
	text, ok := strings.CutPrefix(target, "socket:[")
	if !ok {
		return 0, false
	}
	inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64)
	return inode, err == nil
}

// processName returns the command name, which the process may set to any 15 bytes.
func processName(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return "?"
	}
	return strings.TrimSuffix(string(b), "\n")
}
