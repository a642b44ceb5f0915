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
from argosy.features.health_checks.sources import Located, Source
from argosy.gitops.analysis.violation import Place, Severity, Sight
from argosy.gitops.health.settings import from_manifests
from argosy.gitops.health.settings_location import holds_settings
from argosy.gitops.workspace.manifest_files import MOST_BYTES, File, below, shown
from argosy.kube.objects.field_lines import Lines, find_duplicate_keys

if TYPE_CHECKING:
    from argosy.features.health_checks.lint import Remark
    from argosy.features.notebooks.files.lint import Remark as NotebookRemark

_NOTEBOOK: Final = ".ipynb"
_SETTINGS: Final = (b"argocd-cm", b"argosy-cm", b"ArgoCD")


def told_by_others(
    files: Sequence[File], paths: Sequence[str], rendered: Container[str] = ()
) -> Mapping[str, tuple[Sight, ...]]:
    """`rendered` are the paths of files that renders read."""
    found: dict[str, list[Sight]] = defaultdict(list)
    for remark in _of_settings(files):
        place = Place(remark.file, remark.line)
        severity = Severity(remark.severity)
        sight = Sight(place, remark.message, remark.advice or "correct it", remark.place, severity=severity)
        found[remark.rule].append(sight)
    for rule, sight in _of_notebooks(paths):
        found[rule].append(sight)
    found["AGY154"] += _duplicate_keys(file for file in files if file.is_for_kubernetes or file.path in rendered)
    return {rule: tuple(sights) for rule, sights in found.items()}


def _duplicate_keys(files: Iterable[File]) -> Iterator[Sight]:
    for file in files:
        if not file.documents:
            continue  # a template, or not YAML
        for duplicate in find_duplicate_keys(file.text.decode("utf-8", "replace")):
            key = ".".join(duplicate.path)
            message = (
                f"duplicate key {key}, first set in line {duplicate.first_line}; only one of the two values is used"
            )
            place = Place(shown(file.path), duplicate.line)
            yield Sight(place, message, "keep one of them", field=f"{key} (line {duplicate.first_line})")


def _of_settings(files: Sequence[File]) -> Iterator[Remark]:
    """Lint each file separately, because a repository may hold several installations."""
    for file in files:
        if any(word in file.text for word in _SETTINGS):
            try:
                held: list[Located] = [
                    each
                    for each in Source(shown(file.path), file.text.decode("utf-8", "replace")).located()
                    if holds_settings(each.manifest)
                ]
                if held:
                    yield from _linted(held)
                    yield from _hiding(held)
            except ArgosyError:
                continue  # a template, or a patch


def _linted(held: Sequence[Located]) -> Sequence[Remark]:
    from argosy.features.health_checks.lint import (
        lint_settings,  # imported late: the Lua parser is large, and few files hold settings
    )

    return lint_settings(held).remarks


def _hiding(held: Sequence[Located]) -> Iterator[Remark]:
    """Report health checks that override a built-in check that knows more."""
    from argosy.features.health_checks.comparison import hidden_by, judged_by_more
    from argosy.features.health_checks.lint import Remark
    from argosy.features.health_checks.service import Workbench

    checks = judged_by_more(from_manifests([each.manifest for each in held]))
    if not checks:
        return
    with Workbench(lambda text: None) as bench:
        for check, of in checks:
            rule, _, text = hidden_by(bench, check, of).partition(": ")
            if rule:
                message, _, advice = text.partition("; ")
                at = held[check.place.manifest]
                yield Remark(at.file, at.line(check.place.path), rule, str(Severity.INFO), message, advice, check.where)


def _of_notebooks(paths: Sequence[str]) -> Iterator[tuple[str, Sight]]:
    from argosy.features.notebooks.files import lint
    from argosy.features.notebooks.files.notebook_file import read
    from argosy.features.notebooks.runner.order import Validation

    for typed in paths:
        real = os.path.realpath(typed)
        for path in below(real, (_NOTEBOOK,)) if os.path.isdir(real) else [real] if real.endswith(_NOTEBOOK) else []:
            if os.path.getsize(path) > MOST_BYTES * 16:
                continue
            try:
                notebook = read(Path(path))
                remarks = lint.lint(shown(path), notebook, Validation.of({}))
                remarks += lint.saved_failures(shown(path), notebook)
            except ArgosyError:
                continue
            lines = Lines(Path(path).read_text(errors="replace"))
            for each in remarks:
                if each.finding.category in lint.RULES:
                    yield each.rule, _sight(each, lines)
                elif each.finding.category in lint.SURE:
                    yield each.rule, _sight(each, lines)._replace(severity=None)


def _sight(remark: NotebookRemark, lines: Lines) -> Sight:
    found = remark.finding
    line = 0
    if found.cell >= 0:
        line = lines.of_field(0, ("cells", found.cell, "source", max(found.line - 1, 0)))
    subject = f"cell {found.cell}" if found.cell >= 0 else ""
    message = f"{subject} {found.message}".strip()
    fix = found.suggestion or "correct it"
    return Sight(Place(remark.file, line), message, fix, subject, found.category, Severity(found.severity))
