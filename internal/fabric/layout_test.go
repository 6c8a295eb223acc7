// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHeaderFile compares all numbers with those of the kernel's header file.
func TestHeaderFile(t *testing.T) {
	text, err := os.ReadFile("../../kernel/transport/ism/fabric_layout.h")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^#define\s+(SMC_FABRIC_\w+)\s+(\d+)`).FindAllSubmatch(text, -1) {
		if want[string(m[1])], err = strconv.Atoi(string(m[2])); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]int{
		"SMC_FABRIC_MEMBERS_MAX": MembersMax, "SMC_FABRIC_MAGIC_AT": headerMagic, "SMC_FABRIC_MEMBERS": headerMembers,
		"SMC_FABRIC_CHID": headerCHID, "SMC_FABRIC_SIZE": headerSize, "SMC_FABRIC_UUID": headerUUID, "SMC_FABRIC_AREAS": headerAreas,
		"SMC_FABRIC_AREA_SIZE": headerAreaSize, "SMC_FABRIC_BLOCKS": headerBlocks, "SMC_FABRIC_BLOCKS_AT": headerBlocksAt,
		"SMC_FABRIC_NAME": headerName, "SMC_FABRIC_HEADER_LEN": headerLen, "SMC_FABRIC_DIRECTORY": directoryAt,
		"SMC_FABRIC_ENTRY_LEN": entryLen, "SMC_FABRIC_ENTRY_GID": entryGID, "SMC_FABRIC_ENTRY_USED": entryUsed,
		"SMC_FABRIC_ENTRY_RUNG": entryRung, "SMC_FABRIC_ENTRY_SPARED": entrySpared, "SMC_FABRIC_ENTRY_HOST": entryHost,
		"SMC_FABRIC_LOOKING": areaLooking, "SMC_FABRIC_BEAT": areaBeat, "SMC_FABRIC_SIGNALS": areaSignals, "SMC_FABRIC_BLOCK_LEN": BlockLen,
		"SMC_FABRIC_DMB_LEN": dmbLen, "SMC_FABRIC_DMB_TOKEN": dmbToken, "SMC_FABRIC_DMB_COPIES": dmbCopies,
		"SMC_FABRIC_DMB_SENDS": dmbSends, "SMC_FABRIC_DMB_WRITER": dmbWriter, "SMC_FABRIC_TOKEN_MEMBER": tokenMember, "SMC_FABRIC_TOKEN_BLOCK": tokenBlock,
		"SMC_FABRIC_TOKEN_CODE": tokenCode, "SMC_FABRIC_VECTOR_SIGNAL": VectorSignal, "SMC_FABRIC_VECTOR_MEMBERS": VectorMembers,
		"SMC_FABRIC_VECTORS": Vectors,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fabric_layout.h (-) and layout.go (+): %s", diff)
	}
	magic := regexp.MustCompile(`SMC_FABRIC_MAGIC\s+("[^"]*")`).FindSubmatch(text)
	if magic == nil {
		t.Fatal("the header file has no magic")
	}
	if m, err := strconv.Unquote(string(magic[1])); err != nil || m != Magic {
		t.Errorf("the magic is %q, in the header file %q (%v)", Magic, m, err)
	}
}

// ofOneKernel matches sizes that kernels differ in.
var ofOneKernel = regexp.MustCompile(`\b(PAGE_(SIZE|SHIFT|MASK|ALIGN)|SMP_CACHE_BYTES|L1_CACHE_BYTES|cache_line_size)\b`)

// TestPageSizes checks that nothing of a fabric in the kernel depends on the page size, in which its members may differ.
func TestPageSizes(t *testing.T) {
	files, err := filepath.Glob("../../kernel/transport/ism/fabric*.[ch]")
	if err != nil || len(files) < 6 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := ofOneKernel.Find(text); found != nil {
			t.Errorf("%s uses %s", file, found)
		}
	}
}

// TestLayout checks for all sizes and numbers of members that no two parts overlap, and that the areas have as many blocks as fit.
func TestLayout(t *testing.T) {
	for members := 2; members <= MembersMax; members++ {
		for size := SizeMin(members); size <= SizeMax(members); size *= 2 {
			l, err := NewLayout(size, members)
			if err != nil {
				t.Fatal(err)
			}
			blocks, at := uint64(l.Blocks), uint64(l.BlocksAt)
			if blocks < blocksMin || blocks > blocksMax || l.Areas%4096 != 0 || l.AreaSize%4096 != 0 || at%4096 != 0 {
				t.Errorf("%d members, %s: %+v", members, FormatSize(size), l)
			}
			if l.Areas < entry(members) || l.Area(members) > size || at+blocks*BlockLen > l.AreaSize {
				t.Errorf("%d members, %s: parts overlap: %+v", members, FormatSize(size), l)
			}
			if descriptors := alignUp(areaSignals+blocks, 64); at < descriptors+64*blocks {
				t.Errorf("%d members, %s: descriptors overlap blocks: %+v", members, FormatSize(size), l)
			}
			if blocks < blocksMax && areaNeed(blocks+1) <= l.AreaSize {
				t.Errorf("%d members, %s: there is room for another block: %+v", members, FormatSize(size), l)
			}
		}
	}
}

func TestLayoutRefuses(t *testing.T) {
	for _, tc := range []struct {
		size    uint64
		members int
		want    string
	}{
		{1 << 28, 1, "a fabric has 2 to 64 members, not 1"},
		{1 << 28, 65, "a fabric has 2 to 64 members, not 65"},
		{0, 2, "the size of a fabric is a power of two, as that of a PCI device's memory: 0 is not"},
		{3 << 20, 2, "the size of a fabric is a power of two, as that of a PCI device's memory: 3M is not"},
		{1 << 23, 8, "8M is too little for 8 members: they need at least 16M"},
		{1 << 63, 2, "8388608T is more than 2 members can use: give them at most 4G"},
	} {
		if _, err := NewLayout(tc.size, tc.members); err == nil || err.Error() != tc.want {
			t.Errorf("%d bytes, %d members: %v, want %s", tc.size, tc.members, err, tc.want)
		}
	}
}

func TestHeader(t *testing.T) {
	l, err := NewLayout(256<<20, 8)
	if err != nil {
		t.Fatal(err)
	}
	h := l.header("blue", 0xff10, [16]byte{1, 2, 3, 15: 16})
	le := binary.LittleEndian
	got := []uint64{
		uint64(le.Uint32(h[8:])), uint64(le.Uint32(h[12:])), le.Uint64(h[16:]), le.Uint64(h[40:]), le.Uint64(h[48:]),
		uint64(le.Uint32(h[56:])), uint64(le.Uint32(h[60:])),
	}
	want := []uint64{8, 0xff10, 256 << 20, 8192, 33550336, 2039, 139264}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+): %s", diff)
	}
	if len(h) != 96 || string(h[:8]) != Magic || h[24] != 1 || h[39] != 16 || string(h[64:69]) != "blue\x00" {
		t.Errorf("header: %q", h)
	}
	if long := l.header(strings.Repeat("x", 40), 0, [16]byte{}); long[95] != 0 {
		t.Error("no zero byte ends a long name")
	}
}

func TestCheckName(t *testing.T) {
	for name, good := range map[string]bool{
		"blue": true, "a": true, "9-b_c.D": true, strings.Repeat("x", 31): true,
		"": false, strings.Repeat("x", 32): false, ".": false, "..": false, "a/b": false, "-a": false, "a b": false, "ä": false, "a:b": false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func FuzzDecodeEntry(f *testing.F) {
	l, err := NewLayout(1<<24, 8)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(strings.Repeat("\xff", 64)))
	f.Add([]byte(strings.Repeat("\x00", 32) + "host-1\x00\x1b[2J"))
	f.Add([]byte(strings.Repeat("\x00", 32) + "a\x1b[2J\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var raw [entryLen]byte
		copy(raw[:], b)
		e := l.decodeEntry(raw)
		if e.used > l.AreaSize || len(e.host) > 31 || strings.ContainsFunc(e.host, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("%x: %+v", raw, e)
		}
	})
}
