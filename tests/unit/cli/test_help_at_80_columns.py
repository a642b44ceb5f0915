"""Help that fits a terminal of 80 columns, and leads to the page of its own subject."""

from __future__ import annotations

import contextlib
import io

import pytest

from argosy.gitops.analysis.difference_cause import Cause, CauseKind
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
def test_no_line_of_help_is_wider_than_the_terminal(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before_examples = help_of(word, monkeypatch=monkeypatch).partition("Examples:")[0]
    assert max(map(len, before_examples.splitlines())) <= 80


@pytest.mark.parametrize("verb", ["status", "plan", "run", "rollback", "approve", "hold", "history"])
def test_help_of_promotions_leads_to_the_guide_of_promotions(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "See also: docs/guides/promoting.md" in help_of("promote", verb, monkeypatch=monkeypatch)


def test_a_rule_that_there_is_not_leads_to_the_list_of_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "AGY999"]) == 2
    assert "next: see the list of rules: docs/reference/rules.md" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (CauseKind.WEBHOOK, "1 field differs: 1 by a webhook"),
        (CauseKind.DEFAULTING, "1 field differs: 1 by a default"),
        (CauseKind.CHANGED_IN_GIT, "1 field differs: 1 changed in Git"),
    ],
)
def test_who_made_fields_differ_is_counted_in_words_that_read_on(kind: CauseKind, expected: str) -> None:
    key, field = ResourceKey("", "ConfigMap", "ml", "settings"), FieldDifference("/data/a", "1", "2", True, True)
    differing_object = DifferingObject(key, (field,), "a: 1", "a: 2", causes={"/data/a": Cause(kind, "because")})
    assert summarize_differences([differing_object]) == expected
