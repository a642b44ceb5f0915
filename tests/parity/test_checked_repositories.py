"""`argosy check` reports no false findings in kustomizations of public repositories.

The data set has only text files that `kustomize build` reads; scripts and binaries are left out, so files are missing.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from argosy.features.check.service import CheckResult, check_paths

INPUTS = Path(__file__).parents[3] / "shared" / "data" / "kustomize" / "inputs"
pytestmark = pytest.mark.tier("all")  # 600 kustomizations are built
NEEDS_DATA = pytest.mark.skipif(not INPUTS.is_dir(), reason="../shared/data/kustomize is not here")
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: app-{number}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: "https://git.example.com/public.git", path: "{path}", targetRevision: main}}
  destination: {{server: "https://cluster-{number}.example.com", namespace: ns-{number}}}
  syncPolicy: {{syncOptions: [CreateNamespace=true]}}
"""
SECRET_NAME = re.compile(r"(?i)data\.\S*(pass|token|secret|htpasswd)\S* has a value")


@pytest.fixture(scope="module")
def checked() -> CheckResult:
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(INPUTS)
        return check_paths(["."], log=lambda text: None)


@NEEDS_DATA
def test_every_build_failure_is_a_missing_file(checked: CheckResult) -> None:
    messages = [finding.violation.message for finding in checked.findings if finding.rule.id == "AGY102"]
    assert len(messages) > 10
    assert [message for message in messages if "does not exist" not in message] == []


@NEEDS_DATA
def test_every_reported_secret_value_has_a_secret_name(checked: CheckResult) -> None:
    messages = [finding.violation.message for finding in checked.findings if finding.rule.id == "AGY601"]
    assert len(messages) > 10
    assert [message for message in messages if not SECRET_NAME.search(message)] == []


@NEEDS_DATA
def test_remaining_findings_are_the_four_known_ones(checked: CheckResult) -> None:
    """Two hooks that remain after a failure, labels directly in `metadata`, and a binding named cluster-admin."""
    violations = {(finding.rule.id, Path(finding.location.file).name) for finding in checked.findings}
    assert {violation for violation in violations if violation[0] not in ("AGY102", "AGY601")} == {
        ("AGY132", "patch-cluster-api-cert-job.yaml"),
        ("AGY132", "patch-cluster-wildcard-cert-job.yaml"),
        ("AGY151", "scc.yaml"),
        ("AGY602", "rolebinding.yaml"),
    }


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> CheckResult:
    """Every kustomization, each deployed by an Application, so that all rules apply."""
    folder = tmp_path_factory.mktemp("public")
    shutil.copytree(INPUTS, folder / "all")
    folders = sorted({path.parent for path in (folder / "all").rglob("kustomization.y*ml")})
    (folder / "all" / "applications").mkdir()
    for number, base_folder in enumerate(folders):
        if "kind: Component" not in next(base_folder.glob("kustomization.y*ml")).read_text():
            text = APPLICATION.format(number=number, path=base_folder.relative_to(folder / "all"))
            (folder / "all" / "applications" / f"{number}.yaml").write_text(text)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder / "all")
        return check_paths(["."], log=lambda text: None)


@NEEDS_DATA
def test_schema_findings_in_bare_bases_are_missing_selectors_and_namespaces(deployed: CheckResult) -> None:
    """Deployments without selectors, subjects without namespaces: only overlays and `namespace` add them."""
    assert deployed.applications > 500
    messages = {finding.violation.message for finding in deployed.findings if finding.rule.id in ("AGY152", "AGY153")}
    assert [message for message in messages if not re.search(r"selector|subjects\[\d+\]\.namespace", message)] == []


@NEEDS_DATA
def test_deployed_kustomizations_add_no_findings_of_other_rules(deployed: CheckResult, checked: CheckResult) -> None:
    checked_violations = {(finding.rule.id, Path(finding.location.file).name) for finding in checked.findings}
    deployed_violations = {(finding.rule.id, Path(finding.location.file).name) for finding in deployed.findings}
    assert {
        violation
        for violation in deployed_violations - checked_violations
        if violation[0] not in ("AGY102", "AGY152", "AGY153", "AGY601")
    } == set()
