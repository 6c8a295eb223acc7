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
'--module ours' finds them. Modules that were built from the same sources, here or in another checkout, are not built again.
smclab downloads the kernel's own compiler and headers once, into $SMCKIT_CACHE, and uses them in a mount namespace. If
unprivileged user namespaces are not allowed, that needs root.

With --arch smclab cross-compiles them for another architecture, by default for each kernel series that Debian has there. Only s390x has
ISM devices. If a kernel for s390x lacks their driver, smclab also compiles the client of the driver, and leaves that build
in build/kernel/<release>-ism: no kernel loads it.`,
		Example: `  smclab modules --kernel ` + lab.Newest() + `
  smclab modules --arch s390x --kernel ` + lab.Newest() + `
  smclab run --kernel ` + lab.Newest() + ` --module ours -- smcr info`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			build, from, err := moduleBuilder(arch, check)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("kernel") {
				kernels = lab.ArchSeries(arch)
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
	f.StringVar(&arch, "arch", lab.NativeArch, "build for `ARCH`: "+strings.Join(lab.Archs(), ", "))
	f.BoolVar(&check, "check", false, "do not build them, but check the sources with sparse")
	_ = cmd.RegisterFlagCompletionFunc("arch", cobra.FixedCompletions(lab.Archs(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("kernel", cobra.FixedCompletions(lab.AllSeries(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// builder builds, or checks, the modules for a kernel series, and returns their directory.
type builder func(ctx context.Context, series string, progress func(string)) (dir string, err error)

// moduleBuilder returns the builder for an architecture, or one that only checks, and the series that it supports.
func moduleBuilder(arch string, check bool) (builder, []string, error) {
	switch {
	case !slices.Contains(lab.Archs(), arch):
		return nil, nil, cli.Usagef("--arch %q: choose one of %s", arch, strings.Join(lab.Archs(), ", "))
	case arch == lab.NativeArch && check:
		return func(ctx context.Context, series string, progress func(string)) (string, error) {
			return "", lab.CheckModules(ctx, series, progress)
		}, lab.AllSeries(), nil
	case arch == lab.NativeArch:
		return lab.BuildModules, lab.AllSeries(), nil
	case check:
		return func(ctx context.Context, series string, progress func(string)) (string, error) {
			return "", lab.CheckCrossModules(ctx, arch, series, progress)
		}, lab.ArchSeries(arch), nil
	}
	return func(ctx context.Context, series string, progress func(string)) (string, error) {
		return lab.CrossModules(ctx, arch, series, progress)
	}, lab.ArchSeries(arch), nil
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
