// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package ansible tests the Ansible collection: its modules and its roles with scripted commands, the findings of Ansible's
// own checkers, and a cluster that the collection configures in the lab.
package ansible
