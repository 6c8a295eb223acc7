// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"syscall"

	"github.com/smckit/smckit/internal/jsondoc"
	remedies "github.com/smckit/smckit/internal/remedy"
	"github.com/spf13/cobra"
)

// failureJSON is the document of a command that has failed. Standard error has the same as a line of text.
type failureJSON struct {
	Schema int    `json:"schema"`
	Error  string `json:"error"`
	// left out if `error` says it, or if nothing can be done
	Remedy string `json:"remedy,omitzero"`
	Status int    `json:"status"`
}

// output is a buffered standard output that knows whether something was written since it was flushed.
type output struct {
	w       io.Writer
	pending bool
}

func (o *output) Write(p []byte) (int, error) {
	o.pending = o.pending || len(p) > 0
	return o.w.Write(p)
}

// reportJSON prints the document of a failure of the command that path names, unless the command has begun another document, or reports no
// error.
func reportJSON(t Tool, env *Env, path string, args []string, err error) {
	var reported *StatusError
	switch {
	case err == nil, errors.As(err, &reported), errors.Is(err, syscall.EPIPE), errors.Is(err, context.Canceled), env.output.pending:
		return
	case env.schema == 0 && (exitStatus(err) != ExitUsage || !asksJSON(t, Tree(t, env), args)), env.schema == jsondoc.Oldest:
		return
	}
	doc := failureJSON{Schema: jsondoc.Schema, Status: exitStatus(err)}
	text, remedy := splitRemedy(path, err)
	doc.Error, doc.Remedy = env.hints.error(text), env.hints.error(remedy)
	// One line suits programs that read lines (--watch), and others. Run reports an output that cannot be written.
	_ = WriteJSONLine(env.Out, doc)
}

// splitRemedy returns the text of an error without its remedy, and the remedy.
func splitRemedy(path string, err error) (text, remedy string) {
	if exitStatus(err) == ExitUsage {
		return OneLine(err.Error()), "see '" + path + " --help'"
	}
	text, remedy = remedies.Split(err)
	return OneLine(text), OneLine(remedy)
}

// asksJSON reports whether a command line that could not be parsed has the option --json.
func asksJSON(t Tool, root *cobra.Command, args []string) bool {
	if s, rest := t.sub(root, args); s != nil {
		if cmd, _, err := root.Find([]string{s.Name}); err == nil {
			return asksJSON(s.Tool, cmd, rest)
		}
	}
	if !hasJSON(root) {
		return false
	}
	args = ExpandLong(root, t.Long, args)
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	// Where one dash does for a long option, the tool rewrites it.
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=2") || t.Rewrite != nil && slices.Contains(args, "-json")
}

// hasJSON reports whether a command, or one below it, has the option --json.
func hasJSON(cmd *cobra.Command) bool {
	return cmd.Flags().Lookup("json") != nil || cmd.PersistentFlags().Lookup("json") != nil || slices.ContainsFunc(cmd.Commands(), hasJSON)
}
