"""The transcript format: what counts as a difference, what is normalized, parsing and recording."""

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


def test_transcripts_contain_at_least_ninety_commands() -> None:
    assert len({row.command for scenario in scenarios() for row in scenario.rows}) >= 90


def test_scenario_names_are_unique() -> None:
    names = [scenario.name for scenario in scenarios()]
    assert len(set(names)) == len(names)


def test_fewer_than_twelve_rows_expect_no_output() -> None:
    silent = [
        row.command
        for scenario in scenarios()
        for row in scenario.rows
        if not (row.code or row.out or row.err or row.out_patterns or row.err_patterns)
    ]
    assert len(silent) < 12, silent


def test_exit_code_difference_is_reported_without_comparing_words() -> None:
    assert list(differences(row(code=1), Outcome(0, (), ()), words=False))
    assert not list(differences(row(code=1), Outcome(1, ("any",), ()), words=False))


def test_output_difference_is_reported() -> None:
    assert list(differences(row(out=("created",)), Outcome(0, ("configured",), ())))
    assert list(differences(row(out=("created",)), Outcome(0, ("created", "more"), ())))
    assert list(differences(row(), Outcome(0, (), ("Warning: x",))))


def test_pattern_matches_in_place_of_exact_output() -> None:
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
def test_only_values_that_vary_between_runs_are_normalized(line: str, kept: str) -> None:
    assert steady([line]) == (kept,)


def test_transcript_is_parsed_into_rows_and_files(source: Path) -> None:
    (scenario,) = read(source)
    assert scenario.files == {"cm.yaml": "kind: ConfigMap\n"}
    first, second, third = scenario.rows
    assert (first.command, first.code, first.err) == ("kubectl get cm a", 1, ("not found",))
    assert (second.out_patterns, third.out) == (("^NAME",), ("old",))


def test_malformed_transcript_line_is_an_error_with_its_line_number(source: Path) -> None:
    source.write_text(TEXT + "kubectl get pods\n")
    with pytest.raises(ValueError, match=r"table\.txt:13"):
        list(read(source))


def test_recording_replaces_output_and_keeps_patterns_files_and_comments(source: Path) -> None:
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
