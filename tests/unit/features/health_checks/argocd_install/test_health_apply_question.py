"""`health apply` asks before it writes into an ArgoCD resource that has health checks, whoever wrote them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.features.health_checks.argocd_install.merge import USUAL_KINDS, wanted_checks
from argosy.features.health_checks.argocd_install.steps import QUESTION, Outcome, Request, apply
from argosy.kube.controller.addon_loader import running
from argosy.kube.names import ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators.openshift_gitops import make as make_operator

pytestmark = pytest.mark.anyio
RESOURCE = ResourceKey("argoproj.io", "ArgoCD", "openshift-gitops", "openshift-gitops")
CLAIMS = {"group": "", "kind": "PersistentVolumeClaim", "check": 'return {status = "Healthy"}\n'}
KINDS = ["PersistentVolumeClaim", "InferenceService", "ServingRuntime"]


@pytest.fixture
async def operated(cluster: EmbeddedCluster) -> AsyncIterator[EmbeddedCluster]:
    async with running([make_operator("")], cluster, on_failure=lambda: None):
        yield cluster


class Conversation:
    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.questions: list[str] = []
        self.lines: list[str] = []

    def ask(self, question: str) -> str:
        self.questions.append(question)
        return self.answer


async def run(
    cluster: EmbeddedCluster, entries: Any, answer: str = "n", **how: Any
) -> tuple[Outcome, Conversation, list[str]]:
    if entries is not None:
        await cluster.patch(RESOURCE, {"spec": {"resourceHealthChecks": entries}})
    talk = Conversation(answer)
    request = Request(wanted_checks(USUAL_KINDS), settle=0, **how)
    outcome = await apply(cluster, request, talk.lines.append, talk.ask)
    live = await cluster.get(RESOURCE)
    assert live is not None
    return outcome, talk, [entry["kind"] for entry in live["spec"].get("resourceHealthChecks") or ()]


async def test_a_check_of_another_kind_alone_is_asked_about_and_kept_on_no(operated: EmbeddedCluster) -> None:
    outcome, talk, kinds = await run(operated, [CLAIMS])
    assert (outcome, talk.questions, kinds) == (Outcome.ABORTED, [QUESTION], ["PersistentVolumeClaim"])
    assert "✓ resourceHealthChecks found, but no KServe health checks detected" in talk.lines
    assert "  PersistentVolumeClaim: not requested, kept unchanged" in talk.lines


async def test_a_check_of_another_kind_stays_and_ours_are_added_on_yes(operated: EmbeddedCluster) -> None:
    outcome, talk, kinds = await run(operated, [CLAIMS], answer="y")
    assert (outcome, talk.questions, kinds) == (Outcome.DONE, [QUESTION], KINDS)
    assert any(line.startswith("✓ Health checks applied") for line in talk.lines)


async def test_force_asks_nothing(operated: EmbeddedCluster) -> None:
    outcome, talk, kinds = await run(operated, [CLAIMS], is_forced=True)
    assert (outcome, talk.questions, kinds) == (Outcome.DONE, [], KINDS)


@pytest.mark.parametrize("entries", [None, []], ids=["no list", "an empty list"])
async def test_a_resource_without_any_check_is_written_without_a_question(
    operated: EmbeddedCluster, entries: list[Any] | None
) -> None:
    outcome, talk, kinds = await run(operated, entries)
    assert (outcome, talk.questions, kinds) == (Outcome.DONE, [], KINDS[1:])


async def test_a_dry_run_asks_nothing(operated: EmbeddedCluster) -> None:
    outcome, talk, kinds = await run(operated, [CLAIMS], is_rehearsal=True)
    assert (outcome, talk.questions, kinds) == (Outcome.DONE, [], ["PersistentVolumeClaim"])
