#!/usr/bin/env python3
"""Who attends to whom in a sentence, by one layer of MiniLM. README.md beside this says how to run it."""
import argparse

import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from attention import attend, links_text, strongest_links
from minilm import MiniLM


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sentence", nargs="?", default="The cat sat down because it was tired.")
    parser.add_argument("--layer", type=int, default=3, help="0 to 5; those before it are asked too")
    parser.add_argument("--links", type=int, default=3, help="how many of each head are printed")
    parser.add_argument("--target", default="localhost:8001", metavar="HOST:PORT")
    flags = parser.parse_args()
    encoder = MiniLM()
    if not 0 <= flags.layer < encoder.layers:
        parser.error(f"--layer {flags.layer}, expected 0 to {encoder.layers - 1}")
    if flags.links < 1:
        parser.error(f"--links {flags.links}, expected at least 1")
    sentence = encoder.read(flags.sentence)
    items = sentence.items
    try:
        with triton.InferenceServerClient(flags.target) as client:
            for layer in range(flags.layer):
                values = attend(client, f"minilm-{layer}", items).values
                items = encoder.after_attention(layer, items, values)
            weights = attend(client, f"minilm-{flags.layer}", items).weights
    except InferenceServerException as error:
        parser.exit(3, f"{flags.target}: {error.message()}\n")
    print(f"layer {flags.layer}, the strongest links between words, by head:")
    print(links_text(strongest_links(weights, flags.links, sentence.words), sentence.tokens))


if __name__ == "__main__":
    main()
