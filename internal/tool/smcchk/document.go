// SPDX-License-Identifier: Apache-2.0

package smcchk

// Document is the document of --json, for programs that read it.
type Document = document
