#!/usr/bin/env python3
"""A real Prometheus scrapes a real attend-server under load: the target is up, the rules hold, and every
query of the Grafana dashboard returns data.

usage: prometheus_test.py SOURCE_DIR BIN_DIR TOOLS_DIR

The distribution's Prometheus is unpacked into TOOLS_DIR, not installed: installing would start a service.
"""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

source, binaries, tools = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
rules = source / "deploy/prometheus"
DEADLINE = time.monotonic() + 120
children = []


def fetch_prometheus():
    """TOOLS_DIR/usr/bin/{prometheus,promtool} out of the distribution's package."""
    if not (tools / "usr/bin/promtool").exists():
        tools.mkdir(parents=True, exist_ok=True)
        download = ["apt-get", "download", "-qq", "prometheus"]
        if subprocess.run(download, cwd=tools).returncode != 0:
            subprocess.run(["apt-get", "update", "-qq"], check=True)  # the package lists were old
            subprocess.run(download, cwd=tools, check=True)
        package = next(tools.glob("prometheus_*.deb"))
        subprocess.run(["dpkg", "-x", package, tools], check=True)
    return tools / "usr/bin/prometheus", tools / "usr/bin/promtool"


def start(*command):
    child = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
    children.append(child)
    return child


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_server():
    """The server's gRPC and metrics addresses, from its own first log lines."""
    server = start(binaries / "attend-server", "--grpc-address", "localhost:0",
                   "--metrics-address", "localhost:0", "--drain-delay", "0s")
    for line in server.stdout:
        found = re.search(r"grpc=(\S+).*metrics=(\S+)", line)
        if found:
            return found.groups()
    sys.exit("the server ended before it listened")


def await_true(what, check):
    """Polls until the check gives something true; the deadline is for a broken system alone."""
    while time.monotonic() < DEADLINE:
        try:
            result = check()
            if result:
                return result
        except OSError:
            pass
        time.sleep(0.2)
    sys.exit(f"never happened: {what}")


def query(prometheus, expression):
    url = f"http://{prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)["data"]["result"]


def with_data(result):
    return [s for s in result if s["value"][1] not in ("NaN", "+Inf")]


def main():
    prometheus, promtool = fetch_prometheus()
    subprocess.run([promtool, "check", "rules", rules / "rules.yml"], check=True)
    subprocess.run([promtool, "test", "rules", rules / "rules_test.yml"], check=True)
    subprocess.run([promtool, "check", "config", rules / "prometheus.yml"], check=True)

    grpc, metrics = start_server()
    with urllib.request.urlopen(f"http://{metrics}/metrics") as page:
        subprocess.run([promtool, "check", "metrics"], input=page.read(), check=True)

    address = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory() as scratch:
        config = pathlib.Path(scratch, "prometheus.yml")
        config.write_text(f"""
global: {{scrape_interval: 250ms, evaluation_interval: 250ms}}
rule_files: [{rules}/rules.yml]
scrape_configs:
  - {{job_name: attend, static_configs: [{{targets: ["{metrics}"]}}]}}
""")
        start(prometheus, f"--config.file={config}", f"--storage.tsdb.path={scratch}/data",
              f"--web.listen-address={address}", "--log.level=error")
        await_true("up", lambda: with_data(query(address, 'up{job="attend"} == 1')))

        load = start(binaries / "attend", "load", "--target", grpc, "--model", "demo", "--rate", "100",
                     "--duration", "110s", "--lengths", "2..32", "--seed", "1")
        dashboard = json.loads((source / "deploy/grafana/dashboards/attend.json").read_text())
        queries = [t["expr"].replace("$__rate_interval", "5s")
                   for panel in dashboard["panels"] for t in panel["targets"]]
        assert len(queries) >= 15, "the dashboard lost its queries"
        recorded = re.findall(r"record: (\S+)", (rules / "rules.yml").read_text())
        for expression in queries + [r for r in recorded if "_ratio" not in r]:
            await_true(f"data for {expression}", lambda: with_data(query(address, expression)))
        if load.poll() is not None:
            sys.exit(f"the load ended early:\n{load.stdout.read()}")
        firing = query(address, 'ALERTS{alertstate="firing"}')
        if firing:
            sys.exit(f"alerts fire on a healthy server: {firing}")
    print(f"{len(queries)} queries of the dashboard and {len(recorded)} recordings have data")


try:
    main()
finally:
    for child in reversed(children):
        child.send_signal(signal.SIGTERM)
    for child in children:
        child.wait(timeout=60)
