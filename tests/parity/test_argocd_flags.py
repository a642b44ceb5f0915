"""`argosy app` has every verb and flag of `argocd app` under the same name, except flags listed as refused."""

from __future__ import annotations

import argparse
import re
from functools import cache
from pathlib import Path

import pytest

from argosy.features.argocd_cli.cli import IGNORED_FLAGS_WITH_VALUE, IGNORED_SWITCHES, RENAMED_FLAGS
from argosy.main import build_parser

LIST = Path(__file__).parents[3] / "shared" / "spec" / "argocd.md"
ROW = re.compile(r"^- `argocd app ([a-z -]+)`: (.*)$", re.MULTILINE)
HYDRATOR = {
    "--dry-source-path", "--dry-source-repo", "--dry-source-revision", "--hydrate-to-branch", "--sync-source-branch",
    "--sync-source-path",
}  # fmt: skip
REFUSED = {*HYDRATOR, "--env", "--until-time"}
CUT = {"--assume": "--assumeYes"}  # the list has this name in lower case only

pytestmark = pytest.mark.skipif(not LIST.is_file(), reason="../shared/spec/argocd.md is not here")


def children(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def verbs() -> dict[str, set[str]]:
    rows = ROW.findall(LIST.read_text().partition("# Appendix B")[2])
    return {name: set(flags.split()) for name, flags in rows}


@cache
def build_app_parser() -> argparse.ArgumentParser:
    return children(build_parser("app"))["app"]


def list_flags(verb: str) -> set[str]:
    parser = build_app_parser()
    for word in verb.split():
        parser = children(parser)[word]
    return {name for action in parser._actions for name in action.option_strings}


def test_every_argocd_app_verb_exists() -> None:
    assert len(verbs()) >= 26
    for verb in verbs():
        assert list_flags(verb), verb


def test_every_argocd_app_flag_is_accepted_or_listed_as_refused() -> None:
    unknown = {}
    for verb, flags in verbs().items():
        ours = list_flags(verb) | IGNORED_FLAGS_WITH_VALUE | IGNORED_SWITCHES | RENAMED_FLAGS.keys()
        wrong = {flag for flag in flags if CUT.get(flag, flag) not in ours} - REFUSED
        if wrong:
            unknown[verb] = wrong
    assert unknown == {}


def test_flags_listed_as_refused_are_not_accepted() -> None:
    assert not REFUSED & (list_flags("create") | list_flags("set") | list_flags("logs"))
