// SPDX-License-Identifier: Apache-2.0

package netlinksmc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// Ask what the SMC module of this host can do.
func ExampleNew() {
	client, err := netlinksmc.New()
	if errors.Is(err, os.ErrNotExist) {
		fmt.Println("no SMC module here")
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()

	// Nothing else limits the time that a request may take.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	info, err := client.SystemInfo(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("SMC version %d.%d\n", info.Version, info.Release)
	// An older kernel does not say whether it has SMC-Rv2, which is not the same as not having it.
	if v2, ok := info.SMCRv2.Get(); ok {
		fmt.Println("SMC-Rv2:", v2)
	}
}

// List link groups with their links, also when they change too fast for a consistent picture.
func ExampleClient_LinkGroupsRWithLinks() {
	client, err := netlinksmc.New()
	if err != nil {
		log.Print(err)
		return
	}
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
}

// Tell the errors of a change apart.
func ExampleClient_AddUEID() {
	client, err := netlinksmc.New()
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = client.Close() }()

	switch err := client.AddUEID(context.Background(), "LAB.ONE"); {
	case err == nil:
		fmt.Println("added")
	case errors.Is(err, netlinksmc.ErrUEIDExists):
		fmt.Println("nothing to do")
	case errors.Is(err, os.ErrPermission):
		fmt.Println("root only")
	default:
		fmt.Println(err)
	}
}

// Say why connections have fallen back to TCP.
func ExampleDiag_Sockets() {
	diag, err := netlinksmc.NewDiag()
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = diag.Close() }()

	for s, err := range diag.Sockets(context.Background(), 0) {
		if err != nil {
			log.Print(err)
			break
		}
		if s.Fallback == nil {
			continue
		}
		fmt.Printf("%v - %v: %s\n", s.Local, s.Peer, s.Fallback.Reason.Text())
	}
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

// Test a program without a kernel.
func ExampleNewFromConn() {
	family := genetlink.Family{ID: 0x21, Name: "SMC_GEN_NETLINK", Version: 1}
	conn := genltest.Dial(genltest.ServeFamily(family,
		func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
			return nil, io.EOF // An empty list.
		}))
	client, err := netlinksmc.NewFromConn(conn)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	fmt.Println(client.UEIDs(context.Background()))
	// Output: [] <nil>
}
