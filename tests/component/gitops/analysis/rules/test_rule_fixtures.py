"""Each rule catches its bad fixture at the marked lines, and leaves its good one alone.

A line that a rule must name ends in a comment with the rule's number: `#` in YAML and notebooks, `--` in Lua.
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
    """In a copy, which is no part of this repository. Where a rule asks what was before, that is committed first."""
    copy, before = tmp_path / "repository", folder.parent / "before"
    if before.is_dir():
        shutil.copytree(before, copy)
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "Before"]):
            who = ["-c", "user.name=ann", "-c", "user.email=ann@example.com"]
            subprocess.run(["git", *who, *words], cwd=copy, check=True)
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    monkeypatch.chdir(copy)
    # The host of the fixtures' repository, were it asked
    manner = CheckRunOptions(fetch_refs=lambda url: Refs({"HEAD": "1" * 40, "refs/heads/main": "1" * 40}))
    return check_paths(["."], options=manner, log=lambda text: None)


_bad: dict[str, CheckResult] = {}


def bad_fixture(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CheckResult:
    """Checked once for all tests."""
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


def test_every_rule_has_its_fixtures() -> None:
    assert {path.name for path in FIXTURES.iterdir()} == set(STATIC)


@pytest.mark.parametrize("rule", STATIC)
def test_a_rule_catches_its_bad_fixture_at_the_marked_lines(
    rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = bad_fixture(rule, tmp_path, monkeypatch)
    locations = {
        (finding.location.file, finding.location.line) for finding in result.findings if finding.rule.id == rule
    }
    assert locations == marked(FIXTURES / rule / "bad", rule) != set()


@pytest.mark.parametrize("rule", STATIC)
def test_a_rule_leaves_its_good_fixture_alone(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = checked(FIXTURES / rule / "good", tmp_path, monkeypatch)
    assert [str(finding.violation) for finding in result.findings if finding.rule.id == rule] == []


@pytest.mark.parametrize("rule", STATIC)
def test_every_finding_says_what_to_do(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = bad_fixture(rule, tmp_path, monkeypatch)
    assert all(
        finding.violation.fix and finding.violation.message and finding.rule.certainty for finding in result.findings
    )


@pytest.mark.parametrize("option", ["", "  syncPolicy: {syncOptions: [CreateNamespace=true]}\n"])
def test_a_name_that_no_namespace_can_have_is_an_error_and_not_proposed(
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
