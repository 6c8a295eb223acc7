// SPDX-License-Identifier: Apache-2.0

package jsondoc

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// The documents of schema 1 are made from those of schema 2. A field whose key, value or presence was another one has the tag
// `schema1:"KEY,OPTION,..."`: KEY is its key in schema 1, the same if it is empty, and "-" if schema 1 does not have the field.
// The option "keep" is for a field that schema 1 has also when it is empty; the others are in oldValues.

// member is a key and a value of an object.
type member struct {
	key   string
	value any
}

// object is a JSON object whose members keep their order.
type object []member

// MarshalJSON encodes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := enc.Encode(m.key); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := enc.Encode(m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// oldValues convert the value of a field to that of schema 1. parent is the struct of the field.
var oldValues = map[string]func(value, parent reflect.Value) any{
	"upper": words(map[string]string{"smcr": "SMCR", "smcd": "SMCD", "tcp": "TCP"}),
	"0x":    func(v, _ reflect.Value) any { return "0x" + v.String() },
	// Eight digits, of which schema 1 has at least the last four.
	"short": func(v, _ reflect.Value) any {
		high, low := v.String()[:4], v.String()[4:]
		return strings.TrimLeft(high, "0") + low
	},
	"hyphen":  words(map[string]string{"smcr": "SMC-R", "smcd": "SMC-D", "tcp": "TCP"}),
	"clnt":    words(map[string]string{"client": "CLNT", "server": "SERV"}),
	"connect": words(map[string]string{"client": "connect", "server": "listen"}),
	"by_user": func(v, _ reflect.Value) any { return v.String() == OriginTable },
	"pnet_object": func(v, parent reflect.Value) any {
		origin := parent.FieldByName("Origin").String()
		if origin == "" {
			return nil
		}
		if origin == OriginFirmware {
			origin = "hardware" // as schema 1 calls it
		}
		return object{{"id", v.String()}, {"source", origin}}
	},
	"seid_object": func(v, parent reflect.Value) any {
		return object{{"eid", v.String()}, {"enabled", parent.FieldByName("Enabled").Interface()}}
	},
	"dotted": func(v, parent reflect.Value) any {
		release := parent.FieldByName("SMCRelease")
		switch {
		case release.Kind() != reflect.Pointer:
			return fmt.Sprintf("%d.%d", v.Interface(), release.Interface())
		case release.IsNil():
			return fmt.Sprint(v.Interface())
		}
		return fmt.Sprintf("%d.%d", v.Interface(), release.Elem().Interface())
	},
}

// words converts words; others stay.
func words(old map[string]string) func(value, parent reflect.Value) any {
	return func(v, _ reflect.Value) any {
		if word, ok := old[v.String()]; ok {
			return word
		}
		return v.String()
	}
}

// schema1 returns v as schema 1 has it.
func schema1(v any) any { return convert(reflect.ValueOf(v), true) }

// convert returns the form of v in schema 1. The document itself has the number of its schema.
func convert(v reflect.Value, document bool) any {
	if !v.IsValid() {
		return nil
	}
	switch v.Interface().(type) {
	case json.Marshaler, encoding.TextMarshaler:
		return v.Interface()
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return convert(v.Elem(), document)
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		list := make([]any, v.Len())
		for i := range list {
			list[i] = convert(v.Index(i), false)
		}
		return list
	case reflect.Struct:
		return convertFields(object{}, v, document)
	}
	return v.Interface()
}

// convertFields appends the fields of a struct, and those of structs that it embeds.
func convertFields(out object, v reflect.Value, document bool) object {
	for f, value := range v.Fields() {
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && key == "" {
			out = convertFields(out, value, document)
			continue
		}
		old, option, _ := strings.Cut(f.Tag.Get("schema1"), ",")
		option, keep := strings.CutPrefix(option, "keep")
		empty := options == "omitzero" && isZero(value) || options == "omitempty" && isEmpty(value)
		if old == "-" || empty && !keep || !f.IsExported() {
			continue
		}
		if old != "" {
			key = old
		}
		var member1 any
		switch oldValue := oldValues[strings.TrimPrefix(option, ",")]; {
		case oldValue != nil:
			member1 = oldValue(value, v)
		case document && key == "schema":
			member1 = Oldest
		default:
			member1 = convert(value, false)
		}
		out = append(out, member{key, member1})
	}
	return out
}

// isZero reports whether the option omitzero leaves a value out.
func isZero(v reflect.Value) bool {
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
		return z.IsZero()
	}
	return v.IsZero()
}

// isEmpty reports whether the option omitempty leaves a value out.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
