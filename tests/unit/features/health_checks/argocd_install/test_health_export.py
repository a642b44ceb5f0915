"""Exported health checks: their contents, and the committed files that `argosy health export` prints."""

from __future__ import annotations

import re

import pytest

from argosy.features.health_checks.argocd_install.export import EXPORT_FORMATS, render_export
from argosy.features.health_checks.argocd_install.merge import DEFAULT_KINDS, build_requested_checks
from argosy.gitops.health.settings import read_manifests
from argosy.kube.objects import read_yaml
from argosy.kube.well_known_kinds import PERSISTENT_VOLUME_CLAIM
from support.paths import ROOT

READY_MADE = ROOT / "deploy/health"
INTEGRATIONS = ROOT / "integrations"
FORM_OF = {"argocd-cr": "cr", "argocd-cm": "configmap"}


@pytest.mark.parametrize("name", FORM_OF)
@pytest.mark.parametrize("profile", ["strict", "lenient"])
def test_committed_files_equal_the_export(name: str, profile: str) -> None:
    file = READY_MADE / f"{name}{'' if profile == 'strict' else f'-{profile}'}.yaml"
    assert file.read_text() == render_export(FORM_OF[name], build_requested_checks(DEFAULT_KINDS, profile))


@pytest.mark.parametrize("name", FORM_OF)
def test_committed_pvc_files_equal_the_export(name: str) -> None:
    text = (READY_MADE / f"{name}-pvc.yaml").read_text()
    assert text == render_export(FORM_OF[name], build_requested_checks((PERSISTENT_VOLUME_CLAIM,)))
    (check,) = read_manifests([read_yaml(text)]).checks
    assert check.pattern == "PersistentVolumeClaim"


def test_every_committed_health_file_is_covered_by_a_test() -> None:
    ends = ("", "-lenient", "-pvc")
    assert {file.name for file in READY_MADE.iterdir()} == {f"{name}{end}.yaml" for name in FORM_OF for end in ends}


def test_helm_readme_links_the_pvc_health_files() -> None:
    page = INTEGRATIONS / "helm/README.md"
    linked = re.findall(r"\]\(([^)]*deploy/health[^)]*)\)", page.read_text())
    assert len(linked) == len(FORM_OF)
    for link in linked:
        (check,) = read_manifests([read_yaml((page.parent / link).read_text())]).checks
        assert check.pattern == "PersistentVolumeClaim"


def test_cr_export_warns_that_apply_replaces_the_list() -> None:
    head = render_export("cr", build_requested_checks(DEFAULT_KINDS)).partition("apiVersion:")[0]
    assert all(line.startswith("#") for line in head.splitlines())
    assert "replaces the whole resourceHealthChecks list" in head
    assert "`argosy health apply` merges the list" in head


def test_cr_export_contains_only_the_checks() -> None:
    checks = build_requested_checks(DEFAULT_KINDS)
    manifest = read_yaml(render_export("cr", checks, namespace="gitops", name="mine"))
    assert manifest == {
        "apiVersion": "argoproj.io/v1beta1",
        "kind": "ArgoCD",
        "metadata": {"name": "mine", "namespace": "gitops"},
        "spec": {"resourceHealthChecks": [check.entry for check in checks]},
    }


def test_configmap_export_contains_only_check_keys_and_argocd_label() -> None:
    checks = build_requested_checks(DEFAULT_KINDS)
    manifest = read_yaml(render_export("configmap", checks))
    assert manifest["data"] == {check.key: check.script for check in checks}
    assert manifest["metadata"]["labels"]["app.kubernetes.io/part-of"] == "argocd"
    assert (manifest["metadata"]["name"], manifest["metadata"]["namespace"]) == ("argocd-cm", "argocd")


def test_ansible_export_is_a_list_of_group_kind_and_check() -> None:
    checks = build_requested_checks(DEFAULT_KINDS)
    variables = read_yaml(render_export("ansible", checks))
    assert variables == {"validated_patterns_argocd_health_checks": [check.entry for check in checks]}


@pytest.mark.parametrize("form", [form for form in EXPORT_FORMATS if form != "ansible"])
def test_exported_checks_can_be_read_back(form: str) -> None:
    checks = build_requested_checks(DEFAULT_KINDS)
    customizations = read_manifests([read_yaml(render_export(form, checks))])
    assert customizations.faults == ()
    assert {check.pattern: check.script for check in customizations.checks} == {
        f"{check.group_kind.group}/{check.group_kind.kind}": check.script for check in checks
    }
