"""`argosy install` and `uninstall` on a sandbox that enforces RBAC and simulates the kubelet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.objects import read_yaml_documents
from support.clusters import Sandbox, argosy, kubectl, sandbox
from support.deadlines import wait_until
from support.pod_security import refused, refused_by_scc
from support.simulated_argocd import MANAGER, controller

ROOT = Path(__file__).parents[2]
SERVED = "/apis/apps/v1/namespaces/argosy/deployments"


FLAGS = ("--rbac", "--ephemeral", "--addons", "simulators=plain")


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with sandbox(tmp_path_factory.mktemp("install") / "box", *FLAGS) as running_sandbox:
        yield running_sandbox


@pytest.fixture
def empty_box(tmp_path: Path) -> Iterator[Sandbox]:
    """A sandbox in which nothing was installed before."""
    with sandbox(tmp_path / "box", *FLAGS) as running_sandbox:
        yield running_sandbox


def run(box: Sandbox, *words: object) -> tuple[int, str, str]:
    done = argosy(*words, "--kubeconfig", box.kubeconfig, home=box.folder.parent)
    return done.code, done.out, done.err


def pods(box: Sandbox) -> list[dict[str, Any]]:
    items = box.request("GET", "/api/v1/namespaces/argosy/pods").json()["items"]
    return [pod for pod in items if not pod["metadata"].get("deletionTimestamp")]


def is_rolled(box: Sandbox, name: str, replicas: int) -> bool:
    deployment = box.request("GET", f"{SERVED}/{name}").json()
    status = deployment.get("status") or {}
    is_seen = status.get("observedGeneration") == deployment["metadata"]["generation"]
    counts = [status.get(field) for field in ("replicas", "updatedReplicas", "availableReplicas")]
    return is_seen and counts == [replicas] * 3


def test_install_plans_asks_applies_and_is_idempotent(empty_box: Sandbox) -> None:
    box = empty_box
    code, out, err = run(box, "install", "--apply")
    assert (code, "Plan: 21 to add" in out) == (2, True) and "add -y" in err
    assert box.request("GET", "/api/v1/namespaces/argosy").code == 404
    code, out, err = run(box, "install", "--apply", "-y")
    assert (code, err) == (0, "") and "created   Deployment argosy-server in argosy" in out
    assert "! image argosy:" in out and "has no registry" in out
    kubectl_there = f"kubectl --kubeconfig {box.kubeconfig} -n argosy"
    assert f"next: {kubectl_there} rollout status deployment/argosy-controller" in out.splitlines()
    assert "argosy admin initial-password -n argosy" in out and "port-forward service/argosy-server 8484:443" in out
    wait_until(lambda: is_rolled(box, "argosy-server", 1) and is_rolled(box, "argosy-controller", 1))
    for pod in pods(box):
        assert refused(pod["spec"]) + refused_by_scc(pod["spec"]) == []
    code, out, _ = run(box, "install", "--apply", "-y", "-o", "json")
    plan = json.loads(out)
    assert (code, plan["kind"], plan["unchanged"]) == (0, "InstallPlan", 21)
    assert (plan["create"], plan["update"], plan["delete"]) == (0, 0, 0)


@pytest.mark.tier("all")
def test_uninstall_without_confirmation_deletes_nothing(box: Sandbox) -> None:
    run(box, "install", "--apply", "-y")
    code, out, err = run(box, "uninstall")
    assert (code, "- Deployment argosy-server in argosy" in out, "add -y" in err) == (2, True, True)
    assert run(box, "uninstall", "--dry-run")[0] == 0
    for name in ("argosy-server", "argosy-controller"):
        assert not box.request("GET", f"{SERVED}/{name}").json()["metadata"].get("deletionTimestamp")


@pytest.mark.tier("all")
def test_install_again_updates_image_replicas_and_read_only_mode(box: Sandbox) -> None:
    run(box, "install", "--apply", "-y")
    wait_until(lambda: is_rolled(box, "argosy-controller", 1))
    code, out, _ = run(box, "install", "--apply", "-y", "--ha", "--image", "argosy:0.2.0")
    assert code == 0 and "spec.replicas: 1 → 3" in out and "updated   Deployment argosy-controller" in out
    wait_until(lambda: is_rolled(box, "argosy-controller", 3) and is_rolled(box, "argosy-server", 2))
    rolled_pods = wait_until(lambda: len(now := pods(box)) == 5 and now)
    assert {pod["spec"]["containers"][0]["image"] for pod in rolled_pods} == {"argosy:0.2.0"}
    code, out, _ = run(box, "install", "--apply", "-y", "--read-only")
    assert code == 0 and "deleted   ClusterRole argosy-server-acts" in out
    assert "deleted   Deployment argosy-controller" in out
    named = "app.kubernetes.io/name"
    wait_until(lambda: {pod["metadata"]["labels"][named] for pod in pods(box)} == {"argosy-server"})


@pytest.mark.tier("all")
def test_base_renders_as_with_kubectl_and_is_what_install_applies(box: Sandbox) -> None:
    folder = ROOT / "deploy" / "argosy"
    ours = argosy("render", folder, home=box.folder.parent)
    kubectl_result = kubectl(box.kubeconfig, "kustomize", folder)
    assert (ours.code, kubectl_result.code) == (0, 0), ours.err + kubectl_result.err
    assert list(read_yaml_documents(ours.out)) == list(read_yaml_documents(kubectl_result.out))
    applied = kubectl(box.kubeconfig, "apply", "--server-side", "--force-conflicts", "-k", folder)
    assert applied.code == 0, applied.err
    wait_until(lambda: is_rolled(box, "argosy-server", 1) and is_rolled(box, "argosy-controller", 1))
    code, out, _ = run(box, "install", "--apply", "--dry-run")
    assert code == 0 and "to add" not in out, out  # the same objects as those that kubectl applied


def test_kubectl_accepts_the_printed_manifests(box: Sandbox) -> None:
    box.request("POST", "/api/v1/namespaces", {"metadata": {"name": "argosy"}})  # a dry run does not create it
    printed = argosy("install", "--ha", "--hostname", "argosy.example.com", home=box.folder.parent)
    applied = kubectl(box.kubeconfig, "apply", "--dry-run=server", "-f", "-", input=printed.out)
    assert (printed.code, applied.code) == (0, 0), applied.err
    as_json = argosy("install", "--ha", "--hostname", "argosy.example.com", "-o", "json", home=box.folder.parent)
    assert json.loads(as_json.out)["items"] == list(read_yaml_documents(printed.out))
    mistaken = argosy("install", "-y", home=box.folder.parent)
    assert mistaken.code == 2 and "add it" in mistaken.err


@pytest.mark.tier("all")
def test_uninstall_keeps_applications_and_refuses_to_strand_their_finalizers(box: Sandbox) -> None:
    run(box, "install", "--apply", "-y")
    at = "/apis/argoproj.io/v1alpha1/namespaces/argosy/applications"
    spec = {"project": "default", "destination": {"namespace": "a"},
            "source": {"repoURL": "https://example.com/a.git", "path": "a"}}  # fmt: skip
    metadata = {"name": "web", "finalizers": ["resources-finalizer.argocd.argoproj.io"]}
    application = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}
    wait_until(lambda: box.request("POST", at, application).code in (201, 409))
    code, out, err = run(box, "uninstall", "-y")
    assert code == 2 and "no controller would handle their finalizers" in err
    assert box.request("GET", f"{SERVED}/argosy-server").code == 200
    code, out, err = run(box, "uninstall", "-y", "--force")
    assert code == 0 and "deleted   Deployment argosy-server in argosy" in out, err
    assert box.request("GET", f"{at}/web").code == 200
    wait_until(lambda: not pods(box))
    code, out, _ = run(box, "uninstall", "-y", "--force")
    assert code == 0 and "Plan: nothing to do." in out
    code, out, _ = run(box, "uninstall", "--applications", "--dry-run", "-o", "json")
    assert code == 1 and "no argosy controller runs" in json.loads(out)["problems"][0]
    box.request("PATCH", f"{at}/web", {"metadata": {"finalizers": None}}, "application/merge-patch+json")
    box.request("DELETE", f"{at}/web")
    code, out, _ = run(box, "uninstall", "--applications", "-y")
    assert code == 0 and "deleted   Namespace argosy" in out
    wait_until(lambda: box.request("GET", "/api/v1/namespaces/argosy").code == 404)


@pytest.mark.tier("all")
def test_install_plan_says_whether_argo_cd_watches_the_namespace(box: Sandbox) -> None:
    named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}}
    assert kubectl(box.kubeconfig, "apply", "-f", "-", input=json.dumps(named)).code == 0
    assert kubectl(box.kubeconfig, "apply", "-f", "-", input=json.dumps(controller())).code == 0
    code, out, _ = run(box, "install", "--apply", "--dry-run")
    argo_cd = f"an Argo CD (StatefulSet argocd/{MANAGER})"
    assert code in (0, 1) and f"! {argo_cd} does not watch the Applications in argosy: argosy delivers them" in out
    code, out, _ = run(box, "install", "--apply", "--dry-run", "--namespace", "argocd")
    assert f"! {argo_cd} delivers the Applications in argocd: argosy only observes them, until argosy app adopt" in out
