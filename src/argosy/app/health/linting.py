"""Mistakes in scripts and settings. In: paths. Out: remarks with the file and line. Never: runs a script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from argosy.app.health.inputs import MANIFESTS, is_tree, named, read_text
from argosy.health.installation import holds_settings
from argosy.health.lint import lint
from argosy.health.lint.finding import Purpose
from argosy.health.settings import ActionsCheck, Check, from_manifests
from argosy.health.table import to_lua
from argosy.model.errors import UserError
from argosy.model.manifest import load, read_manifests

ERROR: Final = "error"
_RULE: Final = re.compile(r" \((AGY\d+)\)")


@dataclass(frozen=True)
class Remark:
    """One thing to correct; `place` is the key of a script that is part of a larger file."""

    file: str
    line: int
    rule: str
    severity: str
    message: str
    advice: str
    place: str = ""

    def as_data(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "line": self.line,
            "rule": self.rule,
            "severity": self.severity,
            "message": self.message,
            "advice": self.advice,
            "place": self.place,
        }


@dataclass(frozen=True)
class Linted:
    remarks: tuple[Remark, ...]
    scripts: int  # how many were looked at

    def count(self, severity: str) -> int:
        return sum(remark.severity == severity for remark in self.remarks)


@dataclass(frozen=True)
class _Script:
    file: str
    text: str
    purpose: Purpose
    open_libs: bool
    place: str = ""
    offset: int = 0  # lines before it in its file


def lint_paths(paths: Sequence[Path], *, open_libs: bool) -> Linted:
    """Everything in the paths that is a script or holds some."""
    remarks: list[Remark] = []
    count = 0
    for path in paths:
        found, of_settings = _scripts_in(path, open_libs=open_libs)
        remarks += of_settings
        count += len(found)
        remarks += [remark for script in found for remark in _lint(script)]
    return Linted(tuple(sorted(remarks, key=lambda each: (each.file, each.line, each.rule))), count)


def lint_checks(checks: Sequence[Check]) -> list[Remark]:
    """Checks whose file is not at hand: lines are those of the script, and its key stands for the file."""
    return [remark for check in checks for remark in _lint(_of_check(check, check.where))]


def _lint(script: _Script) -> Iterator[Remark]:
    for found in lint(script.text, open_libs=script.open_libs, purpose=script.purpose):
        line = found.line + script.offset
        yield Remark(script.file, line, found.rule, found.severity, found.message, found.advice, script.place)


def _scripts_in(path: Path, *, open_libs: bool) -> tuple[list[_Script], list[Remark]]:
    if path.is_dir():
        if not is_tree(path):
            raise UserError("there is no rule in it; name a script, or a folder with health.lua", where=str(path))
        return _tree(path)
    if path.suffix == ".lua" or (path.suffix not in MANIFESTS and path.name != "-"):
        return [_Script(named(path), read_text(path), _purpose(path), open_libs)], []
    return _embedded(path)


def _tree(folder: Path) -> tuple[list[_Script], list[Remark]]:
    found: list[_Script] = []
    remarks: list[Remark] = []
    for file in sorted(folder.rglob("*")):
        if file.suffix == ".lua" and "testdata" not in file.parts:
            purpose = _purpose(file)
            # argo: scripts that come with it have all libraries, but for actions
            found.append(_Script(str(file), read_text(file), purpose, purpose != "action"))
        elif file.name == "health.yaml" and (file.parent / "health_test.yaml").exists():
            remarks += _table(file)
    return found, remarks


def _table(file: Path) -> Iterator[Remark]:
    try:
        table = load(read_text(file))
        if not isinstance(table, dict):
            raise UserError("the table is no mapping; write conditions, phases and otherwise")
        to_lua(file.parent.name, table)
    except UserError as error:
        what, _, advice = str(error).partition("; ")
        yield Remark(str(file), 1, "AGY401", ERROR, what, advice)


def _purpose(file: Path) -> Purpose:
    if file.name == "discovery.lua":
        return "discovery"
    return "action" if file.name == "action.lua" else "health"


def _embedded(file: Path) -> tuple[list[_Script], list[Remark]]:
    """Checks and actions in settings."""
    text, name = read_text(file), named(file)
    manifests = read_manifests(text, where=name)
    if not any(map(holds_settings, manifests)):
        what = "holds neither a script nor settings; name a .lua file, argocd-cm or an ArgoCD resource"
        raise UserError(what, where=name)
    lines = [line.strip() for line in text.splitlines()]
    settings = from_manifests(manifests)
    scripts = [_of_check(check, name) for check in settings.checks]
    scripts += [script for actions in settings.actions for script in _of_actions(actions, name)]
    placed = [replace(script, offset=_offset(script.text, lines)) for script in scripts]
    return placed, [_of_fault(fault, name, lines) for fault in settings.faults]


def _of_check(check: Check, file: str) -> _Script:
    return _Script(file, check.script, "health", check.open_libs, check.where)


def _of_actions(actions: ActionsCheck, file: str) -> Iterator[_Script]:
    if actions.discovery:
        yield _Script(file, actions.discovery, "discovery", False, f"{actions.where} discovery.lua")
    for name, text in actions.definitions.items():
        yield _Script(file, text, "action", False, f"{actions.where} {name}")


def _offset(script: str, lines: Sequence[str]) -> int:
    """How many lines stand before a script in its file: a block of YAML keeps the lines as they are, but indented."""
    wanted = [line.strip() for line in script.strip("\n").splitlines()]
    skipped = len(script) - len(script.lstrip("\n"))
    for start in range(len(lines) - len(wanted) + 1):
        if lines[start : start + len(wanted)] == wanted:
            return start - skipped
    return 0


def _of_fault(fault: str, file: str, lines: Sequence[str]) -> Remark:
    place, _, rest = fault.partition(": ")
    what, _, advice = _RULE.sub("", rest).partition("; ")
    rule = _RULE.search(fault)
    key = place.split(" ")[-1]
    line = next((number for number, text in enumerate(lines, 1) if key and key in text), 1)
    return Remark(file, line, rule[1] if rule else "AGY406", ERROR, what, advice, place)
