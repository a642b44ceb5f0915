"""Why a run failed, in one word: what programs and people sort by.

In: nothing. Out: names, which validation Pods have always told, and a few more. Never: decides which one fits.
"""

from __future__ import annotations

from typing import Final

CONFIGURATION: Final = "configuration_error"
DEPENDENCY: Final = "dependency_install_failed"
ENVIRONMENT: Final = "environment_setup_failed"
EXECUTION: Final = "notebook_execution_failed"
TIMEOUT: Final = "notebook_timeout"
GOLDEN: Final = "golden_comparison_failed"
FINDINGS: Final = "validation_findings"
STDERR: Final = "validation_stderr_failure"
WARNINGS: Final = "validation_warning_failure"
STRICT: Final = "validation_strict_mode_failure"
INFRASTRUCTURE: Final = "infrastructure_error"
CLONE: Final = "git_clone_failed"
CREDENTIALS: Final = "git_authentication_failed"
CREATION: Final = "pod_creation_failed"
INTERRUPTED: Final = "interrupted"  # by the person who started it; no job ends so
CATEGORIES: Final = (
    CONFIGURATION, DEPENDENCY, ENVIRONMENT, EXECUTION, TIMEOUT, GOLDEN, FINDINGS, STDERR, WARNINGS, STRICT,
    INFRASTRUCTURE, CLONE, CREDENTIALS, CREATION,
)  # fmt: skip
