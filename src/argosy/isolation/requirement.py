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
    chosen = values.get(VARIABLE, "").strip().lower()
    if chosen:
        return chosen if chosen in MODES else REQUIRED
    return REQUIRED if values.get(POD_VARIABLE) else BEST_EFFORT


def find_invalid_mode(environment: Mapping[str, str] | None = None) -> str:
    """Return the error message for an unknown mode; empty if the variable is valid or not set."""
    values = os.environ if environment is None else environment
    given = values.get(VARIABLE, "").strip()
    if not given or given.lower() in MODES:
        return ""
    return f"{VARIABLE}={given[:40]} is invalid; set {VARIABLE} to {' or '.join(MODES)}, or unset it for the default"


def is_required() -> bool:
    return read_mode() == REQUIRED


def find_lacking(report: Mapping[str, Any]) -> list[str]:
    """List required protections that are not in force; `report` has the fields of limits.Confinement."""
    lacking = []
    if not report["landlock"] and not report["own_root"]:
        lacking.append("files (neither Landlock nor a root folder of its own)")
    if report["network"] == "open":
        lacking.append("network (neither a network namespace nor a seccomp filter nor Landlock of Linux 6.7 or later)")
    if report["unix_sockets"] == "open":
        lacking.append("Unix sockets (neither a root folder of its own nor a seccomp filter that refuses them)")
    if not report["seccomp"]:
        lacking.append("system calls (no seccomp filter)")
    return lacking


def render_refusal(lacking: list[str]) -> str:
    """Return the error message: which protections are missing, and what to do."""
    return f"{REFUSAL} {'; '.join(lacking)}: {ADVICE}"
