// SPDX-License-Identifier: Apache-2.0

package smcstats

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcerr"
)

// Baseline is a reading of the counters that later ones are compared with.
type Baseline struct {
	Snapshot
	// Taken is the time of the reading.
	Taken time.Time
	// Origin identifies the counters.
	Origin Origin
}

// baselineSchema numbers the format of the file.
const baselineSchema = 1

// file is a baseline as it is stored. Counters go by name, so that the file does not depend on the types of netlinksmc.
type file struct {
	Schema int               `json:"schema"`
	Taken  time.Time         `json:"taken"`
	Origin Origin            `json:"origin"`
	SMCR   map[string]uint64 `json:"smcr"`
	SMCD   map[string]uint64 `json:"smcd"`
	// Links are the counters of links of SMC-R, which a stock module does not have.
	Links  map[string]uint64 `json:"links,omitempty"`
	Client sideCounts        `json:"client"`
	Server sideCounts        `json:"server"`
}

// sideCounts are the counters that exist once for clients and once for servers.
type sideCounts struct {
	HandshakeErrors uint64            `json:"handshake_errors"`
	Fallbacks       uint64            `json:"fallbacks"`
	Reasons         map[string]uint16 `json:"reasons"`
}

// MarshalBaseline encodes b for a file.
func MarshalBaseline(b *Baseline) ([]byte, error) {
	data, err := json.Marshal(file{
		Schema: baselineSchema,
		Taken:  b.Taken.UTC(),
		Origin: b.Origin,
		SMCR:   byName(counters, &b.SMCR),
		SMCD:   byName(counters, &b.SMCD),
		Links:  byName(linkCounters, b.SMCR.Links),
		Client: sideCounts{b.ClientHandshakeErrors, b.Fallback.ClientTotal, byCode(b.Fallback.Client)},
		Server: sideCounts{b.ServerHandshakeErrors, b.Fallback.ServerTotal, byCode(b.Fallback.Server)},
	})
	if err != nil {
		return nil, err
	}
	return append(data, '\n'), nil
}

// UnmarshalBaseline decodes the output of MarshalBaseline. A counter that is missing, unknown or not a number is an
// error, because an incomplete baseline would give wrong figures that look right. Every error is smcerr.ErrMalformed.
func UnmarshalBaseline(data []byte) (*Baseline, error) {
	b, err := unmarshal(data)
	return b, smcerr.With(err, smcerr.ErrMalformed)
}

func unmarshal(data []byte) (*Baseline, error) {
	var f file
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the baseline")
	}
	if f.Schema != baselineSchema {
		return nil, fmt.Errorf("format %d, not %d", f.Schema, baselineSchema)
	}
	b := &Baseline{Taken: f.Taken, Origin: f.Origin}
	if err := errors.Join(
		fromNames("smcr", counters, f.SMCR, &b.SMCR),
		fromNames("smcd", counters, f.SMCD, &b.SMCD),
		fromCodes(f.Client.Reasons, &b.Fallback.Client),
		fromCodes(f.Server.Reasons, &b.Fallback.Server),
	); err != nil {
		return nil, err
	}
	if f.Links != nil {
		b.SMCR.Links = new(netlinksmc.LinkStats)
		if err := fromNames("links", linkCounters, f.Links, b.SMCR.Links); err != nil {
			return nil, err
		}
	}
	b.ClientHandshakeErrors, b.Fallback.ClientTotal = f.Client.HandshakeErrors, f.Client.Fallbacks
	b.ServerHandshakeErrors, b.Fallback.ServerTotal = f.Server.HandshakeErrors, f.Server.Fallbacks
	return b, nil
}

// byName returns the counters that t has, nil if t is nil.
func byName[T any](list []Counter[T], t *T) map[string]uint64 {
	if t == nil {
		return nil
	}
	m := make(map[string]uint64, len(list))
	for _, c := range list {
		m[c.Name] = c.Value(t)
	}
	return m
}

func fromNames[T any](of string, list []Counter[T], m map[string]uint64, t *T) error {
	for _, c := range list {
		v, ok := m[c.Name]
		if !ok {
			return fmt.Errorf("%s: no counter %s", of, c.Name)
		}
		*c.ptr(t) = v
	}
	if len(m) != len(list) {
		return fmt.Errorf("%s: %d counters, not %d", of, len(m), len(list))
	}
	return nil
}

func byCode(counts []netlinksmc.FallbackCount) map[string]uint16 {
	m := make(map[string]uint16, len(counts))
	for _, c := range counts {
		m[c.Reason.String()] = c.Count
	}
	return m
}

func fromCodes(m map[string]uint16, counts *[]netlinksmc.FallbackCount) error {
	for text, count := range m {
		code, err := strconv.ParseUint(text, 0, 32)
		if err != nil {
			return fmt.Errorf("reason %q is not a code", text)
		}
		*counts = append(*counts, netlinksmc.FallbackCount{Reason: netlinksmc.Reason(code), Count: count})
	}
	slices.SortFunc(*counts, func(a, b netlinksmc.FallbackCount) int { return cmp.Compare(a.Reason, b.Reason) })
	return nil
}
