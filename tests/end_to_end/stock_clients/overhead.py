#!/usr/bin/env python3
"""ModelInfer beside the native call: N = 8 items of d_f = 64, short closed loops of both in turn.

    overhead.py BIN_DIR [PAIRS] [CONCURRENCY]     prints each pair and the median of the ratios

The protocols take turns within half a second, so that what else the machine does meets both. Ratios of
1.10 are an overhead of 10 %: the native rate over ModelInfer's, and the CPU time of the server that a
call costs by ModelInfer over what it costs natively.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

from server import running, write_model

D_F = 64


def write_random_model(folder):
    random = np.random.default_rng(1)
    write_model(folder, {f"{part}.weight": random.normal(0, D_F**-0.5, (D_F, D_F)).astype("<f4")
                         for part in ("query", "key", "value", "output")}, {"num_heads": 4})


def cpu_of(pid):
    """Seconds of all its threads."""
    return sum(int(task.read_text().split()[0]) for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def load(binaries, address, pid, protocol, concurrency):
    """Calls a second, and the server's CPU time of one call in us."""
    with tempfile.NamedTemporaryFile() as result:
        before = cpu_of(pid)
        subprocess.run([binaries / "attend", "load", "--target", address, "--protocol", protocol, "--model",
                        "layer", "--lengths", "8", "--concurrency", str(concurrency), "--duration", "500ms",
                        "--warm-up", "0s", "--json", result.name], check=True, stdout=subprocess.DEVNULL)
        told = json.load(result)
    assert not told["errors"], told["errors"]
    return told["achieved_rate"], (cpu_of(pid) - before) * 1e6 / told["answered"]


def main():
    binaries = pathlib.Path(sys.argv[1])
    pairs, concurrency = (int(argument) for argument in (sys.argv[2:] + ["21", "1"][len(sys.argv) - 2:]))
    rates, costs = [], []
    with tempfile.TemporaryDirectory() as root:
        write_random_model(pathlib.Path(root, "layer", "1"))
        with running([binaries / "attend-server", "--model-repository", root, "--threads", "1"]) as address:
            pid = int(pathlib.Path("/proc/thread-self/children").read_text())
            for pair in range(pairs):
                order = ("attend", "oip") if pair % 2 else ("oip", "attend")
                told = {protocol: load(binaries, address, pid, protocol, concurrency) for protocol in order}
                native, oip = told["attend"], told["oip"]
                rates.append(native[0] / oip[0])
                costs.append(oip[1] / native[1])
                print("attend %7.0f/s %6.1f us   oip %7.0f/s %6.1f us   ratios %.3f %.3f"
                      % (*native, *oip, rates[-1], costs[-1]), flush=True)
    print(f"concurrency {concurrency}, median ratio of {pairs} pairs: calls a second {statistics.median(rates):.3f}, "
          f"the server's CPU time of a call {statistics.median(costs):.3f}")


main()
