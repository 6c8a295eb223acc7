// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package smclab is the command smclab, the command line of internal/lab.
package smclab

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/fabric"
	"github.com/smckit/smckit/internal/lab"
	"github.com/spf13/cobra"
)

// Tool is the command.
var Tool = cli.Tool{Name: "smclab", New: newCommand}

// options are the options that up and run share.
type options struct {
	kernel  string
	arch    string
	module  string
	hosts   int
	wires   int
	memory  int
	cpus    int
	shares  []string
	capture string
	args    string
	quiet   bool

	// ism is the size of the fabric that the guests share, as the user has written it; empty for none.
	ism string
	// fabric is what check has made of it.
	fabric lab.Fabric
}

// fabricSize is the size of the fabric for --ism without one: room for hundreds of connections.
const fabricSize = "64M"

func newCommand(env *cli.Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "smclab",
		Short: "Boot real kernels under QEMU in an SMC network",
		Long: `smclab boots guests with Debian's kernels (` + strings.Join(lab.Series(), ", ") + `) under QEMU and connects them by private wires. Every guest
sees this machine's files and programs; what it writes is gone when the guest ends. On each wire the guests have an
interface eth<N>, a soft-RoCE device rxe<N>, an AF_SMC module, a common enterprise ID and a PNET ID LAB<N>, so that any
two of them can use SMC-R. Addresses are 10.0.<wire>.<host> and fd00:0:0:<wire>::<host>; host a is 1, b is 2. With --ism they
also share memory by ivshmem devices, and use SMC-D with each other as long as it has room.

smclab downloads kernels once, from the Debian mirror that this machine uses, into $SMCKIT_CACHE (by default smckit below
the user's cache directory).

Exit status:
  0  done
  1  failed
  2  the command line is wrong

  'smclab run' has the exit status of the command that it runs.`,
		Example: `  # two guests, a shell in the first
  smclab up
  # a shell in the second, from another terminal
  smclab shell b
  # two guests that use SMC-D with each other, through memory that they share
  smclab up --ism
  # one command on an older kernel
  smclab run --kernel 6.1 -- smcss -a
  # two guests of different byte order
  smclab up --arch s390x,amd64 --kernel 7.2 --module ours`,
		Args: cobra.NoArgs,
		RunE: cli.Usage,
	}
	root.AddCommand(newUp(env), newShell(env), newRun(env), newKernels(env), newModules(env), newLibrary(env))
	return root
}

// addFlags declares the options that describe the lab to boot.
func (o *options) addFlags(cmd *cobra.Command, hosts int) {
	f := cmd.Flags()
	f.StringVar(&o.kernel, "kernel", lab.DefaultSeries(), "boot the kernel `SERIES`, one for each host with commas: "+strings.Join(lab.AllSeries(), ", "))
	f.StringVar(&o.arch, "arch", lab.NativeArch, "`ARCH` of the guests, one for each host with commas: "+strings.Join(lab.Archs(), ", "))
	f.StringVar(&o.module, "module", "", "load the AF_SMC `MODULE`: stock (the distribution's, the default), ours (built here, the default with --ism) or none")
	f.IntVar(&o.hosts, "hosts", hosts, "`NUMBER` of guests")
	f.IntVar(&o.wires, "nics", 1, "`NUMBER` of network interfaces of each guest, each on a wire of its own")
	f.IntVar(&o.memory, "mem", 0, "memory of each guest in `MIB` (default 768; 2048 with the debug kernel)")
	f.IntVar(&o.cpus, "cpus", 1, "`NUMBER` of processors of each guest")
	f.StringVar(&o.ism, "ism", "", "let the guests share memory of `SIZE`, "+fabricSize+" without one, for SMC-D among themselves (a fabric, see smc_ismd)")
	f.Lookup("ism").NoOptDefVal = fabricSize
	f.StringVar(&o.args, "append", "", "add `ARGS` to the kernel's command line, such as parameters of modules (smc.smcd=0)")
	f.StringArrayVar(&o.shares, "share", nil, "`DIR` that guests may write to (may be repeated)")
	f.StringVar(&o.capture, "capture", "", "write the traffic of the first wire to `FILE` (pcap)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print no progress")
	_ = cmd.RegisterFlagCompletionFunc("kernel", cobra.FixedCompletions(lab.AllSeries(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("arch", cobra.FixedCompletions(lab.Archs(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("module", cobra.FixedCompletions([]string{"stock", "ours", "none"}, cobra.ShellCompDirectiveNoFileComp))
}

// check refuses invalid options before anything is started.
func (o *options) check() error {
	if err := o.checkKernels(); err != nil {
		return err
	}
	if o.module == "" {
		o.module = "stock"
		if o.ism != "" {
			o.module = "ours"
		}
	}
	if !slices.Contains([]string{"stock", "ours", "none"}, o.module) {
		return cli.Usagef("--module %q: choose stock, ours or none", o.module)
	}
	if o.memory != 0 && (o.memory < 128 || o.memory > 1<<20) {
		return cli.Usagef("--mem %d: must be from 128 to %d", o.memory, 1<<20)
	}
	for _, n := range []struct {
		name          string
		value, lo, hi int
	}{
		{"--hosts", o.hosts, 1, 26}, {"--nics", o.wires, 1, 8}, {"--cpus", o.cpus, 1, 64},
	} {
		if n.value < n.lo || n.value > n.hi {
			return cli.Usagef("%s %d: must be from %d to %d", n.name, n.value, n.lo, n.hi)
		}
	}
	return o.checkISM()
}

// checkKernels refuses kernels and architectures that the lab does not have.
func (o *options) checkKernels() error {
	for series := range strings.SplitSeq(o.kernel, ",") {
		if !slices.Contains(lab.AllSeries(), series) {
			return cli.Usagef("--kernel %q: choose one of %s", series, strings.Join(lab.AllSeries(), ", "))
		}
	}
	for arch := range strings.SplitSeq(o.arch, ",") {
		if !slices.Contains(lab.Archs(), arch) {
			return cli.Usagef("--arch %q: choose one of %s", arch, strings.Join(lab.Archs(), ", "))
		}
	}
	for host := range o.hosts {
		if arch, series := o.of(host); arch != lab.NativeArch && !slices.Contains(lab.ArchSeries(arch), series) {
			return cli.Usagef("--kernel %q: for %s choose one of %s", series, arch, strings.Join(lab.ArchSeries(arch), ", "))
		}
	}
	return nil
}

// of returns the architecture and the kernel of a host. The last ones named are those of all further hosts, too.
func (o *options) of(host int) (arch, kernel string) {
	archs, kernels := strings.Split(o.arch, ","), strings.Split(o.kernel, ",")
	return archs[min(host, len(archs)-1)], kernels[min(host, len(kernels)-1)]
}

// checkModules fails if a host cannot load the module that it is to load.
func (o *options) checkModules(ctx context.Context, progress func(string)) error {
	for host := range o.hosts {
		arch, series := o.of(host)
		var err error
		if arch == lab.NativeArch {
			err = lab.CheckModule(ctx, series, lab.Module(o.module), progress)
		} else {
			err = lab.CheckArchModule(ctx, arch, series, lab.Module(o.module), progress)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkISM refuses fabrics that cannot be.
func (o *options) checkISM() error {
	if o.ism == "" {
		return nil
	}
	size, err := fabric.ParseSize(o.ism)
	if err == nil {
		o.fabric = lab.Fabric{Size: size, Members: max(o.hosts, 2)}
		_, err = fabric.NewLayout(size, o.fabric.Members)
	}
	if err != nil {
		return cli.Usagef("--ism: %v", err)
	}
	return nil
}

// start boots the lab and makes it an SMC network.
func (o *options) start(ctx context.Context, env *cli.Env) (*lab.Lab, error) {
	begin := time.Now()
	progress := func(step string) {
		if !o.quiet {
			fmt.Fprintf(env.Err, "smclab: %5.1fs %s\n", time.Since(begin).Seconds(), step)
		}
	}
	lo := lab.Options{
		Hosts: o.hosts, Wires: o.wires,
		Memory: o.memory, CPUs: o.cpus, Fabric: o.fabric, Shares: o.shares, KernelArgs: o.args, Progress: progress,
	}
	for host := range o.hosts {
		arch, series := o.of(host)
		lo.Archs, lo.Kernels = append(lo.Archs, arch), append(lo.Kernels, series)
	}
	if err := o.checkModules(ctx, progress); err != nil {
		return nil, err
	}
	programs, err := lab.Commands(ctx)
	if err != nil {
		return nil, err
	}
	lo.Programs = []string{programs}
	step := fmt.Sprintf("booting %d guests with kernel %s", o.hosts, o.kernel)
	if o.ism != "" {
		step += ", which share a fabric of " + fabric.FormatSize(o.fabric.Size)
	}
	progress(step)
	l, err := lab.New(ctx, lo)
	if err != nil {
		return nil, err
	}
	if o.capture != "" {
		err = l.Wires[0].Capture(o.capture)
	}
	if err == nil {
		progress("setting up the SMC network")
		err = l.SetUpSMC(ctx, lab.Module(o.module))
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	progress("ready")
	return l, nil
}

func newKernels(env *cli.Env) *cobra.Command {
	var update, names bool
	cmd := &cobra.Command{
		Use:   "kernels [SERIES...]",
		Short: "Download the kernels that the lab boots",
		Long: `Download the kernels of the given series, or of all that distributions ship, unless they are in the cache, and list
them. The series ` + lab.DebugSeries + ` is built here, in about half an hour: a kernel with KASAN, lockdep and kmemleak.`,
		Args: func(_ *cobra.Command, args []string) error {
			for _, a := range args {
				if !slices.Contains(lab.AllSeries(), a) {
					return fmt.Errorf("no kernel series %q: choose from %s", a, strings.Join(lab.AllSeries(), ", "))
				}
			}
			return nil
		},
		ValidArgs: lab.AllSeries(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if names {
				_, err := fmt.Fprintln(env.Out, strings.Join(lab.AllSeries(), "\n"))
				return err
			}
			if len(args) == 0 {
				args = lab.Series()
			}
			var rows [][]string
			for _, series := range args {
				k, err := lab.Provision(cmd.Context(), series, update, func(s string) { fmt.Fprintln(env.Err, "smclab:", s) })
				if err != nil {
					return err
				}
				smc := "no"
				if k.HasModule("smc") {
					smc = "yes"
				}
				rows = append(rows, []string{series, k.Release, smc, k.Modules})
			}
			return cli.WriteTable(env.Out, []string{"SERIES", "RELEASE", "AF_SMC", "MODULES"}, rows)
		},
	}
	cmd.Flags().BoolVar(&update, "update", false, "fetch a newer release of the series if there is one")
	cmd.Flags().BoolVar(&names, "names", false, "print only the names of all series, oldest first, the debug kernel last; download nothing")
	return cmd
}

func newRun(env *cli.Env) *cobra.Command {
	var o options
	var host string
	cmd := &cobra.Command{
		Use:   "run [OPTIONS] -- COMMAND [ARG...]",
		Short: "Boot the lab, run one command in it, and end it",
		Long: `Boot the lab, run one command in the guest that --host names, and end the lab. smclab passes on the command's output,
errors and exit status. The command runs in the current directory, with this repository's commands in its PATH.`,
		Example: `  smclab run -- uname -r
  smclab run --hosts 2 --host b -- sh -c 'smcr device; smc_pnet show'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if len(host) != 1 || int(host[0]-'a') >= o.hosts || host < "a" {
				return cli.Usagef("--host %q: with %d hosts, the last is %c", host, o.hosts, 'a'+o.hosts-1)
			}
			l, err := o.start(cmd.Context(), env)
			if err != nil {
				return err
			}
			defer l.Close()
			dir, err := os.Getwd()
			if err != nil {
				return err
			}
			p, err := l.Host(host).Start(lab.Cmd{Argv: args, Dir: dir, Stdin: env.In, Stdout: flusher{env}, Stderr: env.Err})
			if err != nil {
				return err
			}
			r, err := p.Wait(cmd.Context())
			if err != nil {
				return err
			}
			if r.Code != 0 {
				return &cli.StatusError{Status: r.Code}
			}
			return nil
		},
	}
	o.addFlags(cmd, 1)
	cmd.Flags().StringVar(&host, "host", "a", "the `HOST` to run the command on")
	// Options after the name of the program belong to the program.
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// flusher writes to env.Out and flushes it at once, because users watch the progress.
type flusher struct{ env *cli.Env }

func (f flusher) Write(p []byte) (int, error) {
	n, err := f.env.Out.Write(p)
	if err != nil {
		return n, err
	}
	return n, f.env.Flush()
}
