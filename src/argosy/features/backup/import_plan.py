"""Plan of an import: the changes, computed before anything is written.

In: documents of a file, live objects. Out: changes, each with a verb and a body. Never: I/O; changes objects that an
operator manages; changes an Application with a running operation unless it is to be terminated.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from argosy import annotations as names
from argosy.errors import UserError
from argosy.features.backup.export_format import (
    ADDON_ANNOTATIONS,
    COMPLETED_PHASES,
    USER_DECISION_ANNOTATIONS,
    manifest_to_export,
    prepare_for_import,
)
from argosy.features.backup.installation_objects import EXPORTED_KINDS, BackupScope
from argosy.gitops.diff.secret_masks import mask_secrets
from argosy.gitops.policy.application_delivery_engine_detection import DeliveryEngines
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings, omit_empty
from argosy.gitops.status.sync_hold_annotation import SyncHold, hold_to_annotation
from argosy.kube.objects import Manifest, key_of
from argosy.kube.patch import merge_patch
from argosy.kube.patch.change_sentences import describe_changes
from argosy.kube.resource_key import ResourceKey

KIND_ORDER: Final = {group_kind.kind: index for index, group_kind in enumerate(EXPORTED_KINDS)}
OPERATION_RUNNING_REASON: Final = "an operation is in progress: wait until it completes, or pass --stop-operation"
DUPLICATE_MESSAGE: Final = "{what} occurs more than once; keep one of them, or import the exports one after the other"
UNKNOWN_ENGINES: Final = DeliveryEngines(is_known=False)
DEFAULT_PROJECT: Final = "default"  # the project that every installation has


class ImportVerb(enum.StrEnum):
    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    PRUNE = "prune"
    NEEDS_PRUNING = "needs pruning"
    SKIP = "skip"


@dataclass(frozen=True)
class ImportOptions:
    """Options of an import. `hold` is set on new Applications with automated sync."""

    scope: BackupScope
    prunes: bool = False
    terminates_operations: bool = False  # terminates running operations
    overwrites_decisions: bool = False  # overwrites decisions of users in this cluster
    hold: SyncHold | None = None
    skipped_labels: tuple[str, ...] = ()  # NAME, or NAME=VALUE
    # Of the cluster: objects of another Argo CD are not pruned unless requested.
    engines: DeliveryEngines = UNKNOWN_ENGINES


@dataclass(frozen=True)
class ImportChange:
    verb: ImportVerb
    key: ResourceKey
    reason: str = ""  # reason for a skip, a refusal, or kept user decisions
    body: Mapping[str, Any] = field(default_factory=dict)  # to create, or a merge patch
    version: str = ""  # resourceVersion of what was read
    uid: str = ""  # of the object to prune
    differences: tuple[str, ...] = ()  # one sentence for each changed field
    is_refused: bool = False

    @property
    def writes(self) -> bool:
        return self.verb in (ImportVerb.CREATE, ImportVerb.UPDATE, ImportVerb.PRUNE)

    def to_wire(self) -> dict[str, Any]:
        wire = {"verb": self.verb.value, **self.key._asdict(), "why": self.reason, "refused": self.is_refused}
        return {**wire, "differences": list(self.differences)}


def plan_changes(documents: Sequence[Manifest], live: Iterable[Manifest], options: ImportOptions) -> list[ImportChange]:
    """Plan the changes in execution order: settings and projects before Applications. Raises UserError."""
    live_by_key = {key_of(document): document for document in live}
    wanted_by_key = {}
    for document in sorted(documents, key=lambda entry: KIND_ORDER.get(entry["kind"], len(KIND_ORDER))):
        manifest = _with_namespace(document, options.scope.control)
        key = key_of(manifest)
        if key in wanted_by_key:
            raise UserError(DUPLICATE_MESSAGE.format(what=f"{key.kind} {key.name} in {key.namespace}"))
        wanted_by_key[key] = manifest
    changes = [_plan_object(document, live_by_key.pop(key, None), options) for key, document in wanted_by_key.items()]
    return [*changes, *_plan_prunes(live_by_key.values(), options)]


def _with_namespace(document: Manifest, control: str) -> Manifest:
    metadata = document["metadata"]
    return {**document, "metadata": {**metadata, "namespace": metadata.get("namespace") or control}}


def _plan_object(document: Manifest, live: Manifest | None, options: ImportOptions) -> ImportChange:
    key = key_of(document)
    if key.group_kind not in EXPORTED_KINDS:
        return ImportChange(ImportVerb.SKIP, key, "not part of an installation")
    if label := _find_skipped_label(document, options) or (live and _find_skipped_label(live, options)):
        return ImportChange(ImportVerb.SKIP, key, f"it has the label {label}")
    if not options.scope.includes(document):
        is_secret = key.kind == "Secret" and not options.scope.has_secrets
        return ImportChange(
            ImportVerb.SKIP, key, "use --secrets to import it" if is_secret else "not in the requested scope"
        )
    prepared = prepare_for_import(manifest_to_export(document, ""))
    if live is None:
        return ImportChange(ImportVerb.CREATE, key, body=_add_hold(prepared, options))
    return _plan_update(key, prepared, live, options)


def _find_skipped_label(manifest: Manifest, options: ImportOptions) -> str:
    labels = manifest["metadata"].get("labels") or {}
    label_texts = {*labels, *(f"{name}={value}" for name, value in labels.items())}
    return next((label for label in options.skipped_labels if label in label_texts), "")


def _add_hold(prepared: Mapping[str, Any], options: ImportOptions) -> dict[str, Any]:
    """Add the hold to a new Application with automated sync."""
    automated = as_mapping(as_mapping(prepared.get("spec")).get("syncPolicy")).get("automated")
    if options.hold is None or prepared["kind"] != "Application" or automated is None:
        return dict(prepared)
    metadata = prepared["metadata"]
    annotations = {names.HOLD: hold_to_annotation(options.hold), **(metadata.get("annotations") or {})}
    return {**prepared, "metadata": {**metadata, "annotations": annotations}}


def _plan_update(key: ResourceKey, prepared: Mapping[str, Any], live: Manifest, options: ImportOptions) -> ImportChange:
    version = str(live["metadata"].get("resourceVersion") or "")
    if any(owner.get("kind") == "ArgoCD" for owner in as_mappings(live["metadata"].get("ownerReferences"))):
        return ImportChange(ImportVerb.SKIP, key, "managed by an operator: change the ArgoCD resource")
    live_export = manifest_to_export(live, "")
    kept_annotations = (
        ADDON_ANNOTATIONS if options.overwrites_decisions else ADDON_ANNOTATIONS | USER_DECISION_ANNOTATIONS
    )
    patch = merge_patch.diff(
        _normalize_for_diff(live_export), _normalize_for_diff(prepared, live_export, kept_annotations)
    )
    if key.kind == "Application":
        if not as_mapping(live_export.get("status")).get("history") and as_mapping(prepared.get("status")).get(
            "history"
        ):
            patch["status"] = prepared["status"]  # a live history is newer than that of the file
        if has_running_operation(live):
            if patch and not options.terminates_operations:
                differences = tuple(_describe_differences(live, patch))
                return ImportChange(
                    ImportVerb.UPDATE, key, OPERATION_RUNNING_REASON, is_refused=True, differences=differences
                )
            patch |= _build_termination_patch(live) if options.terminates_operations else {}
    reason = _describe_kept_decisions(live_export, prepared) if not options.overwrites_decisions else ""
    verb, differences = (
        (ImportVerb.UPDATE, tuple(_describe_differences(live, patch))) if patch else (ImportVerb.UNCHANGED, ())
    )
    return ImportChange(verb, key, reason, body=patch, version=version, differences=differences)


def _describe_differences(live_object: Manifest, patch: Mapping[str, Any]) -> Iterator[str]:
    """Describe the changed fields; Secret values are masked."""
    status = as_mapping(patch.get("status"))
    other_status = {name: value for name, value in status.items() if name != "history"}
    visible_patch = {
        **{name: value for name, value in patch.items() if name != "status"},
        **omit_empty(status=other_status),
    }
    live, after = mask_secrets((live_object, merge_patch.apply(live_object, visible_patch)))
    yield from describe_changes(live or {}, merge_patch.diff(live, after))
    if history := status.get("history"):
        yield f"status.history: {len(history)} {'entry' if len(history) == 1 else 'entries'} added"


def _describe_kept_decisions(live_export: Mapping[str, Any], prepared: Mapping[str, Any]) -> str:
    live_annotations, file_annotations = (
        manifest["metadata"].get("annotations") or {} for manifest in (live_export, prepared)
    )
    changed_names = sorted(
        name for name in USER_DECISION_ANNOTATIONS if live_annotations.get(name) != file_annotations.get(name)
    )
    verb_phrase = "is kept" if len(changed_names) == 1 else "are kept"
    return (
        f"{', '.join(changed_names)} {verb_phrase}; --decisions overwrites them with the values in the file"
        if changed_names
        else ""
    )


def has_running_operation(app: Manifest) -> bool:
    phase = _read_phase(app)
    return "operation" in app or bool(phase and phase not in COMPLETED_PHASES)


def _read_phase(app: Manifest) -> object:
    return as_mapping(as_mapping(app.get("status")).get("operationState")).get("phase")


def _build_termination_patch(live: Manifest) -> dict[str, Any]:
    """Patch that ends the operation: remove a pending one, set a running one to Terminating."""
    phase = _read_phase(live)
    if phase and phase not in COMPLETED_PHASES:
        return {"status": {"operationState": {"phase": "Terminating"}}} if phase != "Terminating" else {}
    return {"operation": None} if "operation" in live else {}


def _normalize_for_diff(
    manifest: Mapping[str, Any], live: Mapping[str, Any] | None = None, kept_names: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """The manifest for comparison: without status, and with the live values of annotations in `kept_names`."""
    fields = {name: value for name, value in manifest.items() if name not in ("status", "apiVersion")}
    metadata = dict(manifest["metadata"])
    annotations = dict(metadata.get("annotations") or {})
    if live is not None:
        live_annotations = live["metadata"].get("annotations") or {}
        annotations = {name: text for name, text in annotations.items() if name not in kept_names}
        annotations |= {name: live_annotations[name] for name in kept_names if name in live_annotations}
    metadata["annotations"] = annotations
    metadata["labels"] = dict(metadata.get("labels") or {})
    metadata["finalizers"] = list(metadata.get("finalizers") or [])
    return {**fields, "metadata": metadata}


def _plan_prunes(live: Iterable[Manifest], options: ImportOptions) -> Iterable[ImportChange]:
    """argo: changes for live objects that are not in the file; settings are never pruned."""
    for manifest in live:
        key = key_of(manifest)
        is_default = key.kind == "AppProject" and key.name == DEFAULT_PROJECT
        if (
            key.kind == "ConfigMap"
            or is_default
            or not options.scope.includes(manifest)
            or _find_skipped_label(manifest, options)
        ):
            continue
        if owner := _find_foreign_owner(key.namespace, options):
            if options.prunes:
                yield ImportChange(ImportVerb.SKIP, key, f"{owner}; --application-namespaces {key.namespace} prunes it")
            continue
        version = str(manifest["metadata"].get("resourceVersion") or "")
        if not options.prunes:
            yield ImportChange(ImportVerb.NEEDS_PRUNING, key, version=version)
        elif key.kind == "Application" and has_running_operation(manifest) and not options.terminates_operations:
            yield ImportChange(ImportVerb.PRUNE, key, OPERATION_RUNNING_REASON, is_refused=True)
        else:
            yield ImportChange(ImportVerb.PRUNE, key, version=version, uid=str(manifest["metadata"].get("uid") or ""))


def _find_foreign_owner(namespace: str, options: ImportOptions) -> str:
    """Reason why another Argo CD may own the namespace; empty for the control namespace and requested namespaces."""
    if namespace == options.scope.control or options.scope.namespaces:
        return ""
    if not options.engines.is_known:
        return "no permission to check whether an Argo CD manages it"
    foreign_engines = replace(
        options.engines,
        controllers=tuple(
            controller for controller in options.engines.controllers if controller.namespace != options.scope.control
        ),
    )
    return (
        f"managed by an Argo CD ({', '.join(owners)})"
        if (owners := foreign_engines.list_watching_controllers(namespace))
        else ""
    )


def list_missing_namespaces(changes: Iterable[ImportChange], existing_names: Iterable[str]) -> list[str]:
    return sorted(
        {change.key.namespace for change in changes if change.verb is ImportVerb.CREATE} - set(existing_names)
    )
