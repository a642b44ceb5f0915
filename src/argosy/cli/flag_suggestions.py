"""Suggests flags for unknown ones. In: unknown arguments. Out: the closest flag. Never: acts on a guess."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterator, Sequence
from typing import Final

FLAGS_OF_OTHER_TOOLS: Final = {  # flags of helm, kubectl, kustomize and git
    "--set": ("--helm-set",),
    "--set-string": ("--helm-set-string",),
    "--set-file": ("--helm-set-file",),
    "--namespace": ("--dest-namespace", "--app-namespace"),
    "-n": ("--namespace", "--dest-namespace", "--app-namespace"),
    "--image": ("--kustomize-image",),
    "--ref": ("--revision",),
    "--branch": ("--revision",),
    "--tag": ("--revision",),
    "--pr": ("--branch",),
    "--env": ("--to",),
    "--kube-version": ("--helm-kube-version",),
    "--api-versions": ("--helm-api-versions",),
    "--recurse": ("--directory-recurse",),
    "--recursive": ("--directory-recurse",),
    "-R": ("--directory-recurse",),
    "--tla-str": ("--jsonnet-tla-str",),
    "--ext-str": ("--jsonnet-ext-var-str",),
}

COMMANDS_FOR_FLAGS: Final[dict[tuple[str, ...], str]] = {  # flags that are a separate command here
    ("promote", "run", "--dry-run"): "argosy promote plan",
    ("promote", "rollback", "--dry-run"): "argosy promote plan RELEASE",
}


def suggest_flag(parser: argparse.ArgumentParser, arguments: Sequence[str], unknown_arguments: Sequence[str]) -> str:
    """Suggest a flag for the first unknown one: a flag of another tool with the same meaning, or a similar name."""
    typed = next((word.partition("=")[0] for word in unknown_arguments if word.startswith("-")), "")
    if command := COMMANDS_FOR_FLAGS.get((*arguments[:2], typed)):
        return f"; did you mean {command}?"
    known_flags = set(_list_flags(parser, iter(arguments)))
    equivalent_flag = next((flag for flag in FLAGS_OF_OTHER_TOOLS.get(typed, ()) if flag in known_flags), "")
    flags_with_prefix = [flag for flag in sorted(known_flags) if len(typed) > 3 and flag.startswith(typed)]
    suggestions = (
        [equivalent_flag]
        if equivalent_flag
        else flags_with_prefix or difflib.get_close_matches(typed, sorted(known_flags), n=1)
    )
    return f"; did you mean {suggestions[0]}?" if suggestions else ""


def _list_flags(parser: argparse.ArgumentParser, words: Iterator[str]) -> Iterator[str]:
    """Yield the flags of the command that the words select."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            subparser = next((action.choices[word] for word in words if word in action.choices), None)
            if subparser is not None:
                yield from _list_flags(subparser, words)
