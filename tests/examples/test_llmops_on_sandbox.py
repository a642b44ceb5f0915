"""llmops-via-argocd on a sandbox that simulates OpenShift GitOps: manifests are accepted and health scripts work."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.clusters import ARGOSY, KUBECTL, Sandbox, environment, kubectl, sandbox
from support.deadlines import HANG_SECONDS

FOLDER = Path(__file__).parents[2] / "llmops-via-argocd"
HEALTH = FOLDER / "argocd-custom-healthcheck"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    if not KUBECTL.exists():
        pytest.skip("no kubectl in .venv/bin: make install")
    folder = tmp_path_factory.mktemp("llmops")
    with sandbox(folder / "data", "--addons", "argocd_operator", "--port", "0") as started:
        for namespace in ("llmops-dev", "llmops-staging", "llmops-prod"):
            kubectl(started.kubeconfig, "create", "namespace", namespace)
        yield started


@pytest.mark.parametrize(
    "command",
    [
        f"apply -f {FOLDER}/argocd-apps",
        f"apply -k {FOLDER}/deploy_model/overlays/dev",
        f"apply -k {FOLDER}/deploy_model/overlays/staging",
        f"apply -k {FOLDER}/deploy_model/overlays/production",
        f"apply -k {FOLDER}/pipelines/tekton",
        f"create -n default -f {FOLDER}/pipelines/tekton/run.yaml",
        f"apply -n llmops-dev -f {FOLDER}/deploy_model/secret-examples/external-secret/externalsecret.yaml",
        f"apply -n llmops-dev -f {FOLDER}/deploy_model/secret-examples/sealed-secret/sealedsecret.yaml",
    ],
    ids=lambda command: command.replace(f"{FOLDER}/", ""),
)
def test_manifests_pass_strict_validation_without_warnings(running: Sandbox, command: str) -> None:
    done = kubectl(running.kubeconfig, *command.split(), "--validate=strict")
    assert done.code == 0, done.err
    assert "Warning" not in done.err


def script(running: Sandbox, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = environment(running.folder.parent) | {"ARGOSY": str(ARGOSY), "KUBECONFIG": str(running.kubeconfig)}
    command = [str(HEALTH / name), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)


@pytest.mark.tier("all")
def test_health_check_scripts_verify_apply_and_apply_again(running: Sandbox) -> None:
    missing = script(running, "verify-health-check.sh")
    assert (missing.returncode, "✗ resourceHealthChecks NOT found in ArgoCD CR" in missing.stdout) == (1, True)
    applied = script(running, "apply-health-check-via-cr.sh")
    assert (applied.returncode, "✓ Health checks applied" in applied.stdout) == (0, True), applied.stderr
    verified = script(running, "verify-health-check.sh")
    assert verified.returncode == 0, verified.stdout
    assert "✓ Health check successfully propagated to ConfigMap" in verified.stdout
    again = script(running, "apply-health-check-via-cr.sh", "--force")
    assert (again.returncode, "Done!" in again.stdout) == (0, True), again.stderr
