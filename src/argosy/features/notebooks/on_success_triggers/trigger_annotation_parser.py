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
from argosy.features.notebooks.go_durations import parse_duration
from argosy.kube.objects import read_yaml
from argosy.kube.resource_key import GroupKind, split_api_version
from argosy.kube.well_known_kinds import APPLICATION, INFERENCE_SERVICE

RESTART, SYNC, REFRESH = "restart", "sync", "refresh"
ACTIONS: Final = (RESTART, SYNC, REFRESH)
REQUIRED_FIELDS: Final = ("apiVersion", "kind", "name", "action")
OPTIONAL_FIELDS: Final = ("namespace", "waitFor", "timeout", "strategy", "probe")
ROLLING, EVICT = "rolling", "evict"
READY: Final = "Ready"
WORKLOADS: Final = tuple(GroupKind("apps", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet"))
PROBE_FIELDS: Final = ("path", "port", "contains")
DEFAULT_TIMEOUT_SECONDS: Final = 600.0
MAX_ENTRIES: Final = 20


@dataclass(frozen=True)
class TrialProbe:
    """Request that a Pod with the new model must answer before the first old Pod is replaced."""

    path: str = ""  # "": readiness of the Pod is enough
    port: int = 0  # 0: the first port of the Pod's first container
    contains: str = ""


@dataclass(frozen=True)
class TriggerEntry:
    index: int
    api_version: str
    kind: str
    name: str
    action: str
    namespace: str = ""  # "": the job's, or the one that has an Application of that name
    waits: bool = False
    timeout: float = DEFAULT_TIMEOUT_SECONDS
    strategy: str = ""
    probe: TrialProbe | None = None
    digest: str = ""

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(split_api_version(self.api_version)[0], self.kind)


@dataclass(frozen=True)
class InvalidTrigger:
    index: int
    message: str
    digest: str
    fields: Mapping[str, Any]


def read_entries(text: str) -> tuple[list[TriggerEntry], list[InvalidTrigger]]:
    try:
        parsed = read_yaml(text)
    except ManifestError as error:
        return [], [_build_annotation_error(text, f"is not YAML: {error.message}")]
    if parsed is None:
        return [], []
    if not isinstance(parsed, Sequence) or isinstance(parsed, str):
        return [], [_build_annotation_error(text, "is not a list; start each trigger with a dash")]
    if len(parsed) > MAX_ENTRIES:
        return [], [_build_annotation_error(text, f"has {len(parsed)} entries; at most {MAX_ENTRIES} are allowed")]
    entries: dict[str, TriggerEntry] = {}
    invalid: list[InvalidTrigger] = []
    for index, item in enumerate(parsed):
        digest = _compute_digest(item)
        try:
            entries.setdefault(digest, _read_entry(index, item, digest))  # duplicates are executed once
        except UserError as error:
            item_fields = item if isinstance(item, Mapping) else {}
            invalid.append(InvalidTrigger(index, f"trigger[{index}]: {error}", digest, item_fields))
    return list(entries.values()), invalid


def _build_annotation_error(text: str, message: str) -> InvalidTrigger:
    return InvalidTrigger(-1, f"mlops.dev/on-success-trigger: {message}", _compute_digest(text), {})


def _compute_digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _read_entry(index: int, fields: Any, digest: str) -> TriggerEntry:
    if not isinstance(fields, Mapping):
        raise UserError(f"is not a map; set {', '.join(REQUIRED_FIELDS)}")
    for name in REQUIRED_FIELDS:
        if not fields.get(name):
            raise UserError(f"{name} is required")
    for name in (*REQUIRED_FIELDS, "namespace"):
        if not isinstance(fields.get(name, ""), str):
            raise UserError(f"{name} must be a string")
    action = fields["action"]
    if action not in ACTIONS:
        raise UserError(f"invalid action '{action}' (must be restart, sync, or refresh)")
    if unknown_fields := sorted(str(name) for name in fields if name not in (*REQUIRED_FIELDS, *OPTIONAL_FIELDS)):
        raise UserError(
            f"unknown field '{unknown_fields[0]}' (known: {', '.join((*REQUIRED_FIELDS, *OPTIONAL_FIELDS))})"
        )
    entry = TriggerEntry(
        index=index,
        api_version=fields["apiVersion"],
        kind=fields["kind"],
        name=fields["name"],
        action=action,
        namespace=fields.get("namespace") or "",
        waits=_read_wait_for(fields.get("waitFor")),
        timeout=parse_duration(str(fields["timeout"]), "timeout") if fields.get("timeout") else DEFAULT_TIMEOUT_SECONDS,
        strategy=_read_strategy(fields.get("strategy")),
        probe=_read_probe(fields["probe"]) if "probe" in fields else None,
        digest=digest,
    )
    _check_entry(entry)
    return entry


def _check_entry(entry: TriggerEntry) -> None:
    is_app = entry.group_kind == APPLICATION
    if entry.action == SYNC and not is_app:
        raise UserError(f"action 'sync' is for an Application of argoproj.io, not for {entry.group_kind}")
    if entry.action == RESTART and is_app:
        raise UserError("action 'restart' is for kinds with Pods; sync or refresh an Application")
    if entry.action != RESTART and (entry.strategy or entry.probe):
        raise UserError("strategy and probe are for action 'restart'")
    if entry.probe and entry.group_kind != INFERENCE_SERVICE:
        raise UserError("probe is for an InferenceService; other kinds have their own readiness probes")
    if entry.strategy == EVICT and entry.group_kind in WORKLOADS:
        raise UserError(f"strategy 'evict' is not for a {entry.kind}; its Pods are replaced by a rolling update")


def _read_wait_for(value: Any) -> bool:
    if value in (None, ""):
        return False
    if value != READY:
        raise UserError(f"invalid waitFor '{value}' (must be {READY})")
    return True


def _read_strategy(value: Any) -> str:
    if value in (None, ""):
        return ""
    if value not in (ROLLING, EVICT):
        raise UserError(f"invalid strategy '{value}' (must be {ROLLING} or {EVICT})")
    return str(value)


def _read_probe(value: Any) -> TrialProbe:
    """`probe: /v1/models/fraud`, or a map with a port, or with a text that the response must contain."""
    fields = {"path": value} if isinstance(value, str) else value
    if not isinstance(fields, Mapping) or set(fields) - set(PROBE_FIELDS):
        raise UserError(f"probe must be a path, or a map of {', '.join(PROBE_FIELDS)}")
    path, port = str(fields.get("path") or ""), fields.get("port") or 0
    if path and not path.startswith("/"):
        raise UserError("probe.path must start with a slash")
    if not isinstance(port, int) or not 0 <= port <= 65535:
        raise UserError("probe.port must be a port number")
    return TrialProbe(path, port, str(fields.get("contains") or ""))
