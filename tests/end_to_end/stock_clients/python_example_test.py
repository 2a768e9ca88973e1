#!/usr/bin/env python3
"""The Python example of client/python, against a real server.

    python_example_test.py BIN_DIR            on the demo model: needs numpy and tritonclient
    python_example_test.py BIN_DIR BUILD_DIR  MiniLM too, as its README has it: see client/python/serve.sh
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import tritonclient.grpc as triton

from server import running, same

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "client" / "python"
sys.path.insert(0, str(EXAMPLE))
from attention import Link, attend, links_text, strongest_links  # noqa: E402


def links_are_found_and_printed():
    weights = np.array([[[0, 0.25, 0.75], [0.5, 0.5, 0], [1, 0, 0]],
                        [[0.125, 0, 0], [0, 0, 0], [0, 0.25, 0]]], "<f4")
    links = strongest_links(weights, 2, [0, 1, 2])
    assert links == [[Link(0, 2, 0, 1.0), Link(0, 0, 2, 0.75)], [Link(1, 2, 1, 0.25), Link(1, 0, 0, 0.125)]]
    assert strongest_links(weights, 1, [1, 2]) == [[Link(0, 1, 1, 0.5)], [Link(1, 2, 1, 0.25)]]
    assert links_text(links, ["a", "b", "c"]) == (
        "head 0  c -> a 1.00   a -> c 0.75\nhead 1  c -> b 0.25   a -> a 0.12")
    print("ok the strongest links and their text")


def demo_model(binaries):
    """The bits of the `attend` command, and its strongest answers."""
    command = str(pathlib.Path(binaries, "attend"))
    with running([pathlib.Path(binaries, "attend-server")]) as address, tempfile.TemporaryDirectory() as folder:
        items = pathlib.Path(folder, "items.npy")
        np.save(items, np.eye(5, 13, dtype="<f4"))
        asked = ["--target", address, "--items", items]
        subprocess.run([command, "infer", *asked, "--out", folder, "--want", "values,weights"], check=True,
                       stdout=subprocess.DEVNULL)
        explained = json.loads(subprocess.run([command, "explain", *asked, "--json"], check=True,
                                              capture_output=True).stdout)
        with triton.InferenceServerClient(address) as client:
            attention = attend(client, "demo", np.load(items))
        same(attention.values, np.load(pathlib.Path(folder, "values.npy")))
        same(attention.weights, np.load(pathlib.Path(folder, "weights.npy")))
    (strongest,), = strongest_links(attention.weights, 1, range(5))
    best = max(explained["strongest"], key=lambda link: link["weight"])
    assert (strongest.asks, strongest.answers) == (best["asks"], best["answers"]), (strongest, best)
    print("ok the demo model")


def reference_weights(encoder, items, layer):
    """Of `layer`, in float64, all layers before it too."""
    tensors, items = encoder._tensors, items.astype(np.float64)
    for at in range(layer + 1):
        name = f"encoder.layer.{at}.attention."
        linear = lambda part, rows: (rows @ tensors[name + part + ".weight"].T.astype(np.float64)
                                     + tensors[name + part + ".bias"])
        query, key, value = (linear(f"self.{part}", items).reshape(len(items), 12, -1).transpose(1, 0, 2)
                             for part in ("query", "key", "value"))
        weights = np.exp(query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[2]))
        weights /= weights.sum(-1, keepdims=True)
        mixed = (weights @ value).transpose(1, 0, 2).reshape(len(items), -1)
        items = encoder.after_attention(at, items, linear("output.dense", mixed))
    return weights


def check_links(text, weights, sentence):
    """Each link that was printed is among the three strongest of its head, by the reference's weights."""
    heads = text.splitlines()[1:]
    assert len(heads) == len(weights), text
    for head, line in enumerate(heads):
        third = np.sort(weights[head][np.ix_(sentence.words, sentence.words)], axis=None)[-3]
        links = re.findall(r"(\S+) -> (\S+) (\d\.\d\d)", line)
        assert len(links) == 3, line
        for asks, answers, weight in links:
            truth = weights[head][sentence.tokens.index(asks), sentence.tokens.index(answers)]
            # Half a unit of what is printed, and the float32 of up to six layers.
            assert abs(truth - float(weight)) < 0.005 + 1e-4 and truth > third - 1e-4, (line, truth)


def minilm(build):
    """The README's two commands, and what it shows, against NumPy's own attention."""
    from minilm import MiniLM
    page = (EXAMPLE / "README.md").read_text()
    text = re.search(r'sentence\.py --layer 3 "(.*)"', page)[1]
    encoder = MiniLM()
    sentence = encoder.read(text)
    with running([EXAMPLE / "serve.sh", build]) as address:
        for layer in range(encoder.layers):
            printed = subprocess.run(
                [sys.executable, EXAMPLE / "sentence.py", "--target", address, "--layer", str(layer), text],
                check=True, capture_output=True, text=True).stdout
            weights = reference_weights(encoder, sentence.items, layer)
            check_links(printed, weights, sentence)
            if layer == 3:
                check_links(re.search(r"```text\n(.*?)```", page, re.DOTALL)[1], weights, sentence)
            print(f"ok MiniLM layer {layer}")


def main():
    links_are_found_and_printed()
    demo_model(sys.argv[1])
    if len(sys.argv) > 2:
        minilm(sys.argv[2])


if __name__ == "__main__":
    main()
