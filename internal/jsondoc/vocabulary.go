// SPDX-License-Identifier: Apache-2.0

package jsondoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// term is the type of a key, and a regular expression for its values, "" for any.
type term struct{ kind, form string }

// forms has the compiled regular expressions.
var forms = sync.OnceValue(func() map[string]*regexp.Regexp {
	all := map[string]*regexp.Regexp{}
	for key, t := range vocabulary {
		if t.form != "" {
			all[key] = regexp.MustCompile("^(?:" + t.form + ")$")
		}
	}
	return all
})

// Check reports whether data is a document of the present schema whose keys, types and values are those of the vocabulary.
func Check(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var doc map[string]any
	if err := d.Decode(&doc); err != nil {
		return fmt.Errorf("not a JSON document: %w", err)
	}
	if d.More() {
		return errors.New("more than one document")
	}
	if doc["schema"] != json.Number(fmt.Sprint(Schema)) {
		return fmt.Errorf("schema %v, want %d", doc["schema"], Schema)
	}
	return checkObject(doc, "")
}

func checkObject(o map[string]any, path string) error {
	for key, value := range o {
		t, ok := vocabulary[key]
		if !ok {
			return fmt.Errorf("%s%s is not in the vocabulary", path, key)
		}
		if got := kindOf(value); got != t.kind && !(got == "list" && strings.HasPrefix(t.kind, "list of ")) {
			return fmt.Errorf("%s%s has the type %s, want %s", path, key, got, t.kind)
		}
		if form := forms()[key]; form != nil && !form.MatchString(fmt.Sprint(value)) {
			return fmt.Errorf("%s%s: %q does not match %s", path, key, value, form)
		}
		if err := checkMembers(key, value, path+key+"."); err != nil {
			return err
		}
	}
	return nil
}

// checkMembers checks what is below a key. The keys of settings are names of settings.
func checkMembers(key string, value any, path string) error {
	switch x := value.(type) {
	case map[string]any:
		if key != "settings" {
			return checkObject(x, path)
		}
	case []any:
		for _, element := range x {
			if o, ok := element.(map[string]any); ok {
				if err := checkObject(o, path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// kindOf returns the type of a value. That of an empty list is "list".
func kindOf(value any) string {
	switch x := value.(type) {
	case string:
		return "string"
	case json.Number:
		return "number"
	case bool:
		return "bool"
	case map[string]any:
		return "object"
	case []any:
		if len(x) == 0 {
			return "list"
		}
		return "list of " + kindOf(x[0]) + "s"
	}
	return "null"
}
