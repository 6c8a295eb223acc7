// SPDX-License-Identifier: Apache-2.0

package netlinksmc_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// The examples run on what a kernel answered while a program on it sent to another host over SMC-R. On a host, New and
// NewDiag take the place of recorded and recordedDiag.

// answers returns the payloads that the kernel sent: prefix is "SMC_GEN_NETLINK", or "sock_diag", and the number of the command.
func answers(prefix string) [][]byte {
	recording, err := os.ReadFile("testdata/linux-6.12.txt")
	if err != nil {
		log.Fatal(err)
	}
	var out [][]byte
	for line := range strings.Lines(string(recording)) {
		if payload, ok := strings.CutPrefix(line, prefix+" "); ok {
			data, err := hex.DecodeString(strings.TrimSpace(payload))
			if err != nil {
				log.Fatal(err)
			}
			out = append(out, data)
		}
	}
	return out
}

// recorded returns a Client of the recorded kernel, which takes every change.
func recorded() *netlinksmc.Client {
	family := genetlink.Family{ID: 0x21, Name: "SMC_GEN_NETLINK", Version: 1}
	conn := genltest.Dial(genltest.ServeFamily(family,
		func(request genetlink.Message, _ netlink.Message) ([]genetlink.Message, error) {
			var replies []genetlink.Message
			for _, data := range answers(fmt.Sprintf("SMC_GEN_NETLINK %d", request.Header.Command)) {
				replies = append(replies, genetlink.Message{Header: request.Header, Data: data})
			}
			if replies == nil {
				return nil, io.EOF // An empty answer.
			}
			return replies, nil
		}))
	client, err := netlinksmc.NewFromConn(conn)
	if err != nil {
		log.Fatal(err)
	}
	return client
}

// recordedDiag returns a Diag of the recorded kernel.
func recordedDiag() *netlinksmc.Diag {
	return netlinksmc.NewDiagFromConn(nltest.Dial(func(requests []netlink.Message) ([]netlink.Message, error) {
		reply := requests[0]
		reply.Header.Flags, reply.Data = 0, answers("sock_diag 0")[0]
		return []netlink.Message{reply}, nil
	}))
}

// Ask what the SMC module of this host can do.
func ExampleClient_SystemInfo() {
	client := recorded()
	defer func() { _ = client.Close() }()

	// Nothing else limits the time that a request may take.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	info, err := client.SystemInfo(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Printf("SMC version %d.%d\n", info.Version, info.Release)
	// An older kernel does not say whether it has SMC-Rv2, which is not the same as not having it.
	if v2, ok := info.SMCRv2.Get(); ok {
		fmt.Println("SMC-Rv2:", v2)
	}
	// Output:
	// SMC version 2.1
	// SMC-Rv2: true
}

// Find out that a host has no SMC module.
func ExampleNewFromConn() {
	conn := genltest.Dial(func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
		return nil, genltest.Error(int(syscall.ENOENT)) // A kernel without the family.
	})
	client, err := netlinksmc.NewFromConn(conn)
	if errors.Is(err, os.ErrNotExist) {
		fmt.Println("no SMC module here")
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	_ = client.Close()
	// Output: no SMC module here
}

// List link groups with their links, also when they change too fast for a consistent picture.
func ExampleClient_LinkGroupsRWithLinks() {
	client := recorded()
	defer func() { _ = client.Close() }()

	groups, err := client.LinkGroupsRWithLinks(context.Background())
	if errors.Is(err, netlinksmc.ErrDumpInterrupted) {
		log.Print(err) // There is a result all the same.
	} else if err != nil {
		log.Print(err)
		return
	}
	for _, g := range groups {
		fmt.Printf("%08x %v %v: %d connections\n", g.ID, g.Role, g.Type, g.Conns)
		for _, l := range g.Links {
			fmt.Printf("  %s port %d, UID %08x: %v\n", l.IBDev, l.IBPort, l.UID, l.State)
		}
	}
	// Output:
	// 00000100 CLNT SINGLE: 1 connections
	//   rxe0 port 1, UID 00000101: LINK_ACTIVE
}

// Tell the errors of a change apart.
func ExampleClient_AddUEID() {
	client := recorded()
	defer func() { _ = client.Close() }()

	switch err := client.AddUEID(context.Background(), "LAB.ONE"); {
	case err == nil:
		fmt.Println("added")
	case errors.Is(err, netlinksmc.ErrUEIDExists):
		fmt.Println("nothing to do")
	case errors.Is(err, netlinksmc.ErrPermission):
		fmt.Println("root only")
	default:
		fmt.Println(err)
	}
	// Output: added
}

// List sockets, and say why connections have fallen back to TCP.
func ExampleDiag_Sockets() {
	diag := recordedDiag()
	defer func() { _ = diag.Close() }()

	for s, err := range diag.Sockets(context.Background(), netlinksmc.DiagLinkGroup) {
		if err != nil {
			log.Print(err)
			break
		}
		fmt.Println(s.Local, "to", s.Peer, "by", s.Mode)
		if s.Fallback != nil {
			fmt.Println("because", s.Fallback.Reason.Text())
		}
	}
	// Output: 10.0.0.1:42480 to 10.0.0.2:5001 by SMCR
}

// Explain a fallback reason that some log has.
func ExampleReason() {
	r := netlinksmc.Reason(0x03010000)
	fmt.Println(r, r.Name())
	fmt.Println("what:", r.Text())
	fmt.Println("do:  ", r.Remedy())
	// Output:
	// 0x03010000 PEER_NO_SMC
	// what: the other side did not signal SMC in the TCP handshake
	// do:   run the peer's program over SMC too, and make sure that nothing on the way removes TCP option 254
}

// Check a user EID before anything is changed.
func ExampleCheckEID() {
	fmt.Println(netlinksmc.CheckEID("LAB.ONE"))
	fmt.Println(netlinksmc.CheckEID("LAB..ONE"))
	// Output:
	// <nil>
	// user EID "LAB..ONE": invalid user EID: it has two dots in a row
}
