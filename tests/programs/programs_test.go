// SPDX-License-Identifier: Apache-2.0

//go:build linux

package programs

import (
	"encoding/csv"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"golang.org/x/sys/unix"
)

// TestPrograms runs all programs, one after the other, in one guest of each kernel: over SMC-D, over SMC-R, and over
// connections that fall back to TCP, which only full runs do.
func TestPrograms(t *testing.T) {
	lab.Need(t)
	programs := append([]program{redis, nginx, iperf, openssl, openssl.overKTLS(), python, postgres(makeCluster(t))}, ruled()...)
	for _, kernel := range lab.FewSeries() {
		t.Run(kernel, func(t *testing.T) {
			g := boot(t, kernel)
			for _, p := range programs {
				if p.prepare != nil {
					p.prepare(t, g)
				}
			}
			for _, ways := range allWays() {
				t.Run(string(ways[0].transport), func(t *testing.T) { g.all(t, programs, ways) })
			}
			g.empty(t)
			g.unload(t)
		})
	}
}

var redis = program{
	name:    "redis",
	shown:   []string{"redis-server", "redis-cli"},
	server:  []string{"redis-server", "--port", "6379", "--bind", "127.0.0.1", "::1", "--save", "", "--appendonly", "no", "--protected-mode", "no"},
	port:    6379,
	stop:    unix.SIGTERM,
	client:  useRedis,
	hold:    []string{"redis-cli", "-h", "127.0.0.1", "subscribe", "news"},
	atLeast: 20,
	mixed:   true,
}

// useRedis sends many small requests at once, and a value that exceeds all buffers.
func useRedis(t *testing.T, s *session) {
	for _, args := range []string{"-h 127.0.0.1 -c 20 -n 500", "-h ::1 -c 5 -P 16 -n 1000"} {
		out := s.sh(t, "redis-benchmark --csv -d 512 -t set,get,lpush,lrange_100 "+args)
		rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
		if err != nil || len(rows) < 5 {
			t.Fatalf("redis-benchmark %s: %v\n%s", args, err, out)
		}
		for _, row := range rows[1:] {
			if rate, err := strconv.ParseFloat(row[1], 64); err != nil || rate <= 0 {
				t.Errorf("redis-benchmark %s: %q", args, row)
			}
		}
	}
	s.sh(t, `head -c 4194304 /dev/urandom >value
redis-cli -h 127.0.0.1 -x set big <value | grep -q '^OK'
redis-cli -h 127.0.0.1 --raw get big | head -c 4194304 | cmp - value`)
	info := s.sh(t, "redis-cli -h 127.0.0.1 info stats")
	for _, want := range []string{"rejected_connections:0\r\n", "total_error_replies:0\r\n"} {
		if !strings.Contains(info, want) {
			t.Errorf("not in the server's counters: %q\n%s", want, info)
		}
	}
}

// nginxConf has a second server that forwards requests to the first, so that nginx is a client, too.
const nginxConf = `
daemon off;
user root;
worker_processes 2;
pid /run/work/nginx.pid;
error_log stderr warn;
events { worker_connections 256; }
http {
	access_log off;
	sendfile on;
	tcp_nopush on;
	client_body_temp_path /run/work/nginx.body;
	proxy_temp_path /run/work/nginx.proxy;
	fastcgi_temp_path /run/work/nginx.fastcgi;
	uwsgi_temp_path /run/work/nginx.uwsgi;
	scgi_temp_path /run/work/nginx.scgi;
	server { listen 8080; listen [::]:8080; root /run/work/www; }
	server { listen 8080; server_name proxy; location / { proxy_pass http://$server_addr:8080; } }
}
`

var nginx = program{
	name:  "nginx",
	shown: []string{"nginx", "curl"},
	prepare: func(t *testing.T, g *guest) {
		g.Must("a", "mkdir "+workInside+`/www; cd `+workInside+`/www
head -c 2000 /dev/urandom >small; head -c 8388608 /dev/urandom >large`)
		if err := g.Host("a").WriteFile(t.Context(), workInside+"/nginx.conf", []byte(nginxConf), 0o644); err != nil {
			t.Fatal(err)
		}
	},
	server:  []string{"nginx", "-p", workInside, "-c", workInside + "/nginx.conf"},
	port:    8080,
	stop:    unix.SIGTERM,
	client:  useNginx,
	hold:    []string{"curl", "-fsS", "--limit-rate", "1k", "-o", "/dev/null", "http://127.0.0.1:8080/large"},
	atLeast: 300,
}

// useNginx requests short answers, over new and over persistent connections, and a long answer.
func useNginx(t *testing.T, s *session) {
	for _, args := range []string{"http://127.0.0.1:8080/small", "-k http://127.0.0.1:8080/small", "-k http://[::1]:8080/small"} {
		out := s.sh(t, "ab -q -n 300 -c 10 "+args)
		for _, want := range []string{`Complete requests: +300\n`, `Failed requests: +0\n`, `HTML transferred: +600000 bytes`} {
			if !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("ab %s: no match of %s:\n%s", args, want, out)
			}
		}
		if strings.Contains(out, "Non-2xx") {
			t.Errorf("ab %s:\n%s", args, out)
		}
	}
	out := s.sh(t, "wrk -t 2 -c 20 -d 2s http://127.0.0.1:8080/small")
	if !regexp.MustCompile(`(?m)^ +[1-9]\d* requests in `).MatchString(out) ||
		strings.Contains(out, "Socket errors") || strings.Contains(out, "Non-2xx") {
		t.Errorf("wrk:\n%s", out)
	}
	s.sh(t, `curl -fsS -o got http://127.0.0.1:8080/large; cmp got www/large
curl -fsS -o got -H 'Host: proxy' http://127.0.0.1:8080/large; cmp got www/large`)
}

var iperf = program{
	name:    "iperf3",
	shown:   []string{"iperf3"},
	server:  []string{"iperf3", "-s", "-p", "5201"},
	port:    5201,
	stop:    unix.SIGKILL,
	code:    128 + int(unix.SIGKILL), // it would answer SIGTERM with an error
	client:  useIperf,
	hold:    []string{"iperf3", "-c", "127.0.0.1", "-p", "5201", "-t", "600", "-b", "1M"},
	atLeast: 2 * 5,
}

// useIperf moves data in either direction and in both, with one connection and with some.
func useIperf(t *testing.T, s *session) {
	for _, args := range []string{
		"-c 127.0.0.1 -n 32M", "-c 127.0.0.1 -n 32M -R", "-c ::1 -n 16M -P 4", "-c 127.0.0.1 -t 1 --bidir", "-c 127.0.0.1 -n 16M -Z",
	} {
		out := s.sh(t, "iperf3 -J -p 5201 "+args)
		var result struct {
			Error string
			End   struct {
				Streams         []struct{ Receiver struct{ Bytes int64 } }
				SumSent         struct{ Bytes int64 } `json:"sum_sent"`
				SumReceived     struct{ Bytes int64 } `json:"sum_received"`
				ReceivedReverse struct{ Bytes int64 } `json:"sum_received_bidir_reverse"`
			}
		}
		if err := json.Unmarshal([]byte(out), &result); err != nil || result.Error != "" {
			t.Fatalf("iperf3 %s: %v %s\n%s", args, err, result.Error, out)
		}
		end := result.End
		if end.SumSent.Bytes < 1<<20 || end.SumReceived.Bytes < 1<<20 {
			t.Errorf("iperf3 %s: sent %d bytes, received %d", args, end.SumSent.Bytes, end.SumReceived.Bytes)
		}
		if strings.Contains(args, "--bidir") && end.ReceivedReverse.Bytes < 1<<20 {
			t.Errorf("iperf3 %s: received only %d bytes", args, end.ReceivedReverse.Bytes)
		}
		for _, stream := range end.Streams {
			if stream.Receiver.Bytes == 0 {
				t.Errorf("iperf3 %s: nothing received on a stream\n%s", args, out)
			}
		}
	}
}

var python = program{
	name:    "python",
	shown:   []string{"python3", "curl"},
	server:  []string{"python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", workInside + "/www", "8000"},
	port:    8000,
	stop:    unix.SIGTERM,
	code:    128 + int(unix.SIGTERM),
	client:  usePython,
	hold:    []string{"curl", "-fsS", "--limit-rate", "1k", "-o", "/dev/null", "http://127.0.0.1:8000/large"},
	atLeast: 4,
	mixed:   true,
	slow:    true,
}

// usePython fetches a large file alone, and then some at once: three, as the server has a backlog of 5, half of which may be in
// their handshakes.
func usePython(t *testing.T, s *session) {
	s.sh(t, `want=$(sha256sum <www/large)
test "$(curl -fsS http://127.0.0.1:8000/large | sha256sum)" = "$want"
curl -fsS --parallel --parallel-immediate -o 'got#1' 'http://127.0.0.1:8000/large?[1-3]'
for i in 1 2 3; do cmp got$i www/large; rm got$i; done`)
}
