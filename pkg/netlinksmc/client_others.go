// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package netlinksmc

import (
	"context"
	"runtime"
)

func dial(context.Context) (*client, error) {
	return nil, unsupported("open a generic netlink socket")
}

func dialDiag() (*Diag, error) {
	return nil, unsupported("open a sock_diag socket")
}

func unsupported(op string) error {
	return &Error{Op: op, Kind: ErrNotSupported, Remedy: runtime.GOOS + " has no AF_SMC, Linux has"}
}
