"""Chooses the ServingRuntime of a model: the one it names, or the best automatic match.

In: a model, runtimes. Out: the runtime, or the reason why there is none, in KServe's words. Never: writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from argosy.kube.objects import Manifest

PROTOCOLS: Final = ("v1", "v2", "grpc-v1", "grpc-v2")  # in order of preference
Model = dict[str, Any]


class Chosen(NamedTuple):
    runtime: Manifest | None  # None: no runtime supports it
    reason: str = ""
    message: str = ""

    @property
    def is_of_cluster(self) -> bool:
        return self.runtime is not None and not self.runtime["metadata"].get("namespace")


def choose(model: Model, own: Iterable[Manifest], shared: Iterable[Manifest]) -> Chosen:
    """Choose a runtime; runtimes of the namespace come before runtimes of the cluster."""
    own, shared = list(own), list(shared)
    if name := model.get("runtime"):
        named = next((each for each in (*own, *shared) if each["metadata"]["name"] == name), None)
        return _named(model, named)
    fitting = [
        each
        for group in (own, shared)
        for each in _by_priority(model, [each for each in group if _offers_itself(each, model)])
    ]
    if not fitting:
        return Chosen(None, "NoSupportingRuntime", "No runtime found to support specified framework/version")
    return Chosen(fitting[0])


def _named(model: Model, runtime: Manifest | None) -> Chosen:
    if runtime is None:
        return Chosen(None, "RuntimeNotRecognized", "Waiting for runtime to become available")
    if runtime["spec"].get("disabled"):
        return Chosen(None, "RuntimeDisabled", "Specified runtime is disabled")
    if model.get("protocolVersion") and not _speaks(runtime, model["protocolVersion"]):
        message = "Specified runtime does not support specified protocol version"
        return Chosen(None, "NoSupportingRuntime", message)
    if not any(_is_format(each, model) for each in _formats(runtime)):
        message = "Specified runtime does not support specified framework/version"
        return Chosen(None, "NoSupportingRuntime", message)
    if not runtime["spec"].get("containers"):
        message = "no container configuration found in selected serving runtime"
        return Chosen(None, "InvalidPredictorSpec", message)
    return Chosen(runtime)


def _offers_itself(runtime: Manifest, model: Model) -> bool:
    spec = runtime["spec"]
    is_single = not spec.get("multiModel") and not spec.get("disabled") and bool(spec.get("containers"))
    selects = any(each.get("autoSelect") and _is_format(each, model) for each in _formats(runtime))
    return is_single and selects and _speaks(runtime, str(model.get("protocolVersion") or "v1"))


def _formats(runtime: Manifest) -> list[dict[str, Any]]:
    return list(runtime["spec"].get("supportedModelFormats") or ())


def _is_format(offered: dict[str, Any], model: Model) -> bool:
    """kserve: a model without a version matches any version, one with a version only that version."""
    wanted = model.get("modelFormat") or {}
    same = offered["name"] == wanted.get("name")
    return same and (wanted.get("version") is None or offered.get("version") == wanted["version"])


def _speaks(runtime: Manifest, protocol: str) -> bool:
    spoken = runtime["spec"].get("protocolVersions") or ()
    return not spoken or protocol in spoken


def _by_priority(model: Model, runtimes: list[Manifest]) -> list[Manifest]:
    """kserve: sort by priority, then by simplest protocol, newest, name."""
    by_name = sorted(runtimes, key=lambda each: str(each["metadata"]["name"]))
    by_age = sorted(by_name, key=lambda each: str(each["metadata"].get("creationTimestamp") or ""), reverse=True)
    by_protocol = sorted(by_age, key=_simplest)
    return sorted(by_protocol, key=lambda each: -_priority(each, model))


def _simplest(runtime: Manifest) -> int:
    spoken = runtime["spec"].get("protocolVersions") or ()
    return min((PROTOCOLS.index(each) for each in spoken if each in PROTOCOLS), default=len(PROTOCOLS))


def _priority(runtime: Manifest, model: Model) -> int:
    """Return the highest priority for the model's format, or -1 if the runtime sets none."""
    wanted = (model.get("modelFormat") or {}).get("name")
    said = [each.get("priority") for each in _formats(runtime) if each["name"] == wanted and each.get("autoSelect")]
    return max((int(each) for each in said if each is not None), default=-1)
