"""The table's own rules: what counts as a difference, what does not, and that it is large enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.kubectl_transcripts import Outcome, Row, differences, read, recorded, scenarios, steady

TEXT = """=== words
%%% cm.yaml
kind: ConfigMap
%%%
# why
$ kubectl get cm a
? 1
! not found
$ kubectl get cm
~ ^NAME
$ kubectl version
| old
"""


def row(code: int = 0, out: tuple[str, ...] = (), patterns: tuple[str, ...] = ()) -> Row:
    return Row(1, "kubectl", code, out, (), patterns, ())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "table.txt"
    path.write_text(TEXT)
    return path


def test_the_table_holds_at_least_ninety_commands() -> None:
    assert len({row.command for scenario in scenarios() for row in scenario.rows}) >= 90


def test_every_scenario_has_a_name_of_its_own() -> None:
    names = [scenario.name for scenario in scenarios()]
    assert len(set(names)) == len(names)


def test_a_row_of_the_table_expects_something_unless_it_is_silence() -> None:
    silent = [
        row.command
        for scenario in scenarios()
        for row in scenario.rows
        if not (row.code or row.out or row.err or row.out_patterns or row.err_patterns)
    ]
    assert len(silent) < 12, silent


def test_another_exit_code_is_a_difference_even_without_words() -> None:
    assert list(differences(row(code=1), Outcome(0, (), ()), words=False))
    assert not list(differences(row(code=1), Outcome(1, ("any",), ()), words=False))


def test_other_words_are_a_difference() -> None:
    assert list(differences(row(out=("created",)), Outcome(0, ("configured",), ())))
    assert list(differences(row(out=("created",)), Outcome(0, ("created", "more"), ())))
    assert list(differences(row(), Outcome(0, (), ("Warning: x",))))


def test_a_pattern_stands_in_for_the_exact_words() -> None:
    assert not list(differences(row(patterns=("^a", "b$")), Outcome(0, ("a x", "x b"), ())))
    assert list(differences(row(patterns=("^b",)), Outcome(0, ("a x",), ())))


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("web   1/1     12s", "web   1/1   AGE"),
        ("kube-system   Active   3m20s", "kube-system   Active   AGE"),
        ("    cpu: 100m", "    cpu: 100m"),
        ('  resourceVersion: "12"', "  resourceVersion: VERSION"),
        ("at 2026-01-02T03:04:05Z", "at TIME"),
        ("    two   spaces", "    two   spaces"),
    ],
)
def test_only_what_differs_from_run_to_run_is_smoothed(line: str, kept: str) -> None:
    assert steady([line]) == (kept,)


def test_a_transcript_is_read_into_rows_and_files(source: Path) -> None:
    (scenario,) = read(source)
    assert scenario.files == {"cm.yaml": "kind: ConfigMap\n"}
    first, second, third = scenario.rows
    assert (first.command, first.code, first.err) == ("kubectl get cm a", 1, ("not found",))
    assert (second.out_patterns, third.out) == (("^NAME",), ("old",))


def test_a_slip_of_the_pen_in_a_transcript_is_an_error(source: Path) -> None:
    source.write_text(TEXT + "kubectl get pods\n")
    with pytest.raises(ValueError, match=r"table\.txt:13"):
        list(read(source))


def test_recording_replaces_words_and_keeps_patterns_files_and_comments(source: Path) -> None:
    (scenario,) = read(source)
    lines = [scenario_row.line for scenario_row in scenario.rows]
    outcomes = dict(
        zip(lines, [Outcome(0, ("here",), ()), Outcome(0, ("NAME x",), ()), Outcome(2, ("new",), ("worse",))])
    )
    source.write_text(recorded(source, outcomes))
    (after,) = read(source)
    assert after.files == scenario.files
    assert "# why" in source.read_text()
    assert [
        (scenario_row.code, scenario_row.out, scenario_row.err, scenario_row.out_patterns)
        for scenario_row in after.rows
    ] == [
        (0, ("here",), (), ()),
        (0, (), (), ("^NAME",)),
        (2, ("new",), ("worse",), ()),
    ]
