"""Runs the tests of health rules and actions, in Argo CD's folder layout, as Argo CD's own tests do.

In: a folder, or a script and manifests. Out: a result per test case. Never: runs a script in this process, skips a
case silently, or reads a file outside the folder.
"""

from __future__ import annotations

from argosy.gitops.health.test_suite.case_collection import collect, script_cases
from argosy.gitops.health.test_suite.cases import ActionCase, Case, DiscoveryCase, HealthCase, Outcome, Suite
from argosy.gitops.health.test_suite.report import junit, line, report
from argosy.gitops.health.test_suite.run import run

__all__ = [
    "ActionCase",
    "Case",
    "DiscoveryCase",
    "HealthCase",
    "Outcome",
    "Suite",
    "collect",
    "junit",
    "line",
    "report",
    "run",
    "script_cases",
]
