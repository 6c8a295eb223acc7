// SPDX-License-Identifier: Apache-2.0

// Package proto is the protocol between the lab and the agent in a guest: sessions, each with a standard input, output and
// error, over one serial port. Every stream has a window of its own, so a program that does not read its input, or a reader
// that has paused the output, holds up only that session. `smclab shell` speaks the same protocol to the lab that `smclab
// up` runs.
package proto

// Operations of a Request.
const (
	OpExec  = "exec"  // run Argv
	OpRead  = "read"  // the file Path on standard output
	OpWrite = "write" // standard input into the file Path, made with mode Mode if it does not exist
	OpLog   = "log"   // the kernel log records there are, in the format of /dev/kmsg, on standard output
)

// Request opens a session. Fields that Op does not name are ignored.
type Request struct {
	Op   string   `json:"op"`
	Host string   `json:"host,omitempty"` // which guest, where one connection reaches several
	Argv []string `json:"argv,omitempty"`
	Env  []string `json:"env,omitempty"` // KEY=value, added to the agent's environment
	Dir  string   `json:"dir,omitempty"`
	TTY  *Size    `json:"tty,omitempty"` // run on a terminal of this size
	Path string   `json:"path,omitempty"`
	Mode uint32   `json:"mode,omitempty"` // permission bits
}

// Size is the size of a terminal in characters.
type Size struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Exit ends a session.
type Exit struct {
	Code   int    `json:"code"`             // exit status, or -1 if a signal ended the program
	Signal int    `json:"signal,omitempty"` // the number of that signal
	Error  string `json:"error,omitempty"`  // why the request could not be carried out; the rest means nothing then
}

// Hello is the first message of an agent.
type Hello struct {
	Kernel string `json:"kernel"` // uname -r
}
