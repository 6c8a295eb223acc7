// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcerr"
)

// putPool encodes a pool whose numbers are 100 more than those of their attributes; of a namespace, without those of the host.
func putPool(ae *netlink.AttributeEncoder, typ uint16, host bool) {
	ae.Nested(typ, func(nae *netlink.AttributeEncoder) error {
		for n := uint16(netlinksmc.AttrPoolLimit); n <= netlinksmc.AttrPoolRefused; n++ {
			if host || n != netlinksmc.AttrPoolQueues && n != netlinksmc.AttrPoolIdle {
				nae.Uint64(n, 100+uint64(n))
			}
		}
		nae.Uint64(999, 5) // of a newer module
		return nil
	})
}

func TestMemory(t *testing.T) {
	namespace := Pool{Limit: 101, Reserved: 102, Peak: 103, RMB: 104, SendRings: 105, DMB: 106, Refused: 109}
	host := namespace
	host.Queues, host.Idle = 107, 108
	both := attributes(t, func(ae *netlink.AttributeEncoder) {
		putPool(ae, netlinksmc.AttrMemoryNamespace, false)
		putPool(ae, netlinksmc.AttrMemoryHost, true)
	})
	one := attributes(t, func(ae *netlink.AttributeEncoder) { putPool(ae, netlinksmc.AttrMemoryNamespace, false) })
	short := attributes(t, func(ae *netlink.AttributeEncoder) {
		ae.Nested(netlinksmc.AttrMemoryNamespace, func(nae *netlink.AttributeEncoder) error {
			nae.Uint32(netlinksmc.AttrPoolLimit, 1)
			return nil
		})
	})
	for name, tt := range map[string]struct {
		replies [][]byte
		want    Memory
		err     error
	}{
		"both":      {[][]byte{both}, Memory{Namespace: namespace, Host: &host}, nil},
		"namespace": {[][]byte{one}, Memory{Namespace: namespace}, nil},
		"two":       {[][]byte{one, one}, Memory{}, smcerr.ErrMalformed},
		"empty":     {[][]byte{{}}, Memory{}, smcerr.ErrMalformed},
		"short":     {[][]byte{short}, Memory{}, smcerr.ErrMalformed},
		"cut":       {[][]byte{one[:len(one)-3]}, Memory{}, smcerr.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			c := client(t, func(greq genetlink.Message, nreq netlink.Message) (replies []genetlink.Message, err error) {
				if greq.Header.Command != netlinksmc.CmdMemoryGet || nreq.Header.Flags != netlink.Request|netlink.Dump || len(greq.Data) != 0 {
					t.Errorf("%+v, %+v", greq, nreq)
				}
				for _, data := range tt.replies {
					replies = append(replies, genetlink.Message{Data: data})
				}
				return replies, nil
			})
			got, err := c.Memory(t.Context())
			if diff := cmp.Diff(tt.want, got); diff != "" || !errors.Is(err, tt.err) {
				t.Errorf("%v, %s", err, diff)
			}
		})
	}
}
