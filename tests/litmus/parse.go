// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// test is a litmus test.
type test struct {
	name string
	// comment is what stands before the program: the result, and what the test is about.
	comment string
	threads [][]stmt
	// exists is the outcome.
	exists expr
}

// stmt is a statement: a call, which may set a register, an assignment, or if.
type stmt struct {
	register string
	call     string
	args     []expr
	value    expr // of an assignment, or the condition of if
	isIf     bool
	then, or []stmt
}

// expr is an expression: a number, a name, or an operator with its operands. P:register and places are names in exists.
type expr struct {
	op   string
	num  int
	name string
	args []expr
}

var (
	header  = regexp.MustCompile(`(?s)^C ([\w+.-]+)\s*(?:\(\*(.*?)\*\))?\s*\{\s*\}(.*)$`)
	comment = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	token   = regexp.MustCompile(`\d+:[a-z]\w*|\w+|/\\|\\/|==|!=|<=|>=|&&|\|\||[-+*(){};,=<>!&~]`)
)

// parser reads tokens.
type parser struct {
	tokens []string
	at     int
}

// parse reads a litmus test.
func parse(source string) (t *test, err error) {
	m := header.FindStringSubmatch(strings.TrimSpace(source))
	if m == nil {
		return nil, fmt.Errorf("no header: C NAME, a comment and {}")
	}
	t = &test{name: m[1], comment: m[2]}
	p := &parser{tokens: token.FindAllString(comment.ReplaceAllString(m[3], ""), -1)}
	defer func() {
		if r, ok := recover().(syntaxError); ok {
			err = fmt.Errorf("%s: %s", t.name, string(r))
		}
	}()
	for p.peek() != "exists" {
		t.threads = append(t.threads, p.thread(len(t.threads)))
	}
	p.want("exists")
	t.exists = p.expression(0)
	if p.peek() != "" {
		p.fail("the end")
	}
	return t, nil
}

// syntaxError is what a parser panics with.
type syntaxError string

func (p *parser) fail(want string) {
	panic(syntaxError(fmt.Sprintf("want %s after %q", want, strings.Join(p.tokens[max(0, p.at-8):min(p.at+1, len(p.tokens))], " "))))
}

func (p *parser) peek() string {
	if p.at < len(p.tokens) {
		return p.tokens[p.at]
	}
	return ""
}

func (p *parser) next() string {
	s := p.peek()
	if s == "" {
		p.fail("more")
	}
	p.at++
	return s
}

func (p *parser) want(s string) {
	if p.peek() != s {
		p.fail(s)
	}
	p.at++
}

func (p *parser) accept(s string) bool {
	if p.peek() != s {
		return false
	}
	p.at++
	return true
}

// thread reads P0(int *x, ...) { ... }.
func (p *parser) thread(number int) []stmt {
	p.want(fmt.Sprintf("P%d", number))
	for p.next() != ")" {
		continue
	}
	return p.block()
}

func (p *parser) block() (all []stmt) {
	p.want("{")
	for !p.accept("}") {
		if p.accept("int") {
			for p.next() != ";" {
				continue
			}
			continue
		}
		all = append(all, p.statement())
	}
	return all
}

func (p *parser) statement() stmt {
	name := p.next()
	if name == "if" {
		p.want("(")
		s := stmt{isIf: true, value: p.expression(0)}
		p.want(")")
		s.then = p.body()
		if p.accept("else") {
			s.or = p.body()
		}
		return s
	}
	var s stmt
	if p.accept("=") {
		s.register = name
		if p.at+1 >= len(p.tokens) || p.tokens[p.at+1] != "(" {
			s.value = p.expression(0)
			p.want(";")
			return s
		}
		name = p.next()
	}
	s.call = name
	p.want("(")
	for !p.accept(")") {
		s.args = append(s.args, p.expression(0))
		p.accept(",")
	}
	p.want(";")
	return s
}

func (p *parser) body() []stmt {
	if p.peek() == "{" {
		return p.block()
	}
	return []stmt{p.statement()}
}

// precedence has the operators from the weakest to the strongest. = compares in exists.
var precedence = []string{`\/ ||`, `/\ &&`, "== != = < > <= >=", "+ -", "*"}

func (p *parser) expression(level int) expr {
	if level == len(precedence) {
		return p.operand()
	}
	e := p.expression(level + 1)
	for p.peek() != "" && strings.Contains(" "+precedence[level]+" ", " "+p.peek()+" ") {
		op := p.next()
		e = expr{op: op, args: []expr{e, p.expression(level + 1)}}
	}
	return e
}

func (p *parser) operand() expr {
	s := p.next()
	switch s {
	case "(":
		e := p.expression(0)
		p.want(")")
		return e
	case "!", "~", "-":
		return expr{op: s + "x", args: []expr{p.operand()}}
	case "*", "&":
		return p.operand() // a place is known by its name
	}
	if n, err := strconv.Atoi(s); err == nil {
		return expr{num: n}
	}
	return expr{name: s}
}

// eval computes an expression. lookup returns the value of a name.
func (e expr) eval(lookup func(name string) int) int {
	if e.name != "" {
		return lookup(e.name)
	}
	if e.op == "" {
		return e.num
	}
	a := e.args[0].eval(lookup)
	b := 0
	if len(e.args) > 1 {
		b = e.args[1].eval(lookup)
	}
	truth := func(holds bool) int {
		if holds {
			return 1
		}
		return 0
	}
	switch e.op {
	case `\/`, "||":
		return truth(a != 0 || b != 0)
	case `/\`, "&&":
		return truth(a != 0 && b != 0)
	case "==", "=":
		return truth(a == b)
	case "!=":
		return truth(a != b)
	case "<":
		return truth(a < b)
	case ">":
		return truth(a > b)
	case "<=":
		return truth(a <= b)
	case ">=":
		return truth(a >= b)
	case "+":
		return a + b
	case "*":
		return a * b
	case "-":
		return a - b
	case "!x", "~x":
		return truth(a == 0)
	case "-x":
		return -a
	}
	panic(syntaxError("no operator " + e.op))
}
