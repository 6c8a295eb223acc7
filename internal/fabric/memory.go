// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fabric

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"github.com/smckit/smckit/internal/remedy"

	"golang.org/x/sys/unix"
)

// memory is the memory of a fabric: a memfd whose size is fixed, and a mapping of its header and directory. Members can write to
// all of it at any time, so it is accessed by the functions below only, which copy.
type memory struct {
	file *os.File
	head []byte
}

// headLen is the length of the header and the largest directory.
const headLen = directoryAt + MembersMax*entryLen

// newMemory allocates size bytes of zeros and writes the header.
func newMemory(name string, size uint64, huge bool, header []byte) (*memory, error) {
	fd, err := createMemfd("smc-"+name, huge)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "memory of fabric "+name)
	if err := setSize(fd, size); err != nil {
		file.Close()
		return nil, err
	}
	m, err := mapMemory(file, huge)
	if err != nil {
		return nil, err
	}
	if err := m.write(0, header); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// setSize gives a memfd its size for ever.
func setSize(fd int, size uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("cannot examine the memory: %w", err)
	}
	if err := checkPageSize(size, uint64(st.Blksize)); err != nil {
		return err
	}
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return fmt.Errorf("cannot allocate %s of memory: %w", FormatSize(size), err)
	}
	// With F_SEAL_SEAL, no member can keep later ones from mapping the memory for writing.
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return fmt.Errorf("cannot fix the size of the memory: %w", err)
	}
	return nil
}

// checkPageSize returns an error if a memory cannot consist of pages of a size.
func checkPageSize(size, page uint64) error {
	if size%page == 0 {
		return nil
	}
	return remedy.Errorf(fmt.Sprintf("make the fabric %s, or leave out hugepages", FormatSize(page)), "the host's huge pages have %s, and %s is no multiple of that", FormatSize(page), FormatSize(size))
}

func createMemfd(name string, huge bool) (int, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	if huge {
		flags |= unix.MFD_HUGETLB
	}
	// Kernels before 6.3 do not know MFD_NOEXEC_SEAL.
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err == nil {
		return fd, nil
	}
	if huge {
		return -1, remedy.Errorf("leave out hugepages", "cannot create memory of huge pages: %w: the kernel may have none;", err)
	}
	return -1, fmt.Errorf("cannot create memory: %w", err)
}

// mapMemory maps what the server accesses of a file, and takes over the file, also if it fails. For huge pages it maps all of it,
// which reserves the pages: else a guest that writes to a page that the host lacks would be killed.
func mapMemory(file *os.File, huge bool) (*memory, error) {
	length := headLen
	if huge {
		st, err := file.Stat()
		if err != nil {
			file.Close()
			return nil, err
		}
		length = int(st.Size())
	}
	head, err := unix.Mmap(int(file.Fd()), 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		file.Close()
		if huge {
			return nil, remedy.Errorf("raise vm.nr_hugepages, or leave out hugepages", "the host has too few free huge pages: %w", err)
		}
		return nil, fmt.Errorf("cannot map the memory: %w", err)
	}
	return &memory{file, head}, nil
}

func (m *memory) close() {
	_ = unix.Munmap(m.head)
	m.file.Close()
}

// guard calls f, which accesses the mapping, and returns an error if the kernel has no page for it. A member can free pages by
// fallocate(), and the host may have no other ones left.
func guard(f func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(interface{ Addr() uintptr }); !ok {
				panic(r)
			}
			err = errors.New("the host has no memory left for the directory")
		}
	}()
	f()
	return nil
}

// word returns the aligned word at an offset, which this package has computed.
func (m *memory) word(at uint64) *uint64 {
	return (*uint64)(unsafe.Pointer(&m.head[at : at+8][0]))
}

// write stores bytes from a multiple of 8 on, in words.
func (m *memory) write(at uint64, b []byte) error {
	return guard(func() {
		for i := 0; i+8 <= len(b); i += 8 {
			atomic.StoreUint64(m.word(at+uint64(i)), binary.NativeEndian.Uint64(b[i:]))
		}
	})
}

// readEntry copies a member's entry of the directory, each word once.
func (m *memory) readEntry(member int) (b [entryLen]byte, err error) {
	err = guard(func() {
		for i := 0; i < entryLen; i += 8 {
			binary.NativeEndian.PutUint64(b[i:], atomic.LoadUint64(m.word(entry(member)+uint64(i))))
		}
	})
	return b, err
}

// setGID marks a member as gone, with 0, or as one that has to leave.
func (m *memory) setGID(member int, gid uint64) error {
	return guard(func() { atomic.StoreUint64(m.word(entry(member)+entryGID), gid) })
}

// clearEntry removes what a former member has left in the directory.
func (m *memory) clearEntry(member int) error {
	return m.write(entry(member), make([]byte, entryLen))
}
