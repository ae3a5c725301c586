# The front door: CMake does the work.
BUILD ?= build

.PHONY: all deps test run clean
all: deps
	cmake -S . -B $(BUILD) -G Ninja
	cmake --build $(BUILD)

deps:
	@tools/install-deps.sh

test: all
	ctest --test-dir $(BUILD) --output-on-failure

clean:
	rm -rf $(BUILD)
