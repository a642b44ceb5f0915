"""Each rule of `argosy check` reports the marked lines of its bad fixture and nothing in its good fixture.

A line that a rule must report ends in a comment with the rule's number: `#` in YAML and notebooks, `--` in Lua.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from argosy.features.check.service import CheckResult, CheckRunOptions, check_paths
from argosy.gitops.analysis.rule_violation import Severity
from argosy.gitops.analysis.rules import CATALOGUE
from argosy.gitops.source.git.refs import Refs
from support.paths import DATA

FIXTURES = DATA / "rules"
STATIC = [number for number, rule in CATALOGUE.items() if not rule.is_live]


def checked(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CheckResult:
    """Check a copy outside this repository. If the rule has a `before` folder, commit that first."""
    copy, before = tmp_path / "repository", folder.parent / "before"
    if before.is_dir():
        shutil.copytree(before, copy)
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "Before"]):
            who = ["-c", "user.name=ann", "-c", "user.email=ann@example.com"]
            subprocess.run(["git", *who, *words], cwd=copy, check=True)
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    monkeypatch.chdir(copy)
    # Stands in for the Git host of the fixtures' repository
    manner = CheckRunOptions(fetch_refs=lambda url: Refs({"HEAD": "1" * 40, "refs/heads/main": "1" * 40}))
    return check_paths(["."], options=manner, log=lambda text: None)


_bad: dict[str, CheckResult] = {}


def bad_fixture(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CheckResult:
    """Return the result of the bad fixture, which is checked once for all tests."""
    if rule not in _bad:
        _bad[rule] = checked(FIXTURES / rule / "bad", tmp_path, monkeypatch)
    return _bad[rule]


def marked(folder: Path, rule: str) -> set[tuple[str, int]]:
    return {
        (str(file.relative_to(folder)), number)
        for file in folder.rglob("*")
        if file.is_file()
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if re.search(rf'(#|--) {rule}(\\n)?"?,?$', line)
    }


def test_every_static_rule_has_a_fixture_folder() -> None:
    assert {path.name for path in FIXTURES.iterdir()} == set(STATIC)


@pytest.mark.parametrize("rule", STATIC)
def test_rule_reports_marked_lines_of_its_bad_fixture(
    rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = bad_fixture(rule, tmp_path, monkeypatch)
    locations = {
        (finding.location.file, finding.location.line) for finding in result.findings if finding.rule.id == rule
    }
    assert locations == marked(FIXTURES / rule / "bad", rule) != set()


@pytest.mark.parametrize("rule", STATIC)
def test_rule_reports_nothing_in_its_good_fixture(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = checked(FIXTURES / rule / "good", tmp_path, monkeypatch)
    assert [str(finding.violation) for finding in result.findings if finding.rule.id == rule] == []


@pytest.mark.parametrize("rule", STATIC)
def test_findings_have_fix_message_and_certainty(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = bad_fixture(rule, tmp_path, monkeypatch)
    assert all(
        finding.violation.fix and finding.violation.message and finding.rule.certainty for finding in result.findings
    )


@pytest.mark.parametrize("option", ["", "  syncPolicy: {syncOptions: [CreateNamespace=true]}\n"])
def test_invalid_namespace_name_is_an_error_without_file_fix(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(FIXTURES / "AGY107" / "bad", tmp_path / "invalid" / "bad")
    file = tmp_path / "invalid" / "bad" / "application.yaml"
    file.write_text(file.read_text().replace("namespace: fraud-dev", "namespace: Fraud_Dev") + option)
    result = checked(tmp_path / "invalid" / "bad", tmp_path, monkeypatch)
    (finding,) = [candidate for candidate in result.findings if candidate.rule.id == "AGY107"]
    message = "fraud-dev deploys to namespace 'Fraud_Dev', which is not a valid name: a lowercase RFC 1123"
    assert finding.violation.message.startswith(message), finding.violation.message
    assert (finding.violation.severity, finding.violation.file_fix) == (Severity.ERROR, None)
    assert "CreateNamespace" not in finding.violation.fix
