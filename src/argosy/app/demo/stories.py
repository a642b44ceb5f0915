"""Accidents to rehearse: each is staged where it would happen in life, in Git or in the cluster, and can be undone.

In: a running demo, the name of an accident. Out: lines that say what was done and where to look. Never: undoes what a
user changed; what was there before is remembered where it was.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from argosy.app.control import control_namespace
from argosy.app.demo.content import BEN, DEV, OVERLAYS, STAGING, STAGING_OVERLAY
from argosy.app.folder import Run
from argosy.app.target import TargetOptions, open_target
from argosy.cluster import Cluster
from argosy.model.annotations import BEFORE_BREAK
from argosy.model.errors import UserError
from argosy.model.manifest import Manifest
from argosy.model.names import ResourceKey
from argosy.setup.repository.bare import BareRepository, Change
from argosy.setup.repository.files import File

TRAILER: Final = "Demo-Break: "
MODEL: Final = "staging-qwen25-05b-instruct"
DEV_OVERLAY: Final = f"{OVERLAYS}/dev/kustomization.yaml"
REPLICAS: Final = "      - op: replace\n        path: /spec/predictor/minReplicas\n"
WRONG_STORAGE: Final = "      - op: replace\n        path: /spec/predictor/model/storageUri\n        value: pvc://models/qwen2.5-0.5b-instruct\n"
WRONG_IMAGE: Final = """\
  - target:
      kind: ServingRuntime
      name: qwen25-05b-instruct
    patch: |-
      - op: replace
        path: /spec/containers/0/image
        value: registry.redhat.io/rhaii/vllm-cuda-rhel9:does-not-exist
"""
BROKEN_LUA: Final = 'hs = {}\nhs.status = "Healthy"\nreturn hs end\n'
CHECKED: Final = "resource.customizations.health.serving.kserve.io_InferenceService"


@dataclass(frozen=True)
class Commit:
    """An accident that somebody merged."""

    path: str
    message: str
    edit: Callable[[str], str]
    app: str
    is_synced: bool  # by hand, because nothing does it by itself there


@dataclass(frozen=True)
class Edit:
    """An accident that somebody made by hand: a field of an object has another value."""

    key: Callable[[str], ResourceKey]  # given the control namespace
    field: tuple[str, ...]
    value: Callable[[Any], Any]  # given what was there
    app: str
    told: str


COMMITS: Final[Mapping[str, Commit]] = {
    "model": Commit(
        STAGING_OVERLAY,
        "staging: read the model from a claim",
        lambda text: text.replace(REPLICAS, WRONG_STORAGE + REPLICAS, 1),
        STAGING,
        is_synced=True,
    ),
    "image": Commit(
        DEV_OVERLAY,
        "dev: use the newest runtime",
        lambda text: text.rstrip("\n") + "\n" + WRONG_IMAGE,
        DEV,
        is_synced=False,
    ),
}


def _edits(is_operated: bool) -> Mapping[str, Edit]:
    return {
        "drift": Edit(
            lambda _: ResourceKey("serving.kserve.io", "InferenceService", STAGING, MODEL),
            ("spec", "predictor", "model", "resources", "limits", "cpu"),
            lambda _: "10",
            STAGING,
            "somebody gave the model of staging 10 CPUs by hand",
        ),
        "branch": Edit(
            lambda namespace: ResourceKey("argoproj.io", "Application", namespace, DEV),
            ("spec", "source", "targetRevision"),
            lambda _: "stage1-complete",
            DEV,
            "llmops-dev follows the branch stage1-complete, which is gone",
        ),
        "lua": _operated_lua() if is_operated else _plain_lua(),
    }


def _operated_lua() -> Edit:
    def broken(found: Any) -> list[Any]:
        others = [each for each in found or [] if each.get("kind") != "InferenceService"]
        return [*others, {"group": "serving.kserve.io", "kind": "InferenceService", "check": BROKEN_LUA}]

    told = "the ArgoCD resource has a health check for InferenceServices that does not compile"
    name = "openshift-gitops"
    key = ResourceKey("argoproj.io", "ArgoCD", name, name)
    return Edit(lambda _: key, ("spec", "resourceHealthChecks"), broken, DEV, told)


def _plain_lua() -> Edit:
    told = "argocd-cm has a health check for InferenceServices that does not compile"
    return Edit(
        lambda namespace: ResourceKey("", "ConfigMap", namespace, "argocd-cm"),
        ("data", CHECKED),
        lambda _: BROKEN_LUA,
        DEV,
        told,
    )


def break_story(run: Run, name: str) -> Iterator[str]:
    yield from asyncio.run(_break(run, name))


def fix_all(run: Run) -> Iterator[str]:
    yield from asyncio.run(_fix(run))


async def _break(run: Run, name: str) -> list[str]:
    async with open_target(TargetOptions(data_dir=Path(run.data_dir))) as (cluster, _):
        if name in COMMITS:
            story = COMMITS[name]
            told = await _merge(cluster, BareRepository(Path(run.repository)), name, story)
        else:
            edit = _edits(await _is_operated(cluster))[name]
            told = await _edit(cluster, edit, name)
        app = COMMITS[name].app if name in COMMITS else edit.app
    way_back = [f"     argosy app rollback {app}"] if name == "model" else []
    return [told, f"look: argosy app get {app}", f"     argosy app diff {app}", "back: argosy demo fix", *way_back]


async def _is_operated(cluster: Cluster) -> bool:
    return await control_namespace(cluster) == "openshift-gitops"


async def _merge(cluster: Cluster, repository: BareRepository, name: str, story: Commit) -> str:
    if _broken(repository, name):
        raise UserError(f"{name} is broken already; undo it first with: argosy demo fix")
    before = repository.read(story.path).decode()
    after = story.edit(before)
    if after == before:
        raise UserError("is not as it was, and this accident does not fit; bring it back first", where=story.path)
    message = f"{story.message}\n\n{TRAILER}{name}\n"
    [commit] = repository.commit([Change([File(story.path, after.encode())], message, BEN, int(time.time()))])
    told = f"merged {commit[:7]} to main: {story.message!r} ({story.path})"
    if story.is_synced:
        await _sync(cluster, story.app, commit)
        told += f"; {story.app} is being synced"
    return told


def _broken(repository: BareRepository, name: str = "") -> dict[str, str]:
    """Commits of accidents that nobody has undone, with the accident's name, the newest first."""
    undone: set[str] = set()
    found: dict[str, str] = {}
    for commit, message in repository.messages().items():
        marked = message.rpartition(TRAILER)[2].strip() if TRAILER in message else ""
        if message.startswith("Revert "):
            undone.add(marked)
        elif marked in undone:
            undone.discard(marked)
        elif marked and (not name or marked == name):
            found[commit] = marked
    return found


async def _edit(cluster: Cluster, edit: Edit, name: str) -> str:
    key = edit.key(await control_namespace(cluster))
    found = await cluster.get(key)
    if found is None:
        raise UserError("is not there, so it cannot be broken; wait until the demo is ready", where=str(key))
    if BEFORE_BREAK in (found["metadata"].get("annotations") or {}):
        raise UserError(f"{name} is broken already; undo it first with: argosy demo fix")
    before = _at(found, edit.field)
    remembered = {"metadata": {"annotations": {BEFORE_BREAK: json.dumps(before)}}}
    await cluster.patch(key, _beside(remembered, edit.field, edit.value(before)))
    return edit.told


async def _fix(run: Run) -> list[str]:
    told = []
    async with open_target(TargetOptions(data_dir=Path(run.data_dir))) as (cluster, _):
        repository = BareRepository(Path(run.repository))
        for commit, name in _broken(repository).items():
            told.append(_revert(repository, commit, name))
            if COMMITS[name].is_synced:
                await _sync(cluster, COMMITS[name].app, repository.commits()[-1])
                told.append(f"{COMMITS[name].app} is being synced")
        namespace = await control_namespace(cluster)
        for name, edit in _edits(await _is_operated(cluster)).items():
            told += await _unedit(cluster, edit, namespace, name)
    return told or ["nothing is broken"]


def _revert(repository: BareRepository, commit: str, name: str) -> str:
    """Only what the accident changed: where somebody went on from it, that stays and is told."""
    path = COMMITS[name].path
    now, broken = repository.read(path), repository.read(path, commit)
    if now != broken:
        return f"{path} was changed since {commit[:7]}; undo that commit yourself with: git revert {commit[:7]}"
    subject = repository.messages()[commit].partition("\n")[0]
    message = f'Revert "{subject}"\n\nThis reverts commit {commit}.\n\n{TRAILER}{name}\n'
    before = File(path, repository.read(path, f"{commit}^"))
    [made] = repository.commit([Change([before], message, BEN, int(time.time()))])
    return f"merged {made[:7]} to main: undoes {commit[:7]}, {subject!r}"


async def _unedit(cluster: Cluster, edit: Edit, namespace: str, name: str) -> list[str]:
    key = edit.key(namespace)
    found = await cluster.get(key)
    kept = ((found or {}).get("metadata", {}).get("annotations") or {}).get(BEFORE_BREAK)
    if found is None or kept is None:
        return []
    forget = {"metadata": {"annotations": {BEFORE_BREAK: None}}}
    before = json.loads(kept)
    if _at(found, edit.field) != edit.value(before):  # somebody has mended it already
        await cluster.patch(key, forget)
        return []
    await cluster.patch(key, _beside(forget, edit.field, before))
    return [f"{name}: {key.kind}/{key.name} has its old {'.'.join(edit.field)} again"]


async def _sync(cluster: Cluster, name: str, commit: str) -> None:
    """By its commit: nobody need have heard of the push yet."""
    key = ResourceKey("argoproj.io", "Application", await control_namespace(cluster), name)
    found = await cluster.get(key)
    if found is None:
        raise UserError("is not there any more; start the demo again", where=str(key))
    options = found["spec"].get("syncPolicy", {}).get("syncOptions") or []
    sync = {"revision": commit, "syncOptions": options}
    await cluster.patch(key, {"operation": {"sync": sync, "initiatedBy": {"username": "ben"}}})


def _at(manifest: Manifest, field: tuple[str, ...]) -> Any:
    found: Any = manifest
    for name in field:
        found = (found or {}).get(name)
    return found


def _beside(patch: Mapping[str, Any], field: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A merge patch with one field more; None takes it away."""
    for name in reversed(field):
        value = {name: value}
    return {**patch, **value}
