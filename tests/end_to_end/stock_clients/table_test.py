#!/usr/bin/env python3
"""Holds docs/protocols.md against the protocol's file and the tests: each call, each field of ModelInfer
and each element of ModelConfig and ModelStatistics is named, and each test that a row names is there.

    table_test.py SOURCE_DIR
"""
import pathlib
import re
import sys

MESSAGES = ["ModelInferRequest", "ModelInferResponse", "InferInputTensor", "InferRequestedOutputTensor",
            "InferOutputTensor", "ModelStreamInferResponse", "ModelMetadataResponse", "ModelConfig",
            "ServerMetadataResponse", "ModelStatistics", "InferStatistics", "RepositoryIndexRequest"]


def body_of(proto, message):
    """The message's own text, its inner messages left out."""
    text = proto[re.search(rf"message {message} {{", proto).end():]
    body, depth = "", 1
    for character in text:
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return body
        body += character if depth == 1 else ""
    raise ValueError(message)


def main():
    source = pathlib.Path(sys.argv[1])
    page = (source / "docs" / "protocols.md").read_text()
    proto = (source / "proto" / "kserve" / "grpc_service.proto").read_text()
    missing = [f"the call {name}" for name in re.findall(r"rpc (\w+)\(", proto)
               if not re.search(rf"\b{name}\b", page)]
    for message in MESSAGES:
        fields = re.findall(r"(\w+) = \d+;", body_of(proto, message))
        assert fields, message
        missing += [f"{message}.{field}" for field in fields if not re.search(rf"\b{field}\b", page)]

    tests = {path.name: path.read_text() for path in (source / "tests").rglob("*_test.*")}
    named = 0
    for row in re.findall(r"^\|.*\|([^|]*)\|$", page, re.MULTILINE):
        if set(row) <= set(" -") or row.strip() == "test":
            continue
        names = [name.strip(" `") for name in row.split(",")]
        assert all(names), f"a row without a test: {row}"
        named += len(names)
        missing += [f"the test {name}" for name in names
                    if name not in tests and f"TEST_F(OipTest, {name})" not in tests["oip_test.cc"]]
    assert named > 40, "the tables were not read"
    if missing:
        sys.exit("docs/protocols.md: not there: " + ", ".join(missing))
    print(f"{named} tests are named and there")


main()
