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

WITH_VALUE: Final = frozenset({"--context", "--kubeconfig", "--data-dir", "-n", "--namespace"})
WRITES_KUBECONFIG: Final = ("sandbox", "demo")  # where --kubeconfig is the file to write
LOCAL: Final = (*WRITES_KUBECONFIG, "open")  # act on this machine only; a chosen cluster would be ignored
CHOOSES_CLUSTER: Final = frozenset({"--context", "--kubeconfig", "--data-dir"})
PASSED_ON: Final = ("kubectl", "oc")
OWN: Final = ("-h", "--help", "--version")


def move_leading_flags(words: Sequence[str]) -> list[str]:
    """Move flags that choose a cluster or namespace after the command. Raises UserError for other flags."""
    flags, rest = _split(words)
    if not flags:
        return list(words)
    flags = drop_overridden(flags, rest)
    if not rest:
        raise UserError(f"no command after {shlex.join(words)}; add one, such as: argosy app list")
    command, names = rest[0], [flag.partition("=")[0] for flag in flags]
    if command in WRITES_KUBECONFIG and "--kubeconfig" in names:
        own = "put the flag after the command to write this file, else leave it out"
        raise UserError(f"--kubeconfig before the command chooses a cluster, but argosy {command} uses none; {own}")
    if command in PASSED_ON:
        return [command, *flags, *rest[1:]]
    end = rest.index("--") if "--" in rest else len(rest)
    return [*rest[:end], *flags, *rest[end:]]


def drop_flags_without_cluster(words: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """Drop leading flags that the command lacks, if it does not use a cluster: they make no difference there."""
    flags, rest = _split(words)
    known = _options_of(parser, rest)
    if not flags or not rest or rest[0] in (*LOCAL, *PASSED_ON) or known & CHOOSES_CLUSTER:
        return list(words)
    kept: list[str] = []
    place = 0
    while place < len(flags):
        size = 2 if flags[place] in WITH_VALUE else 1
        if flags[place].partition("=")[0] in known:
            kept += flags[place : place + size]
        place += size
    return [*kept, *rest]


def _options_of(parser: argparse.ArgumentParser, words: Sequence[str]) -> set[str]:
    """Return the flags of the command that the words name."""
    for word in words:
        groups = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
        if not groups:
            break
        parser = groups[0].choices.get(word, parser)
    return set(parser._option_string_actions)


def drop_overridden(flags: Sequence[str], rest: Sequence[str]) -> list[str]:
    """Drop leading flags that are repeated after the command: as in kubectl, the last one wins."""
    later = {_full_name(word) for word in rest[: rest.index("--") if "--" in rest else len(rest)]}
    kept: list[str] = []
    place = 0
    while place < len(flags):
        takes_next = flags[place] in WITH_VALUE
        if _full_name(flags[place]) not in later & WITH_VALUE:
            kept += flags[place : place + 1 + takes_next]
        place += 1 + takes_next
    return kept


def _full_name(word: str) -> str:
    """Return the long name of a flag; `-nml` is `-n ml`."""
    name = word.partition("=")[0]
    return "--namespace" if word.startswith("-n") else name


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the leading flags with their values, and the words from the command on."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        name, has_value, _ = words[place].partition("=")
        if name in OWN:
            break
        if name not in WITH_VALUE:
            advice = "put it after the command, such as: argosy app list --help"
            raise UserError(f"{name} is not allowed before the command; {advice}")
        place += 1 if has_value else 2
    return list(words[:place]), list(words[place:])
