#!/usr/bin/env python3
"""What deploy/ ships for other programs is what these take: the dashboard, the chart, the runtime, compose.

usage: deploy_test.py SOURCE_DIR BIN_DIR [unittest arguments]
"""
import json
import pathlib
import re
import subprocess
import sys
import unittest

import jsonschema
import yaml

from helm_template import render

SOURCE, BINARIES = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
DEPLOY = SOURCE / "deploy"
VERSION = (SOURCE / "VERSION").read_text().strip()
CHART = DEPLOY / "helm/attend"
FLAGS = set(re.findall(r"--[a-z][a-z-]+", subprocess.run([BINARIES / "attend-server", "--help"],
                                                         capture_output=True, text=True).stdout))
HERE = pathlib.Path(__file__).parent


def flag_of(variable):
    return "--" + variable.removeprefix("ATTEND_").lower().replace("_", "-")


def manifests(**values):
    """The chart's objects by kind."""
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(values) <= set(defaults), "a value that the chart does not list"
    context = {"Values": {**defaults, **values}, "Release": {"Name": "attend"}}
    rendered = [render(path.read_text(), context) for path in sorted((CHART / "templates").glob("*.yaml"))]
    return {object["kind"]: object for text in rendered for object in yaml.safe_load_all(text)}


class Dashboard(unittest.TestCase):
    dashboard = json.loads((DEPLOY / "grafana/dashboards/attend.json").read_text())

    def test_it_holds_against_the_schema(self):
        jsonschema.Draft7Validator(json.loads((HERE / "dashboard.schema.json").read_text())).validate(self.dashboard)

    def test_panels_have_ids_of_their_own_and_do_not_overlap(self):
        panels = self.dashboard["panels"]
        self.assertEqual(len({p["id"] for p in panels}), len(panels))
        taken = [(x, y) for g in (p["gridPos"] for p in panels)
                 for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])]
        self.assertEqual(len(set(taken)), len(taken))
        self.assertLess(max(x for x, _ in taken), 24)

    def test_its_data_source_is_the_provisioned_one(self):
        sources = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yml").read_text())
        uids = {s["uid"] for s in sources["datasources"]}
        self.assertEqual({t["datasource"]["uid"] for p in self.dashboard["panels"] for t in p["targets"]}, uids)

    def test_compose_mounts_it_where_the_provider_looks(self):
        provider = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/attend.yml").read_text())
        path = provider["providers"][0]["options"]["path"]
        grafana = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["grafana"]
        mounts = dict(v.split(":")[:2] for v in grafana["volumes"])
        self.assertEqual(mounts["./grafana/dashboards"], path)
        self.assertIn("./grafana/provisioning", mounts)


class Chart(unittest.TestCase):
    def test_it_has_this_version(self):
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        self.assertEqual((chart["version"], chart["appVersion"]), (VERSION, VERSION))
        self.assertEqual(yaml.safe_load((CHART / "values.yaml").read_text())["image"], f"attend:{VERSION}")

    def test_the_service_finds_the_pods_and_their_ports(self):
        objects = manifests()
        deployment, service = objects["Deployment"]["spec"], objects["Service"]["spec"]
        labels = deployment["template"]["metadata"]["labels"]
        self.assertEqual(deployment["selector"]["matchLabels"], labels)
        self.assertLessEqual(service["selector"].items(), labels.items())
        names = {p["name"] for p in deployment["template"]["spec"]["containers"][0]["ports"]}
        self.assertEqual({p["targetPort"] for p in service["ports"]}, names)
        self.assertEqual(service["clusterIP"], "None")

    def test_models_are_mounted_when_a_claim_is_given_and_only_then(self):
        pod = manifests()["Deployment"]["spec"]["template"]["spec"]
        self.assertNotIn("volumes", pod)
        pod = manifests(modelsClaim="mine")["Deployment"]["spec"]["template"]["spec"]
        self.assertEqual(pod["volumes"][0]["persistentVolumeClaim"]["claimName"], "mine")
        container = pod["containers"][0]
        repository = {e["name"]: e["value"] for e in container["env"]}["ATTEND_MODEL_REPOSITORY"]
        self.assertEqual(container["volumeMounts"][0]["mountPath"], repository)

    def test_what_is_in_env_reaches_the_server_as_text(self):
        container = manifests(env={"ATTEND_MAX_BATCH_ITEMS": 16384})["Deployment"]["spec"]["template"]["spec"]["containers"][0]
        self.assertIn({"name": "ATTEND_MAX_BATCH_ITEMS", "value": "16384"}, container["env"])
        for variable in container["env"]:
            self.assertIn(flag_of(variable["name"]), FLAGS)

    def test_a_pod_may_drain_to_its_end(self):
        grace = manifests()["Deployment"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        self.assertGreater(grace, 5 + 30)  # drain delay and grace period


class OtherFiles(unittest.TestCase):
    def test_the_kserve_runtime_starts_a_server_that_it_can_reach(self):
        runtime = yaml.safe_load((DEPLOY / "kserve/runtime.yaml").read_text())
        self.assertEqual((runtime["apiVersion"], runtime["kind"]),
                         ("serving.kserve.io/v1alpha1", "ClusterServingRuntime"))
        container, = runtime["spec"]["containers"]
        self.assertEqual(container["name"], "kserve-container")
        self.assertEqual(container["image"], f"attend:{VERSION}")
        for argument in container["args"]:
            self.assertIn(argument.split("=")[0], FLAGS)
        port, = container["ports"]
        self.assertEqual((port["name"], port["containerPort"]), ("h2c", container["readinessProbe"]["grpc"]["port"]))

    def test_compose_gives_the_server_variables_that_it_knows(self):
        services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
        for variable in services["attend"]["environment"]:
            self.assertIn(flag_of(variable), FLAGS)

    def test_the_image_gives_the_server_variables_that_it_knows_and_this_version(self):
        dockerfile = (DEPLOY / "Dockerfile").read_text()
        for variable in re.findall(r"\b(ATTEND_[A-Z_]+)=\d", dockerfile):
            self.assertIn(flag_of(variable), FLAGS)
        self.assertIn(f"ARG VERSION={VERSION}\n", dockerfile)

    def test_a_stop_of_the_unit_lasts_longer_than_a_drain(self):
        unit = (DEPLOY / "systemd/attend.service").read_text()
        self.assertGreater(int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.M)[1]), 5 + 30)


unittest.main()
