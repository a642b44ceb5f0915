"""Failure categories of a run, for programs and people to group by.

In: nothing. Out: the names that validation Pods of the original operator report, and a few more. Never: decides which
category applies.
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
INTERRUPTED: Final = "interrupted"  # by the user who started it; never the result of a job
CATEGORIES: Final = (
    CONFIGURATION, DEPENDENCY, ENVIRONMENT, EXECUTION, TIMEOUT, GOLDEN, FINDINGS, STDERR, WARNINGS, STRICT,
    INFRASTRUCTURE, CLONE, CREDENTIALS, CREATION,
)  # fmt: skip
