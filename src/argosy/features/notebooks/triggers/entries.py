"""Parses the triggers in the annotation of a job.

In: the text of `mlops.dev/on-success-trigger`. Out: entries, and an error for each invalid one. Never: lets an invalid
entry block a valid one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import ManifestError, UserError
from argosy.features.notebooks.durations import seconds_of
from argosy.kube.names import GroupKind, split_api_version
from argosy.kube.objects import load

RESTART, SYNC, REFRESH = "restart", "sync", "refresh"
ACTIONS: Final = (RESTART, SYNC, REFRESH)
REQUIRED: Final = ("apiVersion", "kind", "name", "action")
OPTIONAL: Final = ("namespace", "waitFor", "timeout", "strategy", "probe")
ROLLING, EVICT = "rolling", "evict"
READY: Final = "Ready"
APPLICATION: Final = GroupKind("argoproj.io", "Application")
SERVICE: Final = GroupKind("serving.kserve.io", "InferenceService")
WORKLOADS: Final = tuple(GroupKind("apps", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet"))
PROBE: Final = ("path", "port", "contains")
TIMEOUT: Final = 600.0
MOST: Final = 20


@dataclass(frozen=True)
class Probe:
    """Request that a Pod with the new model must answer before the first old Pod is replaced."""

    path: str = ""  # "": readiness of the Pod is enough
    port: int = 0  # 0: the first port of the Pod's first container
    contains: str = ""


@dataclass(frozen=True)
class Entry:
    place: int
    api_version: str
    kind: str
    name: str
    action: str
    namespace: str = ""  # "": the job's, or the one that has an Application of that name
    waits: bool = False
    timeout: float = TIMEOUT
    strategy: str = ""
    probe: Probe | None = None
    digest: str = ""

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(split_api_version(self.api_version)[0], self.kind)


@dataclass(frozen=True)
class Fault:
    place: int
    message: str
    digest: str
    written: Mapping[str, Any]


def read_entries(text: str) -> tuple[list[Entry], list[Fault]]:
    try:
        written = load(text)
    except ManifestError as error:
        return [], [_whole(text, f"is not YAML: {error.message}")]
    if written is None:
        return [], []
    if not isinstance(written, Sequence) or isinstance(written, str):
        return [], [_whole(text, "is not a list; start each trigger with a dash")]
    if len(written) > MOST:
        return [], [_whole(text, f"has {len(written)} entries; at most {MOST} are allowed")]
    entries: dict[str, Entry] = {}
    faults: list[Fault] = []
    for place, each in enumerate(written):
        digest = _digest(each)
        try:
            entries.setdefault(digest, _entry(place, each, digest))  # duplicates are executed once
        except UserError as error:
            known = each if isinstance(each, Mapping) else {}
            faults.append(Fault(place, f"trigger[{place}]: {error}", digest, known))
    return list(entries.values()), faults


def _whole(text: str, message: str) -> Fault:
    return Fault(-1, f"mlops.dev/on-success-trigger: {message}", _digest(text), {})


def _digest(written: Any) -> str:
    return hashlib.sha256(json.dumps(written, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _entry(place: int, written: Any, digest: str) -> Entry:
    if not isinstance(written, Mapping):
        raise UserError(f"is not a map; set {', '.join(REQUIRED)}")
    for name in REQUIRED:
        if not written.get(name):
            raise UserError(f"{name} is required")
    for name in (*REQUIRED, "namespace"):
        if not isinstance(written.get(name, ""), str):
            raise UserError(f"{name} must be a string")
    action = written["action"]
    if action not in ACTIONS:
        raise UserError(f"invalid action '{action}' (must be restart, sync, or refresh)")
    if unknown := sorted(str(name) for name in written if name not in (*REQUIRED, *OPTIONAL)):
        raise UserError(f"unknown field '{unknown[0]}' (known: {', '.join((*REQUIRED, *OPTIONAL))})")
    entry = Entry(
        place=place,
        api_version=written["apiVersion"],
        kind=written["kind"],
        name=written["name"],
        action=action,
        namespace=written.get("namespace") or "",
        waits=_waits(written.get("waitFor")),
        timeout=seconds_of(str(written["timeout"]), "timeout") if written.get("timeout") else TIMEOUT,
        strategy=_strategy(written.get("strategy")),
        probe=_probe(written["probe"]) if "probe" in written else None,
        digest=digest,
    )
    _check(entry)
    return entry


def _check(entry: Entry) -> None:
    is_app = entry.group_kind == APPLICATION
    if entry.action == SYNC and not is_app:
        raise UserError(f"action 'sync' is for an Application of argoproj.io, not for {entry.group_kind}")
    if entry.action == RESTART and is_app:
        raise UserError("action 'restart' is for kinds with Pods; sync or refresh an Application")
    if entry.action != RESTART and (entry.strategy or entry.probe):
        raise UserError("strategy and probe are for action 'restart'")
    if entry.probe and entry.group_kind != SERVICE:
        raise UserError("probe is for an InferenceService; other kinds have their own readiness probes")
    if entry.strategy == EVICT and entry.group_kind in WORKLOADS:
        raise UserError(f"strategy 'evict' is not for a {entry.kind}; its Pods are replaced by a rolling update")


def _waits(written: Any) -> bool:
    if written in (None, ""):
        return False
    if written != READY:
        raise UserError(f"invalid waitFor '{written}' (must be {READY})")
    return True


def _strategy(written: Any) -> str:
    if written in (None, ""):
        return ""
    if written not in (ROLLING, EVICT):
        raise UserError(f"invalid strategy '{written}' (must be {ROLLING} or {EVICT})")
    return str(written)


def _probe(written: Any) -> Probe:
    """`probe: /v1/models/fraud`, or a map with a port, or with a text that the response must contain."""
    fields = {"path": written} if isinstance(written, str) else written
    if not isinstance(fields, Mapping) or set(fields) - set(PROBE):
        raise UserError(f"probe must be a path, or a map of {', '.join(PROBE)}")
    path, port = str(fields.get("path") or ""), fields.get("port") or 0
    if path and not path.startswith("/"):
        raise UserError("probe.path must start with a slash")
    if not isinstance(port, int) or not 0 <= port <= 65535:
        raise UserError("probe.port must be a port number")
    return Probe(path, port, str(fields.get("contains") or ""))
