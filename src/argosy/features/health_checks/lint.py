"""Lint of health scripts and settings. In: paths. Out: remarks with file and line. Never: runs a script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from argosy.errors import UserError
from argosy.features.health_checks.inputs import MANIFESTS, STDIN, is_tree, manifest_files, named, read_text
from argosy.features.health_checks.schema_lint import kind_of_rule_file, lint_schema_values
from argosy.features.health_checks.sources import Located, Source
from argosy.gitops.health.kind_keys import is_wild
from argosy.gitops.health.lint import lint
from argosy.gitops.health.lint.finding import Purpose
from argosy.gitops.health.setting_error import Fault, Place
from argosy.gitops.health.settings import DISCOVERY, ActionsCheck, Customizations, from_manifests
from argosy.gitops.health.settings_location import holds_settings
from argosy.gitops.health.table_rules import to_lua
from argosy.kube.names import GroupKind
from argosy.kube.objects import load

ERROR: Final = "error"
DISAGREES: Final = "AGY405"
# Text that occurs in manifests and not in scripts
_MANIFEST: Final = re.compile(
    r'^\s*(?:\{\s*)?(?:"(?:apiVersion|kind|items)"\s*:|(?:apiVersion|kind|items):(?:\s|$))', re.MULTILINE
)


@dataclass(frozen=True)
class Remark:
    """One lint remark; `place` is the key of a script that is embedded in a larger file."""

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


class Looked(NamedTuple):
    """A script that was linted."""

    file: str
    place: str
    purpose: Purpose
    pattern: str = ""  # kinds of the script, if settings or folders define them


@dataclass(frozen=True)
class Linted:
    remarks: tuple[Remark, ...] = ()
    looked: tuple[Looked, ...] = ()
    problems: tuple[UserError, ...] = ()  # unreadable files

    @property
    def scripts(self) -> int:
        return len(self.looked)

    def count(self, severity: str) -> int:
        return sum(remark.severity == severity for remark in self.remarks)

    def of(self, looked: Looked) -> list[Remark]:
        """List the remarks on one script."""
        return [each for each in self.remarks if (each.file, each.place) == (looked.file, looked.place)]

    def of_settings(self) -> list[Remark]:
        """List the remarks that belong to no script."""
        places = {(each.file, each.place) for each in self.looked}
        return [each for each in self.remarks if (each.file, each.place) not in places]


class _Script(NamedTuple):
    looked: Looked
    text: str
    open_libs: bool
    at: Located | None = None  # the manifest that contains the script
    path: tuple[str | int, ...] = ()

    def remarks(self) -> Iterator[Remark]:
        file, place, purpose, pattern = self.looked
        kind = _find_kind(pattern) if pattern else kind_of_rule_file(Path(file))
        general = lint(self.text, open_libs=self.open_libs, purpose=purpose, kind=kind)
        findings = [*general, *lint_schema_values(self.text, kind)]
        for found in sorted(findings, key=lambda finding: finding.line):
            at = self.at
            line = at.line_in(self.path, found.line) if at else found.line
            yield Remark(file, line, found.rule, found.severity, found.message, found.advice, place)


def lint_paths(paths: Sequence[Path], *, open_libs: bool) -> Linted:
    """Lint all scripts and settings in the paths."""
    parts: list[Linted] = []
    settings: list[Located] = []
    problems: list[UserError] = []
    for path in paths:
        found, before = False, len(problems)
        for item in _items(path, open_libs):
            try:
                part, held = _lint_item(item)
            except UserError as error:
                problems.append(error)
                continue
            parts.append(part)
            settings += held
            found = found or bool(part.looked or part.remarks or held or item.is_table)
        if not found and path != STDIN and path.is_dir() and len(problems) == before:
            what = "contains no script; name a script or a folder with scripts"
            problems.append(UserError(what, where=str(path)))
    if len(problems) == 1 and not any(part.looked or part.remarks for part in parts):
        raise problems[0]
    return _together(parts, settings, problems)


def _together(parts: Sequence[Linted], settings: Sequence[Located], problems: Sequence[UserError]) -> Linted:
    remarks = {remark: None for part in parts for remark in part.remarks}
    # Files of several installations may be named together, so only conflicts are reported across files.
    remarks |= {remark: None for remark in lint_settings(settings).remarks if remark.rule == DISAGREES}
    ordered = tuple(sorted(remarks, key=lambda each: (each.file, each.line, each.rule)))
    return Linted(ordered, tuple(looked for part in parts for looked in part.looked), tuple(problems))


def lint_settings(located: Sequence[Located]) -> Linted:
    """Lint the combined settings of these manifests: their scripts, and faults in the settings."""
    settings = from_manifests([each.manifest for each in located])
    scripts = list(_embedded(settings, located))
    found = [remark for script in scripts for remark in script.remarks()]
    found += [remark_on(fault, located) for fault in settings.problems]
    ordered = sorted(found, key=lambda each: (each.file, each.line, each.rule))
    return Linted(tuple(ordered), tuple(script.looked for script in scripts))


def remark_on(fault: Fault, located: Sequence[Located]) -> Remark:
    what, _, advice = fault.text.partition("; ")
    at = located[fault.place.manifest]
    path = fault.place.path
    line = at.line_in(path, fault.line) if fault.line else at.line(path)
    return Remark(at.file, line, fault.rule, fault.severity, what, advice, fault.where)


class _Item(NamedTuple):
    """A file to lint; a file that was not named explicitly may contain nothing to lint."""

    file: Path
    open_libs: bool
    is_named: bool = False
    is_table: bool = False
    pattern: str = ""  # group/Kind, by the folders of a tree


def _items(path: Path, open_libs: bool) -> Iterator[_Item]:
    if path == STDIN or not path.is_dir():
        yield _Item(path, open_libs, is_named=True)
    elif is_tree(path):
        for file in sorted(path.rglob("*")):
            if file.suffix == ".lua" and "testdata" not in file.parts:
                # argo: its bundled scripts have all libraries, except for actions
                pattern = "/".join(file.parent.absolute().parts[-2:])
                yield _Item(file, _purpose(file) != "action", pattern=pattern)
            elif file.name == "health.yaml" and (file.parent / "health_test.yaml").exists():
                yield _Item(file, True, is_table=True)
    else:
        for file in [*sorted(path.rglob("*.lua")), *manifest_files(path)]:
            yield _Item(file, open_libs)


def _lint_item(item: _Item) -> tuple[Linted, list[Located]]:
    file, text = item.file, read_text(item.file)
    if item.is_table:
        return Linted(tuple(_table(file, text))), []
    is_script = file.suffix not in MANIFESTS if file != STDIN else _MANIFEST.search(text) is None
    if is_script:
        return _lint_script(_Script(Looked(named(file), "", _purpose(file), item.pattern), text, item.open_libs)), []
    if not item.is_named and not _MANIFEST.search(text):
        return Linted(), []
    held = [each for each in Source(named(file), text).located() if holds_settings(each.manifest)]
    if not held and item.is_named:
        what = "contains neither a script nor settings; name a .lua file, argocd-cm or an ArgoCD resource"
        raise UserError(what, where=named(file))
    return lint_settings(held), held


def _lint_script(script: _Script) -> Linted:
    return Linted(tuple(script.remarks()), (script.looked,))


def _table(file: Path, text: str) -> Iterator[Remark]:
    try:
        table = load(text)
        if not isinstance(table, dict):
            raise UserError("the table is not a map; write conditions, phases and otherwise")
        to_lua(file.parent.name, table)
    except UserError as error:
        what, _, advice = str(error).partition("; ")
        yield Remark(str(file), 1, "AGY401", ERROR, what, advice)


def _find_kind(pattern: str) -> GroupKind | None:
    """Return the kind of a pattern, or None if the pattern has a wildcard."""
    if not pattern or is_wild(pattern):
        return None
    group, _, kind = pattern.rpartition("/")
    return GroupKind(group, kind)


def _purpose(file: Path) -> Purpose:
    if file.name == "discovery.lua":
        return "discovery"
    return "action" if file.name == "action.lua" else "health"


def _embedded(settings: Customizations, located: Sequence[Located]) -> Iterator[_Script]:
    """Yield the check and action scripts in settings."""
    for check in settings.checks:
        at = located[check.place.manifest]
        looked = Looked(at.file, check.where, "health", check.pattern)
        yield _Script(looked, check.script, check.open_libs, at, check.place.path)
    for actions in settings.actions:
        for name, purpose, text in _of_actions(actions):
            place: Place = actions.places[name]
            at = located[place.manifest]
            looked = Looked(at.file, f"{actions.where} {name}", purpose, actions.pattern)
            yield _Script(looked, text, False, at, place.path)


def _of_actions(actions: ActionsCheck) -> Iterator[tuple[str, Purpose, str]]:
    if actions.discovery:
        yield DISCOVERY, "discovery", actions.discovery
    for name, text in actions.definitions.items():
        yield name, "action", text
