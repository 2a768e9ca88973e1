#!/usr/bin/env python3
"""KServe's own Python client, unchanged, against a real server: run.sh runs it."""
import asyncio
import logging
import sys

import grpc
import numpy as np
from kserve import InferenceGRPCClient, InferInput, InferRequest

from server import D_OUT, ITEMS, expected, same, serving_exact_model


def raw(name, datatype, array):
    tensor = InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array, binary_data=True)
    return tensor


def typed(name, datatype, array):
    return InferInput(name, list(array.shape), datatype, data=array.flatten().tolist())


def values_of(answer):
    assert answer.model_name == "exact" and answer.model_version == "1"
    output, = answer.outputs
    assert (output.name, output.datatype) == ("values", "FP32")
    return output.as_numpy()


async def refused(code, word, call):
    try:
        await call
    except grpc.RpcError as error:
        assert error.code() == code and word in error.details(), error
        return
    raise AssertionError(f"not refused with {code}")


async def check(client):
    assert await client.is_server_live()
    assert await client.is_server_ready()
    assert await client.is_model_ready("exact")
    assert not await client.is_model_ready("absent")
    print("ok is_server_live, is_server_ready, is_model_ready")

    infer = lambda *inputs, **more: client.infer(InferRequest("exact", list(inputs), **more))
    values = expected(ITEMS)[2]
    for make in (raw, typed):
        answer = await infer(make("items", "FP32", ITEMS), request_id=make.__name__)
        same(values_of(answer), values)
        assert answer.id == make.__name__
        key_mask = np.array([1, 1, 1, 0, 1], bool)
        answer = await infer(make("items", "FP32", ITEMS), make("key_mask", "BOOL", key_mask))
        same(values_of(answer), expected(ITEMS, np.tile(key_mask, (5, 1)))[2])
        print(f"ok infer: {make.__name__} contents")
    same(values_of(await infer(raw("items", "FP16", ITEMS.astype("<f2")))), values)
    same(values_of(await infer(typed("items", "FP64", ITEMS.astype("<f8")))), values)
    print("ok infer: FP16 raw, FP64 typed")

    padded = np.stack([ITEMS, ITEMS[::-1]])
    got = values_of(await infer(raw("items", "FP32", padded), raw("lengths", "INT32", np.array([5, 3], "<i4"))))
    same(got[0], values)
    same(got[1], np.vstack([expected(ITEMS[::-1][:3])[2], np.zeros((2, D_OUT), "<f4")]))
    print("ok infer: a padded batch")

    answers = await asyncio.gather(*(infer(raw("items", "FP32", ITEMS[:n])) for n in [1, 2, 3, 4, 5] * 20))
    for n, answer in zip([1, 2, 3, 4, 5] * 20, answers):
        same(values_of(answer), expected(ITEMS[:n])[2])
    print("ok infer: a hundred at once")

    triangle = await infer(raw("items", "FP32", ITEMS), parameters={"causal": True, "priority": 1})
    same(values_of(triangle), expected(ITEMS, np.tri(5, dtype=bool))[2])
    print("ok infer: parameters")

    invalid = grpc.StatusCode.INVALID_ARGUMENT
    await refused(invalid, "items", infer(raw("items", "FP32", ITEMS[:, :2])))
    await refused(invalid, "items", infer(typed("items", "FP32", ITEMS[:, :2])))
    # The client sends one tensor raw and one typed, which the protocol forbids.
    await refused(invalid, "raw_input_contents",
                  infer(raw("items", "FP32", ITEMS), typed("key_mask", "BOOL", np.ones(5, bool))))
    await refused(grpc.StatusCode.NOT_FOUND, "absent",
                  client.infer(InferRequest("absent", [raw("items", "FP32", ITEMS)])))
    print("ok infer: refusals have their codes and names")


async def main():
    if len(sys.argv) != 2:
        sys.exit("usage: kserve_test.py BIN_DIR")
    logging.disable(logging.ERROR)  # the client logs each refusal with a traceback
    with serving_exact_model(sys.argv[1]) as (address, _):
        async with InferenceGRPCClient(url=address) as client:
            await check(client)


asyncio.run(main())
