// SPDX-License-Identifier: Apache-2.0

package smcss

// The document of --json, for programs that read it.
type (
	// Document is the document of a listing.
	Document = jsonDocument
	// Socket is a socket of a Document.
	Socket = jsonSocket
	// DMB is the SMC-D side of a Socket's connection.
	DMB = jsonDMB
	// Cursor is a cursor of a Socket's connection.
	Cursor = jsonCursor
)
