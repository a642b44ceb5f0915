"""Suggests flags for unknown ones. In: unknown arguments. Out: the closest flag. Never: acts on a guess."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterator, Sequence
from typing import Final

HABITS: Final = {  # flags of helm, kubectl, kustomize and git
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

VERBS: Final[dict[tuple[str, ...], str]] = {  # flags that are a separate command here
    ("promote", "run", "--dry-run"): "argosy promote plan",
    ("promote", "rollback", "--dry-run"): "argosy promote plan RELEASE",
}


def meant(parser: argparse.ArgumentParser, arguments: Sequence[str], left: Sequence[str]) -> str:
    """Suggest a flag for the first unknown one: a flag of another tool with the same meaning, or a similar name."""
    typed = next((word.partition("=")[0] for word in left if word.startswith("-")), "")
    if verb := VERBS.get((*arguments[:2], typed)):
        return f"; did you mean {verb}?"
    known = set(_flags(parser, iter(arguments)))
    habit = next((flag for flag in HABITS.get(typed, ()) if flag in known), "")
    begins = [flag for flag in sorted(known) if len(typed) > 3 and flag.startswith(typed)]
    near = [habit] if habit else begins or difflib.get_close_matches(typed, sorted(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _flags(parser: argparse.ArgumentParser, words: Iterator[str]) -> Iterator[str]:
    """Yield the flags of the command that the words select."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            chosen = next((action.choices[word] for word in words if word in action.choices), None)
            if chosen is not None:
                yield from _flags(chosen, words)
