"""Random clusters full of objects that look almost like the Application's: prune deletes only those it really owns.

The pieces are combined as the reconciler does it; the test computes independently which objects the Application owns.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from argosy import annotations as names
from argosy.gitops.application import Application, OperationRequest, OperationState, SyncRequest, read_application
from argosy.gitops.application.project_spec import Project, read_project
from argosy.gitops.diff import build_diff_options, compare_manifests
from argosy.gitops.live import (
    TrackingSettings,
    add_tracking,
    build_indexes,
    build_instance_name,
    find_managed_resources,
    is_self_referenced,
    read_exclusions,
)
from argosy.gitops.policy import prune_policy
from argosy.gitops.reconciler.object_permission_and_deletion_check import build_permission_check, find_deletion_refusal
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.sync.effective_apply_and_prune_options import OperationOptions
from argosy.gitops.sync.prune import find_prune_refusal
from argosy.gitops.sync.sync_options import SyncOptions
from argosy.gitops.sync.sync_plan import OperationContext, plan_tasks
from argosy.kube.client import KindInfo
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey

pytestmark = pytest.mark.tier("test", "prove")
CONTROL, HERE, ELSEWHERE = "argocd", "ml", "prod"
INFO = KindInfo("v1", "plural", True)
KINDS = {
    GroupKind("", "ConfigMap"): INFO,
    GroupKind("", "Secret"): INFO,
    GroupKind("apps", "Deployment"): INFO,
    GroupKind("", "Namespace"): INFO._replace(namespaced=False),
    GroupKind("rbac.authorization.k8s.io", "ClusterRole"): INFO._replace(namespaced=False),
}
MISSPELT = ("models", "models:", "models:/ConfigMap", ":/ConfigMap:ml/m-1", "models:a:b:c", "models:/ConfigMap:ml", "x")
NAMES = ("models", "models-2", "model", "argocd_models", "team_models", "")


@dataclass(frozen=True)
class World:
    app: Application
    project: Project
    rules: ReconcilerSettings
    desired: list[Manifest]
    live: list[Manifest]
    own: frozenset[ResourceKey]  # the only objects that may be pruned


async def _unused(manifests: Any) -> list[None]:
    return [None for _ in manifests]


REPOSITORIES = Repositories(Path("unused"), SourceSettings())


def application(rng: random.Random) -> Application:
    options = rng.choice([[], ["PruneLast=true"], ["Prune=false"], ["CreateNamespace=true"]])
    return read_application(
        {
            "metadata": {"name": "models", "namespace": rng.choice([CONTROL, CONTROL, "team"]), "uid": "u"},
            "spec": {
                "destination": {"server": "https://kubernetes.default.svc", "namespace": HERE},
                "source": {"repoURL": "https://git.example.com/a.git", "path": "app"},
                "syncPolicy": {"syncOptions": options},
            },
        }
    )


def project(rng: random.Random) -> Project:
    spec: dict[str, Any] = {
        "sourceRepos": ["*"],
        "sourceNamespaces": ["*"],
        "destinations": rng.choice(
            [[{"server": "*", "namespace": "*"}], [{"server": "*", "namespace": HERE}],
             [{"server": "*", "namespace": "*"}, {"server": "*", "namespace": f"!{ELSEWHERE}"}]]
        ),
        "clusterResourceWhitelist": rng.choice(
            [[], [{"group": "*", "kind": "*"}], [{"group": "", "kind": "Namespace"}]]
        ),
    }  # fmt: skip
    if rng.random() < 0.3:
        spec["namespaceResourceBlacklist"] = [{"group": "", "kind": "Secret"}]
    return read_project({"metadata": {"name": "default"}, "spec": spec})


def settings(rng: random.Random) -> ReconcilerSettings:
    tracking = TrackingSettings(
        method=rng.choice(["annotation", "annotation", "label", "annotation+label"]),
        installation_id=rng.choice(["", "", "ours"]),
        control_namespace=CONTROL,
    )
    excluded = "- apiGroups: ['apps']\n  kinds: [Deployment]\n  clusters: ['*']\n" if rng.random() < 0.2 else ""
    exclusions = read_exclusions({"resource.exclusions": excluded} if excluded else {})
    return ReconcilerSettings(
        REPOSITORIES, _unused, control_namespace=CONTROL, tracking=tracking, exclusions=exclusions
    )


def bare(rng: random.Random, number: int) -> Manifest:
    kind = rng.choice(list(KINDS))
    metadata: dict[str, Any] = {"name": f"m-{number}", "uid": f"uid-{number}", "resourceVersion": str(number + 1)}
    if KINDS[kind].namespaced:
        metadata["namespace"] = rng.choice([HERE, HERE, ELSEWHERE])
    api = f"{kind.group}/v1" if kind.group else "v1"
    return {"apiVersion": api, "kind": kind.kind, "metadata": metadata}


def with_marks(manifest: Manifest, rng: random.Random, app: Application, tracking: TrackingSettings) -> Manifest:
    """Add tracking metadata: from this or another application, this or another installation, this or another tracking
    method; intact, copied, truncated or misspelled."""
    roll = rng.random()
    if roll < 0.35:
        return add_tracking(manifest, app, tracking)
    if roll < 0.45:
        return add_tracking(manifest, replace(app, name=rng.choice(["models-2", "model", "other"])), tracking)
    if roll < 0.55:
        return add_tracking(manifest, app, replace(tracking, installation_id="theirs"))
    if roll < 0.65:  # a copy: its tracking metadata names another object
        other = {**manifest, "metadata": {**manifest["metadata"], "name": "source", "namespace": HERE}}
        tracked = add_tracking(other, app, tracking)["metadata"]
        marks = {part: tracked[part] for part in ("annotations", "labels") if part in tracked}
        return {**manifest, "metadata": {**manifest["metadata"], **marks}}
    if roll < 0.75:
        return add_tracking(
            manifest, app, replace(tracking, method=rng.choice(["annotation", "label", "annotation+label"]))
        )
    texts = {names.TRACKING_ID: rng.choice(MISSPELT)}
    labels = {names.INSTANCE_LABEL: rng.choice(NAMES)} if rng.random() < 0.5 else {}
    annotations = texts if rng.random() < 0.5 else {}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations, "labels": labels}}


def is_own(live: Manifest, app: Application, project: Project, rules: ReconcilerSettings) -> bool:
    """Decide ownership by the documented rules, implemented a second time in a different way."""
    metadata, tracking = live["metadata"], rules.tracking
    instance = "models" if app.namespace == CONTROL else f"{app.namespace}_models"
    namespace = metadata.get("namespace")
    if tracking.method == "label":
        carries = (metadata.get("labels") or {}).get(names.INSTANCE_LABEL) == instance
    else:
        group = live["apiVersion"].rpartition("/")[0]
        tracking_id = f"{instance}:{group}/{live['kind']}:{namespace or HERE}/{metadata['name']}"
        notes = metadata.get("annotations") or {}
        carries = notes.get(names.TRACKING_ID) == tracking_id
        carries = carries and notes.get(names.INSTALLATION_ID, "") == tracking.installation_id
    if not carries or metadata.get("ownerReferences"):
        return False
    if namespace and not any(destination.namespace in ("*", namespace) for destination in project.destinations):
        return False
    if namespace and any(destination.namespace == f"!{namespace}" for destination in project.destinations):
        return False
    if live["kind"] == "Deployment" and rules.exclusions.excluded:
        return False
    if live["kind"] == "Secret" and project.namespaced_denied:
        return False
    allowed = [rule.kind for rule in project.cluster_allowed]
    if not namespace and not ({"*", live["kind"]} & set(allowed)):
        return False
    options = {*app.policy.options, *(metadata.get("annotations") or {}).get(names.SYNC_OPTIONS, "").split(",")}
    return "Prune=false" not in options


def world(rng: random.Random) -> World:
    app, allowed, rules = application(rng), project(rng), settings(rng)
    live = []
    for number in range(rng.randint(1, 12)):
        live_manifest = with_marks(bare(rng, number), rng, app, rules.tracking)
        if rng.random() < 0.1:
            owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "above", "uid": "above", "controller": True}
            live_manifest = {**live_manifest, "metadata": {**live_manifest["metadata"], "ownerReferences": [owner]}}
        if rng.random() < 0.1:
            notes = {**(live_manifest["metadata"].get("annotations") or {}), names.SYNC_OPTIONS: "Prune=false"}
            live_manifest = {**live_manifest, "metadata": {**live_manifest["metadata"], "annotations": notes}}
        live.append(live_manifest)
    selected = [manifest for manifest in live if rng.random() < 0.25]
    desired = [add_tracking({**manifest, "metadata": _plain(manifest)}, app, rules.tracking) for manifest in selected]
    desired += [add_tracking(bare(rng, 100 + number), app, rules.tracking) for number in range(rng.randint(0, 2))]
    desired_keys = {key_of(manifest) for manifest in desired}
    own = frozenset(key_of(manifest) for manifest in live if is_own(manifest, app, allowed, rules)) - desired_keys
    return World(app, allowed, rules, desired, live, own)


def _plain(manifest: Manifest) -> dict[str, Any]:
    return {name: manifest["metadata"][name] for name in ("name", "namespace") if name in manifest["metadata"]}


def pruned(prune_world: World) -> set[ResourceKey]:
    """Return what a sync with prune would delete, computed with the reconciler's functions."""
    app, rules, cache = prune_world.app, prune_world.rules, InformerCache()
    for name, index in build_indexes(rules.tracking).items():
        cache.add_index(name, index)
    for manifest in prune_world.live:
        cache.put(manifest)
    instance = build_instance_name(app, rules.tracking)
    allowed = build_permission_check(app, prune_world.project, rules, KINDS)
    live = find_managed_resources(
        cache, instance, [key_of(desired_manifest) for desired_manifest in prune_world.desired], allowed
    )
    is_its_own = partial(is_self_referenced, tracking=rules.tracking)
    comparison = compare_manifests(prune_world.desired, live, build_diff_options(app, rules.diff), is_own=is_its_own)
    options = SyncOptions.from_lists(app.policy.options, ())
    request = SyncRequest(prune=True)
    started = "2026-01-01T00:00:00Z"
    tasks = plan_tasks(comparison, request, OperationContext(app, "0" * 40, started), options, live)
    terms = OperationOptions(
        app, OperationState(OperationRequest(request), started=started), options, is_mass_prune=False
    )

    def may_delete(manifest: Manifest) -> str:
        return find_deletion_refusal(manifest, app, prune_world.project, rules, KINDS, options)

    return {task.key for task in tasks if task.is_prune and not find_prune_refusal(task.live or {}, terms, may_delete)}


def test_prune_deletes_exactly_the_objects_the_application_owns(size: Callable[..., int], rng: random.Random) -> None:
    count: Counter[str] = Counter()
    for _ in range(size(50_000, test=250)):
        seed = rng.getrandbits(64)
        random_world = world(random.Random(seed))
        gone = pruned(random_world)
        assert gone <= random_world.own, f"world {seed}: {gone - random_world.own} is not its own"
        count.update(own=len(random_world.own), gone=len(gone), live=len(random_world.live))
    # The proof is not vacuous: everything the Application owns is pruned.
    assert count["gone"] == count["own"] and count["gone"] > count["live"] / 50


def test_proof_detects_a_prune_without_ownership_checks(monkeypatch: pytest.MonkeyPatch, rng: random.Random) -> None:
    monkeypatch.setattr(prune_policy, "find_reason_to_keep", lambda candidate, instance: "")
    monkeypatch.setattr(
        "argosy.gitops.reconciler.object_permission_and_deletion_check.find_reason_to_keep",
        lambda candidate, instance: "",
    )
    monkeypatch.setattr(
        "argosy.gitops.live.cache_indexes.read_instance_name", lambda live, tracking: "models"
    )  # in the index
    worlds = (world(random.Random(rng.getrandbits(64))) for _ in range(500))
    assert any(pruned(random_world) - random_world.own for random_world in worlds)
