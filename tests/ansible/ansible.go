// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package ansible tests the Ansible collection: its modules and its role with commands that follow a script, what Ansible's
// own checkers say of it, and a cluster that it sets up in the lab.
package ansible
