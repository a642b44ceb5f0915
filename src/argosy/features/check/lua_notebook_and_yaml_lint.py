"""Lists violations from other linters: health check scripts, notebooks, and duplicate keys in YAML files.

In: files and the given paths. Out: violations by rule. Never: runs a notebook; runs a script in this process, or a
script other than a health check of a kind for which argosy has its own check.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from argosy.errors import ArgosyError
from argosy.features.health_checks.located_manifests import LocatedManifest, ManifestText
from argosy.gitops.analysis.rule_violation import FileLocation, Severity, Violation
from argosy.gitops.health.argocd_cm_entries_with_locations import has_settings
from argosy.gitops.health.settings import read_manifests
from argosy.gitops.workspace.manifest_files import MAX_FILE_BYTES, YamlFile, list_files, relative_path
from argosy.kube.objects.field_lines import FieldLines, find_duplicate_keys

if TYPE_CHECKING:
    from argosy.features.health_checks.lint import HealthLintRemark
    from argosy.features.notebooks.files.lint import LintRemark as NotebookRemark

_NOTEBOOK_SUFFIX: Final = ".ipynb"
_SETTINGS_MARKERS: Final = (b"argocd-cm", b"argosy-cm", b"ArgoCD")


def list_other_linter_violations(
    files: Sequence[YamlFile], paths: Sequence[str], rendered: Container[str] = ()
) -> Mapping[str, tuple[Violation, ...]]:
    """`rendered` are the paths of files that renders read."""
    violations: dict[str, list[Violation]] = defaultdict(list)
    for remark in _iterate_settings_remarks(files):
        location = FileLocation(remark.file, remark.line)
        severity = Severity(remark.severity)
        violation = Violation(location, remark.message, remark.advice or "correct it", remark.place, severity=severity)
        violations[remark.rule].append(violation)
    for rule, violation in _iterate_notebook_violations(paths):
        violations[rule].append(violation)
    violations["AGY154"] += _iterate_duplicate_keys(
        file for file in files if file.is_for_kubernetes or file.path in rendered
    )
    return {rule: tuple(sights) for rule, sights in violations.items()}


def _iterate_duplicate_keys(files: Iterable[YamlFile]) -> Iterator[Violation]:
    for file in files:
        if not file.documents:
            continue  # a template, or not YAML
        for duplicate in find_duplicate_keys(file.text.decode("utf-8", "replace")):
            key = ".".join(duplicate.path)
            message = (
                f"duplicate key {key}, first set in line {duplicate.first_line}; only one of the two values is used"
            )
            location = FileLocation(relative_path(file.path), duplicate.line)
            yield Violation(location, message, "keep one of them", field=f"{key} (line {duplicate.first_line})")


def _iterate_settings_remarks(files: Sequence[YamlFile]) -> Iterator[HealthLintRemark]:
    """Lint each file separately, because a repository may hold several installations."""
    for file in files:
        if any(word in file.text for word in _SETTINGS_MARKERS):
            try:
                settings: list[LocatedManifest] = [
                    located
                    for located in ManifestText(
                        relative_path(file.path), file.text.decode("utf-8", "replace")
                    ).list_manifests()
                    if has_settings(located.manifest)
                ]
                if settings:
                    yield from _lint_settings(settings)
                    yield from _iterate_overriding_check_remarks(settings)
            except ArgosyError:
                continue  # a template, or a patch


def _lint_settings(settings: Sequence[LocatedManifest]) -> Sequence[HealthLintRemark]:
    from argosy.features.health_checks.lint import (
        lint_settings,  # imported late: the Lua parser is large, and few files hold settings
    )

    return lint_settings(settings).remarks


def _iterate_overriding_check_remarks(settings: Sequence[LocatedManifest]) -> Iterator[HealthLintRemark]:
    """Report health checks that override a built-in check that knows more."""
    from argosy.features.health_checks.confined_test_runner import HealthTestRunner
    from argosy.features.health_checks.default_rule_comparison import describe_lost_states, list_overriding_checks
    from argosy.features.health_checks.lint import HealthLintRemark

    checks = list_overriding_checks(read_manifests([located.manifest for located in settings]))
    if not checks:
        return
    with HealthTestRunner(lambda text: None) as bench:
        for check, builtin_check in checks:
            rule, _, text = describe_lost_states(bench, check, builtin_check).partition(": ")
            if rule:
                message, _, advice = text.partition("; ")
                location = settings[check.location.manifest]
                yield HealthLintRemark(
                    location.file,
                    location.find_field_line(check.location.path),
                    rule,
                    str(Severity.INFO),
                    message,
                    advice,
                    check.where,
                )


def _iterate_notebook_violations(paths: Sequence[str]) -> Iterator[tuple[str, Violation]]:
    from argosy.features.notebooks.files import lint
    from argosy.features.notebooks.files.notebook_file import load_notebook
    from argosy.features.notebooks.runner.run_request import ValidationConfig

    for given_path in paths:
        real = os.path.realpath(given_path)
        for path in (
            list_files(real, (_NOTEBOOK_SUFFIX,))
            if os.path.isdir(real)
            else [real]
            if real.endswith(_NOTEBOOK_SUFFIX)
            else []
        ):
            if os.path.getsize(path) > MAX_FILE_BYTES * 16:
                continue
            try:
                notebook = load_notebook(Path(path))
                remarks = lint.lint_notebook(relative_path(path), notebook, ValidationConfig.from_wire({}))
                remarks += lint.find_saved_failures(relative_path(path), notebook)
            except ArgosyError:
                continue
            lines = FieldLines(Path(path).read_text(errors="replace"))
            for remark in remarks:
                if remark.finding.category in lint.RULES:
                    yield remark.rule, _build_violation(remark, lines)
                elif remark.finding.category in lint.VISIBLE_FAILURES:
                    yield remark.rule, _build_violation(remark, lines)._replace(severity=None)


def _build_violation(remark: NotebookRemark, lines: FieldLines) -> Violation:
    finding = remark.finding
    line = 0
    if finding.cell >= 0:
        line = lines.find_field_line(0, ("cells", finding.cell, "source", max(finding.line - 1, 0)))
    subject = f"cell {finding.cell}" if finding.cell >= 0 else ""
    message = f"{subject} {finding.message}".strip()
    fix = finding.suggestion or "correct it"
    return Violation(
        FileLocation(remark.file, line), message, fix, subject, finding.category, Severity(finding.severity)
    )
