#!/usr/bin/env python3
"""Checks that the rendered manifests are consistent and match pipelines/expectations.yaml.

In: the folder of rendered overlays. Out: one line per finding; exit code 1 if there is one. Never: uses a cluster.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from documents import FOLDER, conclude, dig, name_of, read, rendered
from environment import check_environment
from positions import check_positions

OVERLAYS = FOLDER / "deploy_model/overlays"


def all_in(folder: str) -> list[dict[str, Any]]:
    return [each for path in sorted((FOLDER / folder).glob("*.yaml")) for each in read(path)]


def check_application(application: dict[str, Any], expectations: dict[str, Any]) -> Iterator[str]:
    environments: dict[str, Any] = expectations["environments"]
    name = dig(application, "metadata", "name")
    environment = next((each for each, expected in environments.items() if expected["application"] == name), None)
    if environment is None:
        yield "is not in expectations.yaml"
        return
    expected, path = environments[environment], dig(application, "spec", "source", "path")
    if not str(path).endswith(f"deploy_model/overlays/{environment}") or not (OVERLAYS / environment).is_dir():
        yield f"the path {path} is not the overlay {environment}"
    if (ref := dig(application, "spec", "source", "targetRevision")) != expectations["targetRevision"]:
        yield f"targetRevision is {ref}, not {expectations['targetRevision']}"
    if (namespace := dig(application, "spec", "destination", "namespace")) != expected["namespace"]:
        yield f"the namespace is {namespace}, not {expected['namespace']}"
    if (dig(application, "spec", "syncPolicy", "automated") is not None) != (expected["sync"] == "automatic"):
        yield f"the sync is not {expected['sync']}"


def check(folder: Path) -> Iterator[str]:
    expectations = read(FOLDER / "pipelines/expectations.yaml")[0]
    environments, expected = rendered(folder), expectations["environments"]
    overlays = {path.name for path in OVERLAYS.iterdir() if path.is_dir()}
    for name in sorted(overlays ^ expected.keys()):
        yield f"{name}: is in only one of deploy_model/overlays and pipelines/expectations.yaml"
    for name in sorted(environments.keys() & expected.keys()):
        found = check_environment(environments[name], expected[name], expectations["clusterServingRuntimes"])
        yield from (f"{name}: {finding}" for finding in found)
    originals = all_in("deploy_model/base")
    for name in sorted(overlays):
        yield from (f"{name}: {finding}" for finding in check_positions(OVERLAYS / name, originals))
    applications = all_in("argocd-apps")
    for application in applications:
        yield from (f"{name_of(application)}: {finding}" for finding in check_application(application, expectations))
    if len({dig(each, "spec", "source", "repoURL") for each in applications}) > 1:
        yield "argocd-apps: the Applications come from different repositories"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rendered", type=Path, help="output folder of render.sh")
    conclude(list(check(parser.parse_args().rendered)), "the environments are consistent and match the expectations")
