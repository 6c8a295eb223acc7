// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestExpandLong(t *testing.T) {
	root := &cobra.Command{Use: "tool"}
	for _, name := range []string{"all", "listening", "local", "smcd", "smcr", "wide", "watch", "watch-all", "netns"} {
		root.Flags().Bool(name, false, "")
	}
	sub := &cobra.Command{Use: "sub"}
	sub.Flags().Bool("details", false, "")
	root.AddCommand(sub)
	first := []string{"all", "listening", "smcd", "smcr", "wide"}

	for args, want := range map[string]string{
		"":                 "",
		"--all":            "--all",
		"--al":             "--all",
		"--a":              "--all",
		"--listen":         "--listening",
		"--l":              "--listening", // --local, which is ours, does not count
		"--lo":             "--local",
		"--w":              "--wide",
		"--wa":             "--wa", // --watch or --watch-all
		"--watch":          "--watch",
		"--watch-":         "--watch-all",
		"--s":              "--s",
		"--smc":            "--smc",
		"--smcr":           "--smcr",
		"--loc=x=y":        "--local=x=y",
		"--loc=":           "--local=",
		"--net a":          "--netns a",
		"--nope":           "--nope",
		"--allx":           "--allx",
		"--he":             "--help",
		"--v":              "--version",
		"--det":            "--details",
		"sub --det foo":    "sub --details foo",
		"-a":               "-a",
		"-al":              "-al",
		"-":                "-",
		"--":               "--",
		"--al -- --al":     "--all -- --al",
		"--=x":             "--=x",
		"al --al al --lis": "al --all al --listening",
	} {
		in := strings.Fields(args)
		got := ExpandLong(root, first, in)
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%q (-want +got):\n%s", args, diff)
		}
		if strings.Join(in, " ") != args {
			t.Errorf("%q: the arguments were changed in place", args)
		}
	}
}
