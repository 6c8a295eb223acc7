# SPDX-License-Identifier: Apache-2.0

# The version: a release tag, or that of internal/version.
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' 2>/dev/null | sed 's/^v//')
PREFIX  ?= /usr/local
DESTDIR ?=
LIBDIR   ?= $(PREFIX)/lib
LIB32DIR ?= $(PREFIX)/lib32

# The program smckit is all commands but smclab: under their names, by links to it. COMMANDS="smcss smcr" builds these as programs of
# their own.
LINKS    := $(filter-out smckit smclab,$(notdir $(wildcard cmd/*)))
COMMANDS ?= smckit smclab
LDFLAGS  := -s -w $(if $(VERSION),-X github.com/smckit/smckit/internal/version.Version=$(VERSION))
GOTOOL   := go tool -modfile=tools/go.mod
# Static binaries, so that they run in any container.
export CGO_ENABLED := 0
# The date of manual pages and packages is that of the sources, so that two builds are identical.
ifndef SOURCE_DATE_EPOCH
export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct 2>/dev/null || stat -c %Y Makefile)
endif

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z0-9_-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

.PHONY: deps
deps: # install the Debian packages that the lab needs, and print them
	@tests/deps.sh

# The architecture to build for, as Go names it. What is built for another one than this machine's has a directory of its own.
GOARCH ?= $(shell go env GOARCH)
FOREIGN = $(filter-out $(shell go env GOHOSTARCH),$(GOARCH))
BIN    ?= bin$(addprefix /,$(FOREIGN))

# On amd64, smc_run, and smckit with it, has an entry point of its own that sees which signals are ignored: internal/sigstart.
RUNFLAGS  = $(if $(filter linux-amd64,$(shell go env GOOS)-$(GOARCH)),-E _smckit_rt0)

.PHONY: build
build: ## build the commands and smc_run's library into bin/ (GOARCH=arm64)
	@mkdir -p '$(BIN)'
	@for c in $(COMMANDS); do [ ! -h '$(BIN)'/$$c ] || rm '$(BIN)'/$$c; done
	go build -buildvcs=false -trimpath -ldflags '$(LDFLAGS)' -ldflags './cmd/smc_run=$(LDFLAGS) $(RUNFLAGS)' \
		-ldflags './cmd/smckit=$(LDFLAGS) $(RUNFLAGS)' -o '$(BIN)/' $(addprefix ./cmd/,$(COMMANDS))
	@$(if $(filter smckit,$(COMMANDS)),for c in $(LINKS); do ln -sf smckit '$(BIN)'/$$c || exit; done)
	@preload/build.sh '$(BIN)' $(FOREIGN)

# internal/lab has the list of kernels. The name of the debug kernel is that of the newest with -debug behind it.
DEBUG  = $(shell go run ./cmd/smclab kernels --names | tail -n 1)
NEWEST = $(DEBUG:-debug=)

# The lab builds the modules for each kernel in a directory of its own. If that needs root, it says so.
.PHONY: modules
modules: deps ## build the AF_SMC modules for the lab's kernels (SERIES="6.1 6.12")
	go run ./cmd/smclab modules $(addprefix --kernel ,$(SERIES))

# The two newest kernels have a driver of ISM for s390x that we compile against. Full runs compile for both.
CROSS = $(if $(SMCKIT_FULL),$(shell go run ./cmd/smclab kernels --names | tail -n 3 | head -n 2),$(NEWEST))

.PHONY: modules-s390x
modules-s390x: deps ## cross-compile the modules, with the client of the ISM driver (SERIES="6.1 6.12")
	go run ./cmd/smclab modules --arch s390x $(addprefix --kernel ,$(or $(SERIES),$(CROSS)))

.PHONY: modules-arm64 modules-arm64-16k
modules-arm64 modules-arm64-16k: modules-%: deps ## cross-compile the modules for arm64 (SERIES="6.1 6.12")
	go run ./cmd/smclab modules --arch $* $(addprefix --kernel ,$(or $(SERIES),$(CROSS)))

.PHONY: demo
demo: SERIES = $(NEWEST)
demo: deps build $(if $(filter stock,$(MODULE)),,modules) ## show two guests that use SMC-R over soft-RoCE and SMC-D through shared memory, and our commands (MODULE=stock)
	go run ./tests/demo

.PHONY: unit
unit: ## run the tests that need neither root nor QEMU
	go vet ./...
	go test $(NOVET) $(or $(UNIT),./...)

# Two packages run at a time, each with half of the processors: guests on the same processor would delay each other's RDMA
# timers. The longest packages are first, in the order of their length: one that begins late runs alone at the end. go test runs a
# package once, however often it is named.
LONGEST = $(if $(SMCKIT_FULL),./tests/sysfuzz ./tests/smcr ./internal/lab,./tests/smcr ./tests/badpeer ./tests/onehost ./tests/programs \
	./tests/conformance ./tests/control ./tests/check ./tests/run ./internal/lab)

.PHONY: test
# The tests of internal/lab boot guests: they run with those of tests/.
# go vet has seen all packages when go test would do so once more, in competition with guests.
test: NOVET = $(if $(SMCKIT_FULL),,-vet=off)
test: UNIT = $(shell go list ./cmd/... ./internal/... ./pkg/... | grep -v "/internal/lab$$")
test: deps build modules modules-s390x unit ## run the unit tests, then the lab tests on the lab's kernels
	SMCKIT_LAB=1 SMCKIT_PLACES=2 go test $(NOVET) -count=1 -p 2 -timeout $(if $(SMCKIT_FULL),600m,40m) $(LONGEST) ./tests/...

.PHONY: test-arch
test-arch: deps build modules ## test our modules on s390x and arm64, with all of Debian's kernels for them
	for arch in s390x arm64 arm64-16k; do go run ./cmd/smclab modules --arch $$arch || exit; done
	SMCKIT_LAB=1 SMCKIT_ARCH=1 go test -count=1 -timeout 120m ./tests/arch

# The checkers make tests ten times slower. Tests that always run on a certain kernel are left out.
.PHONY: test-debug test-debug-full
test-debug: deps build ## test our modules on a kernel with KASAN, lockdep and kmemleak, which is built first
	go run ./cmd/smclab modules --kernel $(DEBUG)
	SMCKIT_LAB=1 SMCKIT_KERNELS=$(DEBUG) SMCKIT_SLOW=$(or $(SMCKIT_SLOW),12) go test -count=1 -p 1 -timeout $(or $(TIMEOUT),90m) \
		-run '$(or $(RUN),^Test(Kernels|OurModules|Leaks|Control|Ours)$$)' $(or $(PACKAGES),./internal/lab ./tests/control ./tests/conformance)

# The tests of sockets in every state, and of peers that break the rules. This takes hours.
test-debug-full: PACKAGES = ./tests/onehost ./tests/badpeer
test-debug-full: RUN = ^Test(SMCD|Fallback|Hardware|PeersOverTCP|PeersOverSMCR)$$
test-debug-full: TIMEOUT = 240m
test-debug-full: test-debug ## test sockets in every state and bad peers on that kernel

.PHONY: test-stock
test-stock: deps build ## compare the distribution's module with docs/findings-stock.md
	SMCKIT_LAB=1 SMCKIT_STOCK=1 go test -count=1 -v -timeout 60m -run '^TestStock$$' ./tests/conformance

.PHONY: check-kernel
check-kernel: deps ## check the modules' sources with sparse
	go run ./cmd/smclab modules --check $(addprefix --kernel ,$(SERIES))

.PHONY: check-kernel-s390x check-kernel-arm64 check-kernel-arm64-16k
check-kernel-s390x check-kernel-arm64 check-kernel-arm64-16k: check-kernel-%: deps ## the same for other architectures, where byte order and page size differ
	go run ./cmd/smclab modules --check --arch $* $(addprefix --kernel ,$(or $(SERIES),$(CROSS)))

.PHONY: test-full
test-full: export SMCKIT_FULL := 1
test-full: test lint check-kernel ## run all tests on all kernels, the linters, the race detector and the fuzzers
	CGO_ENABLED=1 go test -race ./pkg/... ./internal/...
	tests/fuzz.sh $(or $(FUZZTIME),60s)

.PHONY: fuzz
fuzz: ## run every fuzz target for a while (FUZZTIME=60s)
	tests/fuzz.sh $(or $(FUZZTIME),60s)

.PHONY: generate
generate: ## write tables of C and Go and parts of documents from specs/
	cd tools && go run ./specgen ..

.PHONY: lint
lint: man ## check formatting and generated files; run go vet, staticcheck, mandoc
	cd tools && go run ./specgen -check ..
	@out=$$($(GOTOOL) gofumpt -l .); test -z "$$out" || { echo "not formatted (make fmt):"; echo "$$out"; exit 1; }
	go vet ./...
	$(GOTOOL) staticcheck ./...
	@tests/man.sh build/man/man*/*
	cd tools && go vet ./... && go tool staticcheck ./...

.PHONY: fmt
fmt: ## format the Go files
	$(GOTOOL) gofumpt -w .

.PHONY: man
man: ## make the manual pages, in build/man
	@rm -rf build/man
	GOARCH= go run -buildvcs=false -trimpath -ldflags '$(LDFLAGS)' ./internal/gendocs man man build/man

.PHONY: completions
completions: ## make completions for bash, zsh and fish, in build/completions
	@rm -rf build/completions
	GOARCH= go run -buildvcs=false -trimpath -ldflags '$(LDFLAGS)' ./internal/gendocs completions build/completions

# BENCH selects benchmarks, BENCHFLAGS are for those in guests: make bench BENCH=SMCD BENCHFLAGS=-allow-fallback
.PHONY: bench
bench: deps build modules ## measure start-up, memory and speed, as ratios within one run (BENCH=SMCD)
	$(if $(BENCH),,go test -run '^$$' -bench . -benchmem ./pkg/... ./internal/...)
	SMCKIT_LAB=1 go test -run '^$$' -bench '$(or $(BENCH),.)' -benchtime 5x -timeout 40m ./tests/bench $(BENCHFLAGS)

.PHONY: install
install: build man completions ## install commands, manual pages and completions below $(DESTDIR)$(PREFIX)
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 '$(BIN)'/smckit $(DESTDIR)$(PREFIX)/bin/
	for c in $(LINKS); do ln -sf smckit $(DESTDIR)$(PREFIX)/bin/$$c || exit; done
	preload/install.sh '$(BIN)' $(DESTDIR)$(LIBDIR) $(DESTDIR)$(LIB32DIR)
	man/install.sh build $(DESTDIR)$(PREFIX)
	packaging/install.sh '$(DESTDIR)' '$(PREFIX)'

.PHONY: modules_install
modules_install: ## build the AF_SMC modules for the running kernel (KDIR=...) and install them
	$(MAKE) -C kernel install

.PHONY: modules_uninstall
modules_uninstall: ## remove what modules_install installed: modprobe finds the distribution's module again
	$(MAKE) -C kernel uninstall

# The same as modules_install, and for every later kernel.
DKMS_VERSION ?= $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' kernel/dkms.conf)
DKMS_SOURCE  = $(DESTDIR)/usr/src/smckit-$(DKMS_VERSION)

.PHONY: dkms-install
dkms-install: ## install the modules' sources for DKMS, which builds them for this kernel (KERNEL=release) and later ones
	rm -rf '$(DKMS_SOURCE)'
	cd kernel && find . -type f \( -name '*.[ch]' -o -name Kbuild -o -name Makefile -o -name dkms.conf \) ! -name '*.mod.c' \
		-exec install -D -m 644 '{}' '$(DKMS_SOURCE)/{}' ';'
	sed -i 's/^PACKAGE_VERSION=.*/PACKAGE_VERSION="$(DKMS_VERSION)"/' '$(DKMS_SOURCE)/dkms.conf'
	$(if $(DESTDIR),,dkms install -m smckit -v $(DKMS_VERSION) $(addprefix -k ,$(KERNEL)))

.PHONY: dkms-uninstall
dkms-uninstall: ## remove what dkms-install installed, and what DKMS built for later kernels
	$(if $(DESTDIR),,dkms remove -m smckit -v $(DKMS_VERSION) --all)
	rm -rf '$(DKMS_SOURCE)'

.PHONY: uninstall
uninstall: man completions ## remove what install installed
	for c in smckit $(LINKS); do rm -f $(DESTDIR)$(PREFIX)/bin/$$c; done
	for d in $(LIBDIR) $(LIB32DIR); do rm -f $(DESTDIR)$$d/libsmc-preload.so $(DESTDIR)$$d/libsmc-preload.so.1; done
	man/install.sh --remove build $(DESTDIR)$(PREFIX)
	packaging/install.sh '$(DESTDIR)' '$(PREFIX)' remove

.PHONY: clean
clean: ## remove everything that was built here (the kernel cache stays)
	rm -rf bin build dist

# Packages cannot have hyphens in a version, because these separate version and release: 0.2.0-rc1-3-g1234567 is
# 0.2.0~rc1+3.g1234567.
PACKAGE_VERSION = $(shell echo '$(or $(VERSION),$(DKMS_VERSION))' | sed -E 's/-([0-9]+)-g/+\1.g/; s/-/~/g')
DIST ?= dist
# The architectures that packages-all and release-all build for.
ARCHS ?= amd64 arm64 s390x

.PHONY: packages packages-all
packages packages-all: man completions
packages: ## build packages, .deb and .rpm, in dist/ (GOARCH=arm64)
	packaging/build.sh '$(PACKAGE_VERSION)' '$(DIST)' $(GOARCH)
packages-all: ## build packages for all architectures (ARCHS="amd64 arm64 s390x")
	packaging/build.sh '$(PACKAGE_VERSION)' '$(DIST)' $(ARCHS)

.PHONY: package-version
package-version: # print the version of packages
	@echo '$(PACKAGE_VERSION)'

.PHONY: release release-all
release: packages ## build a release in dist/: packages, sources, the commands, a bill of materials, checksums
	packaging/release.sh '$(PACKAGE_VERSION)' '$(DIST)' $(GOARCH)
release-all: packages-all ## build a release for all architectures
	packaging/release.sh '$(PACKAGE_VERSION)' '$(DIST)' $(ARCHS)

.PHONY: reproducible
reproducible: ## build the release of the last commit twice, and compare
	packaging/reproducible.sh
