"""Finds health checks in live settings that are unmodified argosy checks and need no warning.

In: a settings manifest. Out: the locations of its bundled checks. Never: takes an edited check for a bundled one.
"""

from __future__ import annotations

from functools import cache

from argosy.gitops.health.bundled_rules import list_profiles, load_bundled_rules, load_profile_rules
from argosy.gitops.health.setting_kind_names import render_kind
from argosy.gitops.health.settings import read_manifests
from argosy.kube.objects import Manifest


def find_unmodified_bundled_checks(manifest: Manifest) -> frozenset[str]:
    """Return the places of checks that argosy installed, as remarks name them."""
    checks = read_manifests([manifest]).checks
    return frozenset(check.where for check in checks if check.script.strip() in _bundled_scripts(check.pattern))


@cache
def _bundled_scripts(pattern: str) -> frozenset[str]:
    rules = (load_bundled_rules(), *(load_profile_rules(profile) for profile in list_profiles()))
    return frozenset(
        rule.script.strip() for by_kind in rules for kind, rule in by_kind.items() if render_kind(*kind) == pattern
    )
