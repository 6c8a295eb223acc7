// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ansible

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/need"
)

// python is the interpreter that Debian's Ansible and pytest belong to, whichever one else is in the PATH.
const python = "/usr/bin/python3"

// source is the collection in this repository.
const source = "../../ansible"

// tree is a copy of the collection at a place of the name that Ansible finds collections by.
type tree struct {
	root string // the directory with ansible_collections in it
	dir  string // the collection
	home string // a home directory for the tools
}

// install makes a tree.
func install(t *testing.T) *tree {
	t.Helper()
	root := t.TempDir()
	collections := filepath.Join(root, "ansible_collections")
	c := &tree{root: root, dir: filepath.Join(collections, "smckit/smc"), home: t.TempDir()}
	if err := os.CopyFS(c.dir, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.home, "ansible.cfg"), "")
	// Python would prefer a package of this name elsewhere to a mere directory.
	for _, dir := range []string{collections, filepath.Dir(c.dir)} {
		write(t, filepath.Join(dir, "__init__.py"), "")
	}
	return c
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// needPython skips a test on a machine whose Python lacks a module.
func needPython(t *testing.T, pkg, module string) {
	t.Helper()
	if err := exec.Command(python, "-c", "import "+module).Run(); err != nil {
		t.Skipf("%s has no module %s: install the package %s", python, module, pkg)
	}
}

// environment is the environment of tools, without this machine's configuration.
func (c *tree) environment(more ...string) []string {
	return append([]string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + c.home, "ANSIBLE_HOME=" + c.home, "TMPDIR=" + os.TempDir(), "LC_ALL=C.UTF-8",
		"ANSIBLE_COLLECTIONS_PATH=" + c.root, "ANSIBLE_NOCOLOR=1", "ANSIBLE_CONFIG=" + filepath.Join(c.home, "ansible.cfg"),
		"PYTHONPATH=" + c.root, "PYTHONDONTWRITEBYTECODE=1",
	}, more...)
}

// run runs a tool in a directory and returns its exit status and its output.
func (c *tree) run(t *testing.T, dir string, env []string, argv ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, c.environment(env...)
	out, err := cmd.CombinedOutput()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// must runs a tool, which must succeed.
func (c *tree) must(t *testing.T, dir string, env []string, argv ...string) string {
	t.Helper()
	status, out := c.run(t, dir, env, argv...)
	if status != 0 {
		t.Fatalf("%s: exit status %d\n%s", strings.Join(argv, " "), status, out)
	}
	return out
}

// modules returns the names of the modules.
func modules(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(source + "/plugins/modules/*.py")
	if err != nil || len(files) < 3 {
		t.Fatalf("modules: %q, error %v", files, err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".py")
	}
	return files
}

// TestModules runs the modules' unit tests, and checks every command line that the modules make with our commands.
func TestModules(t *testing.T) {
	needPython(t, "ansible-core", "ansible")
	needPython(t, "python3-pytest", "pytest")
	c := install(t)
	record := filepath.Join(c.home, "lines")
	t.Log(c.must(t, c.dir, []string{"SMCKIT_COMMAND_LINES=" + record},
		python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit"))
	t.Run("lines", func(t *testing.T) { understood(t, record) })
}

// TestDocuments compares the JSON documents with which the modules are tested with those of the commands' tests.
func TestDocuments(t *testing.T) {
	const ours = source + "/tests/unit/plugins/modules/documents"
	golden := map[string]string{
		"smc_chk_fallback": "smcchk/testdata/fallback-json.txt",
		"smc_chk_host":     "smcchk/testdata/host-json.txt",
		"smc_chk_live":     "smcchk/testdata/live-json.txt",
		"smckit":           "smckit/testdata/busy-json.txt",
		"smckit_bare":      "smckit/testdata/bare-json.txt",
		"smckit_groups":    "smcrd/testdata/groups_--json.golden",
		"smckit_sockets":   "smcss/testdata/golden/json",
		"smc_rnics":        "smcrnics/testdata/x86-json.golden",
		"smcd_linkgroup":   "smcrd/testdata/smcd_linkgroup_--json.golden",
		"smcd_seid":        "smcrd/testdata/smcd_seid_--json.golden",
		"smcd_stats":       "smcrd/testdata/smcd_stats_--json.golden",
		"smcr_info":        "smcrd/testdata/smcr_info_--json.golden",
		"smcr_linkgroup":   "smcrd/testdata/smcr_linkgroup_--json.golden",
		"smcr_stats":       "smcrd/testdata/smcr_stats_--json.golden",
		"smcr_ueid":        "smcrd/testdata/smcr_ueid_--json.golden",
	}
	documents, err := os.ReadDir(ours)
	if err != nil {
		t.Fatal(err)
	}
	if len(documents) != len(golden) {
		t.Errorf("%d documents, %d expected", len(documents), len(golden))
	}
	for name, file := range golden {
		want, err := os.ReadFile(filepath.Join("../../internal/tool", file))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(ours, name+".json"))
		if err != nil {
			t.Error(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s.json is not what the command prints: copy internal/tool/%s", name, file)
		}
	}
}

// TestDocumentation shows every module and the roles with ansible-doc.
func TestDocumentation(t *testing.T) {
	need.Programs(t, "ansible-doc")
	c := install(t)
	for _, m := range modules(t) {
		out := c.must(t, c.home, nil, "ansible-doc", "-t", "module", "smckit.smc."+m)
		if !strings.Contains(out, "EXAMPLES:") || !strings.Contains(out, "RETURN VALUES:") {
			t.Errorf("%s has no examples or no return values:\n%s", m, out)
		}
	}
	for role, option := range map[string]string{"smc": "smc_pnet", "ism": "ism_fabrics"} {
		if out := c.must(t, c.home, nil, "ansible-doc", "-t", "role", "smckit.smc."+role); !strings.Contains(out, option) {
			t.Errorf("the role %s has no options:\n%s", role, out)
		}
	}
}

// TestPlaybooks checks the syntax of the example playbooks, each with its inventory.
func TestPlaybooks(t *testing.T) {
	need.Programs(t, "ansible-playbook")
	c := install(t)
	playbooks, err := filepath.Glob(filepath.Join(c.dir, "playbooks/*.yml"))
	if err != nil || len(playbooks) < 2 {
		t.Fatalf("playbooks: %q, error %v", playbooks, err)
	}
	for _, p := range playbooks {
		name := strings.TrimSuffix(filepath.Base(p), ".yml")
		c.must(t, filepath.Dir(p), nil, "ansible-playbook", "-i", "inventory/"+name+".yml", "--syntax-check", "smckit.smc."+name)
		out := c.must(t, filepath.Dir(p), nil, "ansible-playbook", "-i", "inventory/"+name+".yml", "--list-hosts", "--list-tasks", "smckit.smc."+name)
		if !strings.Contains(out, "example.org") || !strings.Contains(out, "Apply the files again if the kernel lost them") {
			t.Errorf("%s: no host of the inventory, or no role:\n%s", name, out)
		}
	}
}

// offline are the tests of ansible-test that need nothing but Ansible.
var offline = []string{
	"action-plugin-docs", "compile", "empty-init", "future-import-boilerplate", "line-endings", "metaclass-boilerplate", "no-assert",
	"no-basestring", "no-dict-iteritems", "no-dict-iterkeys", "no-dict-itervalues", "no-get-exception", "no-illegal-filenames",
	"no-main-display", "no-smart-quotes", "no-unicode-literals", "replace-urlopen", "shebang", "symlinks", "use-argspec-type-path",
	"use-compat-six",
}

// sanity is where ansible-test has its checkers. It would run these in environments that it has to download.
const sanity = "/usr/lib/python3/dist-packages/ansible_test/_util/controller/sanity/"

// TestSanity runs of ansible-test's sanity tests those that work offline.
func TestSanity(t *testing.T) {
	need.Programs(t, "ansible-test")
	c := install(t)
	t.Run("ansible-test", func(t *testing.T) {
		have := strings.Fields(c.must(t, c.dir, nil, "ansible-test", "sanity", "--list-tests"))
		argv := []string{"ansible-test", "sanity", "--color", "no", "--python", "default"}
		for _, name := range offline {
			// Each release of Ansible has different tests.
			if slices.Contains(have, name) {
				argv = append(argv, "--test", name)
			}
		}
		c.must(t, c.dir, nil, argv...)
	})
	t.Run("validate-modules", func(t *testing.T) {
		needFile(t, sanity+"validate-modules/validate.py")
		needPython(t, "python3-voluptuous", "voluptuous")
		_, out := c.run(t, c.dir, []string{"PYTHONPATH=" + sanity + "validate-modules:" + c.root},
			python, sanity+"validate-modules/validate.py", "--format", "plain", "--arg-spec",
			"--collection", "ansible_collections/smckit/smc", "plugins/modules")
		// tests/sanity makes it ignore this one, which proves that it has run.
		lines := strings.Split(strings.TrimSpace(out), "\n")
		rest := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.Contains(l, "missing-gplv3-license") })
		if len(rest) > 0 || len(lines) != len(modules(t)) {
			t.Errorf("validate-modules:\n%s", out)
		}
	})
	t.Run("pep8", func(t *testing.T) {
		needPython(t, "python3-pycodestyle", "pycodestyle")
		c.must(t, c.dir, nil, python, "-m", "pycodestyle", "--max-line-length=160", "--ignore=E402,W503,W504,E741", ".")
	})
	t.Run("yamllint", func(t *testing.T) {
		need.Programs(t, "yamllint")
		needFile(t, sanity+"yamllint/config/default.yml")
		c.must(t, c.dir, nil, "yamllint", "--strict", "-c", sanity+"yamllint/config/default.yml", ".")
	})
}

func needFile(t *testing.T, file string) {
	t.Helper()
	if _, err := os.Stat(file); err != nil {
		t.Skipf("this Ansible has it elsewhere: %v", err)
	}
}

// TestLint checks roles and playbooks with ansible-lint.
func TestLint(t *testing.T) {
	need.Programs(t, "ansible-lint")
	c := install(t)
	// In its place among collections, it would not find it.
	dir := filepath.Join(c.home, "smc")
	if err := os.CopyFS(dir, os.DirFS(c.dir)); err != nil {
		t.Fatal(err)
	}
	c.must(t, dir, nil, "ansible-lint", "--offline", "--nocolor", "--strict")
}

// TestBuild builds the collection as it is published, and installs the result.
func TestBuild(t *testing.T) {
	need.Programs(t, "ansible-galaxy")
	c := install(t)
	c.must(t, c.dir, nil, "ansible-galaxy", "collection", "build", "--output-path", c.home)
	packed, err := filepath.Glob(filepath.Join(c.home, "smckit-smc-*.tar.gz"))
	if err != nil || len(packed) != 1 {
		t.Fatalf("packed: %q, error %v", packed, err)
	}
	out, err := exec.Command("tar", "-tzf", packed[0]).CombinedOutput()
	if err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	for _, file := range []string{
		"plugins/modules/smc_pnet.py", "roles/smc/tasks/main.yml", "roles/ism/tasks/main.yml", "playbooks/roce_cluster.yml", "README.md",
	} {
		if !slices.Contains(strings.Split(string(out), "\n"), file) {
			t.Errorf("%s is not in the package", file)
		}
	}
	c.must(t, c.home, nil, "ansible-galaxy", "collection", "install", "--offline", "--collections-path", filepath.Join(c.home, "installed"), packed[0])
	doc := []string{"ANSIBLE_COLLECTIONS_PATH=" + filepath.Join(c.home, "installed")}
	if out := c.must(t, c.home, doc, "ansible-doc", "-t", "module", "smckit.smc.smc_pnet"); !strings.Contains(out, "EXAMPLES:") {
		t.Errorf("installed: %s", out)
	}
}
