// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strconv"

	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/spf13/pflag"
)

// AddJSONFlag declares the option --json, which sets on. --json=1 has the command print documents of schema 1.
func AddJSONFlag(fs *pflag.FlagSet, env *Env, on *bool, usage string) {
	f := fs.VarPF(&jsonValue{env, on}, "json", "", usage+"; --json=1: in schema 1")
	f.NoOptDefVal = "true" // has help show a switch
}

// jsonValue is the pflag.Value of --json.
type jsonValue struct {
	env *Env
	on  *bool
}

func (v *jsonValue) Set(text string) error {
	schema, err := strconv.Atoi(text)
	if text == "true" {
		schema, err = jsondoc.Schema, nil
	}
	if err != nil || schema < jsondoc.Oldest || schema > jsondoc.Schema {
		return fmt.Errorf("%q is not a schema: give --json, or --json=%d for schema %[2]d", text, jsondoc.Oldest)
	}
	*v.on, v.env.schema = true, schema
	return nil
}

func (v *jsonValue) String() string {
	if v.env == nil || v.env.schema == 0 {
		return ""
	}
	return strconv.Itoa(v.env.schema)
}

// Type is that of a switch, for help.
func (v *jsonValue) Type() string { return "bool" }

// JSON returns doc, or a part of one, in the schema that the command line asks for.
func (e *Env) JSON(doc any) any { return jsondoc.In(e.schema, doc) }

// WriteJSON prints a document. Its first field is `Schema int` with the tag `json:"schema"` and the value jsondoc.Schema.
func (e *Env) WriteJSON(doc any) error { return WriteJSON(e.Out, e.JSON(doc)) }

// WriteJSONLine prints a document on one line, for continuous output (--watch).
func (e *Env) WriteJSONLine(doc any) error { return WriteJSONLine(e.Out, e.JSON(doc)) }
