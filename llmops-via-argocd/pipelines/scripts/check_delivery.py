#!/usr/bin/env python3
"""Checks that the rendered manifests are consistent and match pipelines/expectations.yaml.

In: the folder of rendered overlays. Out: one line per finding; exit code 1 if there is one. Never: uses a cluster.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from documents import FOLDER, format_name, get_nested, read_environments, read_mappings, report
from environment import check_environment
from positions import check_positions

OVERLAYS = FOLDER / "deploy_model/overlays"


def read_folder(folder: str) -> list[dict[str, Any]]:
    return [manifest for path in sorted((FOLDER / folder).glob("*.yaml")) for manifest in read_mappings(path)]


def check_application(application: dict[str, Any], expectations: dict[str, Any]) -> Iterator[str]:
    environments: dict[str, Any] = expectations["environments"]
    name = get_nested(application, "metadata", "name")
    matching = (key for key, expected in environments.items() if expected["application"] == name)
    environment = next(matching, None)
    if environment is None:
        yield "is not in expectations.yaml"
        return
    expected, path = environments[environment], get_nested(application, "spec", "source", "path")
    if not str(path).endswith(f"deploy_model/overlays/{environment}") or not (OVERLAYS / environment).is_dir():
        yield f"the path {path} is not the overlay {environment}"
    if (ref := get_nested(application, "spec", "source", "targetRevision")) != expectations["targetRevision"]:
        yield f"targetRevision is {ref}, not {expectations['targetRevision']}"
    if (namespace := get_nested(application, "spec", "destination", "namespace")) != expected["namespace"]:
        yield f"the namespace is {namespace}, not {expected['namespace']}"
    if (get_nested(application, "spec", "syncPolicy", "automated") is not None) != (expected["sync"] == "automatic"):
        yield f"the sync is not {expected['sync']}"


def check(folder: Path) -> Iterator[str]:
    expectations = read_mappings(FOLDER / "pipelines/expectations.yaml")[0]
    environments, expected = read_environments(folder), expectations["environments"]
    overlays = {path.name for path in OVERLAYS.iterdir() if path.is_dir()}
    for name in sorted(overlays ^ expected.keys()):
        yield f"{name}: is in only one of deploy_model/overlays and pipelines/expectations.yaml"
    for name in sorted(environments.keys() & expected.keys()):
        findings = check_environment(environments[name], expected[name], expectations["clusterServingRuntimes"])
        yield from (f"{name}: {finding}" for finding in findings)
    base_manifests = read_folder("deploy_model/base")
    for name in sorted(overlays):
        yield from (f"{name}: {finding}" for finding in check_positions(OVERLAYS / name, base_manifests))
    applications = read_folder("argocd-apps")
    for application in applications:
        yield from (
            f"{format_name(application)}: {finding}" for finding in check_application(application, expectations)
        )
    if len({get_nested(application, "spec", "source", "repoURL") for application in applications}) > 1:
        yield "argocd-apps: the Applications come from different repositories"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rendered", type=Path, help="output folder of render.sh")
    report(list(check(parser.parse_args().rendered)), "the environments are consistent and match the expectations")
