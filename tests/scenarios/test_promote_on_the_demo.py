"""`argosy promote` right after `argosy demo`, from any folder: to staging, then to production."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from support.clusters import KUBECTL
from support.deadlines import HANG_SECONDS
from support.demo import Demo, demo, own, run

pytestmark = [
    pytest.mark.tier("all"),
    pytest.mark.skipif(not KUBECTL.exists(), reason=f"kubectl: there is none at {KUBECTL} (make install)"),
]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo(tmp_path_factory.mktemp("demo"), "--api-port", "0") as running:
        yield running


def plan(shown: Demo, environment: str) -> dict[str, object]:
    """Return the plan, after checking that the exit code agrees with its `ready` field."""
    done = run(("promote", "plan", "--to", environment, "-o", "json"), env=own(shown.home), timeout=HANG_SECONDS)
    promotion_plan: dict[str, object] = json.loads(done.stdout)
    assert done.returncode == (0 if promotion_plan["ready"] or not promotion_plan["moves"] else 1)
    return promotion_plan


def test_runtime_of_dev_is_promoted_to_staging_by_one_commit(shown: Demo) -> None:
    shown.until(lambda: plan(shown, "staging")["ready"])
    picture = shown.argosy("promote", "status")
    assert "promote r4 → staging (ready)" in picture and "✔ Healthy" in picture
    shown.argosy("promote", "run", "--to", "staging")
    commit = shown.git("--git-dir", shown.where["repository"], "rev-parse", "main").strip()
    shown.until(lambda: shown.apps()["llmops-staging"]["status"]["sync"]["revision"] == commit)
    shown.argosy("app", "sync", "llmops-staging")
    image = "{.spec.containers[0].image}"
    runtime = ("servingruntime/staging-qwen25-05b-instruct", "-n", "llmops-staging")
    assert shown.kubectl("get", *runtime, "-o", f"jsonpath={image}").endswith("vllm-cuda-rhel9:3.3.0")
    shown.until(lambda: shown.words("llmops-staging") == ("Synced", "Healthy"))


@pytest.mark.tier("all")
def test_production_needs_staging_approval_and_no_hold(shown: Demo) -> None:
    gates = {gate["gate"]: gate for gate in plan(shown, "production")["gates"]}  # type: ignore[attr-defined]
    assert gates["approval (release-managers)"]["who"] == "carol@example.com, system:masters"
    assert not gates["approval (release-managers)"]["open"]
    shown.argosy("app", "hold", "llmops-production", "--reason", "not today")
    shown.argosy("promote", "approve", "--to", "production")
    assert "held by" in shown.argosy_said("promote", "run", "--to", "production", code=1)
    shown.argosy("app", "release", "llmops-production")
    shown.until(lambda: plan(shown, "production")["ready"])
    shown.argosy("promote", "run", "--to", "production")
    shown.argosy("app", "sync", "llmops-production")
    history = shown.argosy("promote", "history")
    assert [line.split()[3] for line in history.splitlines()[1:]] == ["promote", "approve", "promote"]
    assert "admin (cluster)" in history
