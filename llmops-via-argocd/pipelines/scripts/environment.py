"""Checks one rendered environment against its expectations.

In: its manifests and its entry in expectations.yaml. Out: findings, one sentence each. Never: reads a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from documents import format_name, get_nested

Manifest = dict[str, Any]
UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
WAVE = "argocd.argoproj.io/sync-wave"


def parse_quantity(quantity: Any) -> Decimal | None:
    """Convert a quantity to a number; None if it is not a quantity."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([A-Za-z]*)", str(quantity))
    if not match or match[2] not in (*UNITS, "m"):
        return None
    return Decimal(match[1]) / 1000 if match[2] == "m" else Decimal(match[1]) * UNITS[match[2]]


def check_environment(
    manifests: list[Manifest], expected: dict[str, Any], cluster_runtimes: list[str]
) -> Iterator[str]:
    runtimes = {get_nested(runtime, "metadata", "name") for runtime in select_kind("ServingRuntime", manifests)}
    runtimes |= set(cluster_runtimes)
    for manifest in manifests:
        findings = list(check_names(manifest, expected))
        if manifest.get("kind") == "InferenceService":
            findings += check_replicas(manifest, expected["replicas"])
            findings += check_resources(manifest, expected["limits"])
            findings += check_runtime(manifest, runtimes)
        if manifest.get("kind") == "ServingRuntime":
            findings += check_arguments(manifest)
        yield from (f"{format_name(manifest)}: {finding}" for finding in findings)
    if not select_kind("InferenceService", manifests):
        yield "there is no InferenceService"
    yield from check_waves(manifests)


def select_kind(kind: str, manifests: list[Manifest]) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest.get("kind") == kind]


def check_names(manifest: Manifest, expected: dict[str, Any]) -> Iterator[str]:
    if not str(get_nested(manifest, "metadata", "name")).startswith(expected["prefix"]):
        yield f"the name does not begin with {expected['prefix']}"
    if (namespace := get_nested(manifest, "metadata", "namespace")) != expected["namespace"]:
        yield f"the namespace is {namespace}, not {expected['namespace']}"


def check_replicas(service: Manifest, expected: dict[str, int]) -> Iterator[str]:
    minimum, maximum = (get_nested(service, "spec", "predictor", field) for field in ("minReplicas", "maxReplicas"))
    if not isinstance(minimum, int) or not isinstance(maximum, int):
        yield f"minReplicas {minimum!r} and maxReplicas {maximum!r} must be numbers"
    elif not expected["least"] <= minimum <= maximum <= expected["most"]:
        yield f"replicas {minimum} to {maximum} are not within {expected['least']} to {expected['most']}"


def check_resources(service: Manifest, expected: dict[str, Any]) -> Iterator[str]:
    resources = get_nested(service, "spec", "predictor", "model", "resources")
    for name, maximum in expected.items():
        limit, request = get_nested(resources, "limits", name), get_nested(resources, "requests", name)
        limit_amount, request_amount, max_amount = map(parse_quantity, (limit, request, maximum))
        if limit_amount is None or request_amount is None or max_amount is None:
            yield f"{name}: the request {request} or the limit {limit} is not a quantity"
        elif not 0 < limit_amount <= max_amount:
            yield f"{name}: the limit {limit} is more than the {maximum} that expectations.yaml allows"
        elif request_amount > limit_amount:
            yield f"{name}: the request {request} is more than the limit {limit}"


def check_runtime(service: Manifest, runtimes: set[str]) -> Iterator[str]:
    if (runtime := get_nested(service, "spec", "predictor", "model", "runtime")) not in runtimes:
        known_runtimes = ", ".join(sorted(map(str, runtimes))) or "none"
        yield f"the runtime {runtime} does not exist, only {known_runtimes}; namePrefix does not change this field"


def check_arguments(runtime: Manifest) -> Iterator[str]:
    """A separate value belongs to the flag before it; a patch at the wrong position breaks this pair."""
    for container in get_nested(runtime, "spec", "containers") or []:
        arguments = [str(argument) for argument in get_nested(container, "args") or []]
        for previous, argument in zip(["", *arguments], arguments, strict=False):
            if not argument.startswith("-") and not (previous.startswith("--") and "=" not in previous):
                yield f"the argument {argument} follows {previous or 'nothing'}, which takes no value"
        for flag, value in zip(arguments, [*arguments[1:], ""], strict=True):
            if flag == "--max-model-len" and not value.isdigit():
                yield f"--max-model-len is followed by {value or 'nothing'}, not by a number"


def read_wave(manifest: Manifest) -> int:
    text = str((get_nested(manifest, "metadata", "annotations") or {}).get(WAVE, "0"))
    return int(text) if re.fullmatch(r"-?\d+", text) else 0


def check_waves(manifests: list[Manifest]) -> Iterator[str]:
    """The dependencies of a model must be in an earlier wave: Argo CD waits between waves, not within a wave."""
    services = select_kind("InferenceService", manifests)
    first = min(map(read_wave, services), default=0)
    for manifest in manifests:
        wave = read_wave(manifest)
        if services and manifest.get("kind") != "InferenceService" and wave >= first:
            yield f"{format_name(manifest)}: wave {wave} is not before the InferenceService's wave {first}"
