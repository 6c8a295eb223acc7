// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// view shows one listing. It shows nothing before begin, which is called when the kernel has answered. It keeps no sockets,
// because their number is unlimited.
type view interface {
	begin() error
	socket(s *netlinksmc.Socket) error
	end(interrupted bool) error
}

// owners maps the inode of a socket to the processes that have it open.
type owners map[uint64][]process

// of returns the processes that have s open. Sockets without an inode have none.
func (o owners) of(s *netlinksmc.Socket) []process {
	if s.Inode == 0 {
		return nil
	}
	return o[s.Inode]
}

// textView prints rows below a header, as smc-tools does.
type textView struct {
	w      io.Writer
	cols   columns
	owners owners
	// reason explains a reason.
	reason func(netlinksmc.Reason) jsondoc.Reason
	// info returns the facts of a socket; nil without -i.
	info func(*netlinksmc.Socket) *jsonInfo
	buf  []byte
}

func (v *textView) begin() error {
	_, err := io.WriteString(v.w, v.cols.header())
	return err
}

func (v *textView) socket(s *netlinksmc.Socket) error {
	b := v.cols.appendRow(v.buf[:0], s)
	if v.cols.processes {
		b = appendProcesses(b, v.owners.of(s))
	}
	b = append(b, '\n')
	if v.cols.explain && s.Mode == netlinksmc.ModeTCP && s.Fallback != nil {
		b = appendExplanation(b, jsondoc.NewFallback(*s.Fallback, v.reason))
	}
	if v.info != nil {
		b = appendInfo(b, s, v.info(s))
	}
	v.buf = b
	_, err := v.w.Write(b)
	return err
}

func (v *textView) end(bool) error { return nil }

// jsonView prints one document, or one line of a --watch, that has the sockets as a list.
type jsonView struct {
	w      io.Writer
	cols   columns
	owners owners
	ifName func(uint32) string
	reason func(netlinksmc.Reason) jsondoc.Reason
	info   func(*netlinksmc.Socket) *jsonInfo // nil without -i
	// as converts a document, or a part of one, to the schema that was asked for.
	as func(any) any
	// time is set for a line of --watch.
	time time.Time

	count int
	buf   bytes.Buffer
}

func (v *jsonView) oneLine() bool { return !v.time.IsZero() }

// frame returns what stands before and after the list of sockets in the document.
func (v *jsonView) frame(interrupted bool) (before, after string, err error) {
	doc := jsonDocument{Schema: jsondoc.Schema, Sockets: []jsonSocket{}, Interrupted: interrupted}
	write := cli.WriteJSON
	if v.oneLine() {
		doc.Time, write = v.time.Format(time.RFC3339), cli.WriteJSONLine
	}
	var b strings.Builder
	if err := write(&b, v.as(doc)); err != nil {
		return "", "", err
	}
	before, after, _ = strings.Cut(b.String(), "[]")
	return before + "[", "]" + after, nil
}

func (v *jsonView) begin() error {
	before, _, err := v.frame(false)
	if err != nil {
		return err
	}
	_, err = io.WriteString(v.w, before)
	return err
}

func (v *jsonView) socket(s *netlinksmc.Socket) error {
	j := newJSONSocket(s, v.reason, v.ifName)
	if v.cols.processes {
		j.Processes = newJSONProcesses(v.owners.of(s))
	}
	if !v.cols.debug {
		j.Conn = nil // -i asks for it, too
	}
	if v.info != nil {
		j.Info = v.info(s)
	}
	v.buf.Reset()
	if v.count > 0 {
		v.buf.WriteByte(',')
	}
	enc := json.NewEncoder(&v.buf)
	enc.SetEscapeHTML(false)
	if !v.oneLine() {
		v.buf.WriteString("\n    ")
		enc.SetIndent("    ", "  ")
	}
	if err := enc.Encode(v.as(j)); err != nil {
		return err
	}
	v.count++
	_, err := v.w.Write(bytes.TrimSuffix(v.buf.Bytes(), []byte("\n")))
	return err
}

func (v *jsonView) end(interrupted bool) error {
	_, after, err := v.frame(interrupted)
	if err != nil {
		return err
	}
	if v.count > 0 && !v.oneLine() {
		after = "\n  " + after
	}
	_, err = io.WriteString(v.w, after)
	return err
}
