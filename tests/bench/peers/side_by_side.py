#!/usr/bin/env python3
"""side_by_side.py ATTEND_BENCH [THREADS]...: one attention layer by Attend and by what users would call instead.

Every pair is run in turns, Attend then the peer, on as many threads; the ratio is the median over
the pairs. A peer's ratio above 1 is a win of Attend, below 1 a loss. Mixed lengths are given to the
peer one by one, and as one padded batch with a mask. Before each turn on several threads there is a
pause, for some peers' threads spin for a while after their work on the cores that the other needs,
and a run that is not timed.
"""
import statistics
import subprocess
import sys
import time

import numpy as np

MIXED = [8, 304, 41, 95, 16, 130, 77, 210, 33, 58, 121, 24, 180, 66, 90, 49]
GOALS = {("N=512", "one"): 1.15, ("N=128", "one"): 1.15, ("N=2048", "one"): 1.25,
         ("N=32", "one"): 1.1, ("mixed", "one"): 1.3, ("mixed", "padded"): 5.0}


class Attend:
    def __init__(self, bench, threads, d, heads, lengths):
        self.process = subprocess.Popen(
            [bench, "--pipe", str(threads), str(d), str(heads), *map(str, lengths)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def onnx_layer(d, heads):
    """A plain exported layer: projections, scores, softmax, values, output projection."""
    from onnx import TensorProto, helper, numpy_helper
    random = np.random.default_rng(1)
    weight = lambda *shape: (random.standard_normal(shape) / np.sqrt(d)).astype(np.float32)
    constants, nodes = {}, []

    def constant(name, value):
        constants[name] = numpy_helper.from_array(value, name)
        return name

    def node(kind, inputs, output, **attributes):
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    shape = constant("shape", np.array([0, 0, heads, d // heads], np.int64))
    heads_of = {}
    for name, order in (("q", (0, 2, 1, 3)), ("k", (0, 2, 3, 1)), ("v", (0, 2, 1, 3))):
        product = node("MatMul", ["x", constant("w" + name, weight(d, d))], name + "0")
        biased = node("Add", [product, constant("b" + name, weight(d))], name + "1")
        split = node("Reshape", [biased, shape], name + "2")
        heads_of[name] = node("Transpose", [split], name, perm=order)
    scores = node("MatMul", [heads_of["q"], heads_of["k"]], "s0")
    scale = constant("scale", np.array(1 / np.sqrt(d // heads), np.float32))
    scores = node("Add", [node("Mul", [scores, scale], "s1"), "mask"], "s2")
    y = node("MatMul", [node("Softmax", [scores], "p", axis=-1), heads_of["v"]], "y0")
    y = node("Transpose", [y], "y1", perm=(0, 2, 1, 3))
    y = node("Reshape", [y, constant("flat", np.array([0, 0, d], np.int64))], "y2")
    y = node("MatMul", [y, constant("wo", weight(d, d))], "y3")
    node("Add", [y, constant("bo", weight(d))], "out")
    floats = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    graph = helper.make_graph(nodes, "layer",
                              [floats("x", ["b", "n", d]), floats("mask", ["b", 1, 1, "n"])],
                              [floats("out", ["b", "n", d])], list(constants.values()))
    return helper.make_model(graph, ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def onnx_multi_head(d, heads):
    """ONNX Runtime's own fused operator, com.microsoft.Attention, and an output projection."""
    from onnx import TensorProto, helper, numpy_helper
    random = np.random.default_rng(1)
    weight = lambda *shape: (random.standard_normal(shape) / np.sqrt(d)).astype(np.float32)
    constants = [numpy_helper.from_array(weight(*shape), name) for name, shape in
                 (("w", (d, 3 * d)), ("b", (3 * d,)), ("wo", (d, d)), ("bo", (d,)))]
    nodes = [helper.make_node("Attention", ["x", "w", "b", "lengths"], ["y"],
                              domain="com.microsoft", num_heads=heads),
             helper.make_node("MatMul", ["y", "wo"], ["z"]),
             helper.make_node("Add", ["z", "bo"], ["out"])]
    graph = helper.make_graph(
        nodes, "attention",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", "n", d]),
         helper.make_tensor_value_info("lengths", TensorProto.INT32, ["b"])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["b", "n", d])], constants)
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]).SerializeToString()


def mask_of(lengths, n):
    return np.where(np.arange(n)[None, :] < np.array(lengths)[:, None], 0,
                    -1e9).astype(np.float32)[:, None, None, :]


def onnxruntime_peers(threads, d, heads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    plain, fused = (onnxruntime.InferenceSession(model, options,
                                                 providers=["CPUExecutionProvider"])
                    for model in (onnx_layer(d, heads), onnx_multi_head(d, heads)))
    version = "ONNX Runtime " + onnxruntime.__version__
    yield version + " plain", lambda x, lengths: plain.run(
        None, {"x": x, "mask": mask_of(lengths, x.shape[1])})
    yield version + " Attention", lambda x, lengths: fused.run(
        None, {"x": x, "lengths": np.array(lengths, np.int32)})


def openvino_peers(threads, d, heads):
    import openvino
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(onnx_layer(d, heads)), "CPU", {
        "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY"})
    request = compiled.create_infer_request()
    yield "OpenVINO " + openvino.__version__.split("-")[0], lambda x, lengths: request.infer(
        {"x": x, "mask": mask_of(lengths, x.shape[1])})


def torch_peers(threads, d, heads):
    import torch
    from torch.nn import functional
    torch.set_num_threads(threads)
    layer = torch.nn.MultiheadAttention(d, heads, batch_first=True).eval()

    def run(x, lengths):
        items = torch.from_numpy(x)
        hidden = torch.arange(x.shape[1])[None, :] >= torch.tensor(lengths)[:, None]
        with torch.inference_mode():
            layer(items, items, items, key_padding_mask=hidden, need_weights=False)
    yield "PyTorch " + torch.__version__ + " MultiheadAttention", run

    project, out = torch.nn.Linear(d, 3 * d), torch.nn.Linear(d, d)
    attend = getattr(functional, "scaled_dot_product_attention", None) or (
        lambda q, k, v, attn_mask: torch.softmax(
            q @ k.transpose(-2, -1) * (d // heads) ** -0.5 + attn_mask, -1) @ v)

    def run_linear(x, lengths):
        with torch.inference_mode():
            q, k, v = project(torch.from_numpy(x)).unflatten(-1, (3, heads, d // heads)).permute(
                2, 0, 3, 1, 4)
            y = attend(q, k, v, attn_mask=torch.from_numpy(mask_of(lengths, x.shape[1])))
            out(y.transpose(1, 2).flatten(-2))
    yield "PyTorch " + torch.__version__ + " linear+attention+linear", run_linear


def peers(threads, d, heads):
    for source in (onnxruntime_peers, openvino_peers, torch_peers):
        try:
            yield from source(threads, d, heads)
        except ImportError as missing:
            print(f"# not here: {missing.name}")


def batches(lengths, d, padded):
    random = np.random.default_rng(2)
    groups = [lengths] if padded else [[n] for n in lengths]
    return [(random.standard_normal((len(g), max(g), d)).astype(np.float32), g) for g in groups]


def compare(attend, run, work, pause, seconds=2.0):
    def peer():
        start = time.perf_counter()
        for x, lengths in work:
            run(x, lengths)
        return time.perf_counter() - start

    def turn(measure):
        if pause:
            time.sleep(pause)
            measure()
        return measure()
    attend.run(), peer()
    ratios, ours = [], []
    end = time.perf_counter() + seconds
    while len(ratios) < 7 or time.perf_counter() < end:
        ours.append(turn(attend.run))
        ratios.append(turn(peer) / ours[-1])
    return statistics.median(ratios), statistics.median(ours)


def main():
    bench = sys.argv[1]
    cases = [("N=512", 768, 12, [512], ["one"]), ("N=128", 768, 12, [128], ["one"]),
             ("N=2048", 768, 12, [2048], ["one"]), ("N=32", 384, 12, [32], ["one"]),
             ("mixed", 768, 12, MIXED, ["one", "padded"])]
    for threads in [int(t) for t in sys.argv[2:]] or (1, 2):
        pause = 0.1 if threads > 1 else 0
        for name, d, heads, lengths, forms in cases:
            attend = Attend(bench, threads, d, heads, lengths)
            worst = {}
            for peer, run in peers(threads, d, heads):
                for form in forms:
                    ratio, ours = compare(attend, run, batches(lengths, d, form == "padded"), pause)
                    worst[form] = min(ratio, worst.get(form, ratio))
                    print(f"{name:8} {threads} thread(s) {form:7} Attend {ours * 1e3:9.3f} ms  "
                          f"{ratio:6.2f}x of {peer}", flush=True)
            for form, ratio in worst.items():
                goal = GOALS[name, form]
                print(f"{name}_{form}_{threads} {ratio:.2f} >={goal} "
                      f"{'ok' if ratio >= goal else 'short'}", flush=True)
            attend.close()


if __name__ == "__main__":
    main()
