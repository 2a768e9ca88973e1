#!/usr/bin/env python3
"""The Open Inference Protocol as Triton's stock client speaks it, against a real server: run.sh runs it."""
import queue
import shutil
import sys

import ml_dtypes  # tritonclient asks for it
import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from server import D_OUT, ITEMS, expected, same, serving_exact_model


def inputs(**arrays):
    types = {np.dtype("<f4"): "FP32", np.dtype(bool): "BOOL", np.dtype("<i4"): "INT32"}
    result = []
    for name, array in arrays.items():
        tensor = triton.InferInput(name, list(array.shape), types[array.dtype])
        tensor.set_data_from_numpy(array)
        result.append(tensor)
    return result


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

    same(client.infer("exact", inputs(items=ITEMS), priority=1, timeout=30_000_000,
                      client_timeout=30).as_numpy("values"), values)
    yield "infer: priority, timeout and deadline"


def tensor(name, shape, datatype, array):
    """A tensor whose bytes are the array's, whatever its shape and datatype say."""
    result = triton.InferInput(name, list(shape), datatype)
    result._raw_content = array.tobytes()
    return result


def more_types(client):
    scores, weights, values = expected(ITEMS)
    half = triton.InferInput("items", list(ITEMS.shape), "FP16")
    half.set_data_from_numpy(ITEMS.astype("<f2"))
    same(client.infer("exact", [half]).as_numpy("values"), values)
    brain = triton.InferInput("items", list(ITEMS.shape), "BF16")
    brain.set_data_from_numpy(ITEMS.astype(ml_dtypes.bfloat16))
    same(client.infer("exact", [brain]).as_numpy("values"), values)
    double = triton.InferInput("items", list(ITEMS.shape), "FP64")
    double.set_data_from_numpy(ITEMS.astype("<f8"))
    same(client.infer("exact", [double]).as_numpy("values"), values)
    yield "infer: FP16, BF16 and FP64 items"
    wanted = triton.InferRequestedOutput("weights")
    wanted._get_tensor().parameters["datatype"].string_param = "FP16"
    got = client.infer("exact", inputs(items=ITEMS), outputs=[wanted]).as_numpy("weights")
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, weights.astype("<f2"))
    yield "infer: an FP16 answer"


def refusals(client):
    def infer(*tensors, **more):
        return lambda: client.infer("exact", list(tensors), **more)

    items, = inputs(items=ITEMS)
    invalid = lambda word, call: refused("INVALID_ARGUMENT", word, call)
    invalid("items", infer(*inputs(items=ITEMS[:, :2])))
    invalid("items", infer(*inputs(items=ITEMS[0])))
    invalid("items", infer(*inputs(items=ITEMS[:0])))
    invalid("items", infer(*inputs(items=ITEMS * np.float32(np.nan))))
    invalid("items", infer(tensor("items", [6, 3], "FP32", ITEMS)))
    invalid("items", infer(tensor("items", [-5, 3], "FP32", ITEMS)))
    invalid("datatype", infer(tensor("items", [5, 3], "INT64", ITEMS)))
    invalid("items", infer(*inputs(key_mask=np.ones(5, bool))))
    invalid("key_mask", infer(items, *inputs(key_mask=np.ones(4, bool))))
    invalid("attention_mask", infer(items, *inputs(attention_mask=np.ones((5, 4), bool))))
    invalid("attention_bias", infer(items, *inputs(attention_bias=np.ones((4, 5), "<f4"))))
    invalid("lengths", infer(items, *inputs(lengths=np.ones(1, "<i4"))))
    invalid("lengths", infer(*inputs(items=ITEMS[None], lengths=np.array([6], "<i4"))))
    invalid("lengths", infer(*inputs(items=ITEMS[None], lengths=np.array([5, 5], "<i4"))))
    yield "infer: refused shapes and sizes name the tensor"
    invalid("twice", infer(items, items))
    invalid("extra", infer(items, *inputs(extra=ITEMS)))
    invalid("absent", infer(items, outputs=[triton.InferRequestedOutput("absent")]))
    invalid("classification", infer(items, outputs=[triton.InferRequestedOutput("values", class_count=2)]))
    invalid("sequence", infer(items, sequence_id=5, sequence_start=True))
    shared = triton.InferInput("items", [5, 3], "FP32")
    shared.set_shared_memory("region", ITEMS.nbytes)
    invalid("shared memory", infer(shared))
    yield "infer: what is unknown or not supported is refused by name"
    refused("NOT_FOUND", "absent", lambda: client.infer("absent", [items]))
    refused("NOT_FOUND", "7", lambda: client.infer("exact", [items], model_version="7"))
    refused("DEADLINE_EXCEEDED", "", infer(*inputs(items=np.tile(ITEMS, (2000, 1))), timeout=1))
    refused("UNIMPLEMENTED", "gzip", infer(items, compression_algorithm="gzip"))
    refused("UNIMPLEMENTED", "", client.get_system_shared_memory_status)
    refused("UNIMPLEMENTED", "", client.get_log_settings)
    refused("UNIMPLEMENTED", "", client.get_trace_settings)
    yield "infer: NOT_FOUND, DEADLINE_EXCEEDED; other calls: UNIMPLEMENTED"


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


def control(client, folder):
    """With --allow-model-control."""
    client.unload_model("exact")
    assert not client.is_model_ready("exact")
    assert not client.is_server_ready()
    assert not client.get_model_repository_index().models
    refused("NOT_FOUND", "exact", lambda: client.infer("exact", inputs(items=ITEMS)))
    refused("NOT_FOUND", "exact", lambda: client.unload_model("exact"))
    client.load_model("exact")
    assert client.is_model_ready("exact", "1")
    same(client.infer("exact", inputs(items=ITEMS)).as_numpy("values"), expected(ITEMS)[2])
    yield "unload_model, load_model"
    shutil.copytree(folder, folder.parent / "2")
    client.load_model("exact")
    assert list(client.get_model_metadata("exact").versions) == ["1", "2"]
    assert client.infer("exact", inputs(items=ITEMS)).get_response().model_version == "2"
    assert client.infer("exact", inputs(items=ITEMS), model_version="1").get_response().model_version == "1"
    client.unload_model("exact", unload_dependents=True)
    assert not client.get_model_repository_index().models
    yield "load_model: a new version; unload_model: all of them"
    refused("NOT_FOUND", "absent", lambda: client.load_model("absent"))
    refused("INVALID_ARGUMENT", "parameters", lambda: client.load_model("exact", config='{"backend": "onnx"}'))
    yield "load_model: refusals"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: triton_test.py BIN_DIR")
    with serving_exact_model(sys.argv[1]) as (address, _), triton.InferenceServerClient(address) as client:
        for part in (descriptions, single_calls, more_types, refusals, concurrent_calls, statistics):
            for checked in part(client):
                print("ok", checked, flush=True)
    with serving_exact_model(sys.argv[1], "--allow-model-control") as (address, folder):
        with triton.InferenceServerClient(address) as client:
            for checked in control(client, folder):
                print("ok", checked, flush=True)


if __name__ == "__main__":
    main()
