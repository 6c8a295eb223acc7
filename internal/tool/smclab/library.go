// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smclab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/lab"
	"github.com/spf13/cobra"
)

func newLibrary(env *cli.Env) *cobra.Command {
	var arch string
	archs := lab.LibraryArchs()
	cmd := &cobra.Command{
		Use:   "library --arch ARCH DIR",
		Short: "Build the library that smc_run preloads for another architecture",
		Long: `Build libsmc-preload.so.1 for another architecture, in DIR. 'make packages' does this where no cross compiler is installed. smclab
downloads Debian's once, into $SMCKIT_CACHE, and uses it in a mount namespace. If unprivileged user namespaces are not allowed,
that needs root.`,
		Example: `  smclab library --arch s390x /tmp/library`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(archs, arch) {
				return cli.Usagef("--arch %q: choose one of %s", arch, strings.Join(archs, ", "))
			}
			return lab.CrossLibrary(cmd.Context(), arch, args[0], func(step string) { fmt.Fprintln(env.Err, "smclab:", step) })
		},
	}
	cmd.Flags().StringVar(&arch, "arch", "", "build for `ARCH`: "+strings.Join(archs, ", "))
	_ = cmd.RegisterFlagCompletionFunc("arch", cobra.FixedCompletions(archs, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
