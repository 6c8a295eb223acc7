# SPDX-License-Identifier: Apache-2.0

# The version: a release tag, or what internal/version says.
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' 2>/dev/null | sed 's/^v//')
PREFIX  ?= /usr/local
DESTDIR ?=

COMMANDS := $(notdir $(wildcard cmd/*))
LDFLAGS  := -s -w $(if $(VERSION),-X github.com/smckit/smckit/internal/version.Version=$(VERSION))
GOTOOL   := go tool -modfile=tools/go.mod
# Static binaries, so that they run in any container.
export CGO_ENABLED := 0

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

.PHONY: deps
deps: # install what the lab needs from Debian's packages, and say so
	@tests/deps.sh

.PHONY: build
build: ## build the commands into bin/
	@mkdir -p bin
	go build -buildvcs=false -trimpath -ldflags '$(LDFLAGS)' -o bin/ $(addprefix ./cmd/,$(COMMANDS))

.PHONY: demo
demo: deps build ## two guests with soft-RoCE talk SMC-R while our commands watch
	go run ./tests/demo

.PHONY: unit
unit: ## the tests that need neither root nor QEMU
	go vet ./...
	go test ./...

# One package at a time: two labs on two cores starve the RDMA timers of each other.
.PHONY: test
test: deps build unit ## unit tests, then the lab tests on kernels 6.1, 6.12 and 7.2
	SMCKIT_LAB=1 go test -count=1 -p 1 -timeout 40m ./tests/...

.PHONY: test-full
test-full: test lint ## all of test, and what takes long: linters, the race detector, fuzzing
	CGO_ENABLED=1 go test -race ./pkg/... ./internal/...
	tests/fuzz.sh $(or $(FUZZTIME),60s)

.PHONY: fuzz
fuzz: ## run every fuzz target for a while (FUZZTIME=60s)
	tests/fuzz.sh $(or $(FUZZTIME),60s)

.PHONY: lint
lint: ## formatting, go vet, staticcheck
	@out=$$($(GOTOOL) gofumpt -l .); test -z "$$out" || { echo "not formatted (make fmt):"; echo "$$out"; exit 1; }
	go vet ./...
	$(GOTOOL) staticcheck ./...

.PHONY: fmt
fmt: ## format the Go files
	$(GOTOOL) gofumpt -w .

.PHONY: bench
bench: deps build ## start-up, memory and speed, as ratios within one run
	go test -run '^$$' -bench . -benchmem ./pkg/... ./internal/...
	SMCKIT_LAB=1 go test -run '^$$' -bench . -benchtime 5x -timeout 20m ./tests/bench

.PHONY: install
install: build ## install the commands below $(DESTDIR)$(PREFIX)
	install -d $(DESTDIR)$(PREFIX)/bin
	for c in $(filter-out smclab,$(COMMANDS)); do install -m 755 bin/$$c $(DESTDIR)$(PREFIX)/bin/ || exit; done

.PHONY: uninstall
uninstall: ## remove what install has put there
	for c in $(filter-out smclab,$(COMMANDS)); do rm -f $(DESTDIR)$(PREFIX)/bin/$$c; done

.PHONY: clean
clean: ## remove what was built here (the kernel cache stays)
	rm -rf bin build dist
