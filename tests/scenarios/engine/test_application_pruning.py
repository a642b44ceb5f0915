"""Pruning: which objects are deleted after their removal from Git, and which are kept."""

from __future__ import annotations

from typing import Any

import pytest

from support.engine import Room, config_map
from support.tiers import IN_TEST_ALL

pytestmark = pytest.mark.anyio
ONE = {"app/settings.yaml": config_map(a="one")}
PRUNING = {"automated": {"prune": True}}


def optioned(name: str, options: str) -> dict[str, Any]:
    metadata = {"name": name, "annotations": {"argocd.argoproj.io/sync-options": options}}
    return {**config_map(name), "metadata": metadata}


async def test_prune_false_keeps_the_object_and_reports_prune_skipped(room: Room) -> None:
    room.repository.push({**ONE, "app/kept.yaml": optioned("kept", "Prune=false")})
    await room.deliver(syncPolicy=PRUNING)
    await room.until_synced()
    room.repository.push({"app/kept.yaml": None})
    app = await room.until(lambda status: len(status["history"]) == 2)
    (result,) = [entry for entry in _results(app) if entry["name"] == "kept"]
    assert (result["status"], result["message"]) == ("PruneSkipped", "ignored (no prune)")
    assert await room.get("ConfigMap", "kept") is not None


@pytest.mark.tier("all")
async def test_prune_annotation_on_the_object_overrides_the_application(room: Room) -> None:
    goes = optioned("goes", "Prune=true")
    room.repository.push({**ONE, "app/goes.yaml": goes, "app/stays.yaml": config_map("stays")})
    await room.deliver(syncPolicy={**PRUNING, "syncOptions": ["Prune=false"]})
    await room.until_synced()
    room.repository.push({"app/goes.yaml": None, "app/stays.yaml": None})
    await room.until_gone("ConfigMap", "goes")
    await room.until(lambda status: len(status["history"]) == 2)
    assert await room.get("ConfigMap", "stays") is not None


async def test_automated_mass_prune_waits_for_confirmation(room: Room) -> None:
    many = {f"app/{number}.yaml": config_map(f"many-{number}") for number in range(12)}
    room.repository.push({**ONE, **many})
    await room.deliver(syncPolicy=PRUNING)
    await room.until_synced()
    room.repository.push(dict.fromkeys(many))
    words = "waiting for pruning confirmation"
    app = await room.until(lambda status: words in status["operationState"]["message"])
    assert app["status"]["operationState"]["phase"] == "Running"
    assert await room.get("ConfigMap", "many-0") is not None
    approved = room.clock.now().replace(year=room.clock.now().year + 1).isoformat()
    await room.annotate(deletion_approved=approved)
    await room.until_gone("ConfigMap", "many-11")
    await room.until_synced()


@pytest.mark.tier("all")
async def test_extra_object_with_ignore_extraneous_leaves_the_application_synced(room: Room) -> None:
    annotations = {"argocd.argoproj.io/compare-options": "IgnoreExtraneous"}
    extra = {**config_map("extra"), "metadata": {"name": "extra", "annotations": annotations}}
    room.repository.push({**ONE, "app/extra.yaml": extra})
    await room.deliver()
    await room.sync()
    await room.until_synced()
    room.repository.push({"app/extra.yaml": None})
    await room.until_synced()
    assert await room.get("ConfigMap", "extra") is not None


async def test_copy_with_another_objects_tracking_id_is_not_pruned(room: Room) -> None:
    room.repository.push(ONE)
    await room.deliver(syncPolicy=PRUNING)
    await room.until_synced()
    tracked = await room.get("ConfigMap", "settings") or {}
    copy = {"name": "copy", "namespace": "ml", "annotations": tracked["metadata"]["annotations"]}
    await room.cluster.create({**config_map("copy"), "metadata": copy})
    app = await room.settled()
    assert app["status"]["sync"]["status"] == "Synced"
    room.repository.push({"app/settings.yaml": config_map(a="two")})
    await room.until_synced()
    assert await room.get("ConfigMap", "copy") is not None


@pytest.mark.parametrize(
    "method",
    [
        "label",
        *(pytest.param(tracking_method, marks=IN_TEST_ALL) for tracking_method in ("annotation+label", "annotation")),
    ],
)
async def test_sync_after_a_tracking_method_change_updates_the_tracking_metadata(room: Room, method: str) -> None:
    first = "annotation" if method != "annotation" else "label"
    await room.configure({"application.resourceTrackingMethod": first})
    room.repository.push({**ONE, "app/more.yaml": config_map("more")})
    await room.deliver()
    await room.sync()
    await room.until_synced()
    await room.configure({"application.resourceTrackingMethod": method})
    app = await room.settled()
    assert first == "annotation" or app["status"]["sync"]["status"] == "Synced"  # argo: only objects with the label
    await room.sync()
    await room.until_over()
    await room.until_synced()
    metadata = (await room.get("ConfigMap", "settings") or {})["metadata"]
    assert ("label" in method) == ("app.kubernetes.io/instance" in (metadata.get("labels") or {}))
    room.repository.push({"app/more.yaml": None})
    await room.until(lambda status: any(resource.get("requiresPruning") for resource in status["resources"]))
    assert method == "label" or "argocd.argoproj.io/tracking-id" in (metadata.get("annotations") or {})


async def test_helm_values_can_come_from_another_source_by_ref(room: Room) -> None:
    chart = "apiVersion: v2\nname: chart\nversion: 0.1.0\n"
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: {{ .Values.a | quote }}}\n"
    files = {"chart/Chart.yaml": chart, "chart/templates/map.yaml": template, "values/dev.yaml": "a: from values\n"}
    room.repository.push(files)
    base_source = {"repoURL": room.repository.url, "targetRevision": "main"}
    helm = {"valueFiles": ["$values/values/dev.yaml"]}
    await room.deliver(
        source=None, sources=[{**base_source, "path": "chart", "helm": helm}, {**base_source, "ref": "values"}]
    )
    await room.sync()
    await room.until(lambda status: status.get("history"))
    assert (await room.get("ConfigMap", "settings") or {})["data"] == {"a": "from values"}


def _results(app: dict[str, Any]) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = app["status"]["operationState"]["syncResult"]["resources"]
    return results
