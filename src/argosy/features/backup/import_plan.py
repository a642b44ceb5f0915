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
from argosy.features.backup.file_format import DECIDED, LIVING, OVER, exported, moved
from argosy.features.backup.installation_objects import KINDS, Scope
from argosy.gitops.diff.secret_masks import masked
from argosy.gitops.policy.delivery_engine import Engines
from argosy.gitops.status.hold import Hold, hold_text
from argosy.gitops.status.wire_format import given, mapping, mappings
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.patch import merge_patch
from argosy.kube.patch.change_summary import sentences

ORDER: Final = {each.kind: place for place, each in enumerate(KINDS)}
UNDER_WAY: Final = "an operation is in progress: wait until it completes, or pass --stop-operation"
TWICE: Final = "{what} occurs more than once; keep one of them, or import the exports one after the other"
UNKNOWN: Final = Engines(is_known=False)
DEFAULT: Final = "default"  # the project that every installation has


class Verb(enum.StrEnum):
    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    PRUNE = "prune"
    NEEDS_PRUNING = "needs pruning"
    SKIP = "skip"


@dataclass(frozen=True)
class Wish:
    """Options of an import. `hold` is set on new Applications with automated sync."""

    scope: Scope
    prunes: bool = False
    stops: bool = False  # terminates running operations
    decides: bool = False  # overwrites decisions of users in this cluster
    hold: Hold | None = None
    skipped_labels: tuple[str, ...] = ()  # NAME, or NAME=VALUE
    engines: Engines = UNKNOWN  # of the cluster: objects of another Argo CD are not pruned unless requested


@dataclass(frozen=True)
class Change:
    verb: Verb
    key: ResourceKey
    why: str = ""  # reason for a skip, a refusal, or kept user decisions
    body: Mapping[str, Any] = field(default_factory=dict)  # to create, or a merge patch
    version: str = ""  # resourceVersion of what was read
    uid: str = ""  # of the object to prune
    differences: tuple[str, ...] = ()  # one sentence for each changed field
    is_refused: bool = False

    @property
    def writes(self) -> bool:
        return self.verb in (Verb.CREATE, Verb.UPDATE, Verb.PRUNE)

    def document(self) -> dict[str, Any]:
        named = {"verb": self.verb.value, **self.key._asdict(), "why": self.why, "refused": self.is_refused}
        return {**named, "differences": list(self.differences)}


def planned(documents: Sequence[Manifest], live: Iterable[Manifest], wish: Wish) -> list[Change]:
    """Plan the changes in execution order: settings and projects before Applications. Raises UserError."""
    there = {key_of(each): each for each in live}
    wanted = {}
    for each in sorted(documents, key=lambda found: ORDER.get(found["kind"], len(ORDER))):
        placed = _placed(each, wish.scope.control)
        key = key_of(placed)
        if key in wanted:
            raise UserError(TWICE.format(what=f"{key.kind} {key.name} in {key.namespace}"))
        wanted[key] = placed
    changes = [_change(each, there.pop(key, None), wish) for key, each in wanted.items()]
    return [*changes, *_left(there.values(), wish)]


def _placed(document: Manifest, control: str) -> Manifest:
    metadata = document["metadata"]
    return {**document, "metadata": {**metadata, "namespace": metadata.get("namespace") or control}}


def _change(document: Manifest, before: Manifest | None, wish: Wish) -> Change:
    key = key_of(document)
    if key.group_kind not in KINDS:
        return Change(Verb.SKIP, key, "not part of an installation")
    if found := _skipped_label(document, wish) or (before and _skipped_label(before, wish)):
        return Change(Verb.SKIP, key, f"it has the label {found}")
    if not wish.scope.has(document):
        is_secret = key.kind == "Secret" and not wish.scope.has_secrets
        return Change(Verb.SKIP, key, "use --secrets to import it" if is_secret else "not in the requested scope")
    wanted = moved(exported(document, ""))
    if before is None:
        return Change(Verb.CREATE, key, body=_held(wanted, wish))
    return _update(key, wanted, before, wish)


def _skipped_label(manifest: Manifest, wish: Wish) -> str:
    labels = manifest["metadata"].get("labels") or {}
    spelled = {*labels, *(f"{name}={value}" for name, value in labels.items())}
    return next((each for each in wish.skipped_labels if each in spelled), "")


def _held(wanted: Mapping[str, Any], wish: Wish) -> dict[str, Any]:
    """Add the hold to a new Application with automated sync."""
    automated = mapping(mapping(wanted.get("spec")).get("syncPolicy")).get("automated")
    if wish.hold is None or wanted["kind"] != "Application" or automated is None:
        return dict(wanted)
    metadata = wanted["metadata"]
    annotations = {names.HOLD: hold_text(wish.hold), **(metadata.get("annotations") or {})}
    return {**wanted, "metadata": {**metadata, "annotations": annotations}}


def _update(key: ResourceKey, wanted: Mapping[str, Any], before: Manifest, wish: Wish) -> Change:
    version = str(before["metadata"].get("resourceVersion") or "")
    if any(each.get("kind") == "ArgoCD" for each in mappings(before["metadata"].get("ownerReferences"))):
        return Change(Verb.SKIP, key, "managed by an operator: change the ArgoCD resource")
    have = exported(before, "")
    kept = LIVING if wish.decides else LIVING | DECIDED
    patch = merge_patch.diff(_compared(have), _compared(wanted, have, kept))
    if key.kind == "Application":
        if not mapping(have.get("status")).get("history") and mapping(wanted.get("status")).get("history"):
            patch["status"] = wanted["status"]  # a live history is newer than that of the file
        if is_under_way(before):
            if patch and not wish.stops:
                told = tuple(_differences(before, patch))
                return Change(Verb.UPDATE, key, UNDER_WAY, is_refused=True, differences=told)
            patch |= _stopped(before) if wish.stops else {}
    why = _left_as_decided(have, wanted) if not wish.decides else ""
    verb, told = (Verb.UPDATE, tuple(_differences(before, patch))) if patch else (Verb.UNCHANGED, ())
    return Change(verb, key, why, body=patch, version=version, differences=told)


def _differences(before: Manifest, patch: Mapping[str, Any]) -> Iterator[str]:
    """Describe the changed fields; Secret values are masked."""
    status = mapping(patch.get("status"))
    rest = {name: value for name, value in status.items() if name != "history"}
    shown = {**{name: value for name, value in patch.items() if name != "status"}, **given(status=rest)}
    live, after = masked((before, merge_patch.apply(before, shown)))
    yield from sentences(live or {}, merge_patch.diff(live, after))
    if history := status.get("history"):
        yield f"status.history: {len(history)} {'entry' if len(history) == 1 else 'entries'} added"


def _left_as_decided(have: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    here, there = (each["metadata"].get("annotations") or {} for each in (have, wanted))
    others = sorted(name for name in DECIDED if here.get(name) != there.get(name))
    stay = "is kept" if len(others) == 1 else "are kept"
    return f"{', '.join(others)} {stay}; --decisions overwrites them with the values in the file" if others else ""


def is_under_way(app: Manifest) -> bool:
    phase = _phase(app)
    return "operation" in app or bool(phase and phase not in OVER)


def _phase(app: Manifest) -> object:
    return mapping(mapping(app.get("status")).get("operationState")).get("phase")


def _stopped(before: Manifest) -> dict[str, Any]:
    """Patch that ends the operation: remove a pending one, set a running one to Terminating."""
    phase = _phase(before)
    if phase and phase not in OVER:
        return {"status": {"operationState": {"phase": "Terminating"}}} if phase != "Terminating" else {}
    return {"operation": None} if "operation" in before else {}


def _compared(
    found: Mapping[str, Any], living: Mapping[str, Any] | None = None, kept_names: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """The manifest for comparison: without status, and with the live values of annotations in `kept_names`."""
    kept = {name: value for name, value in found.items() if name not in ("status", "apiVersion")}
    metadata = dict(found["metadata"])
    annotations = dict(metadata.get("annotations") or {})
    if living is not None:
        there = living["metadata"].get("annotations") or {}
        annotations = {name: text for name, text in annotations.items() if name not in kept_names}
        annotations |= {name: there[name] for name in kept_names if name in there}
    metadata["annotations"] = annotations
    metadata["labels"] = dict(metadata.get("labels") or {})
    metadata["finalizers"] = list(metadata.get("finalizers") or [])
    return {**kept, "metadata": metadata}


def _left(live: Iterable[Manifest], wish: Wish) -> Iterable[Change]:
    """argo: changes for live objects that are not in the file; settings are never pruned."""
    for each in live:
        key = key_of(each)
        is_default = key.kind == "AppProject" and key.name == DEFAULT
        if key.kind == "ConfigMap" or is_default or not wish.scope.has(each) or _skipped_label(each, wish):
            continue
        if whose := _anothers(key.namespace, wish):
            if wish.prunes:
                yield Change(Verb.SKIP, key, f"{whose}; --application-namespaces {key.namespace} prunes it")
            continue
        version = str(each["metadata"].get("resourceVersion") or "")
        if not wish.prunes:
            yield Change(Verb.NEEDS_PRUNING, key, version=version)
        elif key.kind == "Application" and is_under_way(each) and not wish.stops:
            yield Change(Verb.PRUNE, key, UNDER_WAY, is_refused=True)
        else:
            yield Change(Verb.PRUNE, key, version=version, uid=str(each["metadata"].get("uid") or ""))


def _anothers(namespace: str, wish: Wish) -> str:
    """Reason why another Argo CD may own the namespace; empty for the control namespace and requested namespaces."""
    if namespace == wish.scope.control or wish.scope.namespaces:
        return ""
    if not wish.engines.is_known:
        return "no permission to check whether an Argo CD manages it"
    others = replace(
        wish.engines,
        controllers=tuple(each for each in wish.engines.controllers if each.namespace != wish.scope.control),
    )
    return f"managed by an Argo CD ({', '.join(found)})" if (found := others.over(namespace)) else ""


def missing_namespaces(changes: Iterable[Change], there: Iterable[str]) -> list[str]:
    return sorted({each.key.namespace for each in changes if each.verb is Verb.CREATE} - set(there))
