// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"encoding/binary"
	"io"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"github.com/smckit/smckit/pkg/internal/attrtest"
)

// testFamily is the number that the faked kernel gives the SMC family.
const testFamily = 0x21

// The functions below write attributes the way the kernel does, independently of the package's own code.

func attr(typ uint16, value []byte) []byte {
	return []byte(attrtest.Attr(typ, string(value)))
}

func u8(typ uint16, v uint8) []byte   { return attr(typ, []byte{v}) }
func u16(typ uint16, v uint16) []byte { return attr(typ, binary.NativeEndian.AppendUint16(nil, v)) }
func u32(typ uint16, v uint32) []byte { return attr(typ, binary.NativeEndian.AppendUint32(nil, v)) }
func u64(typ uint16, v uint64) []byte { return attr(typ, binary.NativeEndian.AppendUint64(nil, v)) }
func str(typ uint16, s string) []byte { return attr(typ, append([]byte(s), 0)) }

func join(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// nested writes a nest, with the flag that older parts of the kernel leave out.
func nested(typ uint16, parts ...[]byte) []byte { return attr(typ|netlink.Nested, join(parts...)) }

// reply is a generic netlink message of the SMC family.
func reply(parts ...[]byte) genetlink.Message {
	return genetlink.Message{Header: genetlink.Header{Command: 1, Version: 1}, Data: join(parts...)}
}

func replies(msgs ...genetlink.Message) []genetlink.Message { return msgs }

// fakeClient returns a Client whose requests fn answers.
func fakeClient(tb testing.TB, fn genltest.Func) *Client {
	tb.Helper()
	conn := genltest.Dial(genltest.ServeFamily(genetlink.Family{ID: testFamily, Name: familyName, Version: 1}, fn))
	c, err := NewFromConn(conn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// listing returns a Client that gets the same answer to every dump; it may be empty.
func listing(tb testing.TB, msgs []genetlink.Message) *Client {
	tb.Helper()
	return fakeClient(tb, func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
		if len(msgs) == 0 {
			return nil, io.EOF
		}
		return msgs, nil
	})
}

// rawClient returns a Client on a connection where fn writes netlink messages, headers included.
func rawClient(tb testing.TB, fn nltest.Func) *Client {
	tb.Helper()
	conn := genetlink.NewConn(nltest.Dial(func(reqs []netlink.Message) ([]netlink.Message, error) {
		if len(reqs) == 1 && reqs[0].Header.Type == 0x10 {
			return []netlink.Message{{
				Header: netlink.Header{Sequence: reqs[0].Header.Sequence, PID: nltest.PID},
				Data:   join([]byte{1, 2, 0, 0}, u16(1, testFamily)),
			}}, nil
		}
		return fn(reqs)
	}))
	c, err := NewFromConn(conn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// optionals lets cmp compare what has an Optional in it.
var optionals = cmp.Options{
	cmp.Exporter(func(t reflect.Type) bool {
		return t.PkgPath() == reflect.TypeFor[Optional[bool]]().PkgPath() && strings.HasPrefix(t.Name(), "Optional[")
	}),
}

func diff(tb testing.TB, want, got any) {
	tb.Helper()
	if d := cmp.Diff(want, got, optionals...); d != "" {
		tb.Errorf("mismatch (-want +got):\n%s", d)
	}
}

// errorReply is how the kernel refuses req: the errno, the header of the request, and, if text is not empty, an extended
// acknowledgement. nltest's own writes the request's flags, of which one then means something else.
func errorReply(req netlink.Message, errno syscall.Errno, text string) []netlink.Message {
	header, err := netlink.Message{Header: netlink.Header{
		Length: 16, Type: req.Header.Type, Flags: req.Header.Flags, Sequence: req.Header.Sequence, PID: req.Header.PID,
	}}.MarshalBinary()
	if err != nil {
		panic(err)
	}
	m := netlink.Message{
		Header: netlink.Header{
			Type: netlink.Error, Flags: netlink.Capped, Sequence: req.Header.Sequence, PID: req.Header.PID,
		},
		Data: append(binary.NativeEndian.AppendUint32(nil, uint32(-int32(errno))), header...),
	}
	if text != "" {
		m.Header.Flags |= netlink.AcknowledgeTLVs
		m.Data = append(m.Data, str(1, text)...)
	}
	return []netlink.Message{m}
}
