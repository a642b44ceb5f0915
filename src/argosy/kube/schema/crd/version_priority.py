"""Versions of custom kinds: their order of preference, and the deprecation warning."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")


def version_sort_key(version: str) -> tuple[int, int, int, str]:
    """k8s: stable versions first, then beta, then alpha, each from newest to oldest; then other names in text order."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    major, stage, minor = match.groups()
    return ({None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), version)


def format_deprecation_warning(spec: Mapping[str, Any], version: Mapping[str, Any]) -> str:
    """Return the Warning header for responses in a deprecated version, "" if the version is not deprecated."""
    if version.get("deprecated") is not True:
        return ""
    if version.get("deprecationWarning"):
        return str(version["deprecationWarning"])
    group, kind, version_name = spec["group"], spec["names"]["kind"], version["name"]
    newer_versions = [
        other_version["name"]
        for other_version in spec["versions"]
        if other_version.get("served")
        and not other_version.get("deprecated")
        and version_sort_key(other_version["name"]) < version_sort_key(version_name)
    ]
    advice = f"; use {group}/{min(newer_versions, key=version_sort_key)} {kind}" if newer_versions else ""
    return f"{group}/{version_name} {kind} is deprecated{advice}"
