// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package ism

// readSmall reads an attribute that fits into buf, nil if it cannot be read.
func readSmall(path string, buf []byte) []byte { return buf[:copy(buf, readFile(path))] }
