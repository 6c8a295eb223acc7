// SPDX-License-Identifier: Apache-2.0

package smcstats

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcerr"
)

// The baseline file of smc-tools is text: a line "index value" per counter, then a line "index code count" per reason,
// servers before clients, then the two totals. Release 1.8.4 has put two gauges after the counters of each technology.
const (
	legacyReasons = 30 // lines of reasons for each side
	legacyGauges  = 2
)

// ParseLegacy decodes the baseline file of smc-tools in the layout of release 1.8.4 and later, or of the releases before. Taken
// and Origin are not in the file. For an empty file, which smc-tools creates if it only shows statistics, ParseLegacy returns
// nil. Every error is smcerr.ErrMalformed.
func ParseLegacy(data []byte) (*Baseline, error) {
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(data) == 0 {
		return nil, nil
	}
	const rest = 2 + 2*legacyReasons + 2
	p := legacyParser{lines: lines}
	switch len(lines) {
	case 2*len(counters) + rest:
	case 2*(len(counters)+legacyGauges) + rest:
		p.gauges = legacyGauges
	default:
		return nil, smcerr.With(fmt.Errorf("%d lines, which no release of smc-tools writes", len(lines)), smcerr.ErrMalformed)
	}
	b := &Baseline{}
	p.tech(&b.SMCR)
	p.tech(&b.SMCD)
	b.ClientHandshakeErrors = p.number(2)
	b.ServerHandshakeErrors = p.number(2)
	b.Fallback.Server = p.reasons()
	b.Fallback.Client = p.reasons()
	b.Fallback.ServerTotal = p.number(1)
	b.Fallback.ClientTotal = p.number(1)
	if p.err != nil {
		return nil, smcerr.With(p.err, smcerr.ErrMalformed)
	}
	return b, nil
}

// legacyParser reads line after line and keeps the first error.
type legacyParser struct {
	lines  []string
	gauges int
	line   int
	err    error
}

// fields returns the n words of the next line.
func (p *legacyParser) fields(n int) []string {
	words := strings.Fields(p.lines[p.line])
	p.line++
	if len(words) != n {
		p.fail(fmt.Errorf("%d words, not %d", len(words), n))
		return make([]string, n)
	}
	return words
}

// number returns the last of the n words of the next line.
func (p *legacyParser) number(n int) uint64 { return p.parse(p.fields(n)[n-1], 64) }

func (p *legacyParser) parse(word string, bits int) uint64 {
	v, err := strconv.ParseUint(word, 10, bits)
	if err != nil {
		p.fail(fmt.Errorf("%q: %w", word, errors.Unwrap(err)))
	}
	return v
}

func (p *legacyParser) fail(err error) {
	if p.err == nil {
		p.err = fmt.Errorf("line %d: %w", p.line, err)
	}
}

func (p *legacyParser) tech(t *netlinksmc.TechStats) {
	for _, c := range counters {
		*c.ptr(t) = p.number(2)
	}
	p.line += p.gauges
}

func (p *legacyParser) reasons() []netlinksmc.FallbackCount {
	var out []netlinksmc.FallbackCount
	for range legacyReasons {
		f := p.fields(3)
		code, count := p.parse(f[1], 32), p.parse(f[2], 16)
		if code != 0 {
			out = append(out, netlinksmc.FallbackCount{Reason: netlinksmc.Reason(code), Count: uint16(count)})
		}
	}
	return out
}
