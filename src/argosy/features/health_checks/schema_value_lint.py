"""Lint rule for comparisons with values that the schema of the kind excludes; suggests a bundled script.

In: a script and its kind. Out: findings. Never: reads a schema from a cluster; guesses a kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from argosy.gitops.health.bundled_rules import list_profiles_of_kind, load_profile_rules
from argosy.gitops.health.lint.finding import LintFinding
from argosy.gitops.health.lint.values_outside_schema_enum import check_schema_values, find_enum, list_fields_read
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema.bundled_crds import list_definition_names, load_definition


def lint_schema_values(script: str, kind: GroupKind | None) -> Iterator[LintFinding]:
    schema = _find_schema(kind) if kind else None
    if kind is None or schema is None:
        return
    findings = list(check_schema_values(script, schema, kind.kind))
    offer = _render_profile_suggestion(script, kind, schema) if findings else ""
    for finding in findings:
        yield replace(finding, advice=f"{finding.advice}{offer}")


def read_kind_from_path(file: Path) -> GroupKind | None:
    """Read the kind from Argo CD's folder layout, GROUP/KIND/health.lua."""
    return GroupKind(file.parent.parent.name, file.parent.name) if file.name == "health.lua" else None


@cache
def _find_schema(kind: GroupKind) -> Mapping[str, Any] | None:
    """Return the schema of the stored version of a custom kind that argosy knows."""
    for name in list_definition_names():
        if name.partition(".")[2] != kind.group:  # a definition is called PLURAL.GROUP
            continue
        spec = load_definition(name)["spec"]
        if spec["names"]["kind"] == kind.kind:
            stored = next(version for version in spec["versions"] if version["storage"])
            schema: Mapping[str, Any] = stored["schema"]["openAPIV3Schema"]
            return schema
    return None


def _render_profile_suggestion(script: str, kind: GroupKind, schema: Mapping[str, Any]) -> str:
    """Name the bundled profile that reads most of the fields with an enum that the script reads."""
    enum_paths = {path for path in list_fields_read(script) if find_enum(schema, path)}
    shared = {
        profile: len(enum_paths & list_fields_read(load_profile_rules(profile)[kind].script))
        for profile in list_profiles_of_kind(kind)
    }
    best = max(shared, key=lambda profile: shared[profile], default="")
    if not shared.get(best):
        return ""
    return f"; argosy health show {kind.kind} --profile {best} prints a script that does"
