"""Runs the tests of health rules and actions, in Argo CD's folder layout, as Argo CD's own tests do.

In: a folder, or a script and manifests. Out: a result per test case. Never: runs a script in this process, skips a
case silently, or reads a file outside the folder.
"""

from __future__ import annotations

from argosy.gitops.health.test_suite.case_collection import build_script_suite, collect_cases
from argosy.gitops.health.test_suite.case_types import (
    ActionTestCase,
    CaseResult,
    DiscoveryTestCase,
    HealthTestCase,
    RuleTestCase,
    RuleTestSuite,
)
from argosy.gitops.health.test_suite.report import build_report, render_junit, render_line
from argosy.gitops.health.test_suite.run import run_suite

__all__ = [
    "ActionTestCase",
    "CaseResult",
    "DiscoveryTestCase",
    "HealthTestCase",
    "RuleTestCase",
    "RuleTestSuite",
    "build_report",
    "build_script_suite",
    "collect_cases",
    "render_junit",
    "render_line",
    "run_suite",
]
