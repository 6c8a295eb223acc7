// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Under runs a program under a supervisor that gives it AF_SMC sockets:
//
//	under [-ports N,N] [-require] [-verbose] PROGRAM [ARG ...]
package main

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/seccomp"
)

func main() {
	supervise := flag.Bool("supervise", false, "be the supervisor")
	ports := flag.String("ports", "", "have AF_SMC sockets for these alone")
	require := flag.Bool("require", false, "no TCP sockets in their place")
	verbose := flag.Bool("verbose", false, "say what is done for each socket")
	flag.Parse()
	var err error
	if *supervise {
		o := seccomp.Options{Require: *require, Debug: *verbose}
		if *ports != "" {
			all := strings.Split(*ports, ",")
			o.Match = func(a netip.AddrPort) bool { return slices.Contains(all, fmt.Sprint(a.Port())) }
		}
		err = seccomp.Supervise(os.NewFile(3, "listener"), o)
	} else {
		err = run(flag.Args(), *ports != "")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "under:", err)
		os.Exit(1)
	}
}

func run(argv []string, rules bool) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	calls := seccomp.Sockets
	if rules {
		calls = seccomp.Addresses
	}
	supervisor := append([]string{"/proc/self/exe", "-supervise"}, os.Args[1:len(os.Args)-len(argv)]...)
	return seccomp.Exec(seccomp.Program{Path: path, Argv: argv, Env: os.Environ()}, calls, "/proc/self/exe", supervisor)
}
