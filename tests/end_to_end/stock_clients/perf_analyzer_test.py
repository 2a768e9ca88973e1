#!/usr/bin/env python3
"""perf_analyzer, unchanged, against a real server: run.sh runs it.

    perf_analyzer_test.py BIN_DIR COMMAND...      COMMAND starts perf_analyzer

Each sweep must end in perf_analyzer's own table, with every call answered and the server's side of the
latency filled in from ModelStatistics.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from server import ITEMS, serving_exact_model

# Of optional inputs perf_analyzer sends those that its input file has.
DATA = {"data": [{"items": {"content": ITEMS.flatten().tolist(), "shape": list(ITEMS.shape)}}]}


def sweep(command, address, data, *flags):
    """perf_analyzer's table: {concurrency or rate: throughput}. Any measurement is stable enough here."""
    run = subprocess.run([*command, "-m", "exact", "-i", "grpc", "-u", address, "--input-data", data,
                          "--measurement-mode", "count_windows", "--measurement-request-count", "50",
                          "--max-trials", "20", "--stability-percentage", "999", *flags],
                         capture_output=True, text=True, timeout=300)
    said = run.stdout + run.stderr
    assert run.returncode == 0, said
    assert "failed" not in said.lower(), said
    steps = re.findall(r"Successful request count: (\d+)\n.*?Avg request latency: \d+ usec \(overhead \d+ usec "
                       r"\+ queue \d+ usec \+ compute input 0 usec \+ compute infer (\d+) usec", said, re.DOTALL)
    table = said[said.index("Inferences/Second vs. Client"):]
    rows = re.findall(r"^(?:Concurrency|Request Rate): ([\d.]+), throughput: ([\d.]+) infer/sec, latency (\d+)",
                      table, re.MULTILINE)
    assert rows and len(rows) == len(steps), said
    assert all(int(count) >= 50 for count, _ in steps), said
    return {float(load): float(throughput) for load, throughput, _ in rows}


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: perf_analyzer_test.py BIN_DIR COMMAND...")
    command = sys.argv[2:]
    with serving_exact_model(sys.argv[1]) as (address, _), tempfile.TemporaryDirectory() as folder:
        data = str(pathlib.Path(folder, "data.json"))
        pathlib.Path(data).write_text(json.dumps(DATA))
        for name, flags, loads in [
                ("concurrency", ["--concurrency-range", "1:5:2"], [1, 3, 5]),
                ("concurrency, asynchronous", ["--async", "--concurrency-range", "1:8:7"], [1, 8]),
                ("concurrency on a stream", ["--streaming", "--concurrency-range", "4"], [4]),
                ("request rate", ["--request-rate-range", "50:150:50"], [50, 100, 150]),
                ("request rate, asynchronous, Poisson",
                 ["--async", "--request-rate-range", "100:200:100", "--request-distribution", "poisson"],
                 [100, 200])]:
            table = sweep(command, address, data, *flags)
            assert sorted(table) == loads, table
            print(f"ok {name}:", ", ".join(f"{load:g} -> {rate:g}/s" for load, rate in table.items()), flush=True)


main()
