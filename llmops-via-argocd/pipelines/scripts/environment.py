"""Checks one rendered environment against its expectations.

In: its manifests and its entry in expectations.yaml. Out: findings, one sentence each. Never: reads a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from documents import dig, name_of

Manifest = dict[str, Any]
UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
WAVE = "argocd.argoproj.io/sync-wave"


def amount(quantity: Any) -> Decimal | None:
    """Convert a quantity to a number; None if it is not a quantity."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([A-Za-z]*)", str(quantity))
    if not found or found[2] not in (*UNITS, "m"):
        return None
    return Decimal(found[1]) / 1000 if found[2] == "m" else Decimal(found[1]) * UNITS[found[2]]


def check_environment(manifests: list[Manifest], expected: dict[str, Any], offered: list[str]) -> Iterator[str]:
    runtimes = {dig(each, "metadata", "name") for each in of_kind("ServingRuntime", manifests)} | set(offered)
    for manifest in manifests:
        findings = list(check_names(manifest, expected))
        if manifest.get("kind") == "InferenceService":
            findings += check_replicas(manifest, expected["replicas"])
            findings += check_resources(manifest, expected["limits"])
            findings += check_runtime(manifest, runtimes)
        if manifest.get("kind") == "ServingRuntime":
            findings += check_arguments(manifest)
        yield from (f"{name_of(manifest)}: {finding}" for finding in findings)
    if not of_kind("InferenceService", manifests):
        yield "there is no InferenceService"
    yield from check_waves(manifests)


def of_kind(kind: str, manifests: list[Manifest]) -> list[Manifest]:
    return [each for each in manifests if each.get("kind") == kind]


def check_names(manifest: Manifest, expected: dict[str, Any]) -> Iterator[str]:
    if not str(dig(manifest, "metadata", "name")).startswith(expected["prefix"]):
        yield f"the name does not begin with {expected['prefix']}"
    if (namespace := dig(manifest, "metadata", "namespace")) != expected["namespace"]:
        yield f"the namespace is {namespace}, not {expected['namespace']}"


def check_replicas(service: Manifest, expected: dict[str, int]) -> Iterator[str]:
    least, most = (dig(service, "spec", "predictor", field) for field in ("minReplicas", "maxReplicas"))
    if not isinstance(least, int) or not isinstance(most, int):
        yield f"minReplicas {least!r} and maxReplicas {most!r} must be numbers"
    elif not expected["least"] <= least <= most <= expected["most"]:
        yield f"replicas {least} to {most} are not within {expected['least']} to {expected['most']}"


def check_resources(service: Manifest, expected: dict[str, Any]) -> Iterator[str]:
    resources = dig(service, "spec", "predictor", "model", "resources")
    for name, most in expected.items():
        limit, request = dig(resources, "limits", name), dig(resources, "requests", name)
        limited, requested, largest = amount(limit), amount(request), amount(most)
        if limited is None or requested is None or largest is None:
            yield f"{name}: the request {request} or the limit {limit} is not a quantity"
        elif not 0 < limited <= largest:
            yield f"{name}: the limit {limit} is more than the {most} that expectations.yaml allows"
        elif requested > limited:
            yield f"{name}: the request {request} is more than the limit {limit}"


def check_runtime(service: Manifest, runtimes: set[str]) -> Iterator[str]:
    if (runtime := dig(service, "spec", "predictor", "model", "runtime")) not in runtimes:
        known = ", ".join(sorted(map(str, runtimes))) or "none"
        yield f"the runtime {runtime} does not exist, only {known}; namePrefix does not change this field"


def check_arguments(runtime: Manifest) -> Iterator[str]:
    """A separate value belongs to the flag before it; a patch at the wrong position breaks this pair."""
    for container in dig(runtime, "spec", "containers") or []:
        arguments = [str(each) for each in dig(container, "args") or []]
        for before, argument in zip(["", *arguments], arguments, strict=False):
            if not argument.startswith("-") and not (before.startswith("--") and "=" not in before):
                yield f"the argument {argument} follows {before or 'nothing'}, which takes no value"
        for flag, value in zip(arguments, [*arguments[1:], ""], strict=True):
            if flag == "--max-model-len" and not value.isdigit():
                yield f"--max-model-len is followed by {value or 'nothing'}, not by a number"


def wave_of(manifest: Manifest) -> int:
    text = str((dig(manifest, "metadata", "annotations") or {}).get(WAVE, "0"))
    return int(text) if re.fullmatch(r"-?\d+", text) else 0


def check_waves(manifests: list[Manifest]) -> Iterator[str]:
    """The dependencies of a model must be in an earlier wave: Argo CD waits between waves, not within a wave."""
    services = of_kind("InferenceService", manifests)
    first = min(map(wave_of, services), default=0)
    for manifest in manifests:
        if services and manifest.get("kind") != "InferenceService" and wave_of(manifest) >= first:
            yield f"{name_of(manifest)}: wave {wave_of(manifest)} is not before the InferenceService's wave {first}"
