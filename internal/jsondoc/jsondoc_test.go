// SPDX-License-Identifier: Apache-2.0

package jsondoc

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

type part struct {
	Name  string `json:"device" schema1:"name"`
	Count *int   `json:"link_count,omitempty" schema1:"links"`
}

// everything has each kind of field that a document may have, and each option of the tag schema1.
type everything struct {
	Schema int `json:"schema"`
	part
	Same     string                      `json:"state"`
	Empty    string                      `json:"rate,omitempty"`
	Kept     string                      `json:"pnet_id,omitzero" schema1:",keep"`
	New      bool                        `json:"software" schema1:"-"`
	Mode     string                      `json:"transport" schema1:"mode,upper"`
	Hyphen   string                      `json:"hyphen" schema1:",hyphen"`
	Role     string                      `json:"role" schema1:",clnt"`
	Use      string                      `json:"use" schema1:",connect"`
	Vendor   string                      `json:"vendor_id" schema1:"vendor,0x"`
	FID      string                      `json:"fid" schema1:",short"`
	Long     string                      `json:"long" schema1:",short"`
	ByUser   string                      `json:"pnet_id_origin,omitzero" schema1:"by_user,keep,by_user"`
	Time     time.Time                   `json:"time,omitzero"`
	Unset    netlinksmc.Optional[uint64] `json:"unset,omitzero"`
	Set      netlinksmc.Optional[uint64] `json:"set,omitzero"`
	List     []part                      `json:"list"`
	Nil      []part                      `json:"nil"`
	Pointer  *part                       `json:"pointer,omitzero" schema1:"ptr"`
	Missing  *part                       `json:"missing,omitzero"`
	Settings map[string]string           `json:"settings"`
	Any      any                         `json:"any"`
	hidden   int
}

func sample() everything {
	n := 0
	return everything{
		Schema: Schema, part: part{"a<b>", &n}, Same: "UP", New: true, Mode: "smcd", Hyphen: "smcr", Role: "client", Use: "server",
		Vendor: "1af4", FID: "00000023", Long: "00012345", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Set: netlinksmc.Some[uint64](7),
		List: []part{{Name: "x"}}, Pointer: &part{Name: "y"}, Settings: map[string]string{"rmem": "1"}, Any: part{Name: "z"}, hidden: 1,
	}
}

// TestSchema1 converts a document that has everything.
func TestSchema1(t *testing.T) {
	var got bytes.Buffer
	if err := Encode(&got, In(Oldest, sample()), false); err != nil {
		t.Fatal(err)
	}
	const want = `{"schema":1,"name":"a<b>","links":0,"state":"UP","pnet_id":"","mode":"SMCD","hyphen":"SMC-R","role":"CLNT","use":"listen",` +
		`"vendor":"0x1af4","fid":"0023","long":"12345","by_user":false,"time":"2026-01-02T03:04:05Z","set":7,"list":[{"name":"x"}],"nil":null,` +
		`"ptr":{"name":"y"},"settings":{"rmem":"1"},"any":{"name":"z"}}` + "\n"
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got.Reset()
	if err := Encode(&got, In(Schema, sample()), true); err != nil || !strings.Contains(got.String(), `  "device": "a<b>",`+"\n") {
		t.Errorf("%v: %s", err, &got)
	}
}

// TestSchema1Objects converts fields that were an object.
func TestSchema1Objects(t *testing.T) {
	type device struct {
		PNETID string `json:"pnet_id,omitzero" schema1:",keep,pnet_object"`
		Origin string `json:"pnet_id_origin,omitzero" schema1:"-"`
	}
	type system struct {
		SEID    string `json:"seid,omitzero" schema1:",seid_object"`
		Enabled *bool  `json:"enabled,omitzero" schema1:"-"`
	}
	type version struct {
		SMCVersion int  `json:"smc_version" schema1:",dotted"`
		SMCRelease *int `json:"smc_release,omitzero" schema1:"-"`
	}
	yes, zero := true, 0
	for _, tc := range []struct {
		doc  any
		want string
	}{
		{device{"A", OriginTable}, `{"pnet_id":{"id":"A","source":"table"}}`},
		{device{"A", OriginFirmware}, `{"pnet_id":{"id":"A","source":"hardware"}}`},
		{device{}, `{"pnet_id":null}`},
		{system{"X", &yes}, `{"seid":{"eid":"X","enabled":true}}`},
		{system{}, `{}`},
		{version{2, &zero}, `{"smc_version":"2.0"}`},
		{version{2, nil}, `{"smc_version":"2"}`},
		{Fallback{Reason{Code: "0x1"}, &Reason{Code: "0x2"}}, `{"local":{"code":"0x1"},"peer":{"code":"0x2"}}`},
	} {
		got, err := json.Marshal(In(Oldest, tc.doc))
		if err != nil || string(got) != tc.want {
			t.Errorf("%+v: %s, %v, want %s", tc.doc, got, err, tc.want)
		}
	}
}

func TestDecode(t *testing.T) {
	type document struct {
		Schema int    `json:"schema"`
		State  string `json:"state"`
	}
	for text, want := range map[string]string{
		`{"schema":2,"state":"UP"}`:   "",
		`{"schema":1,"state":"UP"}`:   "a document of schema 1, want 2",
		`{"state":"UP"}`:              "a document of schema 0",
		`{"schema":2,"stat":"UP"}`:    "other keys or types",
		`{"schema":2,"state":1}`:      "other keys or types",
		`{"schema":2,"state":"UP"`:    "not a JSON document",
		`["schema"]`:                  "not a JSON document",
		`{"schema":2,"status":"UP"}}`: "not a JSON document",
	} {
		var doc document
		switch err := Decode([]byte(text), &doc); {
		case want == "" && (err != nil || doc.State != "UP"):
			t.Errorf("%s: %+v, %v", text, doc, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		`{"schema":2,"state":"UP","settings":{"rmem":"1"},"ports":[],"warnings":["a"],"links":[{"port":1}]}`: "",
		`{"schema":1}`:             "schema 1, want 2",
		`{"schema":2,"ibdev":"a"}`: "ibdev is not in the vocabulary",
		`{"schema":2,"links":[{"port":1},{"ibport":2}]}`:    "links.ibport is not in the vocabulary",
		`{"schema":2,"peer":{"tcp_port":"1"}}`:              "peer.tcp_port has the type string, want number",
		`{"schema":2,"pnet_id":null}`:                       "pnet_id has the type null, want string",
		`{"schema":2,"uid":"00000101"}`:                     "uid has the type string, want number",
		`{"schema":2,"links":3}`:                            "links has the type number, want list of objects",
		`{"schema":2,"links":["a"]}`:                        "links has the type list of strings, want list of objects",
		`{"schema":2,"transport":"SMC-R"}`:                  `transport: "SMC-R" does not match`,
		`{"schema":2,"role":"CLNT"}`:                        `role: "CLNT" does not match`,
		`{"schema":2,"smc_version":3}`:                      `smc_version: "3" does not match`,
		`{"schema":2} {"schema":2}`:                         "more than one document",
		`{"schema":2`:                                       "not a JSON document",
		`{"schema":2,"linkgroups":[{"peer_system":"LAB"}]}`: "linkgroups.peer_system has the type string, want object",
	} {
		switch err := Check([]byte(text)); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
