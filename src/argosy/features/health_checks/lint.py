"""Lint of health scripts and settings. In: paths. Out: remarks with file and line. Never: runs a script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from argosy.errors import UserError
from argosy.features.health_checks.input_files import (
    MANIFEST_SUFFIXES,
    STDIN_PATH,
    is_rule_tree,
    list_manifest_files,
    load_text,
    render_file_name,
)
from argosy.features.health_checks.located_manifests import LocatedManifest, ManifestText
from argosy.features.health_checks.schema_value_lint import lint_schema_values, read_kind_from_path
from argosy.gitops.health.argocd_cm_entries_with_locations import has_settings
from argosy.gitops.health.lint import lint_script
from argosy.gitops.health.lint.finding import ScriptPurpose
from argosy.gitops.health.setting_fault_and_location import SettingFault, SettingLocation
from argosy.gitops.health.setting_kind_names import has_wildcard
from argosy.gitops.health.settings import DISCOVERY_FIELD, CustomActions, Customizations, read_manifests
from argosy.gitops.health.table_rule_compiler import table_to_lua
from argosy.kube.objects import read_yaml
from argosy.kube.resource_key import GroupKind

ERROR_SEVERITY: Final = "error"
CONFLICT_RULE: Final = "AGY405"
# Text that occurs in manifests and not in scripts
_MANIFEST_PATTERN: Final = re.compile(
    r'^\s*(?:\{\s*)?(?:"(?:apiVersion|kind|items)"\s*:|(?:apiVersion|kind|items):(?:\s|$))', re.MULTILINE
)


@dataclass(frozen=True)
class HealthLintRemark:
    """One lint remark; `place` is the key of a script that is embedded in a larger file."""

    file: str
    line: int
    rule: str
    severity: str
    message: str
    advice: str
    place: str = ""

    def to_wire(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "line": self.line,
            "rule": self.rule,
            "severity": self.severity,
            "message": self.message,
            "advice": self.advice,
            "place": self.place,
        }


class LintedScript(NamedTuple):
    """A script that was linted."""

    file: str
    place: str
    purpose: ScriptPurpose
    pattern: str = ""  # kinds of the script, if settings or folders define them


@dataclass(frozen=True)
class LintResult:
    remarks: tuple[HealthLintRemark, ...] = ()
    linted_scripts: tuple[LintedScript, ...] = ()
    problems: tuple[UserError, ...] = ()  # unreadable files

    @property
    def script_count(self) -> int:
        return len(self.linted_scripts)

    def count(self, severity: str) -> int:
        return sum(remark.severity == severity for remark in self.remarks)

    def list_script_remarks(self, script: LintedScript) -> list[HealthLintRemark]:
        """List the remarks on one script."""
        return [remark for remark in self.remarks if (remark.file, remark.place) == (script.file, script.place)]

    def list_settings_remarks(self) -> list[HealthLintRemark]:
        """List the remarks that belong to no script."""
        script_places = {(item.file, item.place) for item in self.linted_scripts}
        return [item for item in self.remarks if (item.file, item.place) not in script_places]


class _ScriptToLint(NamedTuple):
    linted_script: LintedScript
    text: str
    open_libs: bool
    located: LocatedManifest | None = None  # the manifest that contains the script
    path: tuple[str | int, ...] = ()

    def lint(self) -> Iterator[HealthLintRemark]:
        file, place, purpose, pattern = self.linted_script
        kind = _parse_concrete_kind(pattern) if pattern else read_kind_from_path(Path(file))
        general_findings = lint_script(self.text, open_libs=self.open_libs, purpose=purpose, kind=kind)
        findings = [*general_findings, *lint_schema_values(self.text, kind)]
        for lint_finding in sorted(findings, key=lambda finding: finding.line):
            located = self.located
            line = located.find_text_line(self.path, lint_finding.line) if located else lint_finding.line
            yield HealthLintRemark(
                file, line, lint_finding.rule, lint_finding.severity, lint_finding.message, lint_finding.advice, place
            )


def lint_paths(paths: Sequence[Path], *, open_libs: bool) -> LintResult:
    """Lint all scripts and settings in the paths."""
    parts: list[LintResult] = []
    settings: list[LocatedManifest] = []
    problems: list[UserError] = []
    for path in paths:
        has_content, problem_count = False, len(problems)
        for item in _list_items(path, open_libs):
            try:
                part, item_settings = _lint_item(item)
            except UserError as error:
                problems.append(error)
                continue
            parts.append(part)
            settings += item_settings
            has_content = has_content or bool(part.linted_scripts or part.remarks or item_settings or item.is_table)
        if not has_content and path != STDIN_PATH and path.is_dir() and len(problems) == problem_count:
            problem = "contains no script; name a script or a folder with scripts"
            problems.append(UserError(problem, where=str(path)))
    if len(problems) == 1 and not any(part.linted_scripts or part.remarks for part in parts):
        raise problems[0]
    return _merge_results(parts, settings, problems)


def _merge_results(
    parts: Sequence[LintResult], settings: Sequence[LocatedManifest], problems: Sequence[UserError]
) -> LintResult:
    remarks = {remark: None for part in parts for remark in part.remarks}
    # Files of several installations may be named together, so only conflicts are reported across files.
    remarks |= {remark: None for remark in lint_settings(settings).remarks if remark.rule == CONFLICT_RULE}
    sorted_remarks = tuple(sorted(remarks, key=lambda item: (item.file, item.line, item.rule)))
    return LintResult(
        sorted_remarks, tuple(script for part in parts for script in part.linted_scripts), tuple(problems)
    )


def lint_settings(located: Sequence[LocatedManifest]) -> LintResult:
    """Lint the combined settings of these manifests: their scripts, and faults in the settings."""
    settings = read_manifests([item.manifest for item in located])
    scripts = list(_list_embedded_scripts(settings, located))
    remarks = [remark for script in scripts for remark in script.lint()]
    remarks += [build_fault_remark(fault, located) for fault in settings.problems]
    sorted_remarks = sorted(remarks, key=lambda item: (item.file, item.line, item.rule))
    return LintResult(tuple(sorted_remarks), tuple(script.linted_script for script in scripts))


def build_fault_remark(fault: SettingFault, located: Sequence[LocatedManifest]) -> HealthLintRemark:
    problem, _, advice = fault.text.partition("; ")
    located_manifest = located[fault.location.manifest]
    path = fault.location.path
    line = located_manifest.find_text_line(path, fault.line) if fault.line else located_manifest.find_field_line(path)
    return HealthLintRemark(located_manifest.file, line, fault.rule, fault.severity, problem, advice, fault.where)


class _LintItem(NamedTuple):
    """A file to lint; a file that was not named explicitly may contain nothing to lint."""

    file: Path
    open_libs: bool
    is_named: bool = False
    is_table: bool = False
    pattern: str = ""  # group/Kind, by the folders of a tree


def _list_items(path: Path, open_libs: bool) -> Iterator[_LintItem]:
    if path == STDIN_PATH or not path.is_dir():
        yield _LintItem(path, open_libs, is_named=True)
    elif is_rule_tree(path):
        for file in sorted(path.rglob("*")):
            if file.suffix == ".lua" and "testdata" not in file.parts:
                # argo: its bundled scripts have all libraries, except for actions
                pattern = "/".join(file.parent.absolute().parts[-2:])
                yield _LintItem(file, _find_purpose(file) != "action", pattern=pattern)
            elif file.name == "health.yaml" and (file.parent / "health_test.yaml").exists():
                yield _LintItem(file, True, is_table=True)
    else:
        for file in [*sorted(path.rglob("*.lua")), *list_manifest_files(path)]:
            yield _LintItem(file, open_libs)


def _lint_item(item: _LintItem) -> tuple[LintResult, list[LocatedManifest]]:
    file, text = item.file, load_text(item.file)
    if item.is_table:
        return LintResult(tuple(_lint_table(file, text))), []
    is_script = file.suffix not in MANIFEST_SUFFIXES if file != STDIN_PATH else _MANIFEST_PATTERN.search(text) is None
    if is_script:
        return _lint_script(
            _ScriptToLint(
                LintedScript(render_file_name(file), "", _find_purpose(file), item.pattern), text, item.open_libs
            )
        ), []
    if not item.is_named and not _MANIFEST_PATTERN.search(text):
        return LintResult(), []
    settings_manifests = [
        located
        for located in ManifestText(render_file_name(file), text).list_manifests()
        if has_settings(located.manifest)
    ]
    if not settings_manifests and item.is_named:
        problem = "contains neither a script nor settings; name a .lua file, argocd-cm or an ArgoCD resource"
        raise UserError(problem, where=render_file_name(file))
    return lint_settings(settings_manifests), settings_manifests


def _lint_script(script: _ScriptToLint) -> LintResult:
    return LintResult(tuple(script.lint()), (script.linted_script,))


def _lint_table(file: Path, text: str) -> Iterator[HealthLintRemark]:
    try:
        table = read_yaml(text)
        if not isinstance(table, dict):
            raise UserError("the table is not a map; write conditions, phases and otherwise")
        table_to_lua(file.parent.name, table)
    except UserError as error:
        problem, _, advice = str(error).partition("; ")
        yield HealthLintRemark(str(file), 1, "AGY401", ERROR_SEVERITY, problem, advice)


def _parse_concrete_kind(pattern: str) -> GroupKind | None:
    """Return the kind of a pattern, or None if the pattern has a wildcard."""
    if not pattern or has_wildcard(pattern):
        return None
    group, _, kind = pattern.rpartition("/")
    return GroupKind(group, kind)


def _find_purpose(file: Path) -> ScriptPurpose:
    if file.name == "discovery.lua":
        return "discovery"
    return "action" if file.name == "action.lua" else "health"


def _list_embedded_scripts(settings: Customizations, located: Sequence[LocatedManifest]) -> Iterator[_ScriptToLint]:
    """Yield the check and action scripts in settings."""
    for check in settings.checks:
        located_manifest = located[check.location.manifest]
        linted_script = LintedScript(located_manifest.file, check.where, "health", check.pattern)
        yield _ScriptToLint(linted_script, check.script, check.open_libs, located_manifest, check.location.path)
    for actions in settings.actions:
        for name, purpose, text in _list_action_scripts(actions):
            place: SettingLocation = actions.locations[name]
            located_manifest = located[place.manifest]
            linted_script = LintedScript(located_manifest.file, f"{actions.where} {name}", purpose, actions.pattern)
            yield _ScriptToLint(linted_script, text, False, located_manifest, place.path)


def _list_action_scripts(actions: CustomActions) -> Iterator[tuple[str, ScriptPurpose, str]]:
    if actions.discovery:
        yield DISCOVERY_FIELD, "discovery", actions.discovery
    for name, text in actions.definitions.items():
        yield name, "action", text
