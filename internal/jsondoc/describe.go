// SPDX-License-Identifier: Apache-2.0

package jsondoc

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// Describe returns the keys of a document for the help of a command, in their order, for instance "schema; devices [{device, ports
// [{port, state}]}]": an object has braces, a list square brackets. doc is a value of the document's type. The lines have at most
// 80 columns, of which the first two are empty; end follows the last key.
func Describe(doc any, end string) string {
	return fold(strings.Join(keys(reflect.TypeOf(doc)), "; ")+end, 80, "  ")
}

var marshalers = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}

// keys returns the keys of a struct, each with what its value has.
func keys(of reflect.Type) []string {
	var all []string
	for i := range of.NumField() {
		f := of.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && key == "":
			all = append(all, keys(f.Type)...)
		case key != "-":
			all = append(all, strings.TrimSpace(key+" "+content(f.Type)))
		}
	}
	return all
}

// content describes values that have parts; for others it returns "".
func content(of reflect.Type) string {
	for _, m := range marshalers {
		if of.Implements(m) {
			return ""
		}
	}
	switch of.Kind() {
	case reflect.Pointer:
		return content(of.Elem())
	case reflect.Struct:
		return "{" + strings.Join(keys(of), ", ") + "}"
	case reflect.Slice:
		if c := content(of.Elem()); c != "" {
			return "[" + c + "]"
		}
		return "[" + of.Elem().Kind().String() + "]"
	}
	return ""
}

// fold breaks text between words.
func fold(text string, width int, indent string) string {
	var b strings.Builder
	column := width // of the line so far: the first word begins one
	for word := range strings.FieldsSeq(text) {
		if column+1+len(word) > width {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(indent)
			column = len(indent)
		} else {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
