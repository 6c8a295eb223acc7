// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"bufio"
	"bytes"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// readModule describes the AF_SMC module that is loaded and the one that is installed.
func (r files) readModule(release string) Module {
	m := Module{Loaded: r.Exists("sys/module/smc")}
	m.BuiltIn = r.listed(filepath.Join("lib/modules", release, "modules.builtin"), "smc") != ""
	m.Version = r.Text("sys/module/smc/version")
	m.SrcVersion = r.Text("sys/module/smc/srcversion")
	m.Taint = r.Text("sys/module/smc/taint")
	m.SMCR = r.parameter("smcr")
	m.SMCD = r.parameter("smcd")
	m.Ours = m.SMCR != nil
	dir := filepath.Join("lib/modules", release)
	if file := r.listed(filepath.Join(dir, "modules.dep"), "smc"); file != "" {
		m.File = r.Path(dir, file)
		describeFile(&m)
	}
	if !m.Loaded {
		m.Blocked = r.blocked("smc")
	}
	return m
}

// parameter reads a boolean parameter of the loaded module. It returns nil if the module does not have it.
func (r files) parameter(name string) *bool {
	text := r.Text("sys/module/smc/parameters", name)
	if text == "" {
		return nil
	}
	isOn := text == "Y"
	return &isOn
}

// listed returns the file of a module from one of depmod's lists, "" if the list does not contain it.
func (r files) listed(list, module string) string {
	f, err := os.Open(r.Path(list))
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		file, _, _ := strings.Cut(lines.Text(), ":")
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		if name == module {
			return file
		}
	}
	return ""
}

// signature is the end of a signed file.
const signature = "~Module signature appended~\n"

// describeFile reads the information in the module's file. It does not read compressed files.
func describeFile(m *Module) {
	f, err := os.Open(m.File)
	if err != nil {
		return
	}
	defer f.Close()
	file, err := elf.NewFile(f)
	if err != nil {
		return
	}
	section := file.Section(".modinfo")
	if section == nil {
		return
	}
	data, err := section.Data()
	if err != nil {
		return
	}
	m.FileVermagic = modinfo(data, "vermagic")
	m.FileSrcVersion = modinfo(data, "srcversion")
	end := make([]byte, len(signature))
	if _, err := f.Seek(-int64(len(end)), io.SeekEnd); err == nil {
		_, err = io.ReadFull(f, end)
		m.FileSigned = err == nil && string(end) == signature
	}
}

// modinfo returns a value from the section .modinfo.
func modinfo(section []byte, key string) string {
	for field := range bytes.SplitSeq(section, []byte{0}) {
		if value, ok := strings.CutPrefix(string(field), key+"="); ok {
			return value
		}
	}
	return ""
}

// blocked returns the line of modprobe's configuration that prevents the kernel from loading a module by itself, and the file
// of the line.
func (r files) blocked(module string) string {
	var files []string
	for _, dir := range []string{"etc", "run", "usr/local/lib", "usr/lib", "lib"} {
		found, _ := filepath.Glob(r.Path(dir, "modprobe.d", "*.conf"))
		files = append(files, found...)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			if len(f) < 2 || f[1] != module && f[1] != "net-pf-43" {
				continue
			}
			never := len(f) > 2 && slices.Contains([]string{"false", "true"}, filepath.Base(f[2]))
			if f[0] == "blacklist" || f[0] == "install" && never || f[0] == "alias" && f[len(f)-1] == "off" {
				return "'" + strings.TrimSpace(line) + "' in " + file
			}
		}
	}
	return ""
}
