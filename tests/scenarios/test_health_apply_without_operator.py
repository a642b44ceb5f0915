"""`argosy health` without an operator: plain Argo CD, an ArgoCD resource that nobody reconciles, or no cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.features.health_checks.argocd_install.merge import DEFAULT_KINDS, build_requested_checks
from argosy.kube.objects import dump_yaml
from argosy.kube.schema.bundled_crds import load_definition
from support.clusters import Sandbox, argosy, kubectl, sandbox, until_served
from support.gitops_operator import (
    MODEL_KEY,
    as_lines,
    data,
    health,
    in_order,
    kubeconfig_to_nowhere,
    patch,
    settings_of,
    version,
)

pytestmark = pytest.mark.usefixtures("needs_kubectl")
STRICT = [check.entry for check in build_requested_checks(DEFAULT_KINDS)]
QUICK = ("--settle", "0")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    folder = tmp_path_factory.mktemp("plain") / "data"
    with sandbox(folder, "--port", "0", "--addons", "argocd_operator=plain") as started:
        yield started


def test_apply_without_an_operator_writes_argocd_cm(plain: Sandbox) -> None:
    patch(plain, settings_of("argocd"), {"data": {"url": "https://argocd.example.com"}})
    done = health(plain, "apply", *QUICK)
    assert done.code == 0, done.err
    in_order(done.out, "✓ Argo CD without an operator found", "✓ Health check found in ConfigMap", "Done!")
    settings = data(plain, "argocd")
    assert settings["url"] == "https://argocd.example.com"
    assert settings[MODEL_KEY] == STRICT[0]["check"]
    assert health(plain, "verify").code == 0


@pytest.mark.tier("all")
def test_second_apply_without_an_operator_writes_nothing(plain: Sandbox) -> None:
    health(plain, "apply", "--force", *QUICK)
    before = version(plain, settings_of("argocd"))
    done = health(plain, "apply", "--force", *QUICK)
    assert done.code == 0 and "already up to date" in done.out
    assert version(plain, settings_of("argocd")) == before


@pytest.mark.tier("all")
def test_kubectl_applies_the_exported_config_map_and_keeps_other_keys(plain: Sandbox) -> None:
    patch(plain, settings_of("argocd"), {"data": {"url": "https://argocd.example.com", MODEL_KEY: None}})
    text = health(plain, "export", "--as", "configmap").out
    done = kubectl(plain.kubeconfig, "apply", "-f", "-", input=text)
    assert done.code == 0, done.err
    assert data(plain, "argocd")["url"] == "https://argocd.example.com"
    assert data(plain, "argocd")[MODEL_KEY] == STRICT[0]["check"]


def test_unreachable_cluster_exits_3_with_one_sentence(home: Path) -> None:
    done = argosy("health", "apply", "--kubeconfig", kubeconfig_to_nowhere(home), home=home)
    assert done.code == 3
    assert [line.partition(":")[0] for line in as_lines(done.err)] == ["target", "argosy", "next"]


def test_verify_without_a_cluster_exits_2(home: Path) -> None:
    done = argosy("health", "verify", home=home)
    assert done.code == 2 and done.err.startswith("argosy: ") and "Traceback" not in done.err


@pytest.mark.tier("all")
def test_argocd_resource_without_an_operator_exits_1_with_next_steps(running: Sandbox) -> None:
    kubectl(running.kubeconfig, "apply", "-f", "-", input=dump_yaml(load_definition("argocds.argoproj.io")))
    until_served(running.kubeconfig, "argocds.argoproj.io")
    resource = {"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "metadata": {"name": "mine"}, "spec": {}}
    kubectl(running.kubeconfig, "apply", "-n", "default", "-f", "-", input=dump_yaml(resource))
    done = health(running, "apply", "--timeout", "0.5")
    assert done.code == 1, done.err
    in_order(done.out, "✗ Health check not found in ConfigMap. Manual verification needed.")
    assert "kubectl annotate argocd mine -n default --overwrite kubectl.kubernetes.io/restartedAt=" in done.out
    assert "Done!" not in done.out
    verified = health(running, "verify")
    assert verified.code == 1
    in_order(verified.out, "⚠ Health check not yet in ConfigMap")
    assert "Wait 10 seconds" in verified.out and "Verification Complete" not in verified.out
