// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command nldump prints the answers of this kernel to each request of the SMC netlink families and of sock_diag, as
// hexadecimal text: the fixtures in pkg/netlinksmc/testdata. In the lab it is in every guest's PATH.
package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

func main() {
	w := bufio.NewWriter(os.Stdout)
	err := dump(w)
	if ferr := w.Flush(); err == nil {
		err = ferr
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nldump:", err)
		os.Exit(1)
	}
}

// dump writes a line for each message: the family, the command, and the bytes after the generic netlink header (sock_diag:
// the netlink header).
func dump(w *bufio.Writer) error {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return err
	}
	fmt.Fprintf(w, "# nldump on Linux %s, native byte order of x86-64\n", unix.ByteSliceToString(uts.Release[:]))
	// The dump commands of <linux/smc.h>.
	if err := family(w, "SMC_GEN_NETLINK", []uint8{1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16}); err != nil {
		return err
	}
	if err := family(w, "SMC_PNETID", []uint8{1}); err != nil {
		return err
	}
	return sockets(w)
}

func family(w *bufio.Writer, name string, commands []uint8) error {
	conn, err := genetlink.Dial(nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	f, err := conn.GetFamily(name)
	if err != nil {
		return fmt.Errorf("family %s: %w", name, err)
	}
	for _, command := range commands {
		req := genetlink.Message{Header: genetlink.Header{Command: command, Version: f.Version}}
		msgs, err := conn.Execute(req, f.ID, netlink.Request|netlink.Dump)
		if err != nil {
			return fmt.Errorf("%s command %d: %w", name, command, err)
		}
		for _, m := range msgs {
			fmt.Fprintf(w, "%s %d %x\n", name, command, m.Data)
		}
	}
	return nil
}

func sockets(w *bufio.Writer) error {
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	// struct smc_diag_req: the family, every extension, and no socket in particular.
	req := make([]byte, 4+48)
	req[0], req[3] = unix.AF_SMC, 0xff
	const sockDiagByFamily = 20
	msgs, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: sockDiagByFamily, Flags: netlink.Request | netlink.Dump}, Data: req,
	})
	if err != nil {
		return fmt.Errorf("sock_diag: %w", err)
	}
	for _, m := range msgs {
		fmt.Fprintf(w, "sock_diag 0 %x\n", m.Data)
	}
	return nil
}
