// SPDX-License-Identifier: Apache-2.0

// Command pack builds one package, .deb or .rpm, from a directory with its files as they are to be installed, and a YAML
// file for nfpm with the rest. The place of a file decides its kind, so there is no list of files to maintain. The date
// of everything in the package is $SOURCE_DATE_EPOCH.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// options are those of the command line.
type options struct {
	config, stage, format, arch, version, target string
	date                                         time.Time
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "pack: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var o options
	set := flag.NewFlagSet("pack", flag.ExitOnError)
	set.StringVar(&o.config, "config", "", "nfpm's `file` for the package")
	set.StringVar(&o.stage, "stage", "", "`directory` with the files of the package")
	set.StringVar(&o.format, "format", "deb", "deb or rpm")
	set.StringVar(&o.arch, "arch", "", "Go's name of the architecture, or all")
	set.StringVar(&o.version, "version", "", "version of the package")
	set.StringVar(&o.target, "target", ".", "`directory` that gets the package")
	if err := set.Parse(args); err != nil {
		return err
	}
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return errors.New("SOURCE_DATE_EPOCH is not set to a number of seconds: run 'make packages', which sets it")
	}
	o.date = time.Unix(epoch, 0).UTC()
	return o.pack()
}

// pack writes the package.
func (o *options) pack() (err error) {
	config, err := nfpm.ParseFileWithEnvMapping(o.config, o.variable)
	if err != nil {
		return fmt.Errorf("%s: %w", o.config, err)
	}
	info, err := config.Get(o.format)
	if err != nil {
		return fmt.Errorf("%s: %w", o.config, err)
	}
	if info.Contents, err = o.contents(); err != nil {
		return err
	}
	info.MTime = o.date
	// Take names literally, not as patterns.
	info.DisableGlobbing = true
	changelog, err := o.changelog(info.Maintainer)
	if err != nil {
		return err
	}
	defer os.Remove(changelog)
	info.Changelog = changelog

	packager, err := nfpm.Get(o.format)
	if err != nil {
		return err
	}
	name := filepath.Join(o.target, packager.ConventionalFileName(info))
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := errors.Join(packager.Package(info, file), file.Close()); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", name, err), os.Remove(name))
	}
	fmt.Println(name)
	return nil
}

// variable matches a variable in nfpm's file.
func (o *options) variable(name string) string {
	return map[string]string{"VERSION": o.version, "ARCH": o.arch}[name]
}

// ours matches the directories that belong to a package and not to the system: an rpm must list them.
var ours = regexp.MustCompile(`^/(etc/smc|usr/src/[^/]+|usr/share/(doc|licenses)/[^/]+)(/|$)`)

// documents matches files that rpm installs only if the user wants documentation.
var documents = regexp.MustCompile(`^/usr/share/(doc|man)/`)

// contents lists what is in the staging directory.
func (o *options) contents() (list files.Contents, err error) {
	err = filepath.WalkDir(o.stage, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		c := &files.Content{
			Source: path, Destination: strings.TrimPrefix(path, filepath.Clean(o.stage)),
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: info.Mode().Perm(), MTime: o.date},
		}
		switch {
		case entry.IsDir() && !ours.MatchString(c.Destination):
			return nil
		case entry.IsDir():
			c.Source, c.Type = "", files.TypeDir
		case info.Mode()&fs.ModeSymlink != 0:
			c.Type = files.TypeSymlink
			if c.Source, err = os.Readlink(path); err != nil {
				return err
			}
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s: neither file nor directory nor link", path)
		case strings.HasPrefix(c.Destination, "/etc/"):
			c.Type = files.TypeConfigNoReplace
		case o.format == "rpm" && strings.HasPrefix(c.Destination, "/usr/share/licenses/"):
			c.Type = files.TypeRPMLicense
		case o.format == "rpm" && documents.MatchString(c.Destination):
			c.Type = files.TypeRPMDoc
		}
		list = append(list, c)
		return nil
	})
	return list, err
}

// changelog writes the changelog that both formats need: this version only, because CHANGELOG.md has all.
func (o *options) changelog(maintainer string) (string, error) {
	file, err := os.CreateTemp("", "changelog-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(file, "- semver: %q\n  date: %q\n  packager: %q\n  deb: {urgency: medium, distributions: [unstable]}\n"+
		"  changes: [{note: %q}]\n", o.version+"-1", o.date.Format(time.RFC3339), maintainer, "Release "+o.version+"; CHANGELOG.md tells what is new.")
	return file.Name(), errors.Join(err, file.Close())
}
