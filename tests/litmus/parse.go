// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"fmt"
	"regexp"
	"slices"
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
	isName  = regexp.MustCompile(`^[a-z_]\w*$`)
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
	program := comment.ReplaceAllString(m[3], "")
	if rest := strings.TrimSpace(token.ReplaceAllString(program, "")); rest != "" {
		return nil, fmt.Errorf("%s: unknown: %s", t.name, rest)
	}
	p := &parser{tokens: token.FindAllString(program, -1)}
	defer t.recoverSyntax(&err)
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

// syntaxError is what the parser panics with, and whatever executes a call that it does not know.
type syntaxError string

// recoverSyntax turns such a panic into an error. It is to be deferred.
func (t *test) recoverSyntax(err *error) {
	switch r := recover().(type) {
	case nil:
	case syntaxError:
		*err = fmt.Errorf("%s: %s", t.name, string(r))
	default:
		panic(r)
	}
}

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
	p.want("(")
	for !p.accept(")") {
		p.accept(",")
		p.declare("int", "spinlock_t", "atomic_t")
		p.want("*")
		p.name()
	}
	return p.block()
}

// declare reads one of the types.
func (p *parser) declare(types ...string) {
	if !slices.Contains(types, p.peek()) {
		p.fail(strings.Join(types, " or "))
	}
	p.at++
}

// name reads the name of a place or of a register.
func (p *parser) name() {
	if name := p.next(); !isName.MatchString(name) {
		p.at--
		p.fail("a name")
	}
}

func (p *parser) block() (all []stmt) {
	p.want("{")
	for !p.accept("}") {
		if p.accept("int") {
			// Without a value: a register has none before a statement sets it.
			p.name()
			p.want(";")
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
