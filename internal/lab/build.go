// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// buildResult is what a build has made: a directory with programs and, if there is only one, its content.
type buildResult struct {
	dir     string
	program []byte
}

// built has the results of this process by directory. Each boot needs them, and even a build that has nothing to do takes a second
// of the processor that guests run on.
var built sync.Map

// goBuild builds static programs of this repository into a directory of the cache that only this checkout uses, unless this process
// has done so. It calls finish before another process can build there.
func goBuild(ctx context.Context, a *architecture, name string, finish func(p *buildResult) error, packages ...string) (*buildResult, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "build", fmt.Sprintf("%x", sha256.Sum256([]byte(root)))[:12], name)
	if !a.native() {
		dir += "-" + a.debian
	}
	if p, ok := built.Load(dir); ok {
		return p.(*buildResult), nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, dir+".lock", func(string) {})
	if err != nil {
		return nil, err
	}
	defer unlock()
	args := []string{"build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", dir + string(filepath.Separator)}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Dir = root
	// Clear the user's flags: with -race, for example, the program would need libraries that a guest's first program does not
	// have.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS=linux", "GOARCH="+a.debian)
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("building the %s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	p := &buildResult{dir: dir}
	if err := finish(p); err != nil {
		return nil, err
	}
	built.Store(dir, p)
	return p, nil
}

// agentProgram returns the program that is process 1 in the guests.
func agentProgram(ctx context.Context, a *architecture) ([]byte, error) {
	p, err := goBuild(ctx, a, "agent", func(p *buildResult) (err error) {
		p.program, err = os.ReadFile(filepath.Join(p.dir, "guest"))
		return err
	}, "./internal/lab/guest")
	if err != nil {
		return nil, err
	}
	return p.program, nil
}

// Commands builds the commands of this repository, the library of smc_run, and the traffic generator smcflow, and returns their
// directory.
func Commands(ctx context.Context) (programs string, err error) {
	return buildCommands(ctx, architectures[0], func(p *buildResult) error { return buildLibrary(ctx, p.dir) })
}

// foreignCommands does what Commands does for another architecture, without the library of smc_run.
func foreignCommands(ctx context.Context, a *architecture) (programs string, err error) {
	return buildCommands(ctx, a, func(*buildResult) error { return nil })
}

// buildCommands builds what guests of an architecture have in their PATH, and returns its directory.
func buildCommands(ctx context.Context, a *architecture, finish func(p *buildResult) error) (programs string, err error) {
	p, err := goBuild(ctx, a, "commands", finish, commandPackages...)
	if err != nil {
		return "", err
	}
	return p.dir, nil
}

var commandPackages = []string{"./cmd/...", "./tests/smcflow", "./tests/nldump", "./tests/nlprobe", "./tests/ism/scribble"}

// buildLibrary builds the library that smc_run preloads.
func buildLibrary(ctx context.Context, dir string) error {
	root, err := repository()
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, filepath.Join(root, "preload/build.sh"), dir).CombinedOutput(); err != nil {
		return fmt.Errorf("building the library of smc_run: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// MakePackages runs `make packages` in this repository, with make variables as NAME=VALUE. DIST is the directory for the
// packages.
func MakePackages(t testing.TB, variables ...string) {
	t.Helper()
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"-C", root, "packages"}, variables...)...)
	// This process may have been started by make.
	cmd.Env = append(os.Environ(), "LC_ALL=C", "MAKEFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make packages: %v\n%s", err, out)
	}
}

// repository returns the root of the repository that this package was built from.
func repository() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	for _, dir := range []string{filepath.Dir(file), "."} {
		dir, err := filepath.Abs(dir)
		for ok && err == nil {
			if _, err := os.Stat(filepath.Join(dir, "internal/lab/guest/main.go")); err == nil {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
			dir = filepath.Dir(dir)
		}
	}
	return "", errors.New("the lab runs from a checkout of smckit only: change into one")
}
