// SPDX-License-Identifier: Apache-2.0

// Package nlconn sends requests to the kernel over netlink. A connection carries one request at a time, and each request
// ends when its context ends, also while it waits for the connection or for the answer.
//
// Conn is a netlink connection, Generic one of generic netlink. Both return the errors of the netlink library or of the
// context; Kind returns the shared error of package smcerr that such an error is, and Error an *smcerr.Error with it.
package nlconn
