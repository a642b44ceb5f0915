"""Collects the test cases of a folder.

In: a rule tree, the folder of a group or of one rule; or a script. Out: a RuleTestSuite. Never: skips an unreadable
file: it becomes a failing case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from argosy.errors import LimitError, UserError
from argosy.gitops.health.kind_keys import key_text
from argosy.gitops.health.test_suite.cases import ActionCase, Case, DiscoveryCase, HealthCase, Suite
from argosy.gitops.health.test_suite.files import MOST_SCRIPT_BYTES, Files, shown
from argosy.gitops.health.test_suite.manifest_kind import kind_of
from argosy.gitops.health.test_suite.test_files import Row, offered
from argosy.gitops.health.test_suite.tree import (
    ACTION_TEST,
    ACTIONS,
    DISCOVERY,
    HEALTH,
    HEALTH_TEST,
    Folder,
    Tree,
    above,
    is_for,
    walk,
)
from argosy.kube.objects import Manifest

MOST_CASES: Final = 20_000
BUNDLE: Final = "resource_customizations"  # argo: the folder of rules in its repository
_LEVELS: Final = 2  # `group/Kind` may both be above the given folder
_SAMPLE: Final = 200
NO_RULE: Final = f"no {HEALTH} next to the tests; add it, or correct its name"


def collect(folder: Path, *, strict: bool = False) -> Suite:
    """Collect all cases of a folder. Raises UserError if there are none. With `strict`, tests without a rule fail."""
    if not folder.is_dir():
        raise UserError("not a folder; name a folder with rules in Argo CD's layout", where=str(folder))
    folder = folder.resolve()
    if (folder / BUNDLE).is_dir():
        folder = folder / BUNDLE
    elif folder.name == ACTIONS and (folder / ACTION_TEST).is_file():
        folder = folder.parent  # part of a rule, whose test data may be in the folder of the rule
    files = Files(folder)
    folders = list(walk(files.folder))
    # argo: its own tests skip tests without a rule, so a tree with Argo CD's folder name may have some
    strict = strict and folder.name != BUNDLE
    found = [case for each in folders for case in _cases(files, each, strict)]
    if not found:
        tests = f"{HEALTH_TEST} or actions/{ACTION_TEST}"
        raise UserError(f"no tests found; name a folder with {tests} next to the rules", where=str(folder))
    if len(found) > MOST_CASES:
        message = f"{len(found)} cases exceed the limit of {MOST_CASES}; name a smaller folder"
        raise LimitError(message, where=str(folder))
    tree = Tree(files, folders, _levels_above(files, found))
    cases = _named_apart(_of_kind(case, tree.key_of(case.folder)) for case in found)
    return Suite(tuple(cases), tree, files, tuple(_notes(folders, found)))


def script_cases(script: Path, manifests: Sequence[tuple[str, Manifest]]) -> Suite:
    """Build a suite that runs one script on named manifests, without expected results."""
    files = Files(script.parent)
    text = files.read("", script.name, most=MOST_SCRIPT_BYTES).decode(errors="replace")
    cases = []
    for name, manifest in manifests:
        group, kind = kind_of(manifest)
        cases.append(HealthCase(group=group, kind=kind, name=name, manifest=manifest, status=None))
    return Suite(tuple(cases), _OneScript(text), files)


class _OneScript:
    """Returns the same script for every kind."""

    def __init__(self, text: str) -> None:
        self._text = text

    def health(self, group: str, kind: str) -> str:
        return self._text

    def discovery(self, group: str, kind: str) -> str:
        raise UserError("a single script has no actions")

    def action(self, group: str, kind: str, name: str) -> str:
        raise UserError("a single script has no actions")


def _cases(files: Files, folder: Folder, strict: bool) -> Iterator[Case]:
    if folder.has_rule:
        yield from _read(files, folder, HEALTH_TEST, _health_cases)
    elif strict and HEALTH_TEST in folder.files and not folder.is_data:
        cases = _read(files, folder, HEALTH_TEST, _health_cases)
        yield from (replace(case, problem=case.problem or NO_RULE) for case in cases)
    if ACTION_TEST in folder.files:
        yield from _read(files, folder, ACTION_TEST, _action_cases)


def _read(files: Files, folder: Folder, file: str, rows: Callable[[Row, str], list[Case]]) -> list[Case]:
    try:
        return rows(Row(files.document(folder.path, file), "", shown(folder.path, file)), folder.path)
    except UserError as error:
        broken = HealthCase if file == HEALTH_TEST else ActionCase
        return [broken(group="", kind="", name=file, folder=folder.path, problem=str(error))]


def _health_cases(file: Row, folder: str) -> list[Case]:
    cases: list[Case] = []
    for row in file.rows("tests"):
        path, health = row.text("inputPath"), row.row("healthStatus")
        cases.append(
            HealthCase(
                group="",
                kind="",
                name=path or row.place,
                folder=folder,
                input=path,
                facts=row.mapping("facts"),
                status=health.text("status"),
                message=health.text("message"),
            )
        )
    return cases


def _action_cases(file: Row, folder: str) -> list[Case]:
    cases: list[Case] = []
    for row in file.rows("discoveryTests"):
        path = row.text("inputPath")
        actions = tuple(offered(each) for each in row.rows("result"))
        cases.append(
            DiscoveryCase(group="", kind="", name=path or row.place, folder=folder, input=path, actions=actions)
        )
    for row in file.rows("actionTests"):
        path, action = row.text("inputPath"), row.text("action")
        cases.append(
            ActionCase(
                group="",
                kind="",
                name=shown(action, path) if path else row.place,
                folder=folder,
                input=path,
                action=action,
                output=row.text("expectedOutputPath"),
                error=row.text("expectedErrorMessage"),
                params=row.texts("parameters"),
            )
        )
    return cases


def _levels_above(files: Files, cases: Iterable[Case]) -> int:
    """Guess how many folders above the given one belong to the tree, from the kinds of the test objects."""
    votes = Counter[int]()
    for case in islice(cases, _SAMPLE):
        if (kind := _kind_in(files, case)) is not None:
            key = key_text(*kind)
            for levels in range(min(_LEVELS, len(files.folder.parents)) + 1):
                path = f"{above(files.folder, levels)}/{case.folder}".strip("/").removesuffix(f"/{ACTIONS}")
                votes[levels] += is_for(path, key)
    return max(range(_LEVELS + 1), key=lambda levels: votes[levels])


def _kind_in(files: Files, case: Case) -> tuple[str, str] | None:
    try:
        document: Any = files.document(case.folder, case.input) if case.input else None
    except UserError:
        return None
    return kind_of(document) if isinstance(document, dict) else None


def _of_kind(case: Case, key: str) -> Case:
    group, _, kind = key.rpartition("/")
    return replace(case, group=group, kind=kind)


def _named_apart(cases: Iterable[Case]) -> Iterator[Case]:
    """Number cases with equal names, which differ in their parameters, so that a report can distinguish them."""
    used = Counter[tuple[str, str, str, str]]()
    for case in cases:
        place = (case.suite, case.group, case.kind, case.name)
        used[place] += 1
        yield case if used[place] == 1 else replace(case, name=f"{case.name} #{used[place]}")


def _notes(folders: Iterable[Folder], cases: Iterable[Case]) -> Iterator[str]:
    """Yield notes about rules, actions and test files that are not tested."""
    tested = {case.folder for case in cases}
    for folder in folders:
        if folder.has_rule and folder.path not in tested:
            yield f"{shown(folder.path, HEALTH_TEST)}: has no rows, so the rule next to it is not tested; add some"
        elif HEALTH_TEST in folder.files and folder.path not in tested and not folder.has_rule and not folder.is_data:
            yield f"{shown(folder.path, HEALTH_TEST)}: no rule next to it, so it is not run"
        if ACTION_TEST in folder.files and folder.path not in tested:
            yield f"{shown(folder.path, ACTION_TEST)}: has no rows, so the actions are not tested; add some"
        elif DISCOVERY in folder.files and ACTION_TEST not in folder.files:
            yield f"{shown(folder.path, DISCOVERY)}: no {ACTION_TEST} next to it, so the actions are not tested"
