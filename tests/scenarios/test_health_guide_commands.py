"""The shell blocks of the guide that adds a health check to Argo CD, run as written.

Two commands are replaced: `oc` is kubectl, and `sleep` ends as soon as the check is in argocd-cm. Blocks that read the
log of a Pod need a Pod, so they do not run here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.features.health_checks.argocd_install.export import render_export
from argosy.features.health_checks.argocd_install.merge import DEFAULT_KINDS, build_requested_checks
from argosy.kube.objects import dump_yaml, read_yaml
from support.clusters import ARGOSY, KUBECTL, Finished, Sandbox, sandbox
from support.deadlines import HANG_SECONDS, wait_until
from support.gitops_operator import (
    GITOPS,
    MODEL_KEY,
    RESOURCE,
    argo_cd_playing,
    as_lines,
    data,
    entries,
    get,
    in_order,
    ready,
    settings_of,
    version,
    with_environments,
    with_model,
    without_checks,
)

pytestmark = pytest.mark.usefixtures("needs_kubectl")
ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "llmops-via-argocd/argocd-custom-healthcheck"
STRICT = build_requested_checks(DEFAULT_KINDS)
PATCH_REFRESH = """\
oc patch application.argoproj.io llmops-dev -n openshift-gitops --type merge \
-p '{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"hard"}}}'
"""
IN_CONFIG_MAP = 'oc get configmap argocd-cm -n openshift-gitops -o yaml | grep -A 5 "InferenceService"'
SLEEP = f"""\
#!/bin/sh
exec oc wait configmap/argocd-cm -n {GITOPS} --timeout={HANG_SECONDS:g}s \
  --for=jsonpath='{{.data.{MODEL_KEY.replace(".", chr(92) + ".")}}}' > /dev/null
"""


class Terminal:
    """A shell of a user who is logged in to the sandbox."""

    def __init__(self, started: Sandbox, home: Path) -> None:
        self.cluster = started
        commands = home / "bin"
        commands.mkdir()
        (commands / "oc").symlink_to(KUBECTL)
        sleep = commands / "sleep"
        sleep.write_text(SLEEP)
        sleep.chmod(0o755)
        self.environment = {
            "PATH": f"{commands}:{os.environ['PATH']}",
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "KUBECONFIG": str(started.kubeconfig),
            "ARGOSY": str(ARGOSY),
            "LANG": "C.UTF-8",
        }
        self.folder = home

    def type(self, block: str, input: str = "") -> str:
        done = self.run(block, input)
        assert done.code == 0, done.out + done.err
        return done.out

    def run(self, block: str, input: str = "") -> Finished:
        command = ["bash", "-euo", "pipefail", "-c", block]
        done = subprocess.run(
            command, input=input, env=self.environment, cwd=self.folder, capture_output=True, text=True,
            timeout=HANG_SECONDS, check=False,
        )  # fmt: skip
        return Finished(done.returncode, done.stdout, done.stderr, 0.0)


@pytest.fixture(scope="module")
def gitops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with sandbox(tmp_path_factory.mktemp("guide") / "data", "--port", "0", "--addons", "argocd_operator") as started:
        ready(started)
        yield started


@pytest.fixture
def terminal(gitops: Sandbox, tmp_path: Path) -> Terminal:
    without_checks(gitops)
    return Terminal(gitops, tmp_path)


def configured(terminal: Terminal) -> None:
    terminal.type('"$ARGOSY" health apply --force --settle 0')


@pytest.mark.tier("all")
def test_guide_scripts_apply_and_verify_the_check(terminal: Terminal) -> None:
    shutil.copytree(SCRIPTS, terminal.folder / "llmops-via-argocd/argocd-custom-healthcheck")
    with_environments(terminal.cluster, dev="Progressing")
    with_model(terminal.cluster)
    with argo_cd_playing(terminal.cluster):
        output = terminal.type("""\
cd llmops-via-argocd/argocd-custom-healthcheck
chmod +x apply-health-check-via-cr.sh verify-health-check.sh
./apply-health-check-via-cr.sh
./verify-health-check.sh
""")
    in_order(
        output,
        "Current Application Status:",
        "NAME                SYNC STATUS   HEALTH STATUS",
        "llmops-dev          Synced        Healthy",
        "Done!",
        "✓ InferenceService health check found in ArgoCD CR",
        "✓ Health check successfully propagated to ConfigMap",
        "Namespace: llmops-dev",
        "Verification Complete",
    )


@pytest.mark.tier("all")
def test_repeated_apply_script_changes_nothing(terminal: Terminal) -> None:
    configured(terminal)
    ready(terminal.cluster)
    before = version(terminal.cluster, RESOURCE), version(terminal.cluster, settings_of())
    output = terminal.type(f"{SCRIPTS}/apply-health-check-via-cr.sh --force")
    assert "already up to date" in output
    assert (version(terminal.cluster, RESOURCE), version(terminal.cluster, settings_of())) == before
    assert terminal.type(f"{SCRIPTS}/apply-health-check-via-cr.sh", "n\n").endswith("Aborted by user.\n")


@pytest.mark.tier("all")
def test_kubectl_shows_applications_and_the_health_of_one(terminal: Terminal) -> None:
    with_environments(terminal.cluster)
    lines = as_lines(terminal.type("oc get applications.argoproj.io -n openshift-gitops"))
    assert lines[0].split() == ["NAME", "SYNC", "STATUS", "HEALTH", "STATUS"]
    assert sorted(line.split() for line in lines[1:]) == [
        ["llmops-dev", "Synced", "Healthy"],
        ["llmops-production", "OutOfSync", "Missing"],
        ["llmops-staging", "Synced", "Healthy"],
    ]
    one = "oc get application.argoproj.io llmops-dev -n openshift-gitops -o jsonpath='{.status.health.status}'"
    assert terminal.type(f'{one}\necho ""') == "Healthy\n"


@pytest.mark.tier("all")
def test_check_is_in_the_argocd_resource_and_in_argocd_cm(terminal: Terminal) -> None:
    configured(terminal)
    resource = terminal.type(
        'oc get argocd openshift-gitops -n openshift-gitops -o yaml | grep -A 50 "resourceHealthChecks"'
    )
    in_order(
        resource,
        "  resourceHealthChecks:",
        "  - check: |",
        '      hs.status = "Progressing"',
        '      hs.message = "Waiting for InferenceService"',
    )
    assert 'hs.message = "InferenceService is ready"' in resource
    in_order(terminal.type(IN_CONFIG_MAP), f"  {MODEL_KEY}: |")


@pytest.mark.tier("all")
def test_check_pasted_under_spec_with_oc_edit_reaches_argocd_cm(terminal: Terminal) -> None:
    """The editor that `oc edit` starts pastes the exported list under `spec`."""
    editor = terminal.folder / "paste"
    fragment = dump_yaml(read_yaml(render_export("cr", STRICT))["spec"])
    pasted = "".join(f"  {line}".rstrip() + "\n" for line in fragment.splitlines())
    (terminal.folder / "fragment").write_text(pasted)
    editor.write_text(f'#!/bin/sh\nsed -i "/^spec:/r {terminal.folder}/fragment" "$1"\n')
    editor.chmod(0o755)
    output = terminal.type(f"""\
EDITOR={editor} oc edit argocd openshift-gitops -n openshift-gitops
sleep 15
{IN_CONFIG_MAP}
""")
    assert f"{MODEL_KEY}: |" in output
    assert entries(terminal.cluster) == [check.entry for check in STRICT]


@pytest.mark.tier("all")
def test_hard_refresh_annotation_updates_the_health(terminal: Terminal) -> None:
    configured(terminal)
    with_environments(terminal.cluster, dev="Progressing")
    with argo_cd_playing(terminal.cluster):
        terminal.type(PATCH_REFRESH)
        wait = f"oc wait -n openshift-gitops application.argoproj.io/llmops-dev --timeout={HANG_SECONDS:g}s"
        terminal.type(f"{wait} --for=jsonpath='{{.status.health.status}}'=Healthy")


@pytest.mark.tier("all")
def test_troubleshooting_a_progressing_application_shows_the_check_and_refreshes(terminal: Terminal) -> None:
    configured(terminal)
    with_environments(terminal.cluster)
    key = MODEL_KEY.replace(".", "\\.")
    output = terminal.type(f"""\
oc get argocd openshift-gitops -n openshift-gitops -o yaml | grep -A 10 "resourceHealthChecks"
oc get configmap argocd-cm -n openshift-gitops -o jsonpath='{{.data.{key}}}' | head -10
{PATCH_REFRESH}
sleep 30
oc get applications.argoproj.io -n openshift-gitops
""")
    in_order(output, "  resourceHealthChecks:", STRICT[0].script.splitlines()[0])
    assert "application.argoproj.io/llmops-dev patched" in output


@pytest.mark.tier("all")
def test_troubleshooting_the_operator_patches_the_argocd_resource(terminal: Terminal) -> None:
    configured(terminal)
    output = terminal.type(f"""\
oc get pods -n openshift-gitops-operator
oc patch argocd openshift-gitops -n openshift-gitops --type merge \
-p '{{"metadata":{{"annotations":{{"kubectl.kubernetes.io/restartedAt":"'$(date +%Y-%m-%dT%H:%M:%S%z)'"}}}}}}'
sleep 15
{IN_CONFIG_MAP}
""")
    assert "Running" in output and "argocd.argoproj.io/openshift-gitops patched" in output
    assert f"{MODEL_KEY}: |" in output
    assert "kubectl.kubernetes.io/restartedAt" in get(terminal.cluster, RESOURCE)["metadata"]["annotations"]


@pytest.mark.tier("all")
def test_operator_reverts_a_manual_edit_of_argocd_cm(terminal: Terminal) -> None:
    configured(terminal)
    before = data(terminal.cluster)
    editor = terminal.folder / "break"
    editor.write_text('#!/bin/sh\nsed -i "s/Waiting for InferenceService/changed by hand/" "$1"\n')
    editor.chmod(0o755)
    at = version(terminal.cluster, settings_of())
    output = terminal.type(f"EDITOR={editor} oc edit configmap argocd-cm -n openshift-gitops")
    assert output == "configmap/argocd-cm edited\n"
    wait_until(lambda: data(terminal.cluster) == before)
    assert version(terminal.cluster, settings_of()) != at


@pytest.mark.tier("all")
def test_kubectl_shows_the_operator_deployment_and_the_argocd_status(terminal: Terminal) -> None:
    output = terminal.type("""\
oc get deployment -n openshift-gitops-operator
oc get argocd openshift-gitops -n openshift-gitops -o yaml | grep -A 20 "status:"
""")
    assert "openshift-gitops-operator-controller-manager   1/1" in output
    in_order(output, "status:", "  phase: Available")


@pytest.mark.tier("all")
def test_health_apply_adds_checks_for_other_kinds(terminal: Terminal) -> None:
    configured(terminal)
    terminal.type('"$ARGOSY" health apply --force --settle 0 --kinds ClusterServingRuntime,TrainedModel')
    assert [entry["kind"] for entry in entries(terminal.cluster)] == [
        "InferenceService",
        "ServingRuntime",
        "ClusterServingRuntime",
        "TrainedModel",
    ]


@pytest.mark.tier("all")
def test_check_makes_a_ready_model_healthy_and_a_failed_model_degraded(terminal: Terminal) -> None:
    """The check comes from the current argocd-cm, not from argosy's own rules."""
    configured(terminal)
    for name, status in (("serves", "True"), ("failed", "False")):
        conditions = [
            {"type": "Ready", "status": status},
            {"type": "LatestDeploymentReady", "status": "Unknown"},
            {"type": "Stopped", "status": "False"},
        ]
        model = {
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "metadata": {"name": name},
            "status": {"conditions": conditions},
        }
        (terminal.folder / f"{name}.yaml").write_text(dump_yaml(model))
    terminal.type("oc get configmap argocd-cm -n openshift-gitops -o yaml > argocd-cm.yaml")
    judge = '"$ARGOSY" health test'
    assert terminal.run(f"{judge} serves.yaml --expect Progressing").code == 0, "without the check"
    assert terminal.run(f"{judge} failed.yaml --expect Progressing").code == 0, "without the check"
    terminal.type(f"{judge} argocd-cm.yaml serves.yaml --expect Healthy")
    terminal.type(f"{judge} argocd-cm.yaml failed.yaml --expect Degraded")
