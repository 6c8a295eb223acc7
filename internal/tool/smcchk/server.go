// SPDX-License-Identifier: Apache-2.0

package smcchk

import (
	"fmt"
	"net/netip"

	"github.com/smckit/smckit/internal/check"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
)

// client is a client that the server has answered.
type client struct {
	from      netip.AddrPort
	transport check.Transport
	err       error
}

// startedJSON is the first line of a server.
type startedJSON struct {
	Schema int    `json:"schema"`
	Port   uint16 `json:"tcp_port" schema1:"port"`
	AFSMC  bool   `json:"af_smc"`
}

// servedJSON is a line for each client of a server.
type servedJSON struct {
	Schema int    `json:"schema"`
	Client string `json:"client_endpoint" schema1:"client"`
	usedTransportJSON
}

// started prints that the server is ready, in the words of smc-tools.
func (o *options) started(port uint16, afSMC bool) error {
	var err error
	if o.json {
		err = o.env.WriteJSONLine(startedJSON{jsondoc.Schema, port, afSMC})
	} else {
		_, err = fmt.Fprintf(o.env.Out, "Server started on port %d\n", port)
	}
	if err != nil {
		return err
	}
	return o.env.Flush()
}

// served prints the transport of a client's connection.
func (o *options) served(c client) error {
	var err error
	switch {
	case o.json:
		err = o.env.WriteJSONLine(servedJSON{jsondoc.Schema, c.from.String(), newUsedTransport(o.env, c.transport, c.err)})
	case c.err != nil:
		_, err = fmt.Fprintf(o.env.Out, "%s unknown: %s\n", c.from, cli.OneLine(c.err.Error()))
	case c.transport.Fallback != nil:
		_, err = fmt.Fprintf(o.env.Out, "%s %s %s\n", c.from, c.transport.Mode, codeWords(c.transport.Fallback.Reason))
	case c.transport.Version != "":
		_, err = fmt.Fprintf(o.env.Out, "%s %s %s\n", c.from, c.transport.Mode, c.transport.Version)
	default:
		_, err = fmt.Fprintf(o.env.Out, "%s %s\n", c.from, c.transport.Mode)
	}
	if err != nil {
		return err
	}
	return o.env.Flush()
}
