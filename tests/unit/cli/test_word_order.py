"""Words and flags in any order, as people who come from kubectl type them."""

from __future__ import annotations

import argparse

import pytest

from argosy.cli import command_line, main


def chosen(line: str) -> argparse.Namespace:
    words = line.split()
    found, left = command_line(words[0], typed=words[1]).parse_known_args(words)
    assert left == [], left
    assert isinstance(found, argparse.Namespace)
    return found


def test_a_field_may_stand_after_the_flags_of_its_object() -> None:
    found = chosen("explain deploy/web -n ml .spec.replicas")
    assert (found.what, found.namespace, found.words) == ("deploy/web", "ml", [".spec.replicas"])


def test_a_number_after_a_flag_is_the_deployment_to_go_back_to() -> None:
    found = chosen("app rollback models --hold 3 --reason slow")
    assert (found.name, found.id, found.hold, found.reason) == ("models", 3, True, "slow")


def test_names_on_both_sides_of_a_flag_are_all_taken_in_their_order() -> None:
    assert chosen("app sync one --prune two -l env=dev three").names == ["one", "two", "three"]


def test_a_flag_that_may_be_repeated_is_counted_once_though_the_line_is_read_twice() -> None:
    assert chosen("app sync one --resource a:B:c two").resource == ["a:B:c"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("trace isvc/fraud -n ml more", "unrecognized arguments: more"),
        ("app sync one --what two", "unrecognized arguments: --what two"),
        ("app rollback models --hold x", "invalid int value: 'x'"),
    ],
)
def test_a_word_too_many_is_still_told(line: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(line.split())
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        ["app", "list", "--context", ""],
        ["app", "list", "--context="],
        ["app", "list", "--kubeconfig", ""],
        ["doctor", "--data-dir", ""],
        ["sandbox", "reset", "-y", "--data-dir", ""],
        ["demo", "stop", "--data-dir", ""],
        ["open", "--data-dir", ""],
    ],
    ids=" ".join,
)
def test_a_flag_that_chooses_a_target_may_not_be_empty(
    line: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a script it is mostly a variable that is not set; kubectl would go to another cluster in silence."""
    monkeypatch.setattr("sys.argv", ["argosy", *line])
    with pytest.raises(SystemExit) as ended:
        main(line)
    flag = next(word for word in line if word.startswith("--")).rstrip("=")
    assert ended.value.code == 2
    why = f"why: argument {flag}: the value is empty; give one, or leave the flag out for the default\n"
    assert why in capsys.readouterr().err
