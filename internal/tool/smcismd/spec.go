// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcismd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/fabric"
	"github.com/smckit/smckit/internal/fdstore"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/spf13/cobra"
)

// spec is a fabric as the command line or a file describes it.
type spec struct {
	fabric.Config
	permissions fabric.Permissions
	// place is FILE:LINE; empty for the command line.
	place string
}

// options are those of the command without an operand.
type options struct {
	fabrics                         []string
	config, statusMode, statusGroup string
}

// parseSpec reads NAME:SIZE[,OPTION]...
func parseSpec(text string) (spec, error) {
	s := spec{permissions: fabric.Permissions{Mode: 0o660, UID: -1, GID: -1}}
	words := strings.Split(text, ",")
	name, size, ok := strings.Cut(words[0], ":")
	if !ok {
		return s, remedy.Errorf("write NAME:SIZE, such as blue:256M", "fabric %q has no size", text)
	}
	s.Name = name
	var err error
	if s.Size, err = fabric.ParseSize(size); err != nil {
		return s, fmt.Errorf("fabric %q: %w", name, err)
	}
	seen := map[string]bool{}
	for _, word := range words[1:] {
		key, value, hasValue := strings.Cut(word, "=")
		if seen[key] {
			return s, fmt.Errorf("fabric %q: %s is there twice", name, key)
		}
		seen[key] = true
		if err := s.set(key, value, hasValue); err != nil {
			return s, fmt.Errorf("fabric %q: %w", name, err)
		}
	}
	if err := s.Check(); err != nil {
		return s, fmt.Errorf("fabric %q: %w", name, err)
	}
	return s, nil
}

// set sets an option.
func (s *spec) set(key, value string, hasValue bool) (err error) {
	if hasValue == (key == "hugepages") {
		return fmt.Errorf("unknown option %q: options are members=, mode=, owner=, group=, chid= and hugepages", joined(key, value, hasValue))
	}
	switch key {
	case "members":
		if s.Members, err = strconv.Atoi(value); err != nil || s.Members < 2 || s.Members > fabric.MembersMax {
			return fmt.Errorf("members=%s: a fabric has 2 to %d members", value, fabric.MembersMax)
		}
	case "mode":
		s.permissions.Mode, err = parseMode(value)
	case "owner":
		s.permissions.UID, err = parseUser(value)
	case "group":
		s.permissions.GID, err = parseGroup(value)
	case "chid":
		n, perr := strconv.ParseUint(value, 0, 16)
		if perr != nil || n < fabric.CHIDMin || n > fabric.CHIDMax {
			return fmt.Errorf("chid=%s: CHIDs are 0x%04x to 0x%04x", value, fabric.CHIDMin, fabric.CHIDMax)
		}
		s.CHID = uint16(n)
	case "hugepages":
		s.HugePages = true
	default:
		return fmt.Errorf("unknown option %q: options are members=, mode=, owner=, group=, chid= and hugepages", joined(key, value, hasValue))
	}
	return err
}

func joined(key, value string, hasValue bool) string {
	if hasValue {
		return key + "=" + value
	}
	return key
}

func parseMode(text string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o777 {
		return 0, remedy.Errorf("write it in octal, such as 0660", "%q is no mode", text)
	}
	return fs.FileMode(n), nil
}

// parseUser returns the number of a user, who need not exist if the text is a number.
func parseUser(text string) (int, error) {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return int(n), nil
	}
	u, err := user.Lookup(text)
	if err != nil {
		return -1, remedy.Errorf("give the number or the name of one that exists", "there is no user %q", text)
	}
	return strconv.Atoi(u.Uid)
}

// parseGroup does the same for groups.
func parseGroup(text string) (int, error) {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return int(n), nil
	}
	g, err := user.LookupGroup(text)
	if err != nil {
		return -1, remedy.Errorf("give the number or the name of one that exists", "there is no group %q", text)
	}
	return strconv.Atoi(g.Gid)
}

// readFile reads the fabrics of a file, one on each line.
func (c *command) readFile(name string) (specs []spec, err error) {
	in, err := c.env.OpenInput(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the fabrics: %w", err)
	}
	defer in.Close()
	return parseFile(in, cli.InputName(name))
}

// parseFile reads the fabrics of a file. Its errors have the name and the line.
func parseFile(in io.Reader, name string) (specs []spec, err error) {
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "#") }); i >= 0 {
			words = words[:i]
		}
		switch len(words) {
		case 0:
			continue
		case 1:
		default:
			return nil, remedy.Errorf("write NAME:SIZE and options without blanks", "%s:%d: more than one word", name, n)
		}
		s, err := parseSpec(words[0])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		s.place = fmt.Sprintf("%s:%d", name, n)
		specs = append(specs, s)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cannot read the fabrics of %s: %w", name, err)
	}
	return specs, nil
}

// specs returns the fabrics of the command line, then those of the file.
func (c *command) specs(o options) ([]spec, error) {
	var all []spec
	for _, text := range o.fabrics {
		s, err := parseSpec(text)
		if err != nil {
			return nil, &cli.UsageError{Err: err}
		}
		all = append(all, s)
	}
	if o.config != "" {
		more, err := c.readFile(o.config)
		if err != nil {
			return nil, err
		}
		if all = append(all, more...); len(all) == 0 {
			return nil, remedy.Errorf("add a line such as blue:256M", "%s has no fabric", cli.InputName(o.config))
		}
	}
	if len(all) == 0 {
		return nil, &cli.UsageError{Err: errors.New("there is no fabric to serve: name one with --fabric, or a file with --config")}
	}
	for i, s := range all {
		if !slices.ContainsFunc(all[:i], func(other spec) bool { return other.Name == s.Name }) {
			continue
		}
		if s.place == "" {
			return nil, cli.Usagef("fabric %q is named twice", s.Name)
		}
		return nil, fmt.Errorf("%s: fabric %q is named twice", s.place, s.Name)
	}
	return all, nil
}

// checkStore returns an error if the service manager does not keep everything while smc_ismd restarts: it drops the rest without a word.
func (c *command) checkStore(specs []spec) error {
	files, names := 0, 0
	for _, s := range specs {
		f, n := s.StoreNeed()
		files, names = files+f, names+n
	}
	if limit := fdstore.Max(c.env.Getenv); files > limit {
		return remedy.Errorf("lower members=, or set FileDescriptorStoreMax= and FDSTORE in smc-ismd.service", "the fabrics need %d files that systemd keeps while smc_ismd restarts, and it keeps %d", files, limit)
	}
	if names > fdstore.NamesMax {
		return remedy.Errorf("shorten the fabrics' names, or lower members=", "systemd can keep files for smc_ismd if their names have %d bytes, and those of the fabrics have %d", fdstore.NamesMax, names)
	}
	return nil
}

func newCheck(c *command) *cobra.Command {
	return &cobra.Command{
		Use:     "check [FILE]",
		Short:   "Check a file of fabrics",
		Long:    checkLong,
		Example: checkExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o := options{config: defaultConfig}
			if len(args) > 0 {
				o.config = args[0]
			}
			if o.config == "" {
				return cli.Usagef("the name of the file is empty")
			}
			specs, err := c.specs(o)
			if err != nil {
				return err
			}
			return c.checkStore(specs)
		},
	}
}
