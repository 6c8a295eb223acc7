// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/netip"
	"strings"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/pkg/smcerr"
)

// Mistakes in a rule name the word and the remedy.
func ExampleParse() {
	_, err := policy.Parse(strings.Fields("tcp to 10.9.0.0/33"), policy.SystemNames{})
	fmt.Println(err)
	rule, err := policy.Parse(strings.Fields("tcp to 10.9.0.0/16 port 6379"), policy.SystemNames{})
	fmt.Println(rule.Verdict, rule.Networks, rule.Ports, err)
	// Output:
	// word 3: to "10.9.0.0/33": networks are addresses with the length of a prefix, and lists: 10.9.0.0/16,fd00::/8
	// tcp [10.9.0.0/16] [{6379 6379}] <nil>
}

// What the module will do with a socket can be asked before the rules are set. The first rule that matches decides.
func ExamplePolicy_Decide() {
	rules, err := policy.ParseFile("tcp to 10.9.0.0/16\nsmc port 6379\n", "policy.conf", policy.SystemNames{})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := policy.Policy{Enabled: true, Rules: rules}
	for _, peer := range []string{"10.9.1.1", "10.8.1.1"} {
		verdict, rule := p.Decide(policy.Who{User: 1000}, policy.Use{Role: policy.Connect, Remote: 6379, Peer: netip.MustParseAddr(peer)})
		fmt.Println(peer, verdict, "by rule", rule)
	}
	// Output:
	// 10.9.1.1 tcp by rule 0
	// 10.8.1.1 smc by rule 1
}

// Add a rule to the policy. Here a fake answers for the kernel; on a host, New opens a Client.
func Example() {
	generation := uint32(7)
	kernel := func(req genetlink.Message, _ netlink.Message) ([]genetlink.Message, error) {
		if req.Header.Command == netlinksmc.CmdPolicySet {
			return nil, io.EOF // an acknowledgement
		}
		ae := netlink.NewAttributeEncoder()
		ae.Uint32(netlinksmc.AttrPolicyGeneration, generation)
		ae.Uint8(netlinksmc.AttrPolicyEnabled, 1)
		data, err := ae.Encode()
		return []genetlink.Message{{Data: data}}, err
	}
	c, err := policy.NewFromConn(genltest.Dial(genltest.ServeFamily(genetlink.Family{ID: 0x20, Name: policy.Family, Version: 1}, kernel)))
	if errors.Is(err, smcerr.ErrNoModule) {
		fmt.Println("smckit's module is not loaded")
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()

	ctx := context.Background()
	p, err := c.Get(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	rule, err := policy.Parse(strings.Fields("tcp to 10.9.0.0/16"), policy.SystemNames{})
	if err != nil {
		log.Print(err)
		return
	}
	err = c.SetRules(ctx, p.Generation, append(p.Rules, rule))
	if errors.Is(err, policy.ErrChanged) {
		fmt.Println("another program has changed the policy: read it again")
		return
	}
	fmt.Println("generation", p.Generation, "changed:", err)
	// Output: generation 7 changed: <nil>
}
