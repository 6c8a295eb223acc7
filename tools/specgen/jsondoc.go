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
// mark with the package and the type, and has the keys and types of its fields. Their meaning is that of the vocabulary, and what
// the comment of the field adds.
func jsonDocs(t *tree) error {
	words, err := loadVocabulary(t)
	if err != nil {
		return err
	}
	if err := words.write(t); err != nil {
		return err
	}
	text, err := t.read(jsonDocument)
	if err != nil {
		return err
	}
	mark := regexp.MustCompile(`<!-- generated: (internal/[\w/]+) (\w+) -->`)
	all := packages{t: t, types: map[string]*ast.StructType{}}
	if err := all.allDescribed(string(text)); err != nil {
		return err
	}
	for _, m := range mark.FindAllStringSubmatch(string(text), -1) {
		table := jsonTable{packages: &all, words: words, seen: map[string]string{}}
		table.line("\n| field | type | meaning |\n|---|---|---|")
		if err := table.fields(m[1], m[2], ""); err != nil {
			return fmt.Errorf("%s: %w", jsonDocument, err)
		}
		table.line("")
		if err := t.writePart(jsonDocument, m[1]+" "+m[2], &table.writer); err != nil {
			return err
		}
	}
	if err := words.writeChanges(t); err != nil {
		return err
	}
	return words.unused()
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

// allDescribed checks that text has a mark for each type that is a document: a struct with the key schema.
func (p *packages) allDescribed(text string) error {
	dirs, err := filepath.Glob(filepath.Join(p.t.root, "internal/tool/*"))
	if err != nil {
		return err
	}
	for _, dir := range append(dirs, filepath.Join(p.t.root, "internal/cli")) {
		rel, err := filepath.Rel(p.t.root, dir)
		if err != nil {
			return err
		}
		if _, err := p.find(rel, ""); err != nil {
			return err
		}
	}
	for name, st := range p.types {
		if st == nil || len(st.Fields.List) == 0 || st.Fields.List[0].Tag == nil || st.Fields.List[0].Tag.Value != "`json:\"schema\"`" {
			continue
		}
		if !strings.Contains(text, "<!-- generated: "+name+" -->") {
			return fmt.Errorf("%s has no table of %s", jsonDocument, name)
		}
	}
	return nil
}

// jsonTable is one table.
type jsonTable struct {
	*packages
	writer
	words *vocabulary
	seen  map[string]string // the path at which a type stands first
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
		w.words.changed(dir, key, reflect.StructTag(tag).Get("schema1"))
		if err := w.field(dir, f, prefix+key, options != ""); err != nil {
			return err
		}
	}
	return nil
}

// embedded writes the rows of a type whose fields are those of the type that embeds it.
func (w *jsonTable) embedded(dir string, typ ast.Expr, prefix string) error {
	at, name := w.named(dir, typ)
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
	at, name := w.named(dir, typ)
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
	doc, err := w.words.use(path, word)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if optional {
		word += "?"
	} else if _, pointer := f.Type.(*ast.StarExpr); pointer {
		return fmt.Errorf("%s: %s may be null: leave it out instead, with omitzero", dir, path)
	}
	if more := comment(f); more != "" {
		doc += "; " + more
	}
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
func (p *packages) named(dir string, typ ast.Expr) (at, name string) {
	switch x := typ.(type) {
	case *ast.Ident:
		return dir, x.Name
	case *ast.SelectorExpr:
		pkg, ok := x.X.(*ast.Ident)
		if !ok {
			break
		}
		at = "internal/" + pkg.Name
		if _, err := os.Stat(filepath.Join(p.t.root, at)); err != nil {
			at = "internal/tool/" + pkg.Name
		}
		return at, x.Sel.Name
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
