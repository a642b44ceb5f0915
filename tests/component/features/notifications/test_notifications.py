"""Notifications on the embedded cluster with real receiving servers: what is sent, when, and how often."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from argosy.annotations import NOTIFIED, NOTIFYING
from argosy.features.notifications.addon import make
from argosy.features.notifications.commit_metadata import CommitMetadataReader
from argosy.features.notifications.condition_and_template_worker import RENDER_FUNCTION
from argosy.features.notifications.controller import NotificationController
from argosy.features.notifications.delivery_events import read_history
from argosy.features.notifications.settings_cache import NotificationSettingsCache
from argosy.isolation import WorkerPool
from argosy.kube.controller import AddOn, ControllerContext, InformerCache, Requeue
from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.controller.clock import SYSTEM_CLOCK
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION, EVENT
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.message_servers import http_inbox, smtp_inbox
from support.notifications import APP, SECRET, application, of_installation, prepare, quiet, set_status, settings

pytestmark = pytest.mark.anyio
Until = Callable[[Callable[[], Awaitable[object]]], Awaitable[None]]


@asynccontextmanager
async def notifying(cluster: EmbeddedCluster) -> AsyncIterator[None]:
    addon = make("")
    async with run_addons([addon], cluster, on_failure=lambda: None), addon.background(None):  # type: ignore[misc,arg-type]
        yield


async def list_notifications(cluster: EmbeddedCluster) -> list[tuple[str, str, str]]:
    history = read_history((await cluster.list(EVENT)).items)
    return [(entry.reason, entry.trigger, entry.destination) for entry in reversed(history)]


async def test_message_is_sent_once_per_transition_and_not_again_after_a_restart(
    cluster: EmbeddedCluster, until: Until, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with http_inbox() as inbox:
        await prepare(cluster, [*settings(inbox), application()])

        async def has(count: int) -> bool:
            notes = await quiet(cluster)
            return len(inbox.letters) >= count and NOTIFYING not in notes

        async def settled() -> bool:
            return NOTIFIED not in await quiet(cluster)

        async with notifying(cluster):
            await set_status(cluster, health={"status": "Degraded"})
            await until(lambda: has(1))
            await set_status(cluster, sync={"revision": "def"})  # still the same transition
            await set_status(cluster, health={"status": "Healthy"})
            await until(settled)
            await set_status(cluster, health={"status": "Degraded"})
            await until(lambda: has(2))
        async with notifying(cluster):
            await set_status(cluster, sync={"revision": "fed"})
            await set_status(cluster, health={"status": "Healthy"})
            await until(settled)
    assert [letter.body for letter in inbox.letters] == [b"wine: Degraded abc", b"wine: Degraded def"]
    assert inbox.letters[0].headers["authorization"] == f"Bearer {SECRET}"
    assert inbox.letters[0].headers["idempotency-key"] != inbox.letters[1].headers["idempotency-key"]
    assert await list_notifications(cluster) == [("NotificationSent", "on-health-degraded", "ours:")] * 2
    assert SECRET not in caplog.text


async def test_message_in_flight_at_a_crash_is_reported_and_not_sent_again(
    cluster: EmbeddedCluster, until: Until
) -> None:
    with http_inbox() as inbox:
        app = application(health={"status": "Degraded"})
        await prepare(cluster, [*settings(inbox), app])
        from argosy.features.notifications.sent_messages import build_state_key
        from argosy.features.notifications.subscriptions import NotificationDestination

        when = "app.status.health.status == 'Degraded'"
        key = build_state_key("on-health-degraded", 0, when, "", NotificationDestination("ours", ""))
        claim = {"by": "another", "since": 1.0, "trigger": "on-health-degraded", "to": "ours:"}
        marks = {NOTIFIED: json.dumps({key: 1}), NOTIFYING: json.dumps({key: claim})}
        await cluster.patch(APP, {"metadata": {"annotations": marks}})
        async with notifying(cluster):

            async def settled() -> bool:
                return NOTIFYING not in await quiet(cluster)

            await until(settled)
    assert inbox.letters == []
    assert await list_notifications(cluster) == [("NotificationUnclear", "on-health-degraded", "ours:")]


@pytest.mark.tier("all")
async def test_message_without_a_response_is_not_sent_again(cluster: EmbeddedCluster, until: Until) -> None:
    with http_inbox(lambda letter: (0, b"")) as inbox:
        await prepare(cluster, [*settings(inbox), application(health={"status": "Degraded"})])
        async with notifying(cluster):

            async def said() -> bool:
                return bool(await list_notifications(cluster)) and NOTIFYING not in await quiet(cluster)

            await until(said)
            await set_status(cluster, sync={"revision": "def"})
    assert len(inbox.letters) == 1
    assert await list_notifications(cluster) == [("NotificationUnclear", "on-health-degraded", "ours:")]


@pytest.mark.tier("all")
async def test_rejected_message_is_sent_again_only_after_a_settings_change(
    cluster: EmbeddedCluster, until: Until, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with http_inbox(lambda letter: (403, f"no: {letter.headers['authorization']}".encode())) as inbox:
        manifests = settings(inbox)
        await prepare(cluster, [*manifests, application(health={"status": "Degraded"})])
        async with notifying(cluster):

            async def failed() -> bool:
                return ("NotificationFailed", "on-health-degraded", "ours:") in await list_notifications(cluster)

            await until(failed)
            await set_status(cluster, sync={"revision": "def"})
            inbox.answer = lambda letter: (200, b"")
            key = ResourceKey("", "ConfigMap", "argocd", "argocd-notifications-cm")
            await cluster.patch(key, {"data": {"context": "argocdUrl: https://argocd"}})

            async def sent() -> bool:
                return ("NotificationSent", "on-health-degraded", "ours:") in await list_notifications(cluster)

            await until(sent)
    assert len(inbox.letters) == 2
    messages = [str(event.get("message")) for event in (await cluster.list(EVENT)).items]
    assert not any(SECRET in message for message in messages) and SECRET not in caplog.text


async def test_global_subscriptions_apply_to_applications_matching_the_selector(
    cluster: EmbeddedCluster, until: Until
) -> None:
    with http_inbox() as inbox, smtp_inbox() as box:
        subscriptions = """
        - {recipients: ["mail:team@example.org"], triggers: [on-deployed], selector: team=ml}
        - {recipients: ["mail:others@example.org"], triggers: [on-deployed], selector: team!=ml}
        """
        mail = f"{{host: 127.0.0.1, port: {box.port}, from: argosy@example.org}}"
        done = {"phase": "Succeeded", "operation": {}, "startedAt": "2026-01-01T00:00:00Z"}
        done |= {"finishedAt": "2026-01-01T00:00:01Z", "syncResult": {"revision": "abc"}}
        health = {"status": "Healthy", "lastTransitionTime": "2026-01-01T00:00:01Z"}
        app = application(operationState=done, health=health)
        app["metadata"]["labels"] = {"team": "ml"}
        more = {"subscriptions": subscriptions, "service.email.mail": mail}
        await prepare(cluster, [*settings(inbox, **more), app])
        async with notifying(cluster):

            async def sent() -> bool:
                return bool(box.mails)

            await until(sent)
    assert len(box.mails) == 1
    assert "To: team@example.org" in box.mails[0] and "Subject: Application wine is deployed" in box.mails[0]


async def test_drift_message_names_object_field_and_manager_once(cluster: EmbeddedCluster, until: Until) -> None:
    config = ResourceKey("", "ConfigMap", "argocd", "prompts")
    desired = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "prompts", "namespace": "argocd"},
        "data": {"greeting": "hello"},
    }  # fmt: skip
    applied = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(desired)}
    metadata = {**desired["metadata"], "annotations": applied}  # type: ignore[dict-item]
    with http_inbox() as inbox:
        app = application(history=[{"id": 0, "revision": "abc", "deployedAt": "2026-01-01T00:00:00Z"}])
        app["metadata"]["annotations"] = {"notifications.argoproj.io/subscribe.on-drift.ours": ""}
        await prepare(cluster, [*settings(inbox), app])
        await cluster.create({**desired, "metadata": metadata}, manager="argocd-controller")
        await cluster.patch(config, {"data": {"greeting": "bye"}}, manager="kubectl-edit")
        async with notifying(cluster):
            rows = [{"version": "v1", "kind": "ConfigMap", "namespace": "argocd", "name": "prompts"}]
            rows[0]["status"] = "OutOfSync"
            await set_status(cluster, sync={"status": "OutOfSync"}, resources=rows)

            async def sent() -> bool:
                return len(inbox.letters) == 1 and NOTIFYING not in await quiet(cluster)

            await until(sent)
            await set_status(cluster, reconciledAt="2026-01-02T00:00:00Z")
            await set_status(cluster, sync={"status": "OutOfSync", "revision": "def"})  # now Git has changed
    (letter,) = inbox.letters
    text = letter.body.decode()
    assert "wine drifted from abc" in text
    assert "ConfigMap argocd/prompts: .data.greeting, set by kubectl-edit at 20" in text
    assert "bye" not in text


@pytest.mark.tier("all")
async def test_notebook_failure_notifies_subscribers_of_application_and_job(
    cluster: EmbeddedCluster, until: Until
) -> None:
    with http_inbox() as inbox:
        app = application()
        status = {"total": 2, "succeeded": 1, "failed": 1, "running": 0, "failedJobs": ["train"]}
        app["metadata"]["annotations"] = {
            "notifications.argoproj.io/subscribe.notebook-validation-failed.ours": "",
            "mlops.dev/notebook-status": json.dumps(status),
        }
        job = {
            "apiVersion": "mlops.mlops.dev/v1alpha1",
            "kind": "NotebookValidationJob",
            "metadata": {
                "name": "train",
                "namespace": "argocd",
                "annotations": {"notifications.argoproj.io/subscribe.on-notebook-failed.ours": ""},
            },
            "spec": {
                "notebook": {"git": {"url": "https://git/x", "ref": "main"}, "path": "train.ipynb"},
                "podConfig": {"containerImage": "python"},
            },
        }
        await prepare(cluster, [*settings(inbox), app, job])
        key = ResourceKey("mlops.mlops.dev", "NotebookValidationJob", "argocd", "train")
        phase = {"phase": "Failed", "message": "cell 3 raised ValueError", "completionTime": "2026-01-01T00:00:00Z"}
        await cluster.patch(key, {"status": phase}, subresource="status")
        async with notifying(cluster):

            async def sent() -> bool:
                return len(inbox.letters) >= 2

            await until(sent)
    bodies = sorted(letter.body.decode().strip() for letter in inbox.letters)
    assert bodies == [
        "Application wine: 1 of 2 notebooks failed.\n* train",
        "Notebook argocd/train failed: cell 3 raised ValueError",
    ]


@pytest.mark.tier("all")
async def test_endless_template_is_stopped_and_reported(cluster: EmbeddedCluster, until: Until) -> None:
    endless = '{{define "R"}}{{range until 900}}{{template "R" .}}{{end}}{{end}}{{template "R" .}}'
    with http_inbox() as inbox:
        more = {"template.app-health-degraded": json.dumps({"message": endless})}
        await prepare(cluster, [*settings(inbox, **more), application(health={"status": "Degraded"})])
        async with notifying(cluster):

            async def failed() -> bool:
                return bool(await list_notifications(cluster))

            await until(failed)
    assert await list_notifications(cluster) == [("NotificationFailed", "on-health-degraded", "ours:")]
    assert inbox.letters == []


@pytest.mark.tier("all")
async def test_two_controllers_send_a_message_once(cluster: EmbeddedCluster, until: Until) -> None:
    with http_inbox() as inbox:
        await prepare(cluster, [*settings(inbox), application()])
        async with notifying(cluster), notifying(cluster):
            for number in range(5):
                at = f"2026-01-0{number + 1}T00:00:00Z"
                await set_status(cluster, health={"status": "Degraded"}, reconciledAt=at)

                async def has(number: int = number) -> bool:
                    return len(inbox.letters) > number and NOTIFYING not in await quiet(cluster)

                await until(has)
                await set_status(cluster, health={"status": "Healthy"})

                async def gone() -> bool:
                    return NOTIFIED not in await quiet(cluster)

                await until(gone)
            await asyncio.sleep(0)
    assert len(inbox.letters) == 5


class Late(NotificationController):
    """Blocks after rendering the n-th message until the test continues, and signals the end of the reconcile."""

    def __init__(self, render_number: int = 1) -> None:
        self.pool, self.left = WorkerPool(workers=1), render_number
        super().__init__(APPLICATION, lambda: self, NotificationSettingsCache(""), CommitMetadataReader())
        self.asked, self.may, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run(self, function: str, payload: Any) -> Any:
        answer = await self.pool.run(function, payload)
        self.left -= function == RENDER_FUNCTION
        if function == RENDER_FUNCTION and self.left <= 0:
            self.asked.set()
            await self.may.wait()
        return answer

    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        try:
            return await super().reconcile(key, context)
        finally:
            if self.may.is_set():
                self.ended.set()


@pytest.mark.tier("all")
async def test_slow_controller_does_not_resend_a_sent_message(cluster: EmbeddedCluster, until: Until) -> None:
    late = Late()
    with http_inbox() as inbox:
        await prepare(cluster, [*settings(inbox), application(health={"status": "Degraded"})])
        async with run_addons([AddOn("late", description="", controllers=[late])], cluster, on_failure=lambda: None):
            await late.asked.wait()
            async with notifying(cluster):
                await until(lambda: _noted(cluster, True))
                await set_status(cluster, health={"status": "Healthy"})
                await until(lambda: _noted(cluster, False))
            late.may.set()
            await late.ended.wait()
        await late.pool.close()
    assert len(inbox.letters) == 1


async def _noted(cluster: EmbeddedCluster, is_noted: bool) -> bool:
    notes = await quiet(cluster)
    return (NOTIFIED in notes) == is_noted and NOTIFYING not in notes


@pytest.mark.tier("all")
async def test_slow_controller_does_not_resend_a_second_message(cluster: EmbeddedCluster, until: Until) -> None:
    """Its claim of the first message still exists, and the recorded state looks as it did then."""
    late = Late(2)
    with http_inbox() as inbox:
        app = application(health={"status": "Degraded"})
        app["metadata"]["annotations"]["notifications.argoproj.io/subscribe.on-created.ours"] = ""
        await prepare(cluster, [*settings(inbox), app])

        async def noted(count: int) -> bool:
            notes = await quiet(cluster)
            return (len(json.loads(notes[NOTIFIED])), len(json.loads(notes[NOTIFYING]))) == (count, 1)

        async with run_addons([AddOn("late", description="", controllers=[late])], cluster, on_failure=lambda: None):
            await late.asked.wait()
            async with notifying(cluster):
                await until(lambda: noted(2))
                await set_status(cluster, health={"status": "Healthy"})
                await until(lambda: noted(1))
            late.may.set()
            await until(lambda: _noted(cluster, True))
        await late.pool.close()
    assert sorted(letter.body.split(b" ")[0] for letter in inbox.letters) == [b"Application", b"wine:"]


async def test_reconciles_of_a_missing_object_never_overlap(cluster: EmbeddedCluster) -> None:
    at_work: list[int] = []

    class Counted(NotificationController):
        async def _reconcile_object(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
            at_work.append(1)
            await asyncio.sleep(0)
            assert len(at_work) == 1
            result = await super()._reconcile_object(key, context)
            at_work.pop()
            return result

    notifier = Counted(
        APPLICATION, lambda: WorkerPool(workers=1), NotificationSettingsCache(""), CommitMetadataReader()
    )
    context, tasks = ControllerContext(cluster, InformerCache(), SYSTEM_CLOCK), []
    for _ in range(9):  # some start while others wait, and some when one has just finished
        tasks += [asyncio.create_task(notifier.reconcile(APP, context)) for _ in range(3)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    assert await asyncio.gather(*tasks) == [None] * 27


@pytest.mark.parametrize("is_allowed", [False, True])
async def test_namespace_settings_are_used_only_if_self_service_is_enabled(
    cluster: EmbeddedCluster, until: Until, is_allowed: bool
) -> None:
    with http_inbox() as inbox, http_inbox() as tenant:
        app = application(health={"status": "Degraded"})
        app["metadata"] |= {"namespace": "team"}
        own = settings(tenant)[1:]
        for manifest in own:
            manifest["metadata"]["namespace"] = "team"
        wide = of_installation("ConfigMap", "argosy-cm", {"notifications.hosts": "*"})
        wide["metadata"]["namespace"] = "team"
        allowed = {"notifications.hosts": "127.0.0.1", **({"notifications.selfService": "true"} if is_allowed else {})}
        rules = of_installation("ConfigMap", "argosy-cm", allowed)
        team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
        await prepare(cluster, [*settings(inbox), rules, team, *own, wide, app])
        async with notifying(cluster):

            async def sent() -> bool:
                return bool(inbox.letters or tenant.letters)

            await until(sent)
    assert (bool(inbox.letters), bool(tenant.letters)) == (not is_allowed, is_allowed)


@pytest.mark.tier("all")
async def test_template_can_read_commit_metadata(cluster: EmbeddedCluster, until: Until, tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        return subprocess.run(["git", *who, *words], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "Serve another model")
    revision = git("rev-parse", "HEAD").strip()
    commit = "(call .repo.GetCommitMetadata .app.status.sync.revision)"
    template = f"{{{{{commit}.Message}}}} by {{{{{commit}.Author}}}} in {{{{{commit}.Date.Year}}}}"
    with http_inbox() as inbox:
        app = application(health={"status": "Degraded"}, sync={"status": "Synced", "revision": revision})
        app["spec"]["source"]["repoURL"] = f"file://{tmp_path}"
        roots = of_installation("ConfigMap", "argosy-cm", {"source.local.roots": str(tmp_path)})
        more = {"template.app-health-degraded": json.dumps({"message": template})}
        await prepare(cluster, [*settings(inbox, **more), roots, app])
        async with notifying(cluster):

            async def sent() -> bool:
                return bool(await list_notifications(cluster))

            await until(sent)
    [letter] = inbox.letters
    assert letter.body.decode().startswith("Serve another model by Ann <ann@example.org> in 20")


async def test_message_waits_for_the_comparison_that_follows_an_operation(
    cluster: EmbeddedCluster, until: Until
) -> None:
    with http_inbox() as inbox:
        trigger = "[{when: app.status.operationState.phase == 'Failed', send: [app-health-degraded]}]"
        ended = {"phase": "Failed", "operation": {}, "startedAt": "2026-01-01T00:00:00Z"}
        app = application(
            operationState={**ended, "finishedAt": "2026-01-01T00:00:05Z"}, reconciledAt="2026-01-01T00:00:04Z"
        )
        await prepare(cluster, [*settings(inbox, **{"trigger.on-health-degraded": trigger}), app])
        async with notifying(cluster):
            await set_status(cluster, sync={"revision": "def"})
            await set_status(cluster, sync={"revision": "fed"}, reconciledAt="2026-01-01T00:00:05Z")

            async def is_sent() -> bool:
                return bool(inbox.letters)

            await until(is_sent)
    assert [letter.body for letter in inbox.letters] == [b"wine: Healthy fed"]
