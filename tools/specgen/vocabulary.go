// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const jsonSpec = "specs/json.yaml"

// term is a key of JSON documents; specs/json.yaml says what the fields mean.
type term struct {
	Key    string   `yaml:"key"`
	Type   string   `yaml:"type"`
	Values []string `yaml:"values"`
	Form   string   `yaml:"form"`
	Doc    string   `yaml:"doc"`

	used bool
}

// vocabulary has all keys.
type vocabulary struct {
	Groups []struct {
		Title string `yaml:"title"`
		Keys  []term `yaml:"keys"`
	} `yaml:"groups"`

	terms map[string]*term
	// changes has the packages whose documents had a key or a value in another form in schema 1.
	changes map[change][]string
}

var termTypes = []string{"string", "number", "bool", "object", "list of strings", "list of objects"}

func loadVocabulary(t *tree) (*vocabulary, error) {
	v := &vocabulary{terms: map[string]*term{}, changes: map[change][]string{}}
	if err := t.load(jsonSpec, v); err != nil {
		return nil, err
	}
	for i := range v.Groups {
		for j := range v.Groups[i].Keys {
			k := &v.Groups[i].Keys[j]
			switch {
			case k.Key == "" || k.Doc == "" || !slices.Contains(termTypes, k.Type):
				return nil, fmt.Errorf("%s: key %q lacks something", jsonSpec, k.Key)
			case v.terms[k.Key] != nil:
				return nil, fmt.Errorf("%s: key %q is there twice", jsonSpec, k.Key)
			case k.Form != "" && len(k.Values) > 0:
				return nil, fmt.Errorf("%s: key %q has values and a form", jsonSpec, k.Key)
			}
			if _, err := regexp.Compile(k.Form); err != nil {
				return nil, fmt.Errorf("%s: key %q: %w", jsonSpec, k.Key, err)
			}
			v.terms[k.Key] = k
		}
	}
	return v, nil
}

// use returns the meaning of the key at the end of a path, if a command may print it with that type.
func (v *vocabulary) use(path, word string) (string, error) {
	key := strings.TrimSuffix(path[strings.LastIndex(path, ".")+1:], "[]")
	k := v.terms[key]
	switch {
	case k == nil:
		return "", fmt.Errorf("%s: %s does not have the key %q: use the one that other commands use, or add it", path, jsonSpec, key)
	case k.Type != word:
		return "", fmt.Errorf("%s is a %s, but %q is a %s in %s: another thing needs another key", path, word, key, k.Type, jsonSpec)
	}
	k.used = true
	return k.Doc, nil
}

// unused returns an error if no command prints a key.
func (v *vocabulary) unused() error {
	for key, k := range v.terms {
		if !k.used {
			return fmt.Errorf("%s: no command prints the key %q", jsonSpec, key)
		}
	}
	return nil
}

// write writes the vocabulary as a table of Go and as tables of docs/json.md.
func (v *vocabulary) write(t *tree) error {
	var code, doc writer
	code.line("// vocabulary has the keys of all documents.\nvar vocabulary = map[string]term{")
	for _, g := range v.Groups {
		doc.line("\n### %s\n\n| key | type | values | meaning |\n|---|---|---|---|", g.Title)
		for _, k := range g.Keys {
			form := k.Form
			if len(k.Values) > 0 {
				form = strings.Join(k.Values, "|")
			}
			code.line("%q: {%q, `%s`},", k.Key, k.Type, form)
			doc.line("| `%s` | %s | %s | %s |", k.Key, k.Type, k.values(), strings.ReplaceAll(k.Doc, "|", `\|`))
		}
	}
	code.line("}")
	doc.line("")
	if err := t.writeGo("internal/jsondoc/vocabulary_gen.go", "jsondoc", jsonSpec, &code); err != nil {
		return err
	}
	return t.writePart(jsonDocument, "vocabulary", &doc)
}

// values returns the values in words, "" for any.
func (k *term) values() string {
	switch {
	case len(k.Values) > 0:
		return "`" + strings.Join(k.Values, "`, `") + "`"
	case k.Form != "":
		return "`" + strings.ReplaceAll(k.Form, "|", `\|`) + "`"
	}
	return ""
}
