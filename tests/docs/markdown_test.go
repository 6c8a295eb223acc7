// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// document has ”' for the fences that a Go string in backquotes cannot have, and " for the quotes within comments.
func document(text string) string {
	return strings.NewReplacer("'''", "```", `"`, "`").Replace(text)
}

func TestBlocks(t *testing.T) {
	got, err := Blocks("x.md", document(`# Title

'''sh
smc_pnet show   # the table
smc_run -r 1m redis-server &
'''

'''
not a command
'''
<!-- conditions -->
'''go
func main() {}
'''

<!-- run: on both; "smc_chk --server" on b, serves; "smcr-stats --watch 2" goes on, on a;
"sudo modprobe smc" not run (it, too, is loaded); "redis-cli monitor" on a, stays -->
'''sh
smc_chk --server
smcr-stats --watch 2   # rates
sudo modprobe smc
redis-cli monitor
for i in a b; do
	ip netns exec $i smcss -a | grep "x $i" && smcr info
done
'''

## More

<!-- not run: an hour -->
'''sh
make test
'''
  * item

<!-- run by tests/demo/main.go: goes on -->
  '''sh
  make demo
  '''
`))
	if err != nil {
		t.Fatal(err)
	}
	a, both := []string{"a"}, []string{"a", "b"}
	want := []Block{
		{File: "x.md", Section: "Title", Line: 3, Lines: []Line{
			{Number: 4, Text: "smc_pnet show", Calls: []Call{{"smc_pnet", "show"}}, How: How{On: a}},
			{
				Number: 5, Text: "smc_run -r 1m redis-server", How: How{On: a, Serves: true},
				Calls: []Call{{"smc_run", "-r", "1m", "redis-server"}, {"redis-server"}},
			},
		}},
		{File: "x.md", Section: "Title", Line: 18, Lines: []Line{
			{Number: 19, Text: "smc_chk --server", Calls: []Call{{"smc_chk", "--server"}}, How: How{On: []string{"b"}, Serves: true}},
			{Number: 20, Text: "smcr-stats --watch 2", Calls: []Call{{"smcr-stats", "--watch", "2"}}, How: How{On: a, GoesOn: true}},
			{
				Number: 21, Text: "sudo modprobe smc", Calls: []Call{{"sudo", "modprobe", "smc"}, {"modprobe", "smc"}},
				How: How{On: both, Skip: "it, too, is loaded"},
			},
			{Number: 22, Text: "redis-cli monitor", Calls: []Call{{"redis-cli", "monitor"}}, How: How{On: a, Stays: true}},
			{
				Number: 23, Text: "for i in a b; do\n\tip netns exec $i smcss -a | grep `x $i` && smcr info\ndone",
				Calls: []Call{
					{"ip", "netns", "exec", "x", "smcss", "-a"}, {"smcss", "-a"}, {"grep", "x"}, {"x", "x"}, {"smcr", "info"},
				},
				How: How{On: both},
			},
		}},
		{File: "x.md", Section: "More", Line: 31, Skip: "an hour", Lines: []Line{{Number: 32, Text: "make test", Calls: []Call{{"make", "test"}}, How: How{On: a}}}},
		{File: "x.md", Section: "More", Line: 37, By: "tests/demo/main.go", Lines: []Line{{Number: 38, Text: "make demo", Calls: []Call{{"make", "demo"}}, How: How{On: a, GoesOn: true}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBadDocuments(t *testing.T) {
	for text, want := range map[string]string{
		"'''sh\nsmcss":        "not closed",
		"'''sh\nsmcss (\n'''": "not a shell script",
		"<!-- run: \"smcss -a\" serves -->\n'''sh\nsmcss\n'''":     "not in the block",
		"<!-- run: \"smcss\" -->\n'''sh\nsmcss\n'''":               "says nothing of",
		"<!-- run: on c -->\n'''sh\nsmcss\n'''":                    "not understood",
		"<!-- run: fails badly -->\n'''sh\nsmcss\n'''":             "not understood",
		"<!-- not run: -->\n'''sh\nsmcss\n'''":                     "says nothing",
		"<!-- not run: too far away -->\n\n'''sh\nsmcss\n'''":      "no block",
		"<!-- run: serves -->\n'''go\nx\n'''":                      "no block",
		"<!-- run: serves -->\ntext\n":                             "no block",
		"<!-- run: \"smcss\" not run () -->\n'''sh\nsmcss\n'''":    "not understood",
		"<!-- run: \"smcss\" on b, , fails -->\n'''sh\nsmcss\n'''": "not understood",
	} {
		blocks, err := Blocks("x.md", document(text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "x.md:") {
			t.Errorf("%q: %v, not an error with %q: %+v", text, err, want, blocks)
		}
	}
}
