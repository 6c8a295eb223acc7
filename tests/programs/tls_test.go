// SPDX-License-Identifier: Apache-2.0

//go:build linux

package programs

import (
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openssl runs a server that answers each line with the reversed line.
var openssl = program{
	name:  "openssl",
	shown: []string{"openssl"},
	prepare: func(t *testing.T, g *guest) {
		g.Must("a", "cd "+workInside+`
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -keyout key -out cert 2>/dev/null
seq -f 'line %.0f: 0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ' 10000 >lines
rev lines >reversed`)
	},
	server:  []string{"openssl", "s_server", "-accept", "4433", "-cert", "cert", "-key", "key", "-rev"},
	port:    4433,
	stop:    unix.SIGTERM,
	code:    128 + int(unix.SIGTERM),
	client:  useOpenSSL,
	hold:    []string{"openssl", "s_client", "-quiet", "-connect", "127.0.0.1:4433"},
	atLeast: 3,
	slow:    true,
}

// useOpenSSL sends lines and compares the echo, by each current version of the protocol.
func useOpenSSL(t *testing.T, s *session) {
	for _, args := range []string{"-connect 127.0.0.1:4433", "-connect '[::1]:4433'", "-connect 127.0.0.1:4433 -tls1_2"} {
		// The last line makes the server close the connection.
		s.sh(t, "(cat lines; echo CLOSE) | openssl s_client -quiet -CAfile cert -verify_return_error "+args+` >got 2>log || { cat log; exit 1; }
cmp got reversed`)
	}
}

// overKTLS does the same with encryption by the kernel on the socket, if it is available. On SMC-D and SMC-R connections it is
// not, which OpenSSL must detect.
func (p program) overKTLS() program {
	talk := p.client
	p.name, p.slow = p.name+" over kTLS", false
	p.server = append([]string{"env", "OPENSSL_CONF=" + workInside + "/ktls.cnf"}, p.server...)
	p.prepare = func(t *testing.T, g *guest) {
		const conf = "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = use\n[use]\nOptions = KTLS\n"
		if err := g.Host("a").WriteFile(t.Context(), workInside+"/ktls.cnf", []byte(conf), 0o644); err != nil {
			t.Fatal(err)
		}
		g.Must("a", "modprobe tls")
	}
	p.client = func(t *testing.T, s *session) {
		before := s.ktls(t)
		talk(t, s)
		after := s.ktls(t)
		for _, counter := range []string{"TlsTxSw", "TlsRxSw"} {
			if grown := after[counter] > before[counter]; grown == s.smc() {
				t.Errorf("%s was %d, is %d, SMC: %t", counter, before[counter], after[counter], s.smc())
			}
		}
		if after["TlsDecryptError"] != 0 {
			t.Errorf("%d records could not be decrypted", after["TlsDecryptError"])
		}
	}
	return p
}

// ktls returns the counters of the kernel's TLS.
func (g *guest) ktls(t *testing.T) map[string]int {
	t.Helper()
	counters := map[string]int{}
	for line := range strings.Lines(g.Must("a", "cat /proc/net/tls_stat")) {
		fields := strings.Fields(line)
		n, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		counters[fields[0]] = n
	}
	return counters
}
