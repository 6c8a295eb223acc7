// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// MonitorCommand is a command for the monitor of an emulator, as QMP has it.
type MonitorCommand struct {
	Execute   string         `json:"execute"`
	Arguments map[string]any `json:"arguments,omitempty"`
}

// monitor is a connection to the monitor of an emulator. One goroutine at a time uses it.
type monitor struct {
	conn   *net.UnixConn
	in     *json.Decoder
	events []monitorMessage // that nobody has waited for yet
	ready  bool             // commands have been negotiated
	held   int              // files that hold has passed
}

// monitorMessage is the greeting of the monitor, the answer to a command, or an event.
type monitorMessage struct {
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Desc string `json:"desc"`
	} `json:"error"`
	Event string `json:"event"`
	Data  struct {
		Device string `json:"device"`
	} `json:"data"`
}

// addMonitor gives a host's emulator a monitor.
func (h *Host) addMonitor(s *machineSpec) error {
	here, there, err := socketpair()
	if err != nil {
		return err
	}
	h.monitor.close()
	h.monitor = &monitor{conn: here.(*net.UnixConn), in: json.NewDecoder(here)}
	s.qemu = append(s.qemu, "-chardev", "socket,id=monitor,fd="+s.fd(there), "-mon", "chardev=monitor,mode=control")
	return nil
}

func (m *monitor) close() {
	if m != nil {
		m.conn.Close()
	}
}

// run runs commands, each after the one before has succeeded.
func (m *monitor) run(ctx context.Context, commands ...MonitorCommand) error {
	if !m.ready {
		commands = slices.Insert(slices.Clone(commands), 0, MonitorCommand{Execute: "qmp_capabilities"})
	}
	for _, c := range commands {
		if err := m.execute(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.Execute, err)
		}
		m.ready = true
	}
	return nil
}

// hold passes files to the emulator, which take the lowest numbers that are free there. Nothing can be read from them.
func (m *monitor) hold(ctx context.Context, n int) error {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for range n {
		m.held++
		c := MonitorCommand{"getfd", map[string]any{"fdname": "held" + strconv.Itoa(m.held)}}
		if err := m.execute(ctx, c, fd); err != nil {
			return fmt.Errorf("%s: %w", c.Execute, err)
		}
	}
	return nil
}

// execute runs a command, with files, and waits for its answer.
func (m *monitor) execute(ctx context.Context, c MonitorCommand, fds ...int) error {
	if err := m.limit(ctx); err != nil {
		return err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	if _, _, err := m.conn.WriteMsgUnix(text, rights, nil); err != nil {
		return err
	}
	for {
		var msg monitorMessage
		if err := m.in.Decode(&msg); err != nil {
			return err
		}
		switch {
		case msg.Error != nil:
			return errors.New(msg.Error.Desc)
		case msg.Return != nil:
			return nil
		case msg.Event != "":
			m.events = append(m.events, msg)
		}
	}
}

// await waits for an event of a device.
func (m *monitor) await(ctx context.Context, event, device string) error {
	if err := m.limit(ctx); err != nil {
		return err
	}
	for {
		for i, e := range m.events {
			if e.Event == event && e.Data.Device == device {
				m.events = slices.Delete(m.events, 0, i+1)
				return nil
			}
		}
		var msg monitorMessage
		if err := m.in.Decode(&msg); err != nil {
			return fmt.Errorf("%s of %s does not come: %w", event, device, err)
		}
		m.events = append(m.events, msg)
	}
}

// limit ends reading and writing when ctx ends.
func (m *monitor) limit(ctx context.Context) error {
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Time{}
	}
	return errors.Join(ctx.Err(), m.conn.SetDeadline(end))
}
