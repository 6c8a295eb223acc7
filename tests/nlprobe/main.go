// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command nlprobe sends a fixed series of good and bad requests to the SMC netlink families and prints the answers of the
// kernel: the errno, the text of the refusal, and the replies. If the output is the same on two kernels, they behave in the
// same way towards user space. It changes the PNET table, the user EIDs and the handshake limitation: use it in guests of the
// lab only.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
)

func main() {
	w := bufio.NewWriter(os.Stdout)
	err := errors.Join(run(w, "SMC_PNETID", pnetProbes()), run(w, "SMC_GEN_NETLINK", genProbes()))
	err = errors.Join(err, w.Flush())
	if err != nil {
		fmt.Fprintln(os.Stderr, "nlprobe:", err)
		os.Exit(1)
	}
}

// attr is one attribute of a request.
type attr struct {
	kind uint16
	data []byte
}

// str is an attribute with a terminated string.
func str(kind uint16, s string) attr { return attr{kind, []byte(s + "\x00")} }

// raw is an attribute with exactly these bytes.
func raw(kind uint16, s string) attr { return attr{kind, []byte(s)} }

// num is an attribute with one byte.
func num(kind uint16, n uint8) attr { return attr{kind, []byte{n}} }

// probe is one request.
type probe struct {
	name  string
	cmd   uint8
	flags netlink.HeaderFlags
	attrs []attr
}

// Flags of a request. Only the first datagram is read of the reply to a request that is not a dump, so a request that is
// answered with data must not set NLM_F_ACK.
const (
	dump = netlink.Request | netlink.Dump
	ack  = netlink.Request | netlink.Acknowledge
	bare = netlink.Request
)

func run(w *bufio.Writer, family string, probes []probe) error {
	for i, p := range probes {
		if err := p.run(w, family, i == 0); err != nil {
			return fmt.Errorf("%s: %w", family, err)
		}
	}
	return nil
}

// run makes one request on a socket of its own, so that unread replies do not disturb another request.
func (p probe) run(w *bufio.Writer, family string, first bool) error {
	conn, err := genetlink.Dial(nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetOption(netlink.ExtendedAcknowledge, true); err != nil {
		return err
	}
	f, err := conn.GetFamily(family)
	if err != nil {
		return err
	}
	if first {
		fmt.Fprintf(w, "%s version %d groups %d\n", family, f.Version, len(f.Groups))
	}
	attrs := make([]netlink.Attribute, 0, len(p.attrs))
	for _, a := range p.attrs {
		attrs = append(attrs, netlink.Attribute{Type: a.kind, Data: a.data})
	}
	data, err := netlink.MarshalAttributes(attrs)
	if err != nil {
		return err
	}
	req := genetlink.Message{Header: genetlink.Header{Command: p.cmd, Version: f.Version}, Data: data}
	msgs, err := conn.Execute(req, f.ID, p.flags)
	fmt.Fprintf(w, "%s: %s\n", p.name, outcome(err))
	for _, m := range msgs {
		if p.flags == ack {
			continue // it repeats the request
		}
		fmt.Fprintf(w, "\t%d %s\n", m.Header.Command, hex.EncodeToString(withoutOurs(m.Data)))
	}
	return nil
}

// withoutOurs removes the attributes that only smckit's module has: their numbers are from 256 on.
func withoutOurs(b []byte) (out []byte) {
	const header, number, nested, firstOurs = 4, 0x3fff, 0x8000, 256
	for len(b) >= header {
		n, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if n < header || n > len(b) {
			break
		}
		next := min((n+3)&^3, len(b))
		if kind&number < firstOurs {
			value := b[header:n]
			if kind&nested != 0 {
				value = withoutOurs(value)
			}
			out = binary.NativeEndian.AppendUint16(out, uint16(header+len(value)))
			out = binary.NativeEndian.AppendUint16(out, kind)
			out = append(append(out, value...), b[n:next]...)
		}
		b = b[next:]
	}
	return append(out, b...)
}

// outcome returns the result of a request as text.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	s := err.Error()
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		s = fmt.Sprintf("errno %d", int(errno))
	}
	if op, ok := errors.AsType[*netlink.OpError](err); ok && op.Message != "" {
		s += " (" + strings.TrimSpace(op.Message) + ")"
	}
	return s
}
