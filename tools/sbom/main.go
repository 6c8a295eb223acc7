// SPDX-License-Identifier: Apache-2.0

// Command sbom writes the bill of materials of a release in CycloneDX format: each command, the library and the modules'
// sources with their licence, and the Go modules that are linked into each command, from the command's own build
// information. The date is $SOURCE_DATE_EPOCH, and nothing in it depends on time and place.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "sbom: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	set := flag.NewFlagSet("sbom", flag.ExitOnError)
	version := set.String("version", "", "version of the release")
	output := set.String("output", "", "`file` to write")
	if err := set.Parse(args); err != nil {
		return err
	}
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return errors.New("SOURCE_DATE_EPOCH is not set to a number of seconds: run 'make release', which sets it")
	}
	b := newBill(*version)
	for _, file := range set.Args() {
		if err := b.add(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	out, err := os.Create(*output)
	if err != nil {
		return err
	}
	encoder := cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true)
	// The version that most tools can read.
	return errors.Join(encoder.EncodeVersion(b.bom(time.Unix(epoch, 0).UTC()), cdx.SpecVersion1_6), out.Close())
}

// bill collects the parts of a release.
type bill struct {
	version    string
	components map[string]cdx.Component // by reference
	uses       map[string][]string      // references to references
}

func newBill(version string) *bill {
	b := &bill{version: version, components: map[string]cdx.Component{}, uses: map[string][]string{}}
	b.part(cdx.Component{Type: cdx.ComponentTypeDeviceDriver, Name: "smckit-dkms", Licenses: licence("GPL-2.0-only")})
	return b
}

func licence(id string) *cdx.Licenses {
	return &cdx.Licenses{{License: &cdx.License{ID: id}}}
}

// part adds a part of this project.
func (b *bill) part(c cdx.Component) (ref string) {
	c.Version = b.version
	c.BOMRef = c.Name + "@" + c.Version
	b.components[c.BOMRef] = c
	b.uses["smckit"] = append(b.uses["smckit"], c.BOMRef)
	return c.BOMRef
}

// module adds a Go module.
func (b *bill) module(path, version string) (ref string) {
	ref = "pkg:golang/" + strings.ToLower(path) + "@" + version
	b.components[ref] = cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: ref}
	return ref
}

// add reads one file of the release: a command, or else the library.
func (b *bill) add(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	c := cdx.Component{
		Type: cdx.ComponentTypeLibrary, Name: filepath.Base(file), Licenses: licence("Apache-2.0"),
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(data))}},
	}
	if strings.HasSuffix(filepath.Dir(file), "lib32") {
		c.Name = "lib32/" + c.Name
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil && !strings.Contains(c.Name, ".so.") {
		return err
	}
	if err == nil {
		c.Type = cdx.ComponentTypeApplication
	}
	ref := b.part(c)
	if err == nil {
		b.uses[ref] = b.linked(info)
	}
	return nil
}

// linked adds the modules that are linked into a command, and Go's own library.
func (b *bill) linked(info *debug.BuildInfo) (refs []string) {
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		refs = append(refs, b.module(m.Path, m.Version))
	}
	return append(refs, b.module("std", strings.TrimPrefix(info.GoVersion, "go")))
}

// bom returns the sorted document.
func (b *bill) bom(date time.Time) *cdx.BOM {
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: date.Format(time.RFC3339),
		Component: &cdx.Component{
			BOMRef: "smckit", Type: cdx.ComponentTypeApplication, Name: "smckit", Version: b.version,
			PackageURL: "pkg:github/smckit/smckit@v" + b.version,
			Licenses:   &cdx.Licenses{{Expression: "Apache-2.0 AND GPL-2.0-only"}},
		},
	}
	components, dependencies := []cdx.Component{}, []cdx.Dependency{}
	for _, ref := range sorted(b.components) {
		components = append(components, b.components[ref])
	}
	for _, ref := range sorted(b.uses) {
		slices.Sort(b.uses[ref])
		uses := slices.Compact(b.uses[ref])
		dependencies = append(dependencies, cdx.Dependency{Ref: ref, Dependencies: &uses})
	}
	bom.Components, bom.Dependencies = &components, &dependencies
	return bom
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
