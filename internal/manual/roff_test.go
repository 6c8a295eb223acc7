// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInline(t *testing.T) {
	for in, want := range map[string]string{
		"plain text":                   "plain text",
		"SMC-R, AIX's":                 `SMC\-R, AIX\(aqs`,
		"with -d, or --json; a-b":      `with \fB\-d\fR, or \fB\-\-json\fR; a\-b`,
		"-a and (-b)":                  `\fB\-a\fR and (\fB\-b\fR)`,
		"'smc_pnet show' and '#'":      `\fBsmc_pnet show\fR and \fB#\fR`,
		"see 'smcd -N blue', too":      `see \fBsmcd \-N blue\fR, too`,
		"isn't and 'a b' and don't":    `isn\(aqt and \fBa b\fR and don\(aqt`,
		`back\slash ~ ^ ` + "`" + ` "`: `back\eslash \(ti \(ha \(ga \(dq`,
		"a - b":                        `a \- b`,
	} {
		if diff := cmp.Diff(want, inline(in)); diff != "" {
			t.Errorf("%q (-want +got): %s", in, diff)
		}
	}
}

func TestUsage(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "",
		"PNETID {eth NAME | ib NAME [PORT]}": `\fIPNETID\fR {\fBeth\fR \fINAME\fR | \fBib\fR \fINAME\fR [\fIPORT\fR]}`,
		"[-a] [--method METHOD] [ARG...]":    `[\fB\-a\fR] [\fB\-\-method\fR \fIMETHOD\fR] [\fIARG\fR...]`,
		"HOST[:PORT] LG-ID AF_SMC":           `\fIHOST\fR[:\fIPORT\fR] \fILG\-ID\fR \fIAF_SMC\fR`,
		"-I -IB-dev":                         `\fB\-I\fR \fB\-IB\-dev\fR`,
	} {
		if diff := cmp.Diff(want, usage(in)); diff != "" {
			t.Errorf("%q (-want +got): %s", in, diff)
		}
	}
}

func TestTerm(t *testing.T) {
	for in, want := range map[string]string{
		"add EID":                       `\fBadd\fR \fIEID\fR`,
		"INIT":                          `\fBINIT\fR`,
		"Peer Address":                  `\fBPeer Address\fR`,
		"a Go program, or a static one": "a Go program, or a static one",
	} {
		if diff := cmp.Diff(want, term(in)); diff != "" {
			t.Errorf("%q (-want +got): %s", in, diff)
		}
	}
}

func TestSentences(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{"One. Two? Three", []string{"One.", "Two?", "Three"}},
		{"In 6.1. (So) it is.) -d does. --json is. 'ip -n' too.", []string{"In 6.1.", "(So) it is.)", "-d does.", "--json is.", "'ip -n' too."}},
		{"A-Z 0-9 . -, none: Here e.g. this", []string{"A-Z 0-9 . -, none: Here e.g. this"}},
		{"smc_dbg-....tgz In", []string{"smc_dbg-....tgz In"}},
		{"[OPTION]... Not", []string{"[OPTION]... Not"}},
	} {
		if diff := cmp.Diff(tt.want, sentences(tt.in)); diff != "" {
			t.Errorf("%q (-want +got): %s", tt.in, diff)
		}
	}
}

func TestLines(t *testing.T) {
	p := &page{}
	p.macro("SH", "NAME")
	p.macro("SH", "A TITLE", `with "quotes"`, "")
	p.line(".begins with a dot")
	p.line(`\(aqquoted`)
	p.verbatim([]string{"  a 'b'", "", ".c"})
	want := ".SH NAME\n" +
		".SH \"A TITLE\" \"with \\(dqquotes\\(dq\" \"\"\n" +
		"\\&.begins with a dot\n\\(aqquoted\n" +
		".EX\n  a \\(aqb\\(aq\n\n\\&.c\n.EE\n"
	if diff := cmp.Diff(want, p.String()); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}
