"""`health apply` asks for confirmation if the ArgoCD resource already has health checks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.features.health_checks.argocd_install.apply_steps import (
    CONTINUE_QUESTION,
    ApplyOutcome,
    HealthApplyRequest,
    apply_health_checks,
)
from argosy.features.health_checks.argocd_install.merge import DEFAULT_KINDS, build_requested_checks
from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators.openshift_gitops import make as make_operator

pytestmark = pytest.mark.anyio
RESOURCE = ResourceKey("argoproj.io", "ArgoCD", "openshift-gitops", "openshift-gitops")
CLAIMS = {"group": "", "kind": "PersistentVolumeClaim", "check": 'return {status = "Healthy"}\n'}
KINDS = ["PersistentVolumeClaim", "InferenceService", "ServingRuntime"]


@pytest.fixture
async def operated(cluster: EmbeddedCluster) -> AsyncIterator[EmbeddedCluster]:
    async with run_addons([make_operator("")], cluster, on_failure=lambda: None):
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
) -> tuple[ApplyOutcome, Conversation, list[str]]:
    if entries is not None:
        await cluster.patch(RESOURCE, {"spec": {"resourceHealthChecks": entries}})
    talk = Conversation(answer)
    request = HealthApplyRequest(build_requested_checks(DEFAULT_KINDS), refresh_timeout_seconds=0, **how)
    outcome = await apply_health_checks(cluster, request, talk.lines.append, talk.ask)
    live = await cluster.get(RESOURCE)
    assert live is not None
    return outcome, talk, [entry["kind"] for entry in live["spec"].get("resourceHealthChecks") or ()]


async def test_existing_check_of_another_kind_is_confirmed_and_kept_on_no(operated: EmbeddedCluster) -> None:
    outcome, talk, kinds = await run(operated, [CLAIMS])
    assert (outcome, talk.questions, kinds) == (ApplyOutcome.ABORTED, [CONTINUE_QUESTION], ["PersistentVolumeClaim"])
    assert "✓ resourceHealthChecks found, but no KServe health checks detected" in talk.lines
    assert "  PersistentVolumeClaim: not requested, kept unchanged" in talk.lines


async def test_existing_check_is_kept_and_requested_checks_are_added_on_yes(operated: EmbeddedCluster) -> None:
    outcome, talk, kinds = await run(operated, [CLAIMS], answer="y")
    assert (outcome, talk.questions, kinds) == (ApplyOutcome.DONE, [CONTINUE_QUESTION], KINDS)
    assert any(line.startswith("✓ Health checks applied") for line in talk.lines)


async def test_force_skips_the_confirmation(operated: EmbeddedCluster) -> None:
    outcome, talk, kinds = await run(operated, [CLAIMS], is_forced=True)
    assert (outcome, talk.questions, kinds) == (ApplyOutcome.DONE, [], KINDS)


@pytest.mark.parametrize("entries", [None, []], ids=["no list", "an empty list"])
async def test_resource_without_checks_is_written_without_confirmation(
    operated: EmbeddedCluster, entries: list[Any] | None
) -> None:
    outcome, talk, kinds = await run(operated, entries)
    assert (outcome, talk.questions, kinds) == (ApplyOutcome.DONE, [], KINDS[1:])


async def test_dry_run_asks_nothing_and_changes_nothing(operated: EmbeddedCluster) -> None:
    outcome, talk, kinds = await run(operated, [CLAIMS], is_dry_run=True)
    assert (outcome, talk.questions, kinds) == (ApplyOutcome.DONE, [], ["PersistentVolumeClaim"])
