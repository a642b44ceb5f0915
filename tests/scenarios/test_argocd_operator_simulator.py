"""`argosy sandbox start --addons argocd_operator`: the simulated Argo CD operator, tested with the real kubectl."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.clusters import Finished, Sandbox, argosy, kubectl, sandbox
from support.deadlines import HANG_SECONDS, wait_until

pytestmark = pytest.mark.usefixtures("needs_kubectl")
PATIENT = f"--timeout={HANG_SECONDS - 1:g}s"  # shorter than the hang limit, so that kubectl reports the reason
GITOPS = ("-n", "openshift-gitops")
SETTINGS = ("get", "configmap", "argocd-cm")
CHECK = {"group": "serving.kserve.io", "kind": "InferenceService", "check": "return {status = 'Healthy'}\n"}
KEY = "resource.customizations.health.serving.kserve.io_InferenceService"


@pytest.fixture(scope="module")
def openshift(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with sandbox(tmp_path_factory.mktemp("gitops") / "data", "--port", "0", "--addons", "argocd_operator") as started:
        ready(started)
        yield started


def ready(started: Sandbox) -> None:
    """Wait until the ArgoCD resource is Available, as a script would."""
    done = run(started, *GITOPS, "wait", "argocd/openshift-gitops", "--for=jsonpath={.status.phase}=Available", PATIENT)
    assert done.code == 0, done.err


def run(started: Sandbox, *words: object) -> Finished:
    return kubectl(started.kubeconfig, *words)


def out(started: Sandbox, *words: object) -> str:
    done = run(started, *words)
    assert done.code == 0, done.err
    return done.out


def data(started: Sandbox, namespace: str = "openshift-gitops") -> Any:
    return json.loads(out(started, "-n", namespace, *SETTINGS, "-o", "json")).get("data") or {}


def test_argocd_resource_is_available_and_marked_as_simulated(openshift: Sandbox) -> None:
    argocd = json.loads(out(openshift, *GITOPS, "get", "argocds.v1beta1.argoproj.io", "openshift-gitops", "-o", "json"))
    assert argocd["apiVersion"] == "argoproj.io/v1beta1"
    assert argocd["status"]["conditions"][0]["message"] == "simulated by argosy"
    assert (
        "tekton.dev" in argocd["spec"]["resourceExclusions"] and "tekton.dev" in data(openshift)["resource.exclusions"]
    )


@pytest.mark.tier("all")
def test_kubectl_finds_the_objects_of_an_openshift_gitops_installation(openshift: Sandbox) -> None:
    waited = run(openshift, *GITOPS, "wait", "--for=condition=Available", "deployment/openshift-gitops-server", PATIENT)
    assert waited.code == 0, waited.err
    rolled = run(
        openshift, *GITOPS, "rollout", "status", "statefulset/openshift-gitops-application-controller", PATIENT
    )
    assert rolled.code == 0, rolled.err
    operator = ("-n", "openshift-gitops-operator")
    state = out(
        openshift, *operator, "get", "subscription", "openshift-gitops-operator", "-o", "jsonpath={.status.state}"
    )
    assert state == "AtLatestKnown"
    assert "1/1     Running" in out(openshift, *operator, "get", "pods")
    label = "app.kubernetes.io/name=openshift-gitops-application-controller"
    assert "openshift-gitops-application-controller-0" in out(openshift, *GITOPS, "get", "pods", "-l", label)
    assert out(openshift, *GITOPS, "get", "deployment", "cluster", "-o", "name") == "deployment.apps/cluster\n"
    account = "openshift-gitops-argocd-application-controller"
    assert account in out(openshift, *GITOPS, "get", "serviceaccount", account)
    host = out(openshift, *GITOPS, "get", "route", "openshift-gitops-server", "-o", "jsonpath={.spec.host}")
    assert host.endswith(".invalid")


def test_argocd_resource_change_reaches_argocd_cm(openshift: Sandbox) -> None:
    patch = json.dumps({"spec": {"resourceHealthChecks": [CHECK]}})
    out(openshift, *GITOPS, "patch", "argocd", "openshift-gitops", "--type", "merge", "-p", patch)
    wait_until(lambda: data(openshift).get(KEY) == CHECK["check"])


def test_manual_key_is_removed_from_argocd_cm(openshift: Sandbox) -> None:
    patch = json.dumps({"data": {"written.by.hand": "yes"}})
    out(openshift, *GITOPS, "patch", "configmap", "argocd-cm", "--type", "merge", "-p", patch)
    wait_until(lambda: "written.by.hand" not in data(openshift))


@pytest.mark.tier("all")
def test_annotating_argocd_keeps_the_resource_version_of_argocd_cm(openshift: Sandbox) -> None:
    version = ("-o", "jsonpath={.metadata.resourceVersion}")
    before = out(openshift, *GITOPS, *SETTINGS, *version)
    out(openshift, *GITOPS, "annotate", "argocd", "openshift-gitops", "kubectl.kubernetes.io/restartedAt=now")
    patch = json.dumps({"spec": {"extraConfig": {"seen": "yes"}}})
    assert out(openshift, *GITOPS, *SETTINGS, *version) == before
    out(openshift, *GITOPS, "patch", "argocd", "openshift-gitops", "--type", "merge", "-p", patch)
    wait_until(lambda: data(openshift).get("seen") == "yes")  # so the operator has processed the annotation as well


@pytest.mark.parametrize("namespace", ["openshift-gitops", "openshift-gitops-operator"])
def test_operator_log_reports_reverted_edits_in_both_namespaces(openshift: Sandbox, namespace: str) -> None:
    out(openshift, *GITOPS, "patch", "configmap", "argocd-cm", "--type", "merge", "-p", '{"data":{"by.hand":"yes"}}')
    wait_until(lambda: "by.hand" not in data(openshift))
    command = ("-n", namespace, "logs", "deployment/openshift-gitops-operator", "--tail=50")
    wait_until(lambda: "ConfigMap argocd-cm: reverted edit of by.hand" in out(openshift, *command))


def test_logs_of_a_pod_without_a_process_are_refused(openshift: Sandbox) -> None:
    done = run(openshift, *GITOPS, "logs", "deployment/openshift-gitops-redis")
    assert done.code == 1 and "nothing runs Pods" in done.err


@pytest.mark.tier("all")
def test_restart_keeps_the_admin_password_and_argocd_cm(home: Path) -> None:
    secret = (*GITOPS, "get", "secret", "openshift-gitops-cluster", "-o", r"jsonpath={.data.admin\.password}")
    observations = []
    for _ in range(2):
        with sandbox(home / "data", "--port", "0", "--addons", "argocd_operator") as started:
            ready(started)
            version = out(started, *GITOPS, *SETTINGS, "-o", "jsonpath={.metadata.resourceVersion}")
            observations.append((base64.b64decode(out(started, *secret)), version))
            started.end()
    assert observations[0] == observations[1] and len(observations[0][0]) >= 24


@pytest.mark.tier("all")
def test_argocd_without_an_operator_keeps_manual_edits(home: Path) -> None:
    with sandbox(home / "data", "--port", "0", "--addons", "argocd_operator=plain") as started:
        namespace_args = ("-n", "argocd")
        patch = json.dumps({"data": {"written.by.hand": "yes"}})
        out(started, *namespace_args, "patch", "configmap", "argocd-cm", "--type", "merge", "-p", patch)
        out(started, *namespace_args, "rollout", "restart", "deployment", "argocd-server")
        out(started, *namespace_args, "rollout", "status", "deployment", "argocd-server", PATIENT)
        assert data(started, "argocd") == {"written.by.hand": "yes"}
        owner = out(started, *namespace_args, *SETTINGS, "-o", "jsonpath={.metadata.ownerReferences}")
        assert owner == "", "no operator owns it"
        assert "Running" in out(started, *namespace_args, "get", "pods", "-l", "app.kubernetes.io/name=argocd-server")
        assert run(started, "get", "argocd", "-A").code == 1, "the kind is not there"


def test_unknown_addon_variant_exits_2_and_lists_the_variants(home: Path) -> None:
    done = argosy("sandbox", "start", "--data-dir", home / "data", "--addons", "argocd_operator=helm", home=home)
    assert done.code == 2 and "choose among: argocd_operator, argocd_operator=plain" in done.err
