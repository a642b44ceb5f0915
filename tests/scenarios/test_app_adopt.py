"""`argosy app adopt` and `hand-back`: an Application moves to argosy and back; its managed objects stay unchanged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from argosy.cli import prompts
from argosy.features.applications.adopt_from_argocd import cli
from argosy.gitops.application import Application
from argosy.gitops.application_client import argocd_adoption
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from support.app_commands import HANG, Scene, scene
from support.deadlines import HANG_SECONDS, wait_until_async
from support.engine import CONTROL, config_map
from support.simulated_argocd import MANAGER, Controller, at_work, controller, pod

SETTINGS = {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "ml", "name": "settings"}
AUTOMATED = {"automated": {"selfHeal": True}}
ENGINE, SKIP = "argosy.dev/engine", "argocd.argoproj.io/skip-reconcile"


class Place:
    def __init__(self, current_scene: Scene, argocd: Controller) -> None:
        self.scene, self.argocd = current_scene, argocd

    async def annotations(self, name: str = "models") -> dict[str, str]:
        return dict((await self.scene.app(name))["metadata"].get("annotations") or {})

    async def object(self) -> Manifest:
        live = await self.scene.get("ConfigMap", "settings")
        assert live is not None
        return live

    async def begin(self, phase: str = "Running") -> None:
        state = {"phase": phase, "startedAt": "2026-01-01T00:00:00Z", "operation": {"sync": {}}}
        patch: dict[str, Any] = {"operation": {"sync": {}}, "status": {"operationState": state}}
        if phase != "Running":
            patch["operation"] = None
        key = ResourceKey("argoproj.io", "Application", CONTROL, "models")
        await self.scene.cluster.patch(key, patch, manager=MANAGER)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    """An Argo CD that has delivered one Application, in sync with Git."""
    async with scene(tmp_path) as opened_scene:
        opened_scene.repository.push({"app/settings.yaml": config_map(a="1")})
        tracked = {"argocd.argoproj.io/tracking-id": "models:/ConfigMap:ml/settings"}
        manifest = config_map(a="1")
        manifest = {**manifest, "metadata": {"name": "settings", "namespace": "ml", "annotations": tracked}}
        await opened_scene.cluster.create(manifest)
        async with at_work(opened_scene.cluster, [{**SETTINGS, "status": "Synced"}]) as argocd:
            async with asyncio.timeout(HANG_SECONDS):
                while not opened_scene.engine.argocd_detection.engines.controller_names:
                    await asyncio.sleep(0.01)
            await opened_scene.deliver(syncPolicy=AUTOMATED)
            await opened_scene.until(lambda status: status["sync"]["status"] == "Synced")
            yield Place(opened_scene, argocd)


async def test_adopt_and_hand_back_do_not_change_managed_objects(place: Place) -> None:
    before = await place.object()
    result = await place.scene.argosy("app", "adopt", "models", "-y")
    assert result.code == 0, result.err
    assert "now        Argo CD (StatefulSet argocd/argocd-application-controller); argosy observes" in result.out
    assert "then       argosy (argosy.dev/engine: argosy)" in result.out
    assert "compared   no status changes: 1 object\n" in result.out
    assert {ENGINE: "argosy", SKIP: "true"}.items() <= (await place.annotations()).items()
    await place.scene.until(lambda status: "controllerNamespace" in status)  # argosy has reconciled it
    await place.scene.settled()
    assert await place.object() == before
    command_result = await place.scene.argosy("app", "hand-back", "models", "-y")
    assert command_result.code == 0, command_result.err
    assert not {ENGINE, SKIP} & (await place.annotations()).keys()
    looks = place.argocd.looks["models"]
    await place.scene.settled()  # Argo CD answers the refresh
    assert place.argocd.looks["models"] == looks + 1
    assert await place.object() == before
    again = await place.scene.argosy("app", "hand-back", "models", "-y")
    assert again.code == 0 and "unchanged" in again.out


@pytest.mark.parametrize("own", [{SKIP: "true"}, {ENGINE: "argocd"}, {ENGINE: "argocd", SKIP: "true"}])
@pytest.mark.tier("all")
async def test_hand_back_keeps_annotations_that_adopt_did_not_set(place: Place, own: dict[str, str]) -> None:
    key = ResourceKey("argoproj.io", "Application", CONTROL, "models")
    await place.scene.cluster.patch(key, {"metadata": {"annotations": own}}, manager=MANAGER)
    result = await place.scene.argosy("app", "hand-back", "models", "-y")
    assert result.code == 0 and "unchanged" in result.out and "nothing to do" in result.out
    assert own.items() <= (await place.annotations()).items()


@pytest.mark.tier("all")
async def test_adopt_dry_run_prints_the_plan_and_writes_nothing(place: Place) -> None:
    before = await place.scene.app()
    result = await place.scene.argosy("app", "adopt", "models", "--dry-run", "-o", "json")
    assert result.code == 0
    plan = json.loads(result.out)
    assert (plan["way"], plan["done"]) == ("adopt", False)
    (only,) = plan["items"]
    assert (only["name"], only["comparedDifferently"], only["refusal"]) == ("models", [], "")
    assert only["deliveredBy"].startswith("Argo CD")
    assert await place.scene.app() == before


@pytest.mark.tier("all")
async def test_adopt_refuses_a_running_operation_and_waits_with_timeout(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.begin()
    result = await place.scene.argosy("app", "adopt", "models", "-y")
    assert result.code == 5
    assert "another operation is already in progress" in result.out
    assert ENGINE not in await place.annotations()
    late = await place.scene.argosy("app", "adopt", "models", "-y", "--timeout", "0.3")
    assert late.code == 4
    assert ENGINE not in await place.annotations()
    answers: list[bool] = []

    def is_busy(app: Application) -> bool:
        answers.append(adopting_is_busy(app))
        return answers[-1]

    adopting_is_busy = argocd_adoption.is_busy
    monkeypatch.setattr(argocd_adoption, "is_busy", is_busy)
    waiting = asyncio.create_task(place.scene.argosy("app", "adopt", "models", "-y", "--timeout", HANG))
    await wait_until_async(lambda: True in answers, "it has seen the operation")
    await place.begin("Succeeded")
    assert (await waiting).code == 0
    assert (await place.annotations())[ENGINE] == "argosy"


@pytest.mark.tier("all")
async def test_out_of_sync_application_is_adopted_only_with_hold(place: Place) -> None:
    place.scene.repository.push({"app/settings.yaml": config_map(a="2")})
    before = await place.object()
    result = await place.scene.argosy("app", "adopt", "models", "-y")
    assert result.code == 5
    assert "ConfigMap/settings: status says Synced, argosy says OutOfSync: /data/a" in result.out
    assert "adopt it with --hold" in result.out
    assert ENGINE not in await place.annotations()
    held = await place.scene.argosy("app", "adopt", "models", "-y", "--hold")
    assert held.code == 0, held.out
    await place.scene.until(lambda status: status["sync"]["status"] == "OutOfSync")
    await place.scene.settled()
    assert await place.object() == before
    back = await place.scene.argosy("app", "hand-back", "models", "-y")
    assert back.code == 5
    assert "which Argo CD does not support" in back.out


async def test_adopt_requires_yes_and_an_application_name(place: Place) -> None:
    result = await place.scene.argosy("app", "adopt", "models")
    assert result.code == 2
    assert "add -y" in result.err
    assert ENGINE not in await place.annotations()
    assert (await place.scene.argosy("app", "adopt")).code == 2


@pytest.mark.tier("all")
async def test_json_output_shows_the_plan_before_the_prompt(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "is_interactive", lambda: True)
    monkeypatch.setattr(prompts, "read_line", lambda: "n\n")
    result = await place.scene.argosy("app", "adopt", "models", "-o", "json")
    assert result.code == 2 and result.out == ""
    plan, _, answered = result.err.partition("adopt 1 Application? [y/N] ")
    assert "argocd/models\n  now        Argo CD" in plan and "Plan: 1 to adopt" in plan
    assert "nothing was moved" in answered


@pytest.mark.tier("all")
async def test_application_set_that_would_revert_the_adoption_is_named(place: Place) -> None:
    from argosy.kube.schema.bundled_crds import load_definition

    await place.scene.cluster.create(load_definition("applicationsets.argoproj.io"))
    key = ResourceKey("argoproj.io", "ApplicationSet", CONTROL, "all")
    template = {"metadata": {"name": "models"}, "spec": (await place.scene.app())["spec"]}
    application_set = await place.scene.cluster.create(
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "ApplicationSet",
            "metadata": {"name": "all", "namespace": CONTROL},
            "spec": {"generators": [{"list": {"elements": []}}], "template": template},
        }
    )
    reference = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": "all"}
    owner = [{**reference, "uid": application_set["metadata"]["uid"]}]
    await place.scene.patch_app({"metadata": {"ownerReferences": owner}})
    result = await place.scene.argosy("app", "adopt", "models", "--dry-run")
    assert result.code == 1
    assert "ApplicationSet all would revert this; add to its spec.preservedFields.annotations" in result.out
    spec = {"preservedFields": {"annotations": [ENGINE, SKIP]}}
    await place.scene.cluster.patch(key, {"spec": spec})
    assert (await place.scene.argosy("app", "adopt", "models", "--dry-run")).code == 0


@pytest.mark.tier("all")
async def test_delivering_engine_is_shown_where_argo_cd_runs(place: Place) -> None:
    got = await place.scene.argosy("app", "get", "models")
    line = "Delivered by:       Argo CD (StatefulSet argocd/argocd-application-controller); argosy observes"
    assert line in got.out.splitlines()
    listed = await place.scene.argosy("app", "list")
    assert listed.out.splitlines()[0].endswith("DELIVERED BY")
    assert listed.out.splitlines()[1].endswith("Argo CD")
    lease = {"name": "argosy-application-controller", "namespace": CONTROL}
    spec = {"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.000000Z"}
    await place.scene.cluster.create(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": lease, "spec": spec}
    )
    result = await place.scene.argosy("doctor")
    assert "argosy runs beside it, and delivers 0 of 1 Applications" in result.out
    await place.scene.patch_app({"metadata": {"annotations": {ENGINE: "argosy"}}})
    doctor_result = await place.scene.argosy("doctor")
    assert "both deliver models: argosy app adopt, or hand-back" in doctor_result.out


@pytest.mark.tier("all")
async def test_sync_that_no_controller_starts_names_the_delivering_engine(place: Place) -> None:
    await place.begin("Succeeded")
    done = {"message": "successfully synced (all tasks run)"}
    await place.scene.patch_app({"status": {"operationState": done}})
    result = await place.scene.argosy("app", "sync", "models", "--timeout", "0.5")
    assert result.code == 4
    message = "no controller has started the operation yet; delivered by: Argo CD (StatefulSet argocd/"
    assert message in result.err and "successfully synced" not in result.err
    assert "next: it has not started; argosy app wait models" in result.err


@pytest.mark.tier("all")
async def test_plan_summary_reports_that_nothing_changes(place: Place) -> None:
    await place.begin()
    result = await place.scene.argosy("app", "adopt", "models", "--dry-run")
    assert result.out.splitlines()[-1] == "Plan: 1 refused. Nothing changes."
    command_result = await place.scene.argosy("app", "hand-back", "models", "--dry-run")
    assert command_result.out.splitlines()[-1] == "Plan: nothing to do."


@pytest.mark.tier("all")
async def test_doctor_distinguishes_argo_cd_watching_this_namespace_from_others(tmp_path: Path) -> None:
    async with scene(tmp_path) as opened_scene:
        opened_scene.repository.push({"app/settings.yaml": config_map(a="1")})
        await opened_scene.deliver()
        await opened_scene.until(lambda status: status["sync"]["status"] == "OutOfSync")
        lease = {"name": "argosy-application-controller", "namespace": CONTROL}
        spec = {"holderIdentity": "me", "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
        await opened_scene.cluster.create(
            {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": lease, "spec": spec}
        )
        await opened_scene.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant"}})
        await opened_scene.cluster.create(pod("tenant"))
        output = (await opened_scene.argosy("doctor")).out
        assert "ok argosy delivers " in output, output
        message = f"an Argo CD (Pod tenant/{MANAGER}-0) does not watch the Applications in argocd: argosy delivers them"
        assert f"{message}, 1 of 1 Applications" in " ".join(output.split())
        await opened_scene.cluster.create(pod(CONTROL))
        output = " ".join((await opened_scene.argosy("doctor")).out.split())
        assert (
            f"Pod argocd/{MANAGER}-0 has the labels of an Argo CD's controller, so that argosy only observes" in output
        )
        assert "whose is it?" in output and "argosy runs beside it, and delivers 0 of 1 Applications" in output


@pytest.mark.tier("all")
async def test_delivering_engine_is_not_shown_without_a_real_argo_cd(tmp_path: Path) -> None:
    async with scene(tmp_path) as opened_scene:
        await opened_scene.cluster.create(
            controller(annotations={"sandbox.argosy.dev/simulated": "simulated by argosy"})
        )
        opened_scene.repository.push({"app/settings.yaml": config_map(a="1")})
        await opened_scene.deliver()
        await opened_scene.until(lambda status: status["sync"]["status"] == "OutOfSync")
        assert "Delivered by" not in (await opened_scene.argosy("app", "get", "models")).out
        assert "DELIVERED" not in (await opened_scene.argosy("app", "list")).out
