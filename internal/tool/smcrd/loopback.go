// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/catalogue"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/smcerr"
	"github.com/spf13/cobra"
)

const loopbackLong = `Show and set which connections within this host use SMC-D through memory instead
of TCP. Each network namespace has this setting, and the namespaces of both ends
must allow SMC-D. Existing connections are not affected.

  show        show the setting
  off         none
  namespace   connections within the network namespace
  on          all connections, also those between namespaces: the default

The setting is the sysctl net.smc.loopback (0, 1, 2), which smckit's module has
and the stock module does not have. Changes need root in the user namespace that
owns the network namespace.

JSON fields:
  show        schema; loopback {scope}, which is off, namespace or on
  the others  schema; changed

Files:
  /proc/sys/net/smc/loopback  the setting`

// loopbackFile has the setting of the network namespace of the process that opens it.
const loopbackFile = "/proc/sys/net/smc/loopback"

// loopbackModes are the words for the values of the setting, from 0 on.
var loopbackModes = []string{"off", "namespace", "on"}

// loopbackText explains each value.
var loopbackText = []string{"off", "within the network namespace", "on"}

type loopbackJSON struct {
	Schema   int               `json:"schema"`
	Loopback loopbackStateJSON `json:"loopback"`
}

type loopbackStateJSON struct {
	Scope string `json:"scope" schema1:"connections"`
}

func newLoopback(o *options) *cobra.Command {
	return &cobra.Command{
		Use:               "loopback [show | off | namespace | on]",
		Short:             "Show and set which connections use SMC-D within this host",
		Long:              loopbackLong,
		Example:           "  # keep local connections on TCP, in this network namespace\n  smcd loopback off\n\n  # let a container use SMC-D for its own connections only\n  smcd -N blue loopback namespace",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: words("show", "off", "namespace", "on", "help"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if wantsHelp(args) {
				return cmd.Help()
			}
			command, err := subcommand(args, "show", "show", "off", "namespace", "on")
			if err != nil {
				return err
			}
			return o.runLoopback(command)
		},
	}
}

func (o *options) runLoopback(command string) error {
	mode, err := readLoopback(o.loopback)
	if err != nil {
		return err
	}
	if command == "show" {
		if o.json {
			return o.writeJSON(loopbackJSON{Schema: jsondoc.Schema, Loopback: loopbackStateJSON{Scope: loopbackModes[mode]}})
		}
		_, err := fmt.Fprintf(o.env.Out, "SMC-D loopback: %s\n", loopbackText[mode])
		return err
	}
	want := slices.Index(loopbackModes, command)
	if want == mode {
		return o.changed(false, "SMC-D loopback is already %s", loopbackText[mode])
	}
	if err := writeLoopback(o.loopback, want); err != nil {
		return err
	}
	return o.changed(true, "")
}

// readLoopback returns an index of loopbackModes.
func readLoopback(file string) (int, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, loopbackError("read", file, err)
	}
	text := strings.TrimSpace(string(b))
	mode, err := strconv.Atoi(text)
	if err != nil || mode < 0 || mode >= len(loopbackModes) {
		return 0, remedy.Errorf("use the version of this command that belongs to the module", "read net.smc.loopback: %q is an unknown value", text)
	}
	return mode, nil
}

func writeLoopback(file string, mode int) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return loopbackError("set", file, err)
	}
	_, err = f.WriteString(strconv.Itoa(mode) + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return loopbackError("set", file, err)
	}
	return nil
}

// loopbackError returns an error with a message of one line that has the remedy.
func loopbackError(op, file string, err error) error {
	// Users do not need the path in /proc.
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	e := &smcerr.Error{Op: op + " net.smc.loopback", Err: err}
	if errors.Is(err, fs.ErrPermission) {
		e.Kind, e.Remedy = smcerr.ErrPermission, catalogue.NeedNetNSAdmin
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return e
	}
	e.Kind, e.Remedy = smcerr.ErrNoModule, catalogue.LoadModule
	if _, serr := os.Stat(filepath.Dir(file)); serr == nil {
		e.Kind = smcerr.With(fmt.Errorf("the loaded SMC module has no such setting (%w)", err), smcerr.ErrNotSupported)
		e.Remedy = catalogue.NeedSmckit
	}
	return e
}
