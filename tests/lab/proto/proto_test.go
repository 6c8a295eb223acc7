// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRoundTrip(t *testing.T) {
	var buf bytes.Buffer
	c := NewConn(&buf)
	frames := []Frame{
		{Stream: 1, Type: Stdin, Payload: []byte("hello")},
		{Stream: 0xffffffff, Type: Exit, Payload: []byte{}},
		{Stream: 2, Type: Stdout, Payload: bytes.Repeat([]byte{7}, MaxPayload)},
	}
	for _, f := range frames {
		if err := c.Send(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range frames {
		got, err := c.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if _, err := c.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v, want EOF", err)
	}
}

func TestSendTooLarge(t *testing.T) {
	if err := NewConn(&bytes.Buffer{}).Send(Frame{Payload: make([]byte, MaxPayload+1)}); err == nil {
		t.Error("no error")
	}
}

func FuzzReceive(f *testing.F) {
	var buf bytes.Buffer
	_ = NewConn(&buf).Send(Frame{Stream: 3, Type: Open, Payload: []byte("{}")})
	f.Add(buf.Bytes())
	f.Add([]byte("SM"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := NewConn(bytes.NewBuffer(data))
		for {
			f, err := c.Receive()
			if err != nil {
				return
			}
			if len(f.Payload) > MaxPayload {
				t.Fatalf("payload of %d bytes", len(f.Payload))
			}
		}
	})
}
