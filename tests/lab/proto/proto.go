// SPDX-License-Identifier: Apache-2.0

// Package proto is what the lab and the agent in a guest say to each other over a serial port: frames that belong to
// numbered streams, one stream a running program.
package proto

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Type says what a frame carries.
type Type uint8

// The frame types. Host to guest: Open, Stdin, StdinEOF, Signal, Resize, PowerOff. Guest to host: Hello, Stdout,
// Stderr, Exit.
const (
	Hello    Type = iota + 1 // the agent is ready; payload: JSON Greeting
	Open                     // start a program; payload: JSON Command
	Stdin                    // input for the program
	StdinEOF                 // end of the program's input
	Stdout                   // output of the program, or of its terminal
	Stderr                   // error output of the program
	Exit                     // the program has ended; payload: JSON Status; the stream is free again
	Signal                   // payload: one byte, the signal's number
	Resize                   // payload: JSON Size
	PowerOff                 // end the guest at once
)

// MaxPayload is the most bytes that one frame carries. A frame that announces more is a broken stream.
const MaxPayload = 256 << 10

// Greeting is the first thing an agent says.
type Greeting struct {
	Kernel string `json:"kernel"` // uname -r
}

// Command is a program to run.
type Command struct {
	Host string   `json:"host,omitempty"` // which guest, where one connection reaches several
	Argv []string `json:"argv"`
	Env  []string `json:"env,omitempty"` // added to the agent's environment
	Dir  string   `json:"dir,omitempty"`
	TTY  *Size    `json:"tty,omitempty"` // run on a terminal of this size
}

// Size is the size of a terminal in characters.
type Size struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Status is how a program has ended.
type Status struct {
	Code   int    `json:"code"`             // exit status, or -1
	Signal int    `json:"signal,omitempty"` // the signal that ended it
	Error  string `json:"error,omitempty"`  // why it could not be started
}

// Frame is one message on a stream.
type Frame struct {
	Stream  uint32
	Type    Type
	Payload []byte
}

// Conn sends and receives frames. Send may be called from several goroutines, Receive from one.
type Conn struct {
	r  io.Reader
	mu sync.Mutex
	w  io.Writer
}

// NewConn returns a Conn on top of rw.
func NewConn(rw io.ReadWriter) *Conn { return &Conn{r: rw, w: rw} }

const headerLen = 12

// magic starts every frame, so that a stream that lost its place is noticed at once.
const magic = 0x534d

// Send writes one frame. Payloads larger than MaxPayload are an error.
func (c *Conn) Send(f Frame) error {
	if len(f.Payload) > MaxPayload {
		return fmt.Errorf("proto: payload of %d bytes", len(f.Payload))
	}
	buf := make([]byte, headerLen, headerLen+len(f.Payload))
	binary.BigEndian.PutUint16(buf, magic)
	buf[2] = byte(f.Type)
	binary.BigEndian.PutUint32(buf[4:], f.Stream)
	binary.BigEndian.PutUint32(buf[8:], uint32(len(f.Payload)))
	buf = append(buf, f.Payload...)
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.w.Write(buf)
	return err
}

// SendJSON writes one frame with v as JSON.
func (c *Conn) SendJSON(stream uint32, t Type, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.Send(Frame{Stream: stream, Type: t, Payload: data})
}

// Receive reads one frame.
func (c *Conn) Receive() (Frame, error) {
	var head [headerLen]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return Frame{}, err
	}
	n := binary.BigEndian.Uint32(head[8:])
	if binary.BigEndian.Uint16(head[:]) != magic || n > MaxPayload {
		return Frame{}, fmt.Errorf("proto: not a frame: % x", head)
	}
	f := Frame{Type: Type(head[2]), Stream: binary.BigEndian.Uint32(head[4:]), Payload: make([]byte, n)}
	_, err := io.ReadFull(c.r, f.Payload)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return f, err
}
