// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/ism"
)

// The layout of a fabric's memory, as kernel/transport/ism/fabric_layout.h defines it. All numbers are little-endian.
const (
	// Magic begins the header; its last byte is the version of the layout.
	Magic = ism.FabricMagic
	// MembersMax is the largest number of members of a fabric.
	MembersMax = 64

	// Offsets in the header, which is at 0 of the memory.
	headerMagic    = 0
	headerMembers  = 8  // 4 bytes
	headerCHID     = 12 // 4 bytes
	headerSize     = 16 // 8 bytes
	headerUUID     = 24 // 16 bytes
	headerAreas    = 40 // 8 bytes
	headerAreaSize = 48 // 8 bytes
	headerBlocks   = 56 // 4 bytes
	headerBlocksAt = 60 // 4 bytes
	headerName     = 64 // 32 bytes
	headerLen      = 96

	// The directory: offset in the memory, length of an entry, and offsets in an entry.
	directoryAt = 4096
	entryLen    = 64
	entryGID    = 0
	entryUsed   = 8
	entryRung   = 16
	entrySpared = 24
	entryHost   = 32
	hostLen     = entryLen - entryHost
	// removedGID is the GID of a member that is removed and has to leave.
	removedGID = ^uint64(0)

	// Offsets in an area.
	areaLooking = 0
	areaBeat    = 8
	areaSignals = 4096
	// BlockLen is the length of a block in bytes.
	BlockLen  = 16384
	dmbLen    = 64
	dmbToken  = 0
	dmbCopies = 8
	dmbSends  = 16
	dmbWriter = 24

	// Shifts of the fields of a token.
	tokenMember = 56
	tokenBlock  = 40
	tokenCode   = 36

	// VectorSignal is the doorbell for a DMB of the member that is signalled.
	VectorSignal = 0
	// VectorMembers is the doorbell for a change of the directory.
	VectorMembers = 1
	// Vectors is the number of doorbells of each member.
	Vectors = 2
)

const (
	// nameMax is the length of the longest name: a zero byte ends it.
	nameMax = headerLen - headerName - 1
	// blocksMin is the smallest number of blocks that New accepts for each member: with fewer, a handful of connections with
	// default buffers fills an area.
	blocksMin = 64
	// blocksMax is the number of blocks that a token can name.
	blocksMax = 1 << 16
	areaAlign = 4096

	// CHIDMin and CHIDMax are the limits of CHIDs of virtual ISM devices.
	CHIDMin = 0xff00
	CHIDMax = 0xfffe
)

// Layout says where the parts of a fabric's memory are.
type Layout struct {
	// Size is that of the memory in bytes.
	Size uint64
	// Members is how many members there can be.
	Members int
	// Areas is the offset of the first area in bytes, AreaSize the length of each area.
	Areas, AreaSize uint64
	// Blocks is the number of blocks in each area, BlocksAt the offset of the first block in an area in bytes.
	Blocks, BlocksAt uint32
}

func alignUp(n, align uint64) uint64 { return (n + align - 1) / align * align }

// blocksAt returns the offset of the first block in an area with a number of blocks: the signals and the descriptors of DMBs
// are before it.
func blocksAt(blocks uint64) uint64 {
	return alignUp(alignUp(areaSignals+blocks, dmbLen)+blocks*dmbLen, areaAlign)
}

// areaNeed returns the length in bytes of the shortest area with a number of blocks.
func areaNeed(blocks uint64) uint64 { return blocksAt(blocks) + blocks*BlockLen }

// areasAt returns the offset of the first area: the directory ends before it.
func areasAt(members int) uint64 { return alignUp(directoryAt+uint64(members)*entryLen, areaAlign) }

// SizeMin returns the smallest size in bytes of a fabric with a number of members: a power of two.
func SizeMin(members int) uint64 { return sizeFor(members, blocksMin) }

// SizeMax returns the largest size in bytes of such a fabric: in a larger one, no member could use a part of its area.
func SizeMax(members int) uint64 { return sizeFor(members, blocksMax) }

// sizeFor returns the smallest power of two that gives each member a number of blocks.
func sizeFor(members int, blocks uint64) uint64 {
	need := areasAt(members) + uint64(members)*areaNeed(blocks)
	return 1 << bits.Len64(need-1)
}

// NewLayout divides a memory of size bytes, a power of two, among members. It returns an error if there can be no fabric with these
// numbers.
func NewLayout(size uint64, members int) (Layout, error) {
	switch {
	case members < 2 || members > MembersMax:
		return Layout{}, fmt.Errorf("a fabric has 2 to %d members, not %d", MembersMax, members)
	case size == 0 || size&(size-1) != 0:
		return Layout{}, fmt.Errorf("the size of a fabric is a power of two, as that of a PCI device's memory: %s is not", FormatSize(size))
	case size < SizeMin(members):
		return Layout{}, fmt.Errorf("%s is too little for %d members: they need at least %s", FormatSize(size), members, FormatSize(SizeMin(members)))
	case size > SizeMax(members):
		return Layout{}, remedy.Errorf(fmt.Sprintf("give them at most %s", FormatSize(SizeMax(members))), "%s is more than %d members can use", FormatSize(size), members)
	}
	l := Layout{Size: size, Members: members, Areas: areasAt(members)}
	l.AreaSize = (size - l.Areas) / uint64(members) / areaAlign * areaAlign
	// A first guess without rounding, which can be too high by one or two blocks.
	blocks := min((l.AreaSize-areaSignals)/(1+dmbLen+BlockLen), blocksMax)
	for areaNeed(blocks) > l.AreaSize {
		blocks--
	}
	l.Blocks, l.BlocksAt = uint32(blocks), uint32(blocksAt(blocks))
	return l, nil
}

// Area returns the offset in bytes of a member's area.
func (l Layout) Area(member int) uint64 { return l.Areas + uint64(member)*l.AreaSize }

// entry returns the offset of a member's entry of the directory.
func entry(member int) uint64 { return directoryAt + uint64(member)*entryLen }

// header returns the header of a fabric.
func (l Layout) header(name string, chid uint16, uuid [16]byte) []byte {
	h := make([]byte, headerLen)
	le := binary.LittleEndian
	copy(h[headerMagic:], Magic)
	le.PutUint32(h[headerMembers:], uint32(l.Members))
	le.PutUint32(h[headerCHID:], uint32(chid))
	le.PutUint64(h[headerSize:], l.Size)
	copy(h[headerUUID:], uuid[:])
	le.PutUint64(h[headerAreas:], l.Areas)
	le.PutUint64(h[headerAreaSize:], l.AreaSize)
	le.PutUint32(h[headerBlocks:], l.Blocks)
	le.PutUint32(h[headerBlocksAt:], l.BlocksAt)
	copy(h[headerName:headerName+nameMax], name)
	return h
}

// CheckName returns an error if a fabric cannot have a name. Names are 1 to 31 letters, digits, dots, underscores and hyphens, the
// first of which is a letter or a digit, so that they can be part of file names.
func CheckName(name string) error {
	if name == "" || len(name) > nameMax {
		return fmt.Errorf("the name of a fabric has 1 to %d characters", nameMax)
	}
	for i, c := range []byte(name) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return errors.New("the name of a fabric has letters, digits, and after the first of these dots, underscores and hyphens")
		}
	}
	return nil
}

// FormatSize returns a number of bytes in the largest unit of K, M, G and T in which it is an integer.
func FormatSize(size uint64) string {
	unit := ""
	for _, u := range []string{"K", "M", "G", "T"} {
		if size == 0 || size%1024 != 0 {
			break
		}
		size, unit = size/1024, u
	}
	return fmt.Sprintf("%d%s", size, unit)
}

var sizeText = regexp.MustCompile(`^([0-9]+)([KMGT]?)$`)

// ParseSize reads a number of bytes, with K, M, G or T.
func ParseSize(text string) (uint64, error) {
	m := sizeText.FindStringSubmatch(text)
	if m == nil {
		return 0, remedy.Errorf("write a number and K, M, G or T, such as 256M", "%q is no size", text)
	}
	n, err := strconv.ParseUint(m[1], 10, 64)
	shift := 10 * (strings.Index("KMGT", m[2]) + 1)
	if m[2] == "" {
		shift = 0
	}
	if err != nil || bits.Len64(n)+shift > 63 {
		return 0, fmt.Errorf("%s is too much", text)
	}
	return n << shift, nil
}

// directoryEntry is what a member says about itself. Nothing in it is trusted.
type directoryEntry struct {
	gid, used, rung, spared uint64
	host                    string
}

// decodeEntry reads an entry that has been copied from the memory. used cannot be more than what an area has, and host has printable
// ASCII characters only: all others are replaced by question marks.
func (l Layout) decodeEntry(b [entryLen]byte) directoryEntry {
	le := binary.LittleEndian
	e := directoryEntry{
		gid:    le.Uint64(b[entryGID:]),
		used:   min(le.Uint64(b[entryUsed:]), uint64(l.Blocks)*BlockLen),
		rung:   le.Uint64(b[entryRung:]),
		spared: le.Uint64(b[entrySpared:]),
	}
	host := b[entryHost : entryHost+hostLen-1]
	for i, c := range host {
		if c == 0 {
			host = host[:i]
			break
		}
		if c <= ' ' || c > '~' {
			host[i] = '?'
		}
	}
	e.host = string(host)
	return e
}
