#!/usr/bin/env python3
"""Runs the commands of the documentation, so that none of them can rot.

usage: docs_test.py SOURCE_DIR BIN_DIR DOC.md

Every ```sh block of the page runs, in order, in one shell at the root of a copy-free checkout, with
`build/bin` standing for BIN_DIR; what it starts in the background is stopped at the end. A block that
another test runs is fenced as ```sh run-by=NAME, and NAME must be in RUN_ELSEWHERE below. A ```text
block directly after a ```sh block is its real output: each of its lines must occur in what the block
printed, `...` standing for anything.
The lines of a ```cpp block must stand in tests/install/outside/main.cc, which is built and run.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

# Blocks that can't run inside the test that they start, and who runs them instead.
RUN_ELSEWHERE = {
    "ci": "the continuous integration run is this very command",
    "demo-test": "docs.TheDemoPrintsAReadableAnswer",
    "make-image": "make test-containers",
    "make-cluster": "make test-cluster",
    "make-bench": "make bench, a named target: timing is no test",
    "make-bench-peers": "make bench-peers, a named target: it downloads the peers",
    "make-test-slow": "a named target with a short form in the tests",
    "systemd": "systemd-analyze verify in make test-containers",
}
FENCE = re.compile(r"^```(\S*)\s*(.*)$")


def blocks(text):
    """Yields (language, attributes, body) of each fenced block."""
    language = attributes = None
    body = []
    for line in text.splitlines():
        match = FENCE.match(line)
        if match and language is None:
            language, attributes, body = match.group(1), match.group(2), []
        elif match:
            yield language, attributes, "\n".join(body)
            language = None
        elif language is not None:
            body.append(line)


def steps(page):
    """(script, expected output or None) for each block to run."""
    found = []
    previous_ran = False
    for language, attributes, body in blocks(page.read_text()):
        if language == "sh":
            name = re.search(r"run-by=(\S+)", attributes)
            if name and name.group(1) not in RUN_ELSEWHERE:
                sys.exit(f"{page}: run-by={name.group(1)} is not known")
            previous_ran = not name
            if previous_ran:
                found.append([body, None])
        elif language == "text" and previous_ran:
            found[-1][1] = body
            previous_ran = False
        else:
            previous_ran = False
    return found


def check_cpp(source, page):
    """C++ is held by the outside project that the install test builds."""
    built = {" ".join(l.split()) for l in (source / "tests/install/outside/main.cc").read_text().splitlines()}
    for language, _, body in blocks(page.read_text()):
        for line in body.splitlines() if language == "cpp" else []:
            if " ".join(line.split()) not in built:
                sys.exit(f"{page.name}: this line of C++ is in no program that is built:\n{line}")


def matches(expected, actual):
    """Names the first expected line that the output lacks, or None."""
    for line in expected.splitlines():
        pattern = ".*".join(re.escape(part.strip()) for part in line.split("..."))
        if not re.search(pattern, actual):
            return line
    return None


def stop_group(shell):
    """Stops what the page started, and waits until its ports are free again."""
    give_up = time.monotonic() + 60
    try:
        os.killpg(shell.pid, signal.SIGTERM)
        while time.monotonic() < give_up:
            shell.poll()
            os.killpg(shell.pid, 0)
            time.sleep(0.02)
    except ProcessLookupError:
        return
    sys.exit("what the page started does not stop")


def main():
    source, binaries, page = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
    check_cpp(source, page)
    todo = steps(page)
    marker = "---- end of block"
    script = "set -euo pipefail\n"
    for body, _ in todo:
        script += body.replace("build/bin", str(binaries)) + f"\necho '{marker}'\n"
    with tempfile.TemporaryDirectory() as scratch:
        env = dict(os.environ, TMPDIR=scratch, OUT=scratch, NO_COLOR="1", ATTEND_DRAIN_DELAY="0s",
                   PATH="/usr/bin:" + os.environ["PATH"])  # the distribution's Python has NumPy
        shell = subprocess.Popen(["bash", "-c", script], cwd=source, env=env, text=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, start_new_session=True)
        log = pathlib.Path(scratch, "log")
        printed = []
        with log.open("w") as copy:
            for line in shell.stdout:
                copy.write(line)
                printed.append(line)
                if line.strip() == marker and sum(p.strip() == marker for p in printed) == len(todo):
                    break  # what runs in the background may hold the pipe open
        code = shell.poll() if shell.poll() is not None else None
        if sum(p.strip() == marker for p in printed) == len(todo):
            code = 0
        stop_group(shell)
    output = "".join(printed)
    print(output)
    if code != 0:
        sys.exit(f"{page.name}: a command failed")
    parts = output.split(marker)
    for (body, expected), actual in zip(todo, parts):
        missing = expected and matches(expected, actual)
        if missing:
            sys.exit(f"{page.name}: after\n{body}\nthis line was not printed:\n{missing}")
    print(f"{page.name}: {len(todo)} blocks ran")


main()
