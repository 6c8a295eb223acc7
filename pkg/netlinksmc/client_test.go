// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"github.com/smckit/smckit/pkg/internal/nlconn"
)

const (
	flagsDump = netlink.Request | netlink.Dump
	flagsSet  = netlink.Request | netlink.Acknowledge
)

// methods calls every method that makes a request, and says what the request must be.
var methods = []struct {
	name    string
	call    func(context.Context, *Client) error
	command uint8
	flags   netlink.HeaderFlags
	data    []byte
}{
	{"SystemInfo", discard((*Client).SystemInfo), 1, flagsDump, nil},
	{"LinkGroupsR", discard((*Client).LinkGroupsR), 2, flagsDump, nil},
	{"LinkGroupsRWithLinks", discard((*Client).LinkGroupsRWithLinks), 3, flagsDump, nil},
	{"LinkGroupsD", discard((*Client).LinkGroupsD), 4, flagsDump, nil},
	{"DevicesD", discard((*Client).DevicesD), 5, flagsDump, nil},
	{"DevicesR", discard((*Client).DevicesR), 6, flagsDump, nil},
	{"Stats", discard((*Client).Stats), 7, flagsDump, nil},
	{"FallbackStats", discard((*Client).FallbackStats), 8, flagsDump, nil},
	{"UEIDs", discard((*Client).UEIDs), 9, flagsDump, nil},
	{
		"AddUEID", func(ctx context.Context, c *Client) error { return c.AddUEID(ctx, "LAB.ONE") },
		10, flagsSet, str(1, "LAB.ONE                         "),
	},
	{
		"RemoveUEID", func(ctx context.Context, c *Client) error { return c.RemoveUEID(ctx, "LAB.ONE") },
		11, flagsSet, str(1, "LAB.ONE                         "),
	},
	{"FlushUEIDs", func(ctx context.Context, c *Client) error { return c.FlushUEIDs(ctx) }, 12, flagsSet, nil},
	{"SEID", discard((*Client).SEID), 13, flagsDump, nil},
	{
		"SetSEID on", func(ctx context.Context, c *Client) error { return c.SetSEID(ctx, true) },
		14, flagsSet, nil,
	},
	{
		"SetSEID off", func(ctx context.Context, c *Client) error { return c.SetSEID(ctx, false) },
		15, flagsSet, nil,
	},
	{"HandshakeLimitation", discard((*Client).HandshakeLimitation), 16, flagsDump, nil},
	{
		"SetHandshakeLimitation on", func(ctx context.Context, c *Client) error { return c.SetHandshakeLimitation(ctx, true) },
		17, flagsSet, nil,
	},
	{
		"SetHandshakeLimitation off",
		func(ctx context.Context, c *Client) error { return c.SetHandshakeLimitation(ctx, false) },
		18, flagsSet, nil,
	},
}

// contextMethod is a method of Client that returns a value.
type contextMethod[T any] func(*Client, context.Context) (T, error)

// discard makes a function that returns only the error out of a method that returns a value too.
func discard[T any](method contextMethod[T]) func(context.Context, *Client) error {
	return func(ctx context.Context, c *Client) error {
		_, err := method(c, ctx)
		return err
	}
}

func TestRequests(t *testing.T) {
	for _, tt := range methods {
		t.Run(tt.name, func(t *testing.T) {
			requests := 0
			c := fakeClient(t, genltest.CheckRequest(testFamily, tt.command, tt.flags,
				func(greq genetlink.Message, nreq netlink.Message) ([]genetlink.Message, error) {
					requests++
					diff(t, genetlink.Header{Command: tt.command, Version: 1}, greq.Header)
					diff(t, string(tt.data), string(greq.Data))
					diff(t, uint32(20+len(tt.data)), nreq.Header.Length)
					return nil, io.EOF
				}))
			err := tt.call(t.Context(), c)
			// An empty answer is right for lists and changes.
			if err != nil && !errors.Is(err, errNoReply) {
				t.Error(err)
			}
			if requests != 1 {
				t.Errorf("%d requests, want 1", requests)
			}
		})
	}
}

// TestErrnos holds what each errno means as the answer to each method.
func TestErrnos(t *testing.T) {
	tests := []struct {
		errno    syscall.Errno
		kind     error
		also     error
		specific map[string]error
	}{
		{errno: syscall.EPERM, kind: os.ErrPermission},
		{errno: syscall.EACCES, kind: os.ErrPermission},
		{
			errno: syscall.ENOENT, kind: ErrNoModule, also: os.ErrNotExist,
			specific: map[string]error{"RemoveUEID": ErrUEIDNotFound, "SetSEID off": ErrNoUEID},
		},
		{errno: syscall.EOPNOTSUPP, kind: ErrNotSupported},
		{errno: syscall.ENOMEM, kind: syscall.ENOMEM},
		{
			errno: syscall.EINVAL, kind: syscall.EINVAL,
			specific: map[string]error{"AddUEID": ErrInvalidEID, "RemoveUEID": ErrInvalidEID},
		},
		{errno: syscall.EEXIST, kind: os.ErrExist, specific: map[string]error{"AddUEID": ErrUEIDExists}},
		{errno: syscall.ERANGE, kind: syscall.ERANGE, specific: map[string]error{"AddUEID": ErrUEIDTableFull}},
		{errno: syscall.EAGAIN, kind: syscall.EAGAIN, specific: map[string]error{"RemoveUEID": ErrSEIDActivated}},
	}
	kinds := []error{
		ErrNoModule, ErrNotSupported, ErrDumpInterrupted, ErrMalformed, ErrInvalidEID, ErrUEIDExists, ErrUEIDNotFound,
		ErrUEIDTableFull, ErrSEIDActivated, ErrNoSEID, ErrNoUEID,
	}
	for _, tt := range tests {
		for _, m := range methods {
			t.Run(tt.errno.Error()+"/"+m.name, func(t *testing.T) {
				c := rawClient(t, func(reqs []netlink.Message) ([]netlink.Message, error) {
					return errorReply(reqs[0], tt.errno, ""), nil
				})
				err := m.call(t.Context(), c)
				want := tt.kind
				if k, ok := tt.specific[m.name]; ok {
					want = k
				}
				if !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
				for _, k := range kinds {
					if k != want && errors.Is(err, k) {
						t.Errorf("%v is also %v", err, k)
					}
				}
				if tt.also != nil && !errors.Is(err, tt.also) {
					t.Errorf("%v is not %v", err, tt.also)
				}
				if !errors.Is(err, tt.errno) {
					t.Errorf("%v does not unwrap to the errno", err)
				}
				op, ok := errors.AsType[*netlink.OpError](err)
				if !ok || op.Sequence == 0 {
					t.Errorf("%v does not unwrap to the library's error", err)
				}
			})
		}
	}
}

func TestNewWithoutModule(t *testing.T) {
	_, err := NewFromConn(genltest.Dial(func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
		return nil, genltest.Error(int(syscall.ENOENT))
	}))
	if !errors.Is(err, ErrNoModule) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want ErrNoModule", err)
	}
}

// TestNewMalformed answers the look-up of the family with what makes the library's own look-up panic, and worse.
func TestNewMalformed(t *testing.T) {
	for name, msgs := range map[string][]genetlink.Message{
		"nothing":      nil,
		"no number":    {{Data: str(2, familyName)}},
		"short number": {{Data: u8(1, 1)}},
		"garbage":      {{Data: []byte{1}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewFromConn(genltest.Dial(func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
				return msgs, io.EOF
			}))
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("got %v, want ErrMalformed", err)
			}
		})
	}
}

// TestSetSEIDRefused checks an errno with two meanings: no system EID, or no such command.
func TestSetSEIDRefused(t *testing.T) {
	seid := func(parts ...[]byte) func(netlink.Message) []netlink.Message {
		return func(req netlink.Message) []netlink.Message {
			m := groupMessage(req, 0, 0)
			m.Data = join([]byte{13, 1, 0, 0}, join(parts...))
			return []netlink.Message{m, done(req)}
		}
	}
	tests := []struct {
		name   string
		answer func(netlink.Message) []netlink.Message
		want   error
	}{
		{"no answer", func(req netlink.Message) []netlink.Message { return []netlink.Message{done(req)} }, ErrNoSEID},
		{"switch only", seid(u8(2, 0)), ErrNoSEID},
		{"system EID", seid(str(1, "IBM-SYSZ-ISMSEID0000000012345678"), u8(2, 1)), ErrNotSupported},
		{"old kernel", func(req netlink.Message) []netlink.Message {
			return errorReply(req, syscall.EOPNOTSUPP, "")
		}, ErrNotSupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := rawClient(t, func(reqs []netlink.Message) ([]netlink.Message, error) {
				if reqs[0].Data[0] == cmdSEID.number {
					return tt.answer(reqs[0]), nil
				}
				return errorReply(reqs[0], syscall.EOPNOTSUPP, ""), nil
			})
			if err := c.SetSEID(t.Context(), true); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// TestInvalidEIDIsNotSent makes sure that the kernel is not asked about an EID that breaks the rules.
func TestInvalidEIDIsNotSent(t *testing.T) {
	c := fakeClient(t, func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
		t.Error("the kernel was asked")
		return nil, nil
	})
	if err := c.AddUEID(t.Context(), "lower"); !errors.Is(err, ErrInvalidEID) {
		t.Error(err)
	}
	if err := c.RemoveUEID(t.Context(), ""); !errors.Is(err, ErrInvalidEID) {
		t.Error(err)
	}
}

// groupMessage is a link group with the given ID, in a netlink message with flags.
func groupMessage(req netlink.Message, id uint32, flags netlink.HeaderFlags) netlink.Message {
	return netlink.Message{
		Header: netlink.Header{
			Type: testFamily, Flags: flags | netlink.Multi, Sequence: req.Header.Sequence, PID: nltest.PID,
		},
		Data: join([]byte{2, 1, 0, 0}, nested(AttrGenLGRSMCR, u32(1, id))),
	}
}

func done(req netlink.Message) netlink.Message {
	return netlink.Message{
		Header: netlink.Header{
			Type: netlink.Done, Flags: netlink.Multi, Sequence: req.Header.Sequence, PID: nltest.PID,
		},
		Data: make([]byte, 4),
	}
}

func TestDumpInterrupted(t *testing.T) {
	for interruptions := range nlconn.DumpTries + 1 {
		tries := 0
		c := rawClient(t, func(reqs []netlink.Message) ([]netlink.Message, error) {
			tries++
			var flags netlink.HeaderFlags
			if tries <= interruptions {
				flags = netlink.DumpInterrupted
			}
			return []netlink.Message{
				groupMessage(reqs[0], 0x100, 0), groupMessage(reqs[0], uint32(0x200*tries), flags), done(reqs[0]),
			}, nil
		})
		groups, err := c.LinkGroupsR(t.Context())
		wantTries := min(interruptions+1, nlconn.DumpTries)
		if interrupted := interruptions == nlconn.DumpTries; errors.Is(err, ErrDumpInterrupted) != interrupted {
			t.Errorf("%d interruptions: got error %v", interruptions, err)
		}
		diff(t, []LinkGroupR{{ID: 0x100}, {ID: uint32(0x200 * wantTries)}}, groups)
		diff(t, wantTries, tries)
	}
}

func TestMismatchedReply(t *testing.T) {
	c := rawClient(t, func(reqs []netlink.Message) ([]netlink.Message, error) {
		m := groupMessage(reqs[0], 1, 0)
		m.Header.Flags = 0
		m.Header.Sequence++
		return []netlink.Message{m}, nil
	})
	if _, err := c.LinkGroupsR(t.Context()); !errors.Is(err, ErrMalformed) {
		t.Errorf("got %v, want ErrMalformed", err)
	}
}

func TestShortReply(t *testing.T) {
	c := rawClient(t, func(reqs []netlink.Message) ([]netlink.Message, error) {
		m := groupMessage(reqs[0], 1, 0)
		m.Header.Flags = 0
		m.Data = m.Data[:3]
		return []netlink.Message{m}, nil
	})
	if _, err := c.LinkGroupsR(t.Context()); !errors.Is(err, ErrMalformed) {
		t.Errorf("got %v, want ErrMalformed", err)
	}
}

func TestContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := fakeClient(t, func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
		t.Error("the kernel was asked")
		return nil, nil
	})
	_, err := c.LinkGroupsR(ctx)
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrMalformed) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// TestConcurrentUse has a meaning under the race detector, and makes sure that answers are not mixed up.
func TestConcurrentUse(t *testing.T) {
	c := fakeClient(t, func(greq genetlink.Message, _ netlink.Message) ([]genetlink.Message, error) {
		if greq.Header.Command == cmdHSLimitation.number {
			return replies(reply(u8(1, 1))), nil
		}
		return replies(reply(str(1, "LAB.ONE"))), nil
	})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				if on, err := c.HandshakeLimitation(t.Context()); !on || err != nil {
					t.Errorf("limitation %v, error %v", on, err)
				}
			}
		})
		wg.Go(func() {
			for range 100 {
				if eids, err := c.UEIDs(t.Context()); len(eids) != 1 || err != nil {
					t.Errorf("EIDs %v, error %v", eids, err)
				}
			}
		})
	}
	wg.Wait()
}
