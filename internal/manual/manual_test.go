// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/golden"
	"github.com/spf13/cobra"
)

// testSuite returns a suite with every element that a page can contain.
func testSuite() Suite {
	run := func(*cobra.Command, []string) error { return nil }
	root := &cobra.Command{
		Use: "tool [OPTION]... [ID]", Short: "Show and change it", Version: "1", RunE: run,
		Long: "tool shows it. -f is old.\n\nExit status:\n  0  done\n\nWatching\n  It watches.\n\nFiles:\n  /etc/tool.conf  it", Example: "  # all\n  tool show",
	}
	root.Flags().SortFlags = false
	root.Flags().BoolP("force", "f", false, "do it")
	root.Flags().StringP("again", "a", "auto", "take `METHOD`, or none")
	root.Flags().Bool("secret", false, "not for people")
	_ = root.Flags().MarkHidden("secret")
	root.PersistentFlags().Bool("json", false, "print JSON")
	root.PersistentFlags().CountP("details", "d", "more; twice for all")
	add := &cobra.Command{Use: "add ID {eth NAME | ib NAME [PORT]}", Short: "Add an ID", Aliases: []string{"new"}, RunE: run}
	add.Flags().StringArray("only", nil, "add `LIST` only")
	stats := &cobra.Command{Use: "stats [show]", Short: "RDMA statistics", Long: "Show them.", RunE: run}
	hidden := &cobra.Command{Use: "hidden", Hidden: true, RunE: run}
	root.AddCommand(add, stats, hidden)
	other := &cobra.Command{Use: "tool-stats", Short: "Show statistics", Long: "tool-stats shows all.", RunE: run}
	lab := &cobra.Command{Use: "lab", Short: "Try it", RunE: run}
	return Suite{
		Version: "1.2", Date: time.Date(2026, 2, 3, 23, 0, 0, 0, time.FixedZone("west", -4*3600)),
		Commands: []*cobra.Command{root, other, lab}, Written: []string{"af_tool.7", "tool.conf.5", "lab.conf.5"}, Apart: []string{"lab"},
	}
}

// TestPages compares pages with golden files.
func TestPages(t *testing.T) {
	var names []string
	for _, page := range testSuite().Pages() {
		names = append(names, page.Name)
		golden.Check(t, "testdata/"+page.Name, page.Text)
	}
	// The page tool-stats describes 'tool stats', too, and no page describes the hidden command.
	if diff := cmp.Diff("tool.8 tool-add.8 tool-stats.8 lab.8", strings.Join(names, " ")); diff != "" {
		t.Errorf("names of pages (-want +got): %s", diff)
	}
}
