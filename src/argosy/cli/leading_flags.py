"""Flags before the command, as in kubectl: `argosy --context prod app list`.

In: arguments that start with a flag. Out: the same arguments with the command first. Never: moves a flag that would
mean something else after the command.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import Final

from argosy.errors import UserError

FLAGS_WITH_VALUE: Final = frozenset({"--context", "--kubeconfig", "--data-dir", "-n", "--namespace"})
COMMANDS_WRITING_KUBECONFIG: Final = ("sandbox", "demo")  # where --kubeconfig is the file to write
# These act on this machine only; a chosen cluster would be ignored.
LOCAL_COMMANDS: Final = (*COMMANDS_WRITING_KUBECONFIG, "open")
CLUSTER_FLAGS: Final = frozenset({"--context", "--kubeconfig", "--data-dir"})
PASSTHROUGH_COMMANDS: Final = ("kubectl", "oc")
TOP_LEVEL_FLAGS: Final = ("-h", "--help", "--version")


def move_leading_flags(words: Sequence[str]) -> list[str]:
    """Move flags that choose a cluster or namespace after the command. Raises UserError for other flags."""
    flags, remaining = _split_leading_flags(words)
    if not flags:
        return list(words)
    flags = drop_overridden_flags(flags, remaining)
    if not remaining:
        raise UserError(f"no command after {shlex.join(words)}; add one, such as: argosy app list")
    command, names = remaining[0], [flag.partition("=")[0] for flag in flags]
    if command in COMMANDS_WRITING_KUBECONFIG and "--kubeconfig" in names:
        advice = "put the flag after the command to write this file, else leave it out"
        raise UserError(f"--kubeconfig before the command chooses a cluster, but argosy {command} uses none; {advice}")
    if command in PASSTHROUGH_COMMANDS:
        return [command, *flags, *remaining[1:]]
    end = remaining.index("--") if "--" in remaining else len(remaining)
    return [*remaining[:end], *flags, *remaining[end:]]


def drop_flags_without_cluster(words: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """Drop leading flags that the command lacks, if it does not use a cluster: they make no difference there."""
    flags, remaining = _split_leading_flags(words)
    known_flags = _list_flags(parser, remaining)
    if (
        not flags
        or not remaining
        or remaining[0] in (*LOCAL_COMMANDS, *PASSTHROUGH_COMMANDS)
        or known_flags & CLUSTER_FLAGS
    ):
        return list(words)
    kept_flags: list[str] = []
    index = 0
    while index < len(flags):
        size = 2 if flags[index] in FLAGS_WITH_VALUE else 1
        if flags[index].partition("=")[0] in known_flags:
            kept_flags += flags[index : index + size]
        index += size
    return [*kept_flags, *remaining]


def _list_flags(parser: argparse.ArgumentParser, words: Sequence[str]) -> set[str]:
    """Return the flags of the command that the words name."""
    for word in words:
        groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        if not groups:
            break
        parser = groups[0].choices.get(word, parser)
    return set(parser._option_string_actions)


def drop_overridden_flags(flags: Sequence[str], remaining: Sequence[str]) -> list[str]:
    """Drop leading flags that are repeated after the command: as in kubectl, the last one wins."""
    later_flags = {
        _normalize_flag_name(word)
        for word in remaining[: remaining.index("--") if "--" in remaining else len(remaining)]
    }
    kept_flags: list[str] = []
    index = 0
    while index < len(flags):
        takes_next = flags[index] in FLAGS_WITH_VALUE
        if _normalize_flag_name(flags[index]) not in later_flags & FLAGS_WITH_VALUE:
            kept_flags += flags[index : index + 1 + takes_next]
        index += 1 + takes_next
    return kept_flags


def _normalize_flag_name(word: str) -> str:
    """Return the long name of a flag; `-nml` is `-n ml`."""
    name = word.partition("=")[0]
    return "--namespace" if word.startswith("-n") else name


def _split_leading_flags(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the leading flags with their values, and the words from the command on."""
    index = 0
    while index < len(words) and words[index].startswith("-"):
        name, has_value, _ = words[index].partition("=")
        if name in TOP_LEVEL_FLAGS:
            break
        if name not in FLAGS_WITH_VALUE:
            advice = "put it after the command, such as: argosy app list --help"
            raise UserError(f"{name} is not allowed before the command; {advice}")
        index += 1 if has_value else 2
    return list(words[:index]), list(words[index:])
