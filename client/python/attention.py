"""Asks a server for one layer's attention by the Open Inference Protocol, and reads the answer."""
from dataclasses import dataclass
from typing import Sequence

import numpy as np
import numpy.typing as npt
import tritonclient.grpc as triton

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Attention:
    values: Floats  # [N, d_out]: what each item is passed
    weights: Floats  # [H, N, N]: row i asks, column j answers


@dataclass(frozen=True)
class Link:
    head: int
    asks: int
    answers: int
    weight: float


def attend(client: triton.InferenceServerClient, model: str, items: Floats) -> Attention:
    """Of `items` [N, d_f]. Errors are tritonclient's InferenceServerException."""
    tensor = triton.InferInput("items", list(items.shape), "FP32")
    tensor.set_data_from_numpy(items)
    wanted = [triton.InferRequestedOutput(name) for name in ("values", "weights")]
    answer = client.infer(model, [tensor], outputs=wanted)
    return Attention(answer.as_numpy("values"), answer.as_numpy("weights"))


def strongest_links(weights: Floats, per_head: int, among: Sequence[int]) -> list[list[Link]]:
    """The `per_head` greatest weights of each head between the items `among`, the strongest first;
    ties in reading order."""
    links = []
    for head, rows in enumerate(weights):
        chosen = rows[np.ix_(among, among)]
        best = np.argsort(-chosen, axis=None, kind="stable")[:per_head]
        links.append([Link(head, among[i], among[j], float(chosen[i, j]))
                      for i, j in zip(*np.unravel_index(best, chosen.shape))])
    return links


def links_text(links: Sequence[Sequence[Link]], names: Sequence[str]) -> str:
    """One line a head: "head 3  it -> cat 0.87   was -> it 0.61"."""
    lines = []
    for of_head in links:
        parts = [f"{names[l.asks]} -> {names[l.answers]} {l.weight:.2f}" for l in of_head]
        lines.append(f"head {of_head[0].head:<3}" + "   ".join(parts))
    return "\n".join(lines)
