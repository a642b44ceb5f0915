"""Help text fits a terminal of 80 columns; help and errors point to the right documentation page."""

from __future__ import annotations

import contextlib
import io

import pytest

from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind
from argosy.gitops.application.step_results import FieldDifference
from argosy.gitops.application_client.diff_presentation import DifferingObject, summarize_differences
from argosy.kube.resource_key import ResourceKey
from argosy.main import main


def help_of(*words: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit):
        main([*words, "--help"])
    return out.getvalue()


@pytest.mark.parametrize("word", ["trace", "preview"])
def test_help_lines_before_examples_fit_80_columns(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before_examples = help_of(word, monkeypatch=monkeypatch).partition("Examples:")[0]
    assert max(map(len, before_examples.splitlines())) <= 80


@pytest.mark.parametrize("verb", ["status", "plan", "run", "rollback", "approve", "hold", "history"])
def test_promote_help_links_to_the_promotion_guide(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "See also: docs/guides/promoting.md" in help_of("promote", verb, monkeypatch=monkeypatch)


def test_unknown_rule_error_points_to_the_rule_reference(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "AGY999"]) == 2
    assert "next: see the list of rules: docs/reference/rules.md" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (CauseKind.WEBHOOK, "1 field differs: 1 by a webhook"),
        (CauseKind.DEFAULTING, "1 field differs: 1 by a default"),
        (CauseKind.GIT_CHANGE, "1 field differs: 1 Git change"),
    ],
)
def test_difference_summary_counts_fields_by_cause(kind: CauseKind, expected: str) -> None:
    key, field = ResourceKey("", "ConfigMap", "ml", "settings"), FieldDifference("/data/a", "1", "2", True, True)
    differing_object = DifferingObject(key, (field,), "a: 1", "a: 2", causes={"/data/a": Cause(kind, "because")})
    assert summarize_differences([differing_object]) == expected
