# Attend: `make help` lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash
BUILD ?= build
BUILD_TYPE ?= Release
JOBS ?= $(shell nproc)
CONFIGURE = cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=$(BUILD_TYPE)

.PHONY: help setup build demo test clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 20

setup:  ## install what the build and the tests need (root only if something is missing)
	@deploy/setup.sh build test

build: setup  ## build build/bin/attend-server, attend and attend-bench
	@$(CONFIGURE) -DATTEND_TESTS=OFF >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target attend-server attend

demo: build  ## build, start the server with the demo model, ask it one question, print the answer
	@deploy/demo.sh $(BUILD)/bin

test: setup  ## set up, build and run every test
	@$(CONFIGURE) -DATTEND_TESTS=ON >/dev/null
	@cmake --build $(BUILD) -j $(JOBS)
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

clean:  ## remove the build folder
	@rm -rf $(BUILD)
