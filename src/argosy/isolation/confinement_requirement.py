"""Decides whether confinement is required, and which required protections are missing.

In: the variable ARGOSY_CONFINE, and a report of the protections in force. Out: the missing protections, as text.
Never: starts or confines anything; requires optional protections (namespaces, cgroups, a tmpfs).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as in __init__
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

VARIABLE = "ARGOSY_CONFINE"
REQUIRED, BEST_EFFORT = "required", "best-effort"
MODES = (REQUIRED, BEST_EFFORT)
POD_VARIABLE = "KUBERNETES_SERVICE_HOST"  # k8s: set in every Pod
REFUSAL = "confinement is required, but this machine cannot confine"
ADVICE = (
    "run argosy on Linux 5.13 or later with Landlock and seccomp, on x86_64 or aarch64 with a Python of 64 bits, "
    f"or set {VARIABLE}={BEST_EFFORT} to run such code with the protections that are there"
)


def read_mode(environment: Mapping[str, str] | None = None) -> str:
    """Return the mode of the variable; if it is not set, `required` in a Pod and `best-effort` elsewhere.

    An unknown value counts as `required`: a typo must not disable protection.
    """
    values = os.environ if environment is None else environment
    value = values.get(VARIABLE, "").strip().lower()
    if value:
        return value if value in MODES else REQUIRED
    return REQUIRED if values.get(POD_VARIABLE) else BEST_EFFORT


def describe_invalid_mode(environment: Mapping[str, str] | None = None) -> str:
    """Return the error message for an unknown mode; empty if the variable is valid or not set."""
    values = os.environ if environment is None else environment
    value = values.get(VARIABLE, "").strip()
    if not value or value.lower() in MODES:
        return ""
    return f"{VARIABLE}={value[:40]} is invalid; set {VARIABLE} to {' or '.join(MODES)}, or unset it for the default"


def is_required() -> bool:
    return read_mode() == REQUIRED


def find_missing_protections(report: Mapping[str, Any]) -> list[str]:
    """List required protections that are not in force; `report` has the fields of limits.Confinement."""
    missing = []
    if not report["landlock"] and not report["own_root"]:
        missing.append("files (neither Landlock nor a root folder of its own)")
    if report["network"] == "open":
        missing.append("network (neither a network namespace nor a seccomp filter nor Landlock of Linux 6.7 or later)")
    if report["unix_sockets"] == "open":
        missing.append("Unix sockets (neither a root folder of its own nor a seccomp filter that refuses them)")
    if not report["seccomp"]:
        missing.append("system calls (no seccomp filter)")
    return missing


def render_refusal(missing: list[str]) -> str:
    """Return the error message: which protections are missing, and what to do."""
    return f"{REFUSAL} {'; '.join(missing)}: {ADVICE}"
