#!/usr/bin/env python3
"""Holds every #include of the product against the rooms table: who may include what.

usage: rooms_test.py SOURCE_DIR      exits 1 and names each line that breaks the table
"""
import pathlib
import re
import sys

# What an include belongs to, by how it begins; the first match decides.
OWNERS = [
    (r"attend/v1/|google/(protobuf|rpc)/|kserve/|.*\.pb\.h$", "proto"),
    (r"core/", "core"),
    (r"server/batching/", "batching"),
    (r"server/observe/", "observe"),
    (r"server/rpc/", "rpc"),
    (r"server/", "server"),
    (r"client/", "client"),
    (r"absl/", "absl"),
    (r"(oneapi/|dnnl)", "oneDNN"),
    (r"hwy/", "Highway"),
    (r"nlohmann/", "nlohmann-json"),
    (r"(grpc/|grpcpp/|grpc\+\+/)", "gRPC"),
    (r"prometheus/", "Prometheus"),
    (r"spdlog/", "spdlog"),
    (r"CLI/", "CLI11"),
]

# Room (by path prefix, the longest match decides) -> owners it may include besides std and system.
ROOMS = {
    "core/": {"core", "absl"},
    "core/onednn_": {"core", "absl", "oneDNN"},
    "core/simd_": {"core", "absl", "Highway"},
    "server/batching/": {"core", "batching", "absl"},
    "server/observe/": {"observe", "batching", "core", "absl", "Prometheus", "spdlog"},
    "server/rpc/": {"rpc", "batching", "core", "proto", "gRPC", "absl"},
    "server/": {"server", "rpc", "observe", "batching", "core", "absl", "gRPC", "spdlog", "CLI11"},
    "client/": {"client", "proto", "gRPC", "absl"},
    "client/command/": {"client", "proto", "gRPC", "absl", "CLI11", "nlohmann-json"},
}
# The loaders read JSON.
JSON_LOADERS = {"core/attend_json.cc", "core/safetensors_header.cc", "core/strict_json.h",
                "core/strict_json.cc", "core/checkpoint_report.cc"}
# core knows no clock.
FORBIDDEN_IN_CORE = re.compile(r"(steady_clock|system_clock|high_resolution_clock)::now|clock_gettime")

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]')


def owner_of(include):
    for pattern, owner in OWNERS:
        if re.match(pattern, include):
            return owner
    return None  # the standard library or the system


def allowed_in(path):
    room = max((r for r in ROOMS if path.startswith(r)), key=len)
    return ROOMS[room] | ({"nlohmann-json"} if path in JSON_LOADERS else set())


def violations(root):
    for room in ("core", "server", "client"):
        for file in sorted((root / room).rglob("*")):
            if file.suffix not in (".h", ".cc"):
                continue
            path = file.relative_to(root).as_posix()
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                owner = match and owner_of(match.group(1))
                if owner and owner not in allowed_in(path):
                    yield f"{path}:{number}: may not include {match.group(1)} ({owner})"
                if room == "core" and FORBIDDEN_IN_CORE.search(line):
                    yield f"{path}:{number}: core knows no clock"


def self_test():
    """The table must be able to fail: a few includes that break it, and one that does not."""
    assert owner_of("grpcpp/grpcpp.h") not in allowed_in("core/model.cc")
    assert owner_of("dnnl.hpp") not in allowed_in("core/model.cc")
    assert owner_of("dnnl.hpp") in allowed_in("core/onednn_matmul.cc")
    assert owner_of("core/model.h") not in allowed_in("client/attend_client.cc")
    assert owner_of("prometheus/registry.h") not in allowed_in("server/rpc/attend_service.cc")
    assert owner_of("vector") is None


def main():
    self_test()
    root = pathlib.Path(sys.argv[1])
    found = list(violations(root))
    print("\n".join(found) or "every include keeps to the rooms table")
    return 1 if found else 0


sys.exit(main())
