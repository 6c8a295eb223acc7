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
	"github.com/smckit/smckit/internal/lab"
	"github.com/spf13/cobra"
)

func newModules(env *cli.Env) *cobra.Command {
	var kernels []string
	var arch string
	var check bool
	cmd := &cobra.Command{
		Use:   "modules",
		Short: "Build this repository's AF_SMC modules for the kernels that the lab boots",
		Long: `Build the modules of kernel/ for each kernel series, with warnings as errors, into build/kernel/<release>, where
'--module ours' finds them. Modules that were built from the same sources are not built again. smclab downloads the
kernel's own compiler and headers once, into $SMCKIT_CACHE, and uses them in a mount namespace. If unprivileged user
namespaces are not allowed, that needs root.

With --arch ` + lab.CrossArch + ` smclab cross-compiles them, together with the client of the ISM driver, which only that architecture has. This
shows only that they compile: nothing runs them. Without --kernel it does so for the kernels whose driver has an interface
for our client: ` + strings.Join(lab.CrossSeries(), ", ") + `.`,
		Example: `  smclab modules --kernel ` + lab.Newest() + `
  smclab modules --arch ` + lab.CrossArch + ` --kernel ` + strings.Join(lab.CrossSeries(), ",") + `
  smclab run --kernel ` + lab.Newest() + ` --module ours -- smcr info`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			build, from, err := moduleBuilder(arch, check)
			if err != nil {
				return err
			}
			if arch == lab.CrossArch && !cmd.Flags().Changed("kernel") {
				kernels = lab.CrossSeries()
			}
			for _, series := range kernels {
				if !slices.Contains(from, series) {
					return cli.Usagef("--kernel %q: choose from %s", series, strings.Join(from, ", "))
				}
			}
			return buildAll(cmd.Context(), env, kernels, build)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&kernels, "kernel", lab.Series(), "kernel `SERIES`, several with commas: "+strings.Join(lab.AllSeries(), ", "))
	f.StringVar(&arch, "arch", "amd64", "build for `ARCH`: amd64 or "+lab.CrossArch)
	f.BoolVar(&check, "check", false, "do not build them, but check the sources with sparse")
	_ = cmd.RegisterFlagCompletionFunc("arch", cobra.FixedCompletions([]string{"amd64", lab.CrossArch}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("kernel", cobra.FixedCompletions(lab.AllSeries(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// builder builds, or checks, the modules for a kernel series, and returns their directory.
type builder func(ctx context.Context, series string, progress func(string)) (dir string, err error)

// moduleBuilder returns the builder for an architecture, or one that only checks, and the series that it supports.
func moduleBuilder(arch string, check bool) (builder, []string, error) {
	switch {
	case arch == "amd64" && check:
		return func(ctx context.Context, series string, progress func(string)) (string, error) {
			return "", lab.CheckModules(ctx, series, progress)
		}, lab.AllSeries(), nil
	case arch == "amd64":
		return lab.BuildModules, lab.AllSeries(), nil
	case arch != lab.CrossArch:
		return nil, nil, cli.Usagef("--arch %q: choose amd64 or %s", arch, lab.CrossArch)
	case check:
		return nil, nil, cli.Usagef("--check looks at the sources as they are for amd64")
	}
	return lab.CrossModules, lab.Series(), nil
}

// buildAll builds the modules for several kernels. It skips kernels that the archive does not have, unless it has none of them.
func buildAll(ctx context.Context, env *cli.Env, kernels []string, build builder) error {
	var missing error
	built := 0
	for _, series := range kernels {
		err := buildModules(ctx, env, series, build)
		if unavailable := (*lab.UnavailableError)(nil); errors.As(err, &unavailable) && ctx.Err() == nil {
			missing = err
			fmt.Fprintf(env.Err, "smclab: kernel %s is left out: %v\n", series, err)
			continue
		}
		if err != nil {
			return err
		}
		built++
	}
	if built == 0 {
		return missing
	}
	return nil
}

// buildModules builds the modules for one kernel series, and prints their directory.
func buildModules(ctx context.Context, env *cli.Env, series string, build builder) error {
	dir, err := build(ctx, series, func(step string) { fmt.Fprintln(env.Err, "smclab:", step) })
	var failed *lab.BuildError
	if errors.As(err, &failed) {
		fmt.Fprintln(env.Err, failed.Output)
	}
	if err == nil && dir != "" {
		fmt.Fprintln(env.Out, dir)
	}
	return err
}
