// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"regexp"
	"strings"
)

// page is a growing text in the macros of man(7).
type page struct{ strings.Builder }

// macro writes a request. Its arguments are escaped; empty ones at the end are left out.
func (p *page) macro(name string, args ...string) {
	p.WriteString("." + name)
	for _, a := range args {
		a = escape(a)
		if a == "" || strings.ContainsAny(a, ` "`) {
			a = `"` + strings.ReplaceAll(a, `"`, `\(dq`) + `"`
		}
		p.WriteString(" " + a)
	}
	p.WriteByte('\n')
}

// line writes text that is already roff.
func (p *page) line(roff string) {
	if strings.HasPrefix(roff, ".") || strings.HasPrefix(roff, "'") {
		p.WriteString(`\&`)
	}
	p.WriteString(roff + "\n")
}

// text writes running text, one line for each sentence.
func (p *page) text(text string) {
	for _, s := range sentences(text) {
		p.line(inline(s))
	}
}

// verbatim writes lines that are not filled.
func (p *page) verbatim(lines []string) {
	p.macro("EX")
	for _, l := range lines {
		p.line(escape(l))
	}
	p.macro("EE")
}

// blocks writes the body of a section. fresh means that the macro before the body has already begun a paragraph.
func (p *page) blocks(blocks []block, fresh bool) {
	for _, b := range blocks {
		if !fresh && b.items == nil {
			p.macro("PP")
		}
		fresh = false
		switch {
		case b.verbatim != nil:
			p.verbatim(b.verbatim)
		case b.items != nil:
			p.list(b.items)
		default:
			p.text(b.text)
		}
	}
}

func (p *page) list(items []item) {
	for _, it := range items {
		p.macro("TP")
		p.line(term(it.term))
		if len(it.body) == 0 {
			continue
		}
		if it.body[0].items != nil || it.body[0].verbatim != nil {
			// Without text in between, roff would merge the term with the first entry.
			p.line(`\&`)
		}
		p.blocks(it.body[:1], true)
		if rest := it.body[1:]; len(rest) > 0 {
			p.macro("RS")
			p.blocks(rest, false)
			p.macro("RE")
		}
	}
}

// sentences splits text after each sentence. Formatters insert the space between sentences.
func sentences(text string) []string {
	var out []string
	for {
		at := sentenceEnd.FindStringSubmatchIndex(text)
		if at == nil {
			return append(out, text)
		}
		out = append(out, text[:at[2]])
		text = text[at[3]:]
	}
}

var sentenceEnd = regexp.MustCompile(`[^\s.][.?!][)"]?( )(?:[A-Z(]|['"-]-?[A-Za-z])`)

// Highlighted parts of running text: options, and text in single quotes, which users type.
var (
	quoted = regexp.MustCompile(`(^|[\s(])'([^'\s](?:[^']*[^'\s])?)'`)
	option = regexp.MustCompile(`(^|[\s(/])(--?[A-Za-z][\w-]*)`)
)

// span is a highlighted part of a text, from begin to end. The page shows content instead.
type span struct {
	begin, end int
	content    string
}

// render converts a text to roff. It converts spans with inside, and the text between them with between.
func render(text string, spans []span, between, inside func(string) string) string {
	var b strings.Builder
	last := 0
	for _, s := range spans {
		b.WriteString(between(text[last:s.begin]))
		b.WriteString(inside(s.content))
		last = s.end
	}
	b.WriteString(between(text[last:]))
	return b.String()
}

// inline converts a line of text to roff.
func inline(text string) string {
	var spans []span
	for _, at := range quoted.FindAllStringSubmatchIndex(text, -1) {
		spans = append(spans, span{at[3], at[1], text[at[4]:at[5]]}) // without the quotes
	}
	return render(text, spans, boldOptions, bold)
}

func boldOptions(text string) string {
	var spans []span
	for _, at := range option.FindAllStringSubmatchIndex(text, -1) {
		spans = append(spans, span{at[4], at[5], text[at[4]:at[5]]})
	}
	return render(text, spans, escape, bold)
}

// term converts the term of an entry to roff: a name, something to type, or a few words of text.
func term(text string) string {
	switch words := strings.Fields(text); {
	case len(words) > 3:
		return inline(text)
	case text[0] >= 'a' && text[0] <= 'z':
		return usage(text)
	}
	return bold(text)
}

// usage converts a synopsis to roff. Words in capitals are placeholders, users type the others.
func usage(text string) string {
	var spans []span
	for _, at := range word.FindAllStringIndex(text, -1) {
		spans = append(spans, span{at[0], at[1], text[at[0]:at[1]]})
	}
	return render(text, spans, escape, func(w string) string {
		if placeholder.MatchString(w) {
			return italic(w)
		}
		return bold(w)
	})
}

var (
	word        = regexp.MustCompile(`[^][{}|(),.:/\s]+`)
	placeholder = regexp.MustCompile(`^[A-Z][A-Z0-9_-]*$`)
)

func bold(text string) string { return font("B", text) }

func italic(text string) string { return font("I", text) }

func font(name, text string) string {
	if text == "" {
		return ""
	}
	return `\f` + name + escape(text) + `\fR`
}

// escape protects characters that are special to roff, and keeps roff from replacing ASCII characters.
func escape(text string) string { return escaper.Replace(text) }

var escaper = strings.NewReplacer(
	`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`, "…", "...",
)
