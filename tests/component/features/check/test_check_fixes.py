"""`argosy check --fix`: which lines it changes, which it keeps, and that the finding is gone afterwards."""

from __future__ import annotations

import difflib
import shutil
from pathlib import Path

import pytest

from argosy.cli.exit_codes import EXIT_NEGATIVE, EXIT_OK
from argosy.features.check.file_fix_writer import apply_fixes
from argosy.features.check.service import OVERRIDDEN_MESSAGE, CheckResult, check_paths, fix_and_check_paths
from argosy.gitops.analysis.rules import CATALOGUE
from argosy.main import main
from support.paths import DATA

FIXTURES = DATA / "rules"
MENDED = {
    "AGY105": ["-    targetRevision: feature/quick # AGY105", "+    targetRevision: main # AGY105"],
    "AGY107": ["+  syncPolicy:", "+    syncOptions:", "+    - CreateNamespace=true"],
    "AGY113": ["-        - /status # AGY113"],
    "AGY116": ["+  annotations:", "+    argocd.argoproj.io/sync-options: Prune=false"],
    "AGY117": [
        "-      prune: true # AGY117", "+      prune: false # AGY117",
        "-      selfHeal: true # AGY117", "+      selfHeal: false # AGY117",
        "+      - RespectIgnoreDifferences=true", "+      - ApplyOutOfSyncOnly=true",
        "+    retry:", "+      limit: 3", "+      backoff:", "+        duration: 5s", "+        factor: 2",
        "+        maxDuration: 3m",
    ],
    "AGY132": [
        "-    argocd.argoproj.io/hook-delete-policy: HookSucceeded # AGY132",
        "+    argocd.argoproj.io/hook-delete-policy: BeforeHookCreation # AGY132",
    ],
    "AGY136": ["-              oc start-build trainer", "+              oc start-build trainer --wait"],
    "AGY307": [
        "-  volumes: # AGY307", "-    - name: data", "-      emptyDir: {}",
        "+    volumes:", "+      - name: data", "+        emptyDir: {}",
    ],
}  # fmt: skip


def quietly(text: str) -> None:
    pass


def texts(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_bytes().decode() for file in folder.rglob("*") if file.is_file()}


def changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    changed_lines: list[str] = []
    assert before.keys() == after.keys()
    for name, text in before.items():
        lines = difflib.unified_diff(text.splitlines(), after[name].splitlines(), n=0, lineterm="")
        changed_lines += [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    return changed_lines


@pytest.fixture
def bad(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(FIXTURES / request.param / "bad", tmp_path / "repository")
    monkeypatch.chdir(tmp_path / "repository")
    return tmp_path / "repository"


def test_rules_with_an_automatic_fix_are_all_tested_here() -> None:
    assert {rule.id for rule in CATALOGUE.values() if rule.automatic_fix} == set(MENDED)


@pytest.mark.parametrize(("rule", "bad"), [(rule, rule) for rule in MENDED], indirect=["bad"])
def test_fix_changes_only_the_wrong_lines_and_is_idempotent(rule: str, bad: Path) -> None:
    before, first = texts(bad), check_paths(["."], log=quietly)
    result = fix_and_check_paths(["."], log=quietly)
    assert sorted(changed(before, texts(bad))) == sorted(MENDED[rule])
    assert {fix.finding.rule.id for fix in result.fixed} == {rule}
    assert not any(finding.violation.file_fix for finding in result.findings)
    assert marks(result) < marks(first), "a fix leaves nothing new behind"
    again = texts(bad)
    assert fix_and_check_paths(["."], log=quietly).fixed == []
    assert texts(bad) == again


def marks(result: CheckResult) -> set[str]:
    return {finding.fingerprint + finding.violation.message for finding in result.findings}


@pytest.mark.parametrize("bad", ["AGY116"], indirect=True)
def test_file_with_conflict_markers_is_not_changed(bad: Path) -> None:
    claim = bad / "manifests" / "object.yaml"
    check_result = check_paths(["."], log=quietly)
    claim.write_text(f"<<<<<<< ours\n{claim.read_text()}=======\n>>>>>>> theirs\n")
    before = texts(bad)
    result = apply_fixes(check_result.findings, ["."])
    assert texts(bad) == before
    assert result.fixed == []
    assert [unfixed_finding.reason for unfixed_finding in result.unfixed] == [
        "the file has conflict markers; resolve them first"
    ]


@pytest.mark.parametrize("bad", ["AGY307"], indirect=True)
def test_fix_that_would_lose_a_comment_is_not_applied(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = bad / "manifests" / "object.yaml"
    job.write_text(job.read_text().replace("    - name: data\n", "    # the data of the year\n    - name: data\n"))
    before = texts(bad)
    assert main(["check", "--fix"]) == EXIT_NEGATIVE
    assert texts(bad) == before
    assert "AGY307 was not fixed: a comment would be lost; edit it by hand" in capsys.readouterr().out


@pytest.mark.parametrize("bad", ["AGY116"], indirect=True)
def test_claim_renamed_by_a_kustomization_is_not_fixed(bad: Path) -> None:
    (bad / "manifests" / "kustomization.yaml").write_text("resources: [object.yaml]\nnamePrefix: dev-\n")
    before = texts(bad)
    result = fix_and_check_paths(["."], log=quietly)
    assert texts(bad) == before
    assert "does not define PersistentVolumeClaim/dev-models" in result.unfixed[0].reason


@pytest.mark.parametrize("bad", ["AGY107"], indirect=True)
def test_explicit_create_namespace_false_is_not_fixed(bad: Path) -> None:
    file = bad / "application.yaml"
    file.write_text(file.read_text() + "  syncPolicy: {syncOptions: [CreateNamespace=false]}\n")
    assert fix_and_check_paths(["."], log=quietly).fixed == []


@pytest.mark.parametrize("bad", ["AGY107"], indirect=True)
def test_fix_prints_the_fixed_line_and_exits_successfully(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--fail-on", "info"]) == EXIT_NEGATIVE
    assert "some can be fixed automatically: argosy check --fix" in capsys.readouterr().err
    assert main(["check", "--fix", "--fail-on", "info"]) == EXIT_OK
    assert capsys.readouterr().out.startswith("application.yaml:15: AGY107 fixed: nothing here creates namespace")


def test_claim_shared_by_two_applications_is_fixed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(FIXTURES / "AGY116" / "bad", tmp_path / "repository")
    monkeypatch.chdir(tmp_path / "repository")
    text = Path("application.yaml").read_text()
    Path("other.yaml").write_text(text.replace("fraud-dev", "fraud-test"))
    result = fix_and_check_paths(["."], log=quietly)
    assert (len(result.fixed), result.unfixed) == (1, [])
    assert Path("manifests/object.yaml").read_text().count("Prune=false") == 1


@pytest.mark.parametrize("bad", ["AGY116"], indirect=True)
def test_edit_overridden_by_a_kustomization_is_not_reported_as_fixed(bad: Path) -> None:
    text = "resources: [object.yaml]\ncommonAnnotations: {argocd.argoproj.io/sync-options: Validate=false}\n"
    (bad / "manifests" / "kustomization.yaml").write_text(text)
    result = fix_and_check_paths(["."], log=quietly)
    assert result.fixed == []
    assert [unfixed_finding.reason for unfixed_finding in result.unfixed] == [OVERRIDDEN_MESSAGE]
