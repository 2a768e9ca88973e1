#!/usr/bin/env python3
"""Two stock clients in Go against a real server: grpc_health_probe, and grpcurl, which knows nothing of
Attend but what server reflection tells it. run.sh runs this.

    go_clients_test.py BIN_DIR GO_BIN_DIR         the second holds grpc-health-probe and grpcurl
"""
import base64
import json
import pathlib
import subprocess
import sys

import numpy as np

from server import ITEMS, expected, running, serving_exact_model

OIP = "inference.GRPCInferenceService"
GRPC_EXIT = 64  # grpcurl exits with this and the status code


def probe(binary, address, *flags):
    run = subprocess.run([binary, "-addr", address, *flags], capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


def health_probe(binary, address):
    for service in ("", "attend.v1.Attention", OIP):
        code, said = probe(binary, address, "-service", service)
        assert code == 0 and "SERVING" in said, said
    code, said = probe(binary, address, "-service", "absent")
    assert code == 3 and "NotFound" in said, (code, said)
    print("ok grpc_health_probe: the server, each service, one that is not there")


class Reflection:
    def __init__(self, binary, address):
        self._command = [binary, "-plaintext"]
        self._address = address

    def say(self, *words):
        return subprocess.run([*self._command, self._address, *words], check=True, capture_output=True,
                              text=True).stdout

    def call(self, method, *messages, code=0):
        """The answers, or with a code the error's text."""
        run = subprocess.run([*self._command, "-d", "\n".join(map(json.dumps, messages)), self._address, method],
                             capture_output=True, text=True)
        assert run.returncode == (GRPC_EXIT + code if code else 0), (run.returncode, run.stderr)
        if code:
            return run.stderr
        answers, rest = [], run.stdout.strip()
        while rest:
            answer, end = json.JSONDecoder().raw_decode(rest)
            answers.append(answer)
            rest = rest[end:].strip()
        return answers

    def watch(self):
        return subprocess.Popen([*self._command, self._address, "grpc.health.v1.Health/Watch"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def request(items, **more):
    return {"model_name": "exact", "inputs": [{"name": "items", "datatype": "FP32", "shape": items.shape,
                                              "contents": {"fp32_contents": items.flatten().tolist()}}], **more}


def values_of(answer):
    output, = answer["outputs"]
    raw, = answer["raw_output_contents"]
    return np.frombuffer(base64.b64decode(raw), "<f4").reshape([int(n) for n in output["shape"]])


def reflection(client):
    assert set(client.say("list").split()) >= {"attend.v1.Attention", "grpc.health.v1.Health", OIP}
    methods = {line.split(".")[-1] for line in client.say("list", OIP).split()}
    assert methods == {"ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer",
                       "ModelStreamInfer", "ModelConfig", "ModelStatistics", "RepositoryIndex",
                       "RepositoryModelLoad", "RepositoryModelUnload"}, methods
    assert "raw_input_contents = 7" in client.say("describe", "inference.ModelInferRequest")
    print("ok grpcurl: list, describe")

    named = {"name": "exact"}
    assert client.call(f"{OIP}/ServerLive") == [{"live": True}]
    assert client.call(f"{OIP}/ServerReady") == [{"ready": True}]
    assert client.call(f"{OIP}/ModelReady", named) == [{"ready": True}]
    metadata, = client.call(f"{OIP}/ServerMetadata")
    assert metadata["name"] == "attend" and "statistics" in metadata["extensions"]
    model, = client.call(f"{OIP}/ModelMetadata", named)
    assert model["inputs"][0] == {"name": "items", "datatype": "FP32", "shape": ["-1", "3"]}
    config, = client.call(f"{OIP}/ModelConfig", named)
    assert "max_batch_size" not in config["config"]  # 0
    index, = client.call(f"{OIP}/RepositoryIndex")
    assert index == {"models": [{"name": "exact", "version": "1", "state": "READY"}]}
    for method in ("RepositoryModelLoad", "RepositoryModelUnload"):
        assert "--allow-model-control" in client.call(f"{OIP}/{method}", {"model_name": "exact"}, code=7)
    print("ok grpcurl: the calls about servers and models")

    answer, = client.call(f"{OIP}/ModelInfer", request(ITEMS, id="one"))
    np.testing.assert_array_equal(values_of(answer), expected(ITEMS)[2])
    assert answer["id"] == "one"
    assert "items" in client.call(f"{OIP}/ModelInfer", request(ITEMS[:, :2]), code=3)
    answers = client.call(f"{OIP}/ModelStreamInfer", request(ITEMS[:2], id="two"), request(ITEMS[:, :2], id="bad"),
                          request(ITEMS[:3], id="three"))
    by_id = {answer["infer_response"]["id"]: answer for answer in answers}
    assert "items" in by_id["bad"]["error_message"]
    for name, n in (("two", 2), ("three", 3)):
        np.testing.assert_array_equal(values_of(by_id[name]["infer_response"]), expected(ITEMS[:n])[2])
    statistics, = client.call(f"{OIP}/ModelStatistics", named)
    stats = statistics["model_stats"][0]
    assert stats["inference_count"] == "3" and stats["inference_stats"]["fail"]["count"] == "2", stats
    print("ok grpcurl: ModelInfer, ModelStreamInfer, ModelStatistics")

    answer, = client.call("attend.v1.Attention/Attend",
                          {"model": "exact", "items": {"shape": ITEMS.shape, "values": ITEMS.flatten().tolist()}})
    got = np.frombuffer(base64.b64decode(answer["values"]["data"]), "<f4")
    np.testing.assert_array_equal(got, expected(ITEMS)[2].flatten())
    print("ok grpcurl: attend.v1")


def watched_drain(binaries, prober, curl):
    """Check and Watch say NOT_SERVING while the server drains and still takes calls."""
    with running([pathlib.Path(binaries, "attend-server")], drain_delay="2s") as address:
        watch = Reflection(curl, address).watch()
        first = ""
        while '"SERVING"' not in first:
            line = watch.stdout.readline()
            assert line, "Watch ended with: " + first
            first += line
    rest = watch.communicate(timeout=60)[0]
    assert '"NOT_SERVING"' in rest, rest
    print("ok Watch: SERVING, then NOT_SERVING when the server drains")
    code, said = probe(prober, address)
    assert code == 2, (code, said)
    print("ok grpc_health_probe: nobody there")


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: go_clients_test.py BIN_DIR GO_BIN_DIR")
    prober, curl = (str(pathlib.Path(sys.argv[2], name)) for name in ("grpc-health-probe", "grpcurl"))
    with serving_exact_model(sys.argv[1]) as (address, _):
        health_probe(prober, address)
        reflection(Reflection(curl, address))
    watched_drain(sys.argv[1], prober, curl)


main()
