#!/usr/bin/env python3
"""Three replicas under open-loop load: one is killed, started again, then all three are rolled by SIGTERM.
No call may fail at the client, balanced by the client itself or by HAProxy. Prints the percentiles.

usage: cluster_test.py SOURCE_DIR BIN_DIR [--haproxy PROGRAM] [--seconds N] [--rate R]
"""
import argparse
import json
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("source", type=pathlib.Path)
parser.add_argument("binaries", type=pathlib.Path)
parser.add_argument("--haproxy", help="balance by this program instead of in the client")
parser.add_argument("--seconds", type=int, default=20)
parser.add_argument("--rate", type=int, default=100)
args = parser.parse_args()
children = []


def start(command, log):
    child = subprocess.Popen([str(c) for c in command], stdout=log, stderr=subprocess.STDOUT)
    children.append(child)
    return child


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def attend(*arguments):
    return subprocess.run([args.binaries / "attend", *arguments], capture_output=True, text=True)


class Replica:
    def __init__(self, name, scratch):
        self.grpc, self.metrics = (f"127.0.0.1:{p}" for p in free_ports(2))
        self.log = open(scratch / f"{name}.log", "a")
        self.start()

    def start(self):
        self.process = start([args.binaries / "attend-server", "--grpc-address", self.grpc,
                              "--metrics-address", self.metrics, "--threads", 1,
                              "--drain-delay", "1s"], self.log)
        waited = attend("health", "--target", self.grpc, "--wait", "30s")
        if waited.returncode != 0:
            sys.exit(f"a replica did not become ready: {waited.stderr}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def roll(self):
        """SIGTERM drains; the replica must exit 0 and comes back."""
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(timeout=60) != 0:
            sys.exit(f"a drained replica exited {self.process.returncode}")
        self.start()


def start_haproxy(replicas, scratch):
    """deploy/haproxy/haproxy.cfg with this test's addresses."""
    text = (args.source / "deploy/haproxy/haproxy.cfg").read_text()
    front = free_ports(1)[0]
    text = text.replace("bind :8001", f"bind 127.0.0.1:{front}")
    for letter, replica in zip("abc", replicas):
        text = text.replace(f"attend-{letter}:8001", replica.grpc)
    config = scratch / "haproxy.cfg"
    config.write_text(text)
    start([args.haproxy, "-db", "-f", config], open(scratch / "haproxy.log", "w"))
    return f"127.0.0.1:{front}"


def main(scratch):
    replicas = [Replica(name, scratch) for name in "abc"]
    if args.haproxy:
        targets = [start_haproxy(replicas, scratch)]
        if attend("health", "--target", targets[0], "--wait", "30s").returncode != 0:
            sys.exit((scratch / "haproxy.log").read_text())
    else:
        targets = [r.grpc for r in replicas]

    result_file = scratch / "result.json"
    command = [args.binaries / "attend", "load", "--model", "demo", "--rate", args.rate, "--lengths", "4..16",
               "--seed", 1, "--duration", f"{args.seconds}s", "--deadline", "10s", "--json", result_file]
    for target in targets:
        command += ["--target", target]
    load = start(command, open(scratch / "load.log", "w"))
    while "open loop" not in (scratch / "load.log").read_text():
        if load.poll() is not None:
            sys.exit("the load did not start")
        time.sleep(0.02)

    # What happens meanwhile takes as long as it takes; the load must outlast it.
    replicas[0].kill()
    replicas[0].start()
    for replica in replicas:
        replica.roll()
    if load.poll() is not None:
        sys.exit("the load ended before the roll did: give --seconds more")
    load.wait(timeout=args.seconds + 60)

    result = json.loads(result_file.read_text())
    print("balanced by", "HAProxy" if args.haproxy else "the client")
    print({key: result[key] for key in ("offered_rate", "achieved_rate", "latency_ms", "errors")})
    failed = {code: n for code, n in result["errors"].items() if n}
    if failed or result.get("refused"):
        sys.exit(f"calls failed at the client: {failed}, refused {result.get('refused')}")
    print("no call failed during a kill and a roll of all three replicas")


with tempfile.TemporaryDirectory() as folder:
    try:
        main(pathlib.Path(folder))
    finally:
        for child in children:
            if child.poll() is None:
                child.terminate()
        for child in children:
            child.wait(timeout=60)
        if sys.exc_info()[0] not in (None,):
            for log in pathlib.Path(folder).glob("*.log"):
                print(f"--- {log.name}\n{log.read_text()[-2000:]}", file=sys.stderr)
