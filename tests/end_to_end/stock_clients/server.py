"""A real attend-server for the time of a with-block, and a model whose answers are known to the bit."""
import contextlib
import json
import pathlib
import re
import struct
import subprocess
import tempfile
import threading

import numpy as np

D_F, D_OUT = 3, 2
W = {
    "query.weight": np.array([[1, 0, 2], [0, 1, -1]], "<f4"),
    "key.weight": np.array([[2, 1, 0], [0, -1, 1]], "<f4"),
    "value.weight": np.array([[1, 2, 4], [8, -16, 32]], "<f4"),
}
ITEMS = np.array([[1, 0, 2], [3, 1, 0], [0, 2, 1], [2, 3, 3], [1, 1, 4]], "<f4")


@contextlib.contextmanager
def running(command, drain_delay="0s"):
    """Starts the server's command line with ports of its own and gives its address. When the block
    ends without an error, the server must drain and exit 0."""
    server = subprocess.Popen([*map(str, command), "--grpc-address", "localhost:0", "--metrics-address",
                               "localhost:0", "--drain-delay", drain_delay], stderr=subprocess.PIPE, text=True)
    try:
        said = ""
        while not (listening := re.search(r" listening .*?grpc=(\S+)", said)):
            line = server.stderr.readline()
            assert line, "the server did not start: " + said
            said += line
        threading.Thread(target=server.stderr.read, daemon=True).start()
        yield listening[1]
        server.terminate()
        assert server.wait(60) == 0, f"exit {server.returncode} after SIGTERM"
    finally:
        server.kill()
        server.wait()


@contextlib.contextmanager
def serving_exact_model(binaries, *flags):
    """The server with the model `exact` alone; gives its address and the model's folder."""
    with tempfile.TemporaryDirectory() as repository:
        folder = pathlib.Path(repository, "exact", "1")
        write_exact_model(folder)
        command = [pathlib.Path(binaries, "attend-server"), "--model-repository", repository, "--threads",
                   "2", *flags]
        with running(command) as address:
            yield address, folder


def write_model(folder, weights, config):
    """A model's folder of float32 `weights` by name and the fields of its attend.json."""
    folder.mkdir(parents=True)
    header, at = {}, 0
    for name, weight in weights.items():
        header[name] = {"dtype": "F32", "shape": weight.shape, "data_offsets": [at, at + weight.nbytes]}
        at += weight.nbytes
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(
        struct.pack("<Q", len(text)) + text + b"".join(w.tobytes() for w in weights.values()))
    (folder / "attend.json").write_text(json.dumps({"kind": "attention", **config}))


def write_exact_model(folder):
    """Small integer weights, no scale and sparsemax: scores are integers, the weights of a row are
    1/c over its c greatest scores and 0 elsewhere. So every number is exact in float32."""
    write_model(folder, W, {"scale": "none", "normalizer": "sparsemax"})


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


def same(got, want):
    """Equal bits but for the sign of 0."""
    np.testing.assert_array_equal(got, want)
    assert got.dtype == np.float32, got.dtype
