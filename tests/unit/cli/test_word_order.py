"""Words and flags in any order, as people who come from kubectl type them."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from argosy.cli import command_line, main
from argosy.cli.compat import understood
from argosy.cli.leading_flags import move_leading_flags
from argosy.model.errors import UserError


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


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--kubeconfig x app list", "app list --kubeconfig x"),
        ("--context=prod app sync one -- two", "app sync one --context=prod -- two"),
        ("-n ml --context prod trace isvc/fraud", "trace isvc/fraud -n ml --context prod"),
        ("--context prod kubectl get pods", "kubectl --context prod get pods"),
        ("-n ml oc get pods", "oc -n ml get pods"),
        ("--data-dir d sandbox status", "sandbox status --data-dir d"),
        ("--version", "--version"),
        ("app list --context prod", "app list --context prod"),
    ],
)
def test_flags_that_choose_a_target_may_stand_before_the_command(typed: str, meant: str) -> None:
    assert move_leading_flags(typed.split()) == meant.split()


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("--kubeconfig x", "--kubeconfig x is given, and no command; add one, such as: argosy app list"),
        ("--kubeconfig", "--kubeconfig is given, and no command; add one, such as: argosy app list"),
        ("--prune app sync one", "--prune stands before the command; put it behind the command and its verb"),
        ("--kubeconfig x sandbox start", "--kubeconfig before the command chooses a cluster, and argosy sandbox needs"),
        ("--kubeconfig=x demo", "--kubeconfig before the command chooses a cluster, and argosy demo needs none; "),
    ],
)
def test_a_flag_that_may_not_stand_before_the_command_is_told(typed: str, why: str) -> None:
    with pytest.raises(UserError) as raised:
        move_leading_flags(typed.split())
    assert str(raised.value).startswith(why)


def test_a_cluster_that_is_chosen_before_the_command_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--kubeconfig", str(tmp_path / "gone"), "app", "list"]) == 2
    assert f"why: {tmp_path / 'gone'}: cannot be read: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "line"), [([], "app list"), (["proj", "list"], "proj list")])
def test_argocd_as_a_command_is_told_how_to_be_typed(
    words: list[str], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["argosy", "argocd", *words])
    with pytest.raises(SystemExit):
        main()
    assert f"; its commands are typed as: argosy --argocd-compat {line}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "moved"),
    [
        ("--kubeconfig a app hold x --kubeconfig b", "app hold x --kubeconfig b"),
        ("--kubeconfig=a app hold x --kubeconfig b", "app hold x --kubeconfig b"),
        ("--context a app hold x --context=b", "app hold x --context=b"),
        ("--data-dir a app hold x --data-dir b", "app hold x --data-dir b"),
        ("-n a model list -n b", "model list -n b"),
        ("-n a model list -nb", "model list -nb"),
        ("--namespace a model list -n b", "model list -n b"),
        ("--context a -n b app list --context c", "app list --context c -n b"),
        ("--context a app list -- --context b", "app list --context a -- --context b"),
    ],
)
def test_a_flag_behind_the_command_holds_against_the_same_flag_before_it(line: str, moved: str) -> None:
    assert move_leading_flags(line.split()) == moved.split()


def test_in_the_words_of_argocd_the_flag_behind_the_command_holds_too() -> None:
    words = ["--kubeconfig", "a", "--kube-context", "c", "app", "list", "--kubeconfig", "b"]
    assert understood(words) == ["app", "list", "--kubeconfig", "b", "--context", "c"]
