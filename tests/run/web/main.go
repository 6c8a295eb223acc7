// SPDX-License-Identifier: Apache-2.0

// Command web is a server and a client of HTTP in Go, for tests of smc_run: a program without a C library.
//
//	web serve ADDRESS
//	web get URL
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fail("usage: web serve ADDRESS | web get URL")
	}
	switch os.Args[1] {
	case "serve":
		http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "from Go") })
		// This connection stays open until the client disconnects, so that tests can observe it.
		http.HandleFunc("/hold", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		fail(http.ListenAndServe(os.Args[2], nil))
	case "get":
		r, err := http.Get(os.Args[2])
		if err != nil {
			fail(err)
		}
		defer r.Body.Close()
		if _, err := io.Copy(os.Stdout, r.Body); err != nil {
			fail(err)
		}
	}
}

func fail(what any) {
	fmt.Fprintln(os.Stderr, "web:", what)
	os.Exit(1)
}
