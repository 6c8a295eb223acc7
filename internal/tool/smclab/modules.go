// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smclab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/tests/lab"
	"github.com/spf13/cobra"
)

func newModules(env *cli.Env) *cobra.Command {
	var kernels []string
	var check bool
	cmd := &cobra.Command{
		Use:   "modules",
		Short: "Build this repository's AF_SMC modules for the kernels that the lab boots",
		Long: `Build the modules of kernel/ for each kernel series, with warnings as errors, into build/kernel/<release>, where
'--module ours' finds them. What has been built of the same sources is left alone. The compiler and the headers are those
of the kernel: they are downloaded once, into $SMCKIT_CACHE, and used in a mount namespace, for which one must be root
where unprivileged user namespaces are not allowed.`,
		Example: `  smclab modules --kernel 7.2
  smclab run --kernel 7.2 --module ours -- smcr info`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, series := range kernels {
				if !slices.Contains(lab.AllSeries(), series) {
					return cli.Usagef("--kernel %q: choose from %s", series, strings.Join(lab.AllSeries(), ", "))
				}
			}
			for _, series := range kernels {
				if err := buildModules(cmd.Context(), env, series, check); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&kernels, "kernel", lab.Series(), "kernel `SERIES`, several with commas: "+strings.Join(lab.AllSeries(), ", "))
	f.BoolVar(&check, "check", false, "do not build them, but have sparse look for mistakes in the sources")
	_ = cmd.RegisterFlagCompletionFunc("kernel", cobra.FixedCompletions(lab.AllSeries(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// buildModules builds, or checks, the modules for one kernel series.
func buildModules(ctx context.Context, env *cli.Env, series string, check bool) error {
	progress := func(step string) { fmt.Fprintln(env.Err, "smclab:", step) }
	var dir string
	var err error
	if check {
		err = lab.CheckModules(ctx, series, progress)
	} else {
		dir, err = lab.BuildModules(ctx, series, progress)
	}
	var failed *lab.BuildError
	if errors.As(err, &failed) {
		fmt.Fprintln(env.Err, failed.Output)
	}
	if err == nil && !check {
		fmt.Fprintln(env.Out, dir)
	}
	return err
}
