#!/usr/bin/env python3
"""The Open Inference Protocol as the stock Triton client speaks it, against a real attend-server.

    pip install numpy 'tritonclient[grpc]'
    stock_clients_test.py BIN_DIR          the folder that holds attend-server

The model has small integer weights, no scale and sparsemax: scores are integers, the weights of a row are 1/c over its
c greatest scores and 0 elsewhere. So every expected number is exact in float32 and is compared bit by bit.
"""
import json
import os
import queue
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

D_F, D_OUT = 3, 2
W = {
    "query.weight": np.array([[1, 0, 2], [0, 1, -1]], "<f4"),
    "key.weight": np.array([[2, 1, 0], [0, -1, 1]], "<f4"),
    "value.weight": np.array([[1, 2, 4], [8, -16, 32]], "<f4"),
}
ITEMS = np.array([[1, 0, 2], [3, 1, 0], [0, 2, 1], [2, 3, 3], [1, 1, 4]], "<f4")


def write_model(folder):
    os.makedirs(folder)
    header, at = {}, 0
    for name, weight in W.items():
        header[name] = {"dtype": "F32", "shape": weight.shape, "data_offsets": [at, at + weight.nbytes]}
        at += weight.nbytes
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(w.tobytes() for w in W.values()))
    with open(os.path.join(folder, "attend.json"), "w") as file:
        json.dump({"kind": "attention", "scale": "none", "normalizer": "sparsemax"}, file)


def expected(items, allowed=None):
    """scores, weights [1, N, N] and values [N, d_out]; allowed [N, N] says which j the item i may attend to."""
    query, key, value = (items @ W[name + ".weight"].T for name in ("query", "key", "value"))
    scores = query @ key.T
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    greatest = scores == scores.max(axis=1, keepdims=True)
    count = greatest.sum(axis=1, keepdims=True)
    assert np.isin(count, (1, 2, 4)).all(), "the test's own items have a weight that float32 cannot hold"
    weights = (greatest / count).astype("<f4")
    return scores[None], weights[None], weights @ value


def inputs(**arrays):
    types = {np.dtype("<f4"): "FP32", np.dtype(bool): "BOOL", np.dtype("<i4"): "INT32"}
    result = []
    for name, array in arrays.items():
        tensor = triton.InferInput(name, list(array.shape), types[array.dtype])
        tensor.set_data_from_numpy(array)
        result.append(tensor)
    return result


def same(got, want):
    np.testing.assert_array_equal(got, want)
    assert got.dtype == np.float32, got.dtype


def refused(code, word, call):
    try:
        call()
    except InferenceServerException as error:
        assert error.status() == f"StatusCode.{code}", error
        assert word in error.message(), error
        return
    raise AssertionError(f"not refused with {code}")


def descriptions(client):
    assert client.is_server_live()
    yield "is_server_live"
    assert client.is_server_ready()
    yield "is_server_ready"
    assert client.is_model_ready("exact")
    assert not client.is_model_ready("exact", "7")
    assert not client.is_model_ready("absent")
    yield "is_model_ready"
    assert client.get_server_metadata().name == "attend"
    assert client.get_server_metadata(as_json=True)["version"]
    yield "get_server_metadata"
    metadata = client.get_model_metadata("exact")
    assert (metadata.name, list(metadata.versions)) == ("exact", ["1"])
    assert {"items", "key_mask", "attention_mask", "attention_bias"} <= {i.name for i in metadata.inputs}
    assert {o.name for o in metadata.outputs} == {"values", "scores", "weights"}
    refused("NOT_FOUND", "absent", lambda: client.get_model_metadata("absent"))
    yield "get_model_metadata"
    config = client.get_model_config("exact").config
    assert (config.name, config.max_batch_size) == ("exact", 0)
    optional = {i.name: i.optional for i in config.input}
    assert not optional.pop("items") and all(optional.values()), optional
    yield "get_model_config"
    index = client.get_model_repository_index().models
    assert [(m.name, m.version, m.state) for m in index] == [("exact", "1", "READY")]
    yield "get_model_repository_index"
    refused("PERMISSION_DENIED", "", lambda: client.load_model("exact"))
    refused("PERMISSION_DENIED", "", lambda: client.unload_model("exact"))
    assert client.is_model_ready("exact")
    yield "load_model, unload_model"


def single_calls(client):
    scores, weights, values = expected(ITEMS)
    outputs = [triton.InferRequestedOutput(name) for name in ("values", "scores", "weights")]
    answer = client.infer("exact", inputs(items=ITEMS), outputs=outputs, request_id="all three")
    same(answer.as_numpy("values"), values)
    same(answer.as_numpy("scores"), scores)
    same(answer.as_numpy("weights"), weights)
    assert answer.get_response().id == "all three"
    yield "infer: values, scores, weights"

    answer = client.infer("exact", inputs(items=ITEMS), model_version="1")
    same(answer.as_numpy("values"), values)
    assert [o.name for o in answer.get_response().outputs] == ["values"]
    yield "infer: values alone by default"

    n = len(ITEMS)
    key_mask = np.array([1, 1, 1, 0, 1], bool)
    same(client.infer("exact", inputs(items=ITEMS, key_mask=key_mask)).as_numpy("values"),
         expected(ITEMS, np.tile(key_mask, (n, 1)))[2])
    diagonal = np.eye(n, dtype=bool)
    same(client.infer("exact", inputs(items=ITEMS, attention_mask=diagonal)).as_numpy("values"),
         expected(ITEMS, diagonal)[2])
    bias = np.where(diagonal, 0, -np.inf).astype("<f4")
    same(client.infer("exact", inputs(items=ITEMS, attention_bias=bias)).as_numpy("values"),
         expected(ITEMS, diagonal)[2])
    yield "infer: masks and bias"
    same(client.infer("exact", inputs(items=ITEMS), parameters={"causal": True}).as_numpy("values"),
         expected(ITEMS, np.tri(n, dtype=bool))[2])
    yield "infer: causal by parameter"

    padded = np.stack([ITEMS, ITEMS[::-1]])
    padded[1, 3:] = 9
    lengths = np.array([5, 3], "<i4")
    got = client.infer("exact", inputs(items=padded, lengths=lengths)).as_numpy("values")
    same(got[0], values)
    same(got[1, :3], expected(ITEMS[::-1][:3])[2])
    same(got[1, 3:], np.zeros((2, D_OUT), "<f4"))
    yield "infer: a padded batch"

    same(client.infer("exact", inputs(items=ITEMS), priority=1, client_timeout=30,
                      compression_algorithm="gzip").as_numpy("values"), values)
    yield "infer: priority, deadline, gzip"

    refused("INVALID_ARGUMENT", "items", lambda: client.infer("exact", inputs(items=ITEMS[:, :2])))
    refused("INVALID_ARGUMENT", "items", lambda: client.infer("exact", inputs(items=ITEMS * np.float32(np.nan))))
    refused("INVALID_ARGUMENT", "sequence",
            lambda: client.infer("exact", inputs(items=ITEMS), sequence_id=5, sequence_start=True))
    refused("NOT_FOUND", "absent", lambda: client.infer("absent", inputs(items=ITEMS)))
    refused("NOT_FOUND", "7", lambda: client.infer("exact", inputs(items=ITEMS), model_version="7"))
    yield "infer: refusals have their codes and names"


def concurrent_calls(client):
    answers = queue.Queue()
    for n in range(1, 6):
        for _ in range(20):
            client.async_infer("exact", inputs(items=ITEMS[:n]), request_id=str(n),
                               callback=lambda result, error: answers.put((result, error)))
    seen = []
    for _ in range(100):
        result, error = answers.get(timeout=60)
        assert error is None, error
        seen.append(int(result.get_response().id))
        same(result.as_numpy("values"), expected(ITEMS[:seen[-1]])[2])
    assert sorted(seen) == sorted(list(range(1, 6)) * 20)
    yield "async_infer"

    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    for n in range(1, 6):
        client.async_stream_infer("exact", inputs(items=ITEMS[:n]), request_id=str(n))
    client.async_stream_infer("exact", inputs(items=ITEMS[:, :2]), request_id="bad")
    client.async_stream_infer("exact", inputs(items=ITEMS), request_id="5")
    seen, errors = [], []
    for _ in range(7):
        result, error = answers.get(timeout=60)
        if error is not None:
            errors.append(error.message())
            continue
        seen.append(int(result.get_response().id))
        same(result.as_numpy("values"), expected(ITEMS[:seen[-1]])[2])
    client.stop_stream()
    assert sorted(seen) == [1, 2, 3, 4, 5, 5], seen
    assert len(errors) == 1 and "items" in errors[0], errors
    assert answers.empty()
    yield "start_stream, async_stream_infer, stop_stream"


def statistics(client):
    before = client.get_inference_statistics("exact").model_stats[0]
    client.infer("exact", inputs(items=ITEMS))
    refused("INVALID_ARGUMENT", "items", lambda: client.infer("exact", inputs(items=ITEMS[:, :2])))
    after = client.get_inference_statistics("exact").model_stats[0]
    assert (after.name, after.version) == ("exact", "1")
    assert after.inference_stats.success.count == before.inference_stats.success.count + 1
    assert after.inference_stats.fail.count == before.inference_stats.fail.count + 1
    assert after.execution_count == before.execution_count + 1
    assert after.inference_stats.compute_infer.ns > before.inference_stats.compute_infer.ns
    yield "get_inference_statistics"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: stock_clients_test.py BIN_DIR")
    with tempfile.TemporaryDirectory() as repository:
        write_model(os.path.join(repository, "exact", "1"))
        server = subprocess.Popen(
            [os.path.join(sys.argv[1], "attend-server"), "--model-repository", repository, "--grpc-address",
             "localhost:0", "--metrics-address", "localhost:0", "--drain-delay", "0s", "--threads", "2"],
            stderr=subprocess.PIPE, text=True)
        try:
            said = ""
            while not (listening := re.search(r" listening .*?grpc=(\S+)", said)):
                line = server.stderr.readline()
                assert line, "the server did not start: " + said
                said += line
            with triton.InferenceServerClient(listening[1]) as client:
                for part in (descriptions, single_calls, concurrent_calls, statistics):
                    for checked in part(client):
                        print("ok", checked, flush=True)
            server.terminate()
            server.communicate(timeout=60)
            assert server.returncode == 0, f"exit {server.returncode} after SIGTERM"
            print("ok SIGTERM with exit 0")
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
