// SPDX-License-Identifier: Apache-2.0

// Command web is a server and a client of net/http, as Go's programs commonly are: static, without a C library.
//
//	web serve ADDRESS DIRECTORY
//	web get URL        print what the server answers
//	web hold URL       read the first byte of the answer, and stay connected until a signal comes
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
)

func main() {
	if len(os.Args) < 3 {
		fail(fmt.Errorf("usage: web serve ADDRESS DIRECTORY | web get URL | web hold URL"))
	}
	switch target := os.Args[2]; os.Args[1] {
	case "serve":
		fail(http.ListenAndServe(target, http.FileServer(http.Dir(os.Args[3]))))
	case "get":
		get(target, func(body io.Reader) error {
			_, err := io.Copy(os.Stdout, body)
			return err
		})
	case "hold":
		get(target, func(body io.Reader) error {
			_, err := io.ReadFull(body, make([]byte, 1))
			end := make(chan os.Signal, 1)
			signal.Notify(end, os.Interrupt)
			<-end
			return err
		})
	}
}

func get(url string, use func(io.Reader) error) {
	answer, err := http.Get(url)
	if err != nil {
		fail(err)
	}
	if answer.StatusCode != http.StatusOK {
		fail(fmt.Errorf("%s: %s", url, answer.Status))
	}
	if err := use(answer.Body); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
