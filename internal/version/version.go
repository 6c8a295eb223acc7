// SPDX-License-Identifier: Apache-2.0

// Package version holds the one version number of the suite.
package version

// Version is the suite's version. The Makefile sets it from the release tag with -ldflags -X; a plain `go build`
// keeps the value here, which `make generate` writes to the files of DKMS and Ansible, and to README.
var Version = "0.1.0"
