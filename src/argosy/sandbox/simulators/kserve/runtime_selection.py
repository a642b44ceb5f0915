"""Chooses the ServingRuntime of a model: the one it names, or the best automatic match.

In: a model, runtimes. Out: the runtime, or the reason why there is none, in KServe's words. Never: writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from argosy.kube.objects import Manifest

PROTOCOLS: Final = ("v1", "v2", "grpc-v1", "grpc-v2")  # in order of preference
ModelFields = dict[str, Any]


class RuntimeChoice(NamedTuple):
    runtime: Manifest | None  # None: no runtime supports it
    reason: str = ""
    message: str = ""

    @property
    def is_cluster_runtime(self) -> bool:
        return self.runtime is not None and not self.runtime["metadata"].get("namespace")


def choose_runtime(
    model: ModelFields, namespace_runtimes: Iterable[Manifest], cluster_runtimes: Iterable[Manifest]
) -> RuntimeChoice:
    """Choose a runtime; runtimes of the namespace come before runtimes of the cluster."""
    namespace_runtimes, cluster_runtimes = list(namespace_runtimes), list(cluster_runtimes)
    if name := model.get("runtime"):
        named_runtime = next(
            (
                candidate
                for candidate in (*namespace_runtimes, *cluster_runtimes)
                if candidate["metadata"]["name"] == name
            ),
            None,
        )
        return _check_named_runtime(model, named_runtime)
    supporting = [
        candidate
        for group in (namespace_runtimes, cluster_runtimes)
        for candidate in _sort_by_priority(
            model, [candidate for candidate in group if _is_auto_selectable(candidate, model)]
        )
    ]
    if not supporting:
        return RuntimeChoice(None, "NoSupportingRuntime", "No runtime found to support specified framework/version")
    return RuntimeChoice(supporting[0])


def _check_named_runtime(model: ModelFields, runtime: Manifest | None) -> RuntimeChoice:
    if runtime is None:
        return RuntimeChoice(None, "RuntimeNotRecognized", "Waiting for runtime to become available")
    if runtime["spec"].get("disabled"):
        return RuntimeChoice(None, "RuntimeDisabled", "Specified runtime is disabled")
    if model.get("protocolVersion") and not _supports_protocol(runtime, model["protocolVersion"]):
        message = "Specified runtime does not support specified protocol version"
        return RuntimeChoice(None, "NoSupportingRuntime", message)
    if not any(_supports_format(supported, model) for supported in _list_formats(runtime)):
        message = "Specified runtime does not support specified framework/version"
        return RuntimeChoice(None, "NoSupportingRuntime", message)
    if not runtime["spec"].get("containers"):
        message = "no container configuration found in selected serving runtime"
        return RuntimeChoice(None, "InvalidPredictorSpec", message)
    return RuntimeChoice(runtime)


def _is_auto_selectable(runtime: Manifest, model: ModelFields) -> bool:
    spec = runtime["spec"]
    is_usable = not spec.get("multiModel") and not spec.get("disabled") and bool(spec.get("containers"))
    selects = any(
        supported.get("autoSelect") and _supports_format(supported, model) for supported in _list_formats(runtime)
    )
    return is_usable and selects and _supports_protocol(runtime, str(model.get("protocolVersion") or "v1"))


def _list_formats(runtime: Manifest) -> list[dict[str, Any]]:
    return list(runtime["spec"].get("supportedModelFormats") or ())


def _supports_format(supported: dict[str, Any], model: ModelFields) -> bool:
    """kserve: a model without a version matches any version, one with a version only that version."""
    model_format = model.get("modelFormat") or {}
    is_same_name = supported["name"] == model_format.get("name")
    return is_same_name and (model_format.get("version") is None or supported.get("version") == model_format["version"])


def _supports_protocol(runtime: Manifest, protocol: str) -> bool:
    protocols = runtime["spec"].get("protocolVersions") or ()
    return not protocols or protocol in protocols


def _sort_by_priority(model: ModelFields, runtimes: list[Manifest]) -> list[Manifest]:
    """kserve: sort by priority, then by simplest protocol, newest, name."""
    by_name = sorted(runtimes, key=lambda runtime: str(runtime["metadata"]["name"]))
    by_age = sorted(by_name, key=lambda runtime: str(runtime["metadata"].get("creationTimestamp") or ""), reverse=True)
    by_protocol = sorted(by_age, key=_rank_protocol)
    return sorted(by_protocol, key=lambda runtime: -_read_priority(runtime, model))


def _rank_protocol(runtime: Manifest) -> int:
    protocols = runtime["spec"].get("protocolVersions") or ()
    return min((PROTOCOLS.index(protocol) for protocol in protocols if protocol in PROTOCOLS), default=len(PROTOCOLS))


def _read_priority(runtime: Manifest, model: ModelFields) -> int:
    """Return the highest priority for the model's format, or -1 if the runtime sets none."""
    format_name = (model.get("modelFormat") or {}).get("name")
    priorities = [
        item.get("priority")
        for item in _list_formats(runtime)
        if item["name"] == format_name and item.get("autoSelect")
    ]
    return max((int(item) for item in priorities if item is not None), default=-1)
