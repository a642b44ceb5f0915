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
from argosy.gitops.health.setting_kind_names import render_kind
from argosy.gitops.health.test_suite.case_types import (
    ActionTestCase,
    DiscoveryTestCase,
    HealthTestCase,
    RuleTestCase,
    RuleTestSuite,
)
from argosy.gitops.health.test_suite.manifest_identity import read_group_kind
from argosy.gitops.health.test_suite.rule_tree_script_lookup import (
    ACTION_TEST_FILE,
    ACTIONS_FOLDER,
    DISCOVERY_FILE,
    HEALTH_FILE,
    HEALTH_TEST_FILE,
    RuleFolder,
    RuleTree,
    matches_kind,
    tree_prefix,
    walk_rule_folders,
)
from argosy.gitops.health.test_suite.test_file_decoding import CaseFileRow, read_expected_action
from argosy.gitops.health.test_suite.untrusted_rule_tree_files import MAX_SCRIPT_BYTES, RuleTreeFiles, join_path
from argosy.kube.objects import Manifest

MAX_CASES: Final = 20_000
ARGOCD_RULES_FOLDER: Final = "resource_customizations"  # argo: the folder of rules in its repository
_MAX_LEVELS_ABOVE: Final = 2  # `group/Kind` may both be above the given folder
_SAMPLE_CASES: Final = 200
NO_RULE_MESSAGE: Final = f"no {HEALTH_FILE} next to the tests; add it, or correct its name"


def collect_cases(folder: Path, *, strict: bool = False) -> RuleTestSuite:
    """Collect all cases of a folder. Raises UserError if there are none. With `strict`, tests without a rule fail."""
    if not folder.is_dir():
        raise UserError("not a folder; name a folder with rules in Argo CD's layout", where=str(folder))
    folder = folder.resolve()
    if (folder / ARGOCD_RULES_FOLDER).is_dir():
        folder = folder / ARGOCD_RULES_FOLDER
    elif folder.name == ACTIONS_FOLDER and (folder / ACTION_TEST_FILE).is_file():
        folder = folder.parent  # part of a rule, whose test data may be in the folder of the rule
    files = RuleTreeFiles(folder)
    folders = list(walk_rule_folders(files.folder))
    # argo: its own tests skip tests without a rule, so a tree with Argo CD's folder name may have some
    strict = strict and folder.name != ARGOCD_RULES_FOLDER
    cases_found = [case for rule_folder in folders for case in _folder_cases(files, rule_folder, strict)]
    if not cases_found:
        tests = f"{HEALTH_TEST_FILE} or actions/{ACTION_TEST_FILE}"
        raise UserError(f"no tests found; name a folder with {tests} next to the rules", where=str(folder))
    if len(cases_found) > MAX_CASES:
        message = f"{len(cases_found)} cases exceed the limit of {MAX_CASES}; name a smaller folder"
        raise LimitError(message, where=str(folder))
    tree = RuleTree(files, folders, _guess_levels_above(files, cases_found))
    cases = _number_duplicates(_set_kind(case, tree.kind_of_folder(case.folder)) for case in cases_found)
    return RuleTestSuite(tuple(cases), tree, files, tuple(_list_untested(folders, cases_found)))


def build_script_suite(script: Path, manifests: Sequence[tuple[str, Manifest]]) -> RuleTestSuite:
    """Build a suite that runs one script on named manifests, without expected results."""
    files = RuleTreeFiles(script.parent)
    text = files.read("", script.name, max_bytes=MAX_SCRIPT_BYTES).decode(errors="replace")
    cases = []
    for name, manifest in manifests:
        group, kind = read_group_kind(manifest)
        cases.append(HealthTestCase(group=group, kind=kind, name=name, manifest=manifest, status=None))
    return RuleTestSuite(tuple(cases), _SingleScript(text), files)


class _SingleScript:
    """Returns the same script for every kind."""

    def __init__(self, text: str) -> None:
        self._text = text

    def find_health_script(self, group: str, kind: str) -> str:
        return self._text

    def find_discovery_script(self, group: str, kind: str) -> str:
        raise UserError("a single script has no actions")

    def find_action_script(self, group: str, kind: str, name: str) -> str:
        raise UserError("a single script has no actions")


def _folder_cases(files: RuleTreeFiles, folder: RuleFolder, strict: bool) -> Iterator[RuleTestCase]:
    if folder.has_rule:
        yield from _read_test_file(files, folder, HEALTH_TEST_FILE, _read_health_cases)
    elif strict and HEALTH_TEST_FILE in folder.files and not folder.is_test_data:
        cases = _read_test_file(files, folder, HEALTH_TEST_FILE, _read_health_cases)
        yield from (replace(case, problem=case.problem or NO_RULE_MESSAGE) for case in cases)
    if ACTION_TEST_FILE in folder.files:
        yield from _read_test_file(files, folder, ACTION_TEST_FILE, _read_action_cases)


def _read_test_file(
    files: RuleTreeFiles, folder: RuleFolder, file: str, rows: Callable[[CaseFileRow, str], list[RuleTestCase]]
) -> list[RuleTestCase]:
    try:
        return rows(CaseFileRow(files.load_document(folder.path, file), "", join_path(folder.path, file)), folder.path)
    except UserError as error:
        case_class = HealthTestCase if file == HEALTH_TEST_FILE else ActionTestCase
        return [case_class(group="", kind="", name=file, folder=folder.path, problem=str(error))]


def _read_health_cases(file: CaseFileRow, folder: str) -> list[RuleTestCase]:
    cases: list[RuleTestCase] = []
    for row in file.read_rows("tests"):
        path, health = row.read_text("inputPath"), row.read_row("healthStatus")
        cases.append(
            HealthTestCase(
                group="",
                kind="",
                name=path or row.path,
                folder=folder,
                input=path,
                facts=row.read_map("facts"),
                status=health.read_text("status"),
                message=health.read_text("message"),
            )
        )
    return cases


def _read_action_cases(file: CaseFileRow, folder: str) -> list[RuleTestCase]:
    cases: list[RuleTestCase] = []
    for row in file.read_rows("discoveryTests"):
        path = row.read_text("inputPath")
        actions = tuple(read_expected_action(action_row) for action_row in row.read_rows("result"))
        cases.append(
            DiscoveryTestCase(group="", kind="", name=path or row.path, folder=folder, input=path, actions=actions)
        )
    for row in file.read_rows("actionTests"):
        path, action = row.read_text("inputPath"), row.read_text("action")
        cases.append(
            ActionTestCase(
                group="",
                kind="",
                name=join_path(action, path) if path else row.path,
                folder=folder,
                input=path,
                action=action,
                output=row.read_text("expectedOutputPath"),
                error=row.read_text("expectedErrorMessage"),
                params=row.read_text_map("parameters"),
            )
        )
    return cases


def _guess_levels_above(files: RuleTreeFiles, cases: Iterable[RuleTestCase]) -> int:
    """Guess how many folders above the given one belong to the tree, from the kinds of the test objects."""
    votes = Counter[int]()
    for case in islice(cases, _SAMPLE_CASES):
        if (kind := _read_input_kind(files, case)) is not None:
            key = render_kind(*kind)
            for levels in range(min(_MAX_LEVELS_ABOVE, len(files.folder.parents)) + 1):
                path = f"{tree_prefix(files.folder, levels)}/{case.folder}".strip("/").removesuffix(
                    f"/{ACTIONS_FOLDER}"
                )
                votes[levels] += matches_kind(path, key)
    return max(range(_MAX_LEVELS_ABOVE + 1), key=lambda levels: votes[levels])


def _read_input_kind(files: RuleTreeFiles, case: RuleTestCase) -> tuple[str, str] | None:
    try:
        document: Any = files.load_document(case.folder, case.input) if case.input else None
    except UserError:
        return None
    return read_group_kind(document) if isinstance(document, dict) else None


def _set_kind(case: RuleTestCase, key: str) -> RuleTestCase:
    group, _, kind = key.rpartition("/")
    return replace(case, group=group, kind=kind)


def _number_duplicates(cases: Iterable[RuleTestCase]) -> Iterator[RuleTestCase]:
    """Number cases with equal names, which differ in their parameters, so that a report can distinguish them."""
    counts = Counter[tuple[str, str, str, str]]()
    for case in cases:
        identity = (case.suite, case.group, case.kind, case.name)
        counts[identity] += 1
        yield case if counts[identity] == 1 else replace(case, name=f"{case.name} #{counts[identity]}")


def _list_untested(folders: Iterable[RuleFolder], cases: Iterable[RuleTestCase]) -> Iterator[str]:
    """Yield notes about rules, actions and test files that are not tested."""
    tested = {case.folder for case in cases}
    for folder in folders:
        if folder.has_rule and folder.path not in tested:
            yield (
                f"{join_path(folder.path, HEALTH_TEST_FILE)}: has no rows, so the rule next to it is not "
                "tested; add some"
            )
        elif (
            HEALTH_TEST_FILE in folder.files
            and folder.path not in tested
            and not folder.has_rule
            and not folder.is_test_data
        ):
            yield f"{join_path(folder.path, HEALTH_TEST_FILE)}: no rule next to it, so it is not run"
        if ACTION_TEST_FILE in folder.files and folder.path not in tested:
            yield f"{join_path(folder.path, ACTION_TEST_FILE)}: has no rows, so the actions are not tested; add some"
        elif DISCOVERY_FILE in folder.files and ACTION_TEST_FILE not in folder.files:
            yield (
                f"{join_path(folder.path, DISCOVERY_FILE)}: no {ACTION_TEST_FILE} next to it, so the actions "
                "are not tested"
            )
