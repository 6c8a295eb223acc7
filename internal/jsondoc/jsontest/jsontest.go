// SPDX-License-Identifier: Apache-2.0

// Package jsontest compares what commands print with the vocabulary of JSON documents, for their tests.
package jsontest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/jsondoc"
)

// Check fails the test unless text is a document of the present schema with the keys, types and values of the vocabulary.
func Check(t testing.TB, text []byte) {
	t.Helper()
	if err := jsondoc.Check(text); err != nil {
		t.Errorf("%v:\n%s", err, text)
	}
}

// CheckLines does so for each line.
func CheckLines(t testing.TB, text []byte) {
	t.Helper()
	for line := range bytes.Lines(text) {
		Check(t, line)
	}
}

// CheckFailure fails the test unless text is the document of a command that has failed with status and the line stderr.
func CheckFailure(t testing.TB, text []byte, stderr string, status int) {
	t.Helper()
	var doc struct {
		Schema int    `json:"schema"`
		Error  string `json:"error"`
		Remedy string `json:"remedy"`
		Status int    `json:"status"`
	}
	if err := jsondoc.Decode(text, &doc); err != nil {
		t.Errorf("%v:\n%s", err, text)
	}
	// A message of the kernel may follow the remedy on standard error.
	what, _, _ := strings.Cut(doc.Error, " (kernel: ")
	if what == "" || doc.Status != status || !strings.Contains(stderr, what) || !strings.Contains(stderr, doc.Remedy) {
		t.Errorf("status %d, standard error %q, document %s", status, stderr, text)
	}
}
