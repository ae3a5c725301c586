# This file has the usual commands of the project. CMake does the work. `make help` lists the
# targets.
BUILD ?= build
JOBS ?= $(shell nproc)
SECONDS ?= 600
MUTANTS ?= 100
SEED ?= 1
SECONDS_AT_MOST ?= 0
CMAKE_FLAGS ?=
PREFIX ?= /usr/local

.DEFAULT_GOAL := all
.PHONY: all help deps configure test run check fuzz mutate docs format wheel deb dist install clean

## make: install what the build needs, then build the libraries and build/bsmm
all: configure
	@printf '\n== Building %s, %s jobs at a time\n' $(BUILD) $(JOBS)
	@cmake --build $(BUILD) -j $(JOBS)

## make test: build, run every test, sum up by area; the last line is N passed, N failed
test: all
	@tools/run-tests.sh $(BUILD) $(JOBS)

## make run [OFFLINE=1]: answer a prompt with a language model, then measure it in each format
# It builds only the programs that it runs, since all tests take several times as long to build.
run: configure
	@printf '\n== Building the programs of make run in %s\n' $(BUILD)
	@cmake --build $(BUILD) -j $(JOBS) --target bsmm_cli bsmm_llm bsmm_llm_table bsmm_main_job
	@tools/run-main-job $(BUILD)

## make check: everything that a change must pass (.ci/run)
check:
	@.ci/run

## make wheel: the Python wheel in build-wheel/dist, with the GPU images of the build
wheel: all
	@tools/make-wheel.sh $(BUILD)

## make deb: Debian packages in build-deb/deb, with the GPU images of the build
deb: all
	@tools/make-deb.sh $(BUILD)
	@tools/check-deb.sh

## make dist: a source archive in build-dist, with the GPU images of the build
dist: all
	@tools/make-dist.sh $(BUILD)

## make fuzz [SECONDS=600]: run every fuzzer that long, two at a time
fuzz:
	@tools/install-deps.sh build fuzz
	@tools/run-fuzzers.sh $(SECONDS)

## make mutate [MUTANTS=100] [SEED=1] [SECONDS_AT_MOST=0]: change single lines and see which changes no test finds
mutate:
	@tools/install-deps.sh build test
	@tools/mutate.py --mutants $(MUTANTS) --seed $(SEED) --seconds $(SECONDS_AT_MOST) --jobs $(JOBS)

## make docs: the API reference in build-docs/html, and the generated parts of documents
docs: all
	@tools/install-deps.sh docs
	@doxygen Doxyfile
	@tools/update-docs.py $(BUILD)/bsmm README.md docs/*.md docs/notes/*.md

## make format: rewrite every source file after .clang-format
format:
	@tools/install-deps.sh check
	@git ls-files '*.c' '*.h' '*.cpp' '*.cu' | xargs clang-format-14 -i

## make install [PREFIX=/usr/local]: libraries, header, command, manual page
install: all
	@cmake --install $(BUILD) --prefix $(PREFIX)

## make clean: remove what was built
clean:
	rm -rf build build-*

deps:
	@printf '== Looking for packages\n'
	@tools/install-deps.sh build test

configure: deps
	@printf '\n== Configuring %s\n' $(BUILD)
	@cmake --preset release -B $(BUILD) $(CMAKE_FLAGS)

help:
	@sed -n 's/^## //p' Makefile
