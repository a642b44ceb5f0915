"""Failure drills of the demo: bad commits and manual edits that can be undone.

In: a running demo, the name of a drill. Out: lines that say what was done and which commands show it. Never: undoes
changes of users; the old value is stored in an annotation of the object.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from argosy.annotations import BEFORE_BREAK
from argosy.cli.data_folder import Run
from argosy.cli.target import TargetOptions, open_target
from argosy.errors import UserError
from argosy.features.demo.content import BEN, DEV, DEV_OVERLAY, RUNTIME_AT, STAGING, STAGING_OVERLAY
from argosy.features.demo.examples import example_of
from argosy.gitops.application_client.control_namespace import control_namespace, has_engine
from argosy.gitops.workspace.bare_repository import BareRepository, Change
from argosy.gitops.workspace.new_repository import File
from argosy.kube.client import Cluster
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

TRAILER: Final = "Demo-Break: "
MODEL: Final = "staging-qwen25-05b-instruct"
REPLICAS: Final = "      - op: replace\n        path: /spec/predictor/minReplicas\n"
WRONG_STORAGE: Final = "      - op: replace\n        path: /spec/predictor/model/storageUri\n        value: pvc://models/qwen2.5-0.5b-instruct\n"
WRONG_IMAGE: Final = RUNTIME_AT.format(tag="does-not-exist")
BROKEN_LUA: Final = 'hs = {}\nhs.status = "Healthy"\nreturn hs end\n'
LUA_LOOKS: Final = (f"argosy app get {DEV}", "argosy health verify")
AGAIN: Final = "start the demo again"
PERSON: Final = "kubectl-edit"  # k8s: field manager of `kubectl edit`
CHECKED: Final = "resource.customizations.health.serving.kserve.io_InferenceService"


@dataclass(frozen=True)
class Commit:
    """A drill that merges a bad commit: lines that a file should not have, by which the drill is also detected."""

    path: str
    message: str
    wrong: str  # the lines
    before: str  # the text they are inserted before; empty: append to the file
    app: str
    looks: tuple[str, ...]  # commands that show it
    is_synced: bool  # sync after the commit, because the Application has no automated sync

    def staged(self, text: str) -> str:
        if not self.before:
            return text.rstrip("\n") + "\n" + self.wrong
        return text.replace(self.before, self.wrong + self.before, 1)

    def undone(self, text: str) -> str:
        """Remove the bad lines; other changes of the file are kept."""
        return text.replace(self.wrong, "")


@dataclass(frozen=True)
class Edit:
    """A drill that edits a field of a live object."""

    key: Callable[[str], ResourceKey]  # given the control namespace
    field: tuple[str, ...]
    value: Callable[[Any], Any]  # given the old value
    app: str
    told: str
    looks: tuple[str, ...]
    again: str  # how to restore the object if it was deleted


COMMITS: Final[Mapping[str, Commit]] = {
    "model": Commit(
        STAGING_OVERLAY,
        "staging: read the model from a claim",
        WRONG_STORAGE,
        REPLICAS,
        STAGING,
        (f"argosy app get {STAGING}", f"argosy model get {MODEL} -n {STAGING}"),
        is_synced=True,
    ),
    "image": Commit(
        DEV_OVERLAY,
        "dev: use the newest runtime",
        WRONG_IMAGE,
        "",
        DEV,
        (f"argosy app get {DEV}", f"argosy app tree {DEV}"),
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
            "the CPU limit of the staging model was manually changed to 10",
            (f"argosy app get {STAGING}", f"argosy app diff {STAGING}"),
            f"sync it with: argosy app sync {STAGING}",
        ),
        "branch": Edit(
            lambda namespace: ResourceKey("argoproj.io", "Application", namespace, DEV),
            ("spec", "source", "targetRevision"),
            lambda _: "stage1-complete",
            DEV,
            "llmops-dev tracks the branch stage1-complete, which does not exist",
            (f"argosy app get {DEV}",),
            "apply it again, from a clone of the demo's repository: "
            "cd llmops-via-argocd && ./setup_scripts/apply-argocd-apps.sh",
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
    return Edit(lambda _: key, ("spec", "resourceHealthChecks"), broken, DEV, told, LUA_LOOKS, AGAIN)


def _plain_lua() -> Edit:
    told = "argocd-cm has a health check for InferenceServices that does not compile"
    return Edit(
        lambda namespace: ResourceKey("", "ConfigMap", namespace, "argocd-cm"),
        ("data", CHECKED),
        lambda _: BROKEN_LUA,
        DEV,
        told,
        LUA_LOOKS,
        AGAIN,
    )


def break_story(run: Run, name: str) -> Iterator[str]:
    _can_break(run)
    yield from asyncio.run(_break(run, name))


def _can_break(run: Run) -> None:
    """Raise UserError if the running example has no failure drills."""
    example = example_of(run.repository)
    if not example.has_accidents:
        raise UserError(f"the example {example.name} has no failure drills; use the default example: argosy demo")


def staged_now(run: Run) -> list[str]:
    if not example_of(run.repository).has_accidents:
        return []

    async def look() -> list[str]:
        async with open_target(TargetOptions(data_dir=Path(run.data_dir))) as (cluster, _):
            return await staged_in(cluster, BareRepository(Path(run.repository)))

    return asyncio.run(look())


def fix_all(run: Run) -> Iterator[str]:
    _can_break(run)
    yield from asyncio.run(_fix(run))


async def _break(run: Run, name: str) -> list[str]:
    async with open_target(TargetOptions(data_dir=Path(run.data_dir))) as (cluster, _):
        story: Commit | Edit
        if name in COMMITS:
            story = COMMITS[name]
            told = await _merge(cluster, BareRepository(Path(run.repository)), name, story)
        else:
            story = _edits(await _is_operated(cluster))[name]
            told = await _edit(cluster, story, name)
    way_back = [f"     argosy app rollback {story.app}"] if name == "model" else []
    more = [f"     {look}" for look in story.looks[1:]]
    return [told, f"look: {story.looks[0]}", *more, "back: argosy demo fix", *way_back]


async def _is_operated(cluster: Cluster) -> bool:
    return await control_namespace(cluster) == "openshift-gitops"


async def _merge(cluster: Cluster, repository: BareRepository, name: str, story: Commit) -> str:
    before = repository.read(story.path).decode()
    if story.wrong in before:
        raise UserError(f"drill {name} is already active; undo it first with: argosy demo fix")
    after = story.staged(before)
    if after == before:
        raise UserError("was changed, so this drill cannot be applied; restore the file first", where=story.path)
    message = f"{story.message}\n\n{TRAILER}{name}\n"
    [commit] = repository.commit([Change([File(story.path, after.encode())], message, BEN, int(time.time()))])
    told = f"merged {commit[:7]} to main: {story.message!r} ({story.path})"
    if story.is_synced:
        told += f"; {await _sync(cluster, story.app, commit)}"
    return told


async def _edit(cluster: Cluster, edit: Edit, name: str) -> str:
    key = edit.key(await control_namespace(cluster))
    found = await cluster.get(key)
    if found is None:
        raise UserError(f"does not exist, so the drill cannot start; {edit.again}", where=str(key))
    if _is_edited(found, edit):
        raise UserError(f"drill {name} is already active; undo it first with: argosy demo fix")
    before = _at(found, edit.field)
    remembered = {"metadata": {"annotations": {BEFORE_BREAK: json.dumps(before)}}}
    await cluster.patch(key, _beside(remembered, edit.field, edit.value(before)), manager=PERSON)
    return edit.told


def _is_edited(found: Manifest, edit: Edit) -> bool:
    """True if the field still has the bad value; the annotation is no proof, because a sync may have fixed it."""
    kept = (found["metadata"].get("annotations") or {}).get(BEFORE_BREAK)
    return kept is not None and _at(found, edit.field) == edit.value(json.loads(kept))


async def staged_in(cluster: Cluster, repository: BareRepository) -> list[str]:
    """Names of the active drills."""
    merged = [name for name, story in COMMITS.items() if story.wrong in repository.read(story.path).decode()]
    namespace = await control_namespace(cluster)
    edits = _edits(await _is_operated(cluster))
    found = {name: await cluster.get(edit.key(namespace)) for name, edit in edits.items()}
    return merged + [name for name, edit in edits.items() if (live := found[name]) and _is_edited(live, edit)]


async def _fix(run: Run) -> list[str]:
    told = []
    async with open_target(TargetOptions(data_dir=Path(run.data_dir))) as (cluster, _):
        repository = BareRepository(Path(run.repository))
        for name, story in COMMITS.items():
            if done := _revert(repository, name, story):
                told.append(done)
                told += [await _sync(cluster, story.app, repository.commits()[-1])] if story.is_synced else []
        namespace = await control_namespace(cluster)
        for name, edit in _edits(await _is_operated(cluster)).items():
            told += await _unedit(cluster, edit, namespace, name)
    return told or ["no failure drill is active"]


def _revert(repository: BareRepository, name: str, story: Commit) -> str:
    """Revert the drill's commit and keep later changes. Returns a message; empty if the drill is not active."""
    now = repository.read(story.path).decode()
    after = story.undone(now)
    if after == now:
        return ""
    message = f'Revert "{story.message}"\n\n{_blamed(repository, name)}{TRAILER}{name}\n'
    [made] = repository.commit([Change([File(story.path, after.encode())], message, BEN, int(time.time()))])
    return f"merged {made[:7]} to main: undoes {story.message!r} ({story.path})"


def _blamed(repository: BareRepository, name: str) -> str:
    """`This reverts commit …`, as git writes it, for the newest commit of the drill."""
    for commit, message in repository.messages().items():
        if f"{TRAILER}{name}" in message and not message.startswith("Revert "):
            return f"This reverts commit {commit}.\n\n"
    return ""


async def _unedit(cluster: Cluster, edit: Edit, namespace: str, name: str) -> list[str]:
    key = edit.key(namespace)
    found = await cluster.get(key)
    kept = ((found or {}).get("metadata", {}).get("annotations") or {}).get(BEFORE_BREAK)
    if found is None or kept is None:
        return []
    forget = {"metadata": {"annotations": {BEFORE_BREAK: None}}}
    before = json.loads(kept)
    if not _is_edited(found, edit):  # a sync or a user has fixed it already
        await cluster.patch(key, forget)
        return []
    await cluster.patch(key, _beside(forget, edit.field, before), manager=PERSON)
    return [f"{name}: restored {'.'.join(edit.field)} of {key.kind}/{key.name}"]


async def _sync(cluster: Cluster, name: str, commit: str) -> str:
    """Sync the Application to the commit, without waiting for a refresh. Returns a message."""
    namespace = await control_namespace(cluster)
    key = ResourceKey("argoproj.io", "Application", namespace, name)
    found = await cluster.get(key)
    if found is None:
        raise UserError("no longer exists; start the demo again", where=str(key))
    options = found["spec"].get("syncPolicy", {}).get("syncOptions") or []
    sync = {"revision": commit, "syncOptions": options}
    await cluster.patch(key, {"operation": {"sync": sync, "initiatedBy": {"username": "ben"}}})
    if await has_engine(cluster, namespace):
        return f"syncing {name}"
    return f"{name} will be synced when an engine runs: argosy controller"


def _at(manifest: Manifest, field: tuple[str, ...]) -> Any:
    found: Any = manifest
    for name in field:
        found = (found or {}).get(name)
    return found


def _beside(patch: Mapping[str, Any], field: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A merge patch with one more field; None removes the field."""
    for name in reversed(field):
        value = {name: value}
    return {**patch, **value}
