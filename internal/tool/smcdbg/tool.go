// SPDX-License-Identifier: Apache-2.0

// Package smcdbg is the command smc_dbg.
package smcdbg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/spf13/cobra"
)

// Tool is smc_dbg.
var Tool = cli.Tool{
	Name: "smc_dbg",
	New:  func(env *cli.Env) *cobra.Command { return newCommand(env, systemDeps()) },
	Long: []string{"help", "tar", "version"},
}

const long = `smc_dbg collects what a report of a bug in SMC needs: versions, kernel and
module, the lines of the kernel log about SMC and RDMA, the output of all
commands of smckit, settings, interfaces, routes, packet filters as far as they
matter, and the result of smc_chk. It prints all of it, or writes an archive.

smc_dbg replaces MAC addresses, and values that contain them, by words such as MAC-1;
with --mask also IP addresses and host names. It does not collect environment,
command lines, keys, or the data of programs. All of it is text: look through it
before you send it.

The archive and standard error name the parts that could not be collected. Run smc_dbg as
root: other users cannot read the kernel log and the packet filters.

EXIT STATUS
  0  done, also if a part could not be collected
  1  failed
  2  the command line is wrong`

const example = `  # write /tmp/smc_dbg-....tgz
  smc_dbg -t

  # without IP addresses and host names, to a file of your choice
  smc_dbg --mask -o report.tar.gz

  # of a container's network namespace
  smc_dbg -N blue -t`

// section is a file of the archive.
type section struct {
	name string
	// read returns the text, and an error if the text is incomplete. Text without an error may be empty.
	read func(ctx context.Context) (string, error)
}

// deps has the functions of the operating system that the command uses. Tests replace it.
type deps struct {
	sections []section
	// names returns names of hosts, to be masked.
	names func(ctx context.Context) []string
	// create makes a new file that only this user can read, in the directory for temporary files if path is empty.
	create func(path string) (file io.WriteCloser, name string, err error)
	now    func() time.Time
	// read reads a section, in a separate process where possible.
	read func(ctx context.Context, s section) (string, error)
	// timeout limits the time for one section.
	timeout time.Duration
	// atOnce is how many sections are read in parallel, while they take no longer than turn.
	atOnce int
	turn   time.Duration
}

type options struct {
	env  *cli.Env
	deps deps

	tar, mask bool
	output    string
	section   string
}

func newCommand(env *cli.Env, d deps) *cobra.Command {
	o := &options{env: env, deps: d}
	cmd := &cobra.Command{
		Use:     "smc_dbg [-t | -o FILE] [--mask]",
		Short:   "Collect the information for a report of a bug in SMC",
		Long:    long,
		Example: example,

		DisableFlagsInUseLine: true,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&o.tar, "tar", "t", false, "write a new archive smc_dbg-....tgz in the directory for temporary files")
	f.StringVarP(&o.output, "output", "o", "", "write the archive to `FILE`, which must not exist")
	f.BoolVar(&o.mask, "mask", false, "also replace IP addresses and host names")
	f.StringVar(&o.section, "section", "", "")
	_ = f.MarkHidden("section")
	cli.AddNetNSFlag(cmd, env)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 0:
			return fmt.Errorf("unexpected operand %q: %s has options only", args[0], env.Name())
		case cmd.Flags().Changed("output") && o.output == "":
			return fmt.Errorf("--output needs the name of a file")
		case cmd.Flags().Changed("output") && o.tar:
			return fmt.Errorf("--tar and --output cannot be combined")
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.section != "" {
			return o.printSection(cmd.Context())
		}
		return o.run(cmd.Context())
	}
	return cmd
}

// run collects the sections and prints them, or writes them into the archive. It writes each section as soon as it is read,
// because a system that needs this command may fail at any time.
func (o *options) run(ctx context.Context) error {
	if !o.tar && o.output == "" {
		return o.collect(ctx, &printer{env: o.env})
	}
	w, name, err := o.deps.create(o.output)
	if err != nil {
		return err
	}
	a := newArchive(w, o.deps.now())
	cerr := o.collect(ctx, a)
	if err := a.close(); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if cerr != nil && !errors.Is(cerr, ctx.Err()) {
		return fmt.Errorf("writing %s: %w", name, cerr)
	}
	if _, err := fmt.Fprintf(o.env.Out, "Debug output written to %s\n", name); err != nil {
		return err
	}
	return cerr
}

// sink receives the files of a report, one after the other.
type sink interface {
	add(name, text string) error
}

// printer is a sink that prints the files.
type printer struct {
	env   *cli.Env
	later bool
}

func (p *printer) add(name, text string) error {
	separator := ""
	if p.later {
		separator = "\n"
	}
	p.later = true
	if _, err := fmt.Fprintf(p.env.Out, "%s==> %s <==\n%s", separator, name, text); err != nil {
		return err
	}
	return p.env.Flush()
}
