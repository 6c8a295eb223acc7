// SPDX-License-Identifier: Apache-2.0

// Package jsondoc has what the JSON documents of all commands share: their schema, the conversion to the schema before it, the
// vocabulary of their keys, and objects that several commands print. specs/json.yaml defines the vocabulary.
package jsondoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

const (
	// Schema is the number of the documents that commands print with --json.
	Schema = 2
	// Oldest is the number of the oldest documents that commands still print, with --json=1.
	Oldest = 1
)

// In returns doc, a document or a part of one, for encoding in a schema.
func In(schema int, doc any) any {
	if schema == Oldest {
		return schema1(doc)
	}
	return doc
}

// Encode writes doc as an indented document with a final newline, or as one line.
func Encode(w io.Writer, doc any, indent bool) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if indent {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(doc)
}

// Decode reads a document of the present schema. A key that doc does not have is an error: no reader overlooks that a key was
// renamed.
func Decode(data []byte, doc any) error {
	var head struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("not a JSON document: %w", err)
	}
	if head.Schema != Schema {
		return fmt.Errorf("a document of schema %d, want %d", head.Schema, Schema)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(doc); err != nil {
		return fmt.Errorf("the document has other keys or types than its reader: %w", err)
	}
	return nil
}
