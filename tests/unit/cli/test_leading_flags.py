"""Arguments and flags in any order, as kubectl accepts them, and target flags in printed commands."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from argosy.cli.cluster_flags import add_target_flags_to_printed_commands, remember_target_flags
from argosy.cli.error_messages import print_failure
from argosy.cli.leading_flags import (
    CLUSTER_FLAGS,
    LOCAL_COMMANDS,
    PASSTHROUGH_COMMANDS,
    drop_flags_without_cluster,
    move_leading_flags,
)
from argosy.command_modules import COMMANDS
from argosy.errors import UserError
from argosy.features.argocd_cli.cli import translate_arguments
from argosy.main import build_parser, main


def chosen(line: str) -> argparse.Namespace:
    words = line.split()
    options, left = build_parser(words[0], subcommand=words[1]).parse_known_args(words)
    assert left == [], left
    assert isinstance(options, argparse.Namespace)
    return options


def test_explain_accepts_field_after_flags() -> None:
    options = chosen("explain deploy/web -n ml .spec.replicas")
    assert (options.what, options.namespace, options.words) == ("deploy/web", "ml", [".spec.replicas"])


def test_rollback_accepts_history_id_after_a_flag() -> None:
    options = chosen("app rollback models --hold 3 --reason slow")
    assert (options.name, options.id, options.hold, options.reason) == ("models", 3, True, "slow")


def test_names_before_and_after_a_flag_are_collected_in_order() -> None:
    assert chosen("app sync one --prune two -l env=dev three").names == ["one", "two", "three"]


def test_repeatable_flag_is_not_duplicated_by_the_second_parse() -> None:
    assert chosen("app sync one --resource a:B:c two").resource == ["a:B:c"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("trace isvc/fraud -n ml more", "unrecognized arguments: more"),
        ("app sync one --what two", "unrecognized arguments: --what two"),
        ("app rollback models --hold x", "invalid int value: 'x'"),
    ],
)
def test_invalid_or_surplus_argument_is_rejected(line: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
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
def test_empty_target_flag_is_rejected(
    line: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a script the cause is mostly an unset variable; kubectl would silently use another cluster."""
    monkeypatch.setattr("sys.argv", ["argosy", *line])
    with pytest.raises(SystemExit) as ended:
        main(line)
    flag = next(word for word in line if word.startswith("--")).rstrip("=")
    assert ended.value.code == 2
    why = f"why: argument {flag}: the value is empty; set one, or omit the flag to use the default\n"
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
def test_leading_target_flags_are_moved_behind_the_command(typed: str, meant: str) -> None:
    assert move_leading_flags(typed.split()) == meant.split()


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("--kubeconfig x", "no command after --kubeconfig x; add one, such as: argosy app list"),
        ("--kubeconfig", "no command after --kubeconfig; add one, such as: argosy app list"),
        ("--prune app sync one", "--prune is not allowed before the command; put it after the command"),
        ("--kubeconfig x sandbox start", "--kubeconfig before the command chooses a cluster, but argosy sandbox uses"),
        ("--kubeconfig=x demo", "--kubeconfig before the command chooses a cluster, but argosy demo uses none; "),
    ],
)
def test_invalid_leading_flag_is_rejected(typed: str, why: str) -> None:
    with pytest.raises(UserError) as raised:
        move_leading_flags(typed.split())
    assert str(raised.value).startswith(why)


@pytest.mark.parametrize("flag", ["--kubeconfig", "--context", "--data-dir", "-n"])
@pytest.mark.parametrize("command", ["version", "health list"])
def test_leading_target_flag_is_ignored_by_commands_without_a_cluster(
    flag: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.split()) == 0
    without = capsys.readouterr().out
    assert main([flag, "gone", *command.split()]) == 0
    assert capsys.readouterr().out == without


def test_leading_cluster_flags_are_dropped_for_render() -> None:
    typed = ["--kubeconfig", "gone", "--context=prod", "render", "folder"]
    assert drop_flags_without_cluster(typed, build_parser("render")) == ["render", "folder"]


@pytest.mark.parametrize("typed", ["--context prod sandbox reset", "--context prod demo stop", "--context prod open"])
def test_leading_context_flag_is_not_dropped_for_local_commands(typed: str) -> None:
    words = typed.split()
    parser = build_parser(words[2], subcommand="".join(words[3:4]))
    assert drop_flags_without_cluster(words, parser) == words


def test_every_command_has_all_cluster_flags_or_none() -> None:
    """A command has either all three cluster flags, or none of them; then leading ones are dropped."""
    for group in COMMANDS:
        if group in (*PASSTHROUGH_COMMANDS, *LOCAL_COMMANDS):
            continue
        todo: list[tuple[list[str], argparse.ArgumentParser]] = [([], build_parser(group))]
        while todo:
            words, parser = todo.pop()
            below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
            todo += [([*words, name], child) for subparsers in below for name, child in subparsers.choices.items()]
            has = {flag for flag in CLUSTER_FLAGS if flag in parser._option_string_actions}
            assert below or has in (set(), CLUSTER_FLAGS), words


def test_leading_kubeconfig_flag_is_used_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--kubeconfig", str(tmp_path / "gone"), "app", "list"]) == 2
    assert f"why: {tmp_path / 'gone'}: cannot be read: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "line"), [([], "app list"), (["proj", "list"], "proj list")])
def test_argocd_as_command_suggests_the_argocd_compat_flag(
    words: list[str], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["argosy", "argocd", *words])
    with pytest.raises(SystemExit):
        main()
    assert f"; run argocd commands as: argosy --argocd-compat {line}\n" in capsys.readouterr().err


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
def test_flag_after_the_command_overrides_the_leading_flag(line: str, moved: str) -> None:
    assert move_leading_flags(line.split()) == moved.split()


def test_flag_after_an_argocd_command_overrides_the_leading_flag() -> None:
    words = ["--kubeconfig", "a", "--kube-context", "c", "app", "list", "--kubeconfig", "b"]
    assert translate_arguments(words) == ["app", "list", "--kubeconfig", "b", "--context", "c"]


@pytest.mark.parametrize(
    ("line", "hint", "printed"),
    [
        ("app list --data-dir k1", "next: argosy app get models", "next: argosy --data-dir k1 app get models"),
        ("app list --context prod", "see: argosy doctor", "see: argosy --context prod doctor"),
        ("doctor --kubeconfig prod.yaml", "try: argosy app sync x", "try: argosy --kubeconfig prod.yaml app sync x"),
        (
            "doctor --kubeconfig a&b --context eu",
            "see: argosy doctor",
            "see: argosy --kubeconfig 'a&b' --context eu doctor",
        ),
        ("sandbox start --kubeconfig file", "next: argosy app list -A", "next: argosy app list -A"),
        ("app list --data-dir k1", "no argosy controller runs", "no argosy controller runs"),
        ("app list", "next: argosy app get models", "next: argosy app get models"),
        ("sandbox status --data-dir k1", "next: argosy app list -A", "next: argosy app list -A"),
    ],
)
def test_printed_command_contains_the_selected_target_flags(line: str, hint: str, printed: str) -> None:
    try:
        remember_target_flags(chosen(line))
        assert add_target_flags_to_printed_commands(hint) == printed
    finally:
        remember_target_flags(argparse.Namespace())


def test_failure_hint_contains_the_given_data_dir(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        remember_target_flags(chosen(f"app list --data-dir {tmp_path}"))
        print_failure("app get failed", "it is not there", "see which there are: argosy app list -A")
        assert capsys.readouterr().err.endswith(f"argosy --data-dir {tmp_path} app list -A\n")
    finally:
        remember_target_flags(argparse.Namespace())


def test_target_of_the_previous_command_is_not_remembered(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "--kubeconfig", "/nowhere"])
    capsys.readouterr()
    assert add_target_flags_to_printed_commands("argosy app sync models") == "argosy app sync models"
