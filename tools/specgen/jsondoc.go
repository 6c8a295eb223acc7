// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

const jsonDocument = "docs/json.md"

// jsonDocs writes the tables of docs/json.md. What a command prints as JSON is declared by Go types alone: each table has a
// mark with the package and the type, and has the keys, types and comments of its fields.
func jsonDocs(t *tree) error {
	text, err := t.read(jsonDocument)
	if err != nil {
		return err
	}
	mark := regexp.MustCompile(`<!-- generated: (internal/tool/\w+) (\w+) -->`)
	all := packages{t: t, types: map[string]*ast.StructType{}}
	for _, m := range mark.FindAllStringSubmatch(string(text), -1) {
		table := jsonTable{packages: &all, seen: map[string]string{}}
		table.line("\n| field | type | meaning |\n|---|---|---|")
		if err := table.fields(m[1], m[2], ""); err != nil {
			return fmt.Errorf("%s: %w", jsonDocument, err)
		}
		table.line("")
		if err := t.writePart(jsonDocument, m[1]+" "+m[2], &table.writer); err != nil {
			return err
		}
	}
	return nil
}

// packages are the types of Go packages that were looked into, as in "internal/tool/smcss jsonSocket".
type packages struct {
	t     *tree
	types map[string]*ast.StructType
}

func (p *packages) load(dir string) error {
	names, err := filepath.Glob(filepath.Join(p.t.root, dir, "*.go"))
	if err != nil {
		return err
	}
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range decl.Specs {
				if ts, ok := s.(*ast.TypeSpec); ok {
					if st, ok := ts.Type.(*ast.StructType); ok {
						p.types[dir+" "+ts.Name.Name] = st
					}
				}
			}
		}
	}
	return nil
}

// find returns a type, nil if there is none of that name.
func (p *packages) find(dir, name string) (*ast.StructType, error) {
	if _, ok := p.types[dir]; !ok {
		p.types[dir] = nil
		if err := p.load(dir); err != nil {
			return nil, err
		}
	}
	return p.types[dir+" "+name], nil
}

// jsonTable is one table.
type jsonTable struct {
	*packages
	writer
	seen map[string]string // the path at which a type stands first
}

// fields writes the rows of a type whose path begins with prefix.
func (w *jsonTable) fields(dir, name, prefix string) error {
	st, err := w.find(dir, name)
	if err != nil {
		return err
	}
	if st == nil {
		return fmt.Errorf("%s has no struct %s", dir, name)
	}
	for _, f := range st.Fields.List {
		if f.Tag == nil {
			if err := w.embedded(dir, f.Type, prefix); err != nil {
				return err
			}
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			return err
		}
		key, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if key == "-" || key == "" {
			continue
		}
		if err := w.field(dir, f, prefix+key, options != ""); err != nil {
			return err
		}
	}
	return nil
}

// embedded writes the rows of a type whose fields are those of the type that embeds it.
func (w *jsonTable) embedded(dir string, typ ast.Expr, prefix string) error {
	at, name := named(dir, typ)
	if name == "" {
		return nil
	}
	return w.fields(at, name, prefix)
}

func (w *jsonTable) field(dir string, f *ast.Field, path string, optional bool) error {
	typ, list := f.Type, false
	for {
		if p, ok := typ.(*ast.StarExpr); ok {
			typ = p.X
		} else if a, ok := typ.(*ast.ArrayType); ok {
			typ, list = a.Elt, true
		} else if i, ok := typ.(*ast.IndexExpr); ok { // Optional
			typ = i.Index
		} else {
			break
		}
	}
	at, name := named(dir, typ)
	st, err := w.find(at, name)
	if err != nil {
		return err
	}
	word := word(typ)
	if st != nil {
		word = "object"
	}
	if list {
		word = "list of " + plural[word]
		path += "[]"
	}
	if _, pointer := f.Type.(*ast.StarExpr); optional {
		word += "?"
	} else if pointer {
		word += " or null"
	}
	doc := comment(f)
	first, again := w.seen[at+" "+name]
	if st != nil && again {
		doc = strings.TrimPrefix(doc+"; as `"+first+"`", "; ")
	}
	w.line("| `%s` | %s | %s |", path, word, doc)
	if st == nil || again {
		return nil
	}
	w.seen[at+" "+name] = path
	return w.fields(at, name, path+".")
}

// named returns the package and name of a type, or no name for a type without one.
func named(dir string, typ ast.Expr) (at, name string) {
	switch x := typ.(type) {
	case *ast.Ident:
		return dir, x.Name
	case *ast.SelectorExpr:
		if pkg, ok := x.X.(*ast.Ident); ok {
			return "internal/tool/" + pkg.Name, x.Sel.Name
		}
	}
	return dir, ""
}

var plural = map[string]string{"string": "strings", "number": "numbers", "object": "objects"}

// word says what a type is in JSON. Types of other packages are written as text.
func word(typ ast.Expr) string {
	switch x := typ.(type) {
	case *ast.Ident:
		switch {
		case x.Name == "bool":
			return "bool"
		case regexp.MustCompile(`^(u?int\d*|float64)$`).MatchString(x.Name):
			return "number"
		}
	case *ast.MapType:
		return "object"
	}
	return "string"
}

// comment returns the comment above a field, on one line.
func comment(f *ast.Field) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(f.Doc.Text()), " "), "|", `\|`)
}
