"""Diagnoses why a Pod failed or does not start.

In: a live Pod. Out: an outcome with a message and whether a retry may help, or what the Pod waits for. Never: treats a
Pod without results as a passed notebook; reads reasons from logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from argosy.features.notebooks.pod_runs.validation_pod_manifest import (
    CLONE_CONTAINER,
    GOLDEN_CLONE_CONTAINER,
    VALIDATOR_CONTAINER,
)
from argosy.features.notebooks.run_backend import RunOutcome
from argosy.features.notebooks.runner import failure_category_names
from argosy.kube.objects import Manifest
from argosy.observability.redaction.text_redaction import redact

GIT_REFUSED, GIT_FAILED = "git_authentication_failed", "git_clone_failed"
# Exit codes of clone.sh: category, retriable
CLONE_EXIT_CODES: Final = {
    10: (GIT_REFUSED, False),
    11: (GIT_FAILED, False),
    12: (GIT_FAILED, True),
    13: (GIT_FAILED, False),
}
COMMAND_NOT_FOUND_CODES: Final = (126, 127)
KILLED_EXIT_CODES: Final = (137, 143)
IMAGE_PULL_REASONS: Final = ("ImagePullBackOff", "ErrImagePull", "ImageInspectError", "RegistryUnavailable")
INVALID_IMAGE_REASONS: Final = ("InvalidImageName", "ErrImageNeverPull")
CREATION_ERROR_REASONS: Final = (
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
)
SECURITY_WORDS: Final = ("runasnonroot", "run as non-root", "run as root", "scc", "security context", "forbidden")
CREATION_GRACE_SECONDS: Final = 120.0  # seconds that container creation may fail: images or Secrets may appear
_MAX_TEXT_CHARACTERS: Final = 500


def diagnose_failed_pod(pod: Manifest) -> RunOutcome:
    """Outcome of a failed Pod whose validator reported no results."""
    status = pod.get("status") or {}
    reason = str(status.get("reason") or "")
    if reason == "DeadlineExceeded":
        seconds = pod["spec"].get("activeDeadlineSeconds")
        return RunOutcome(
            False, f"the Pod did not finish within {seconds} s; allow more time", failure_category_names.TIMEOUT
        )
    for name, terminated, is_init in _iterate_terminated(status):
        if int(terminated.get("exitCode") or 0):
            return _diagnose_container(pod, name, terminated, is_init)
    message = _redact_and_truncate(status.get("message") or reason or "no reason given")
    return _build_lost_outcome(f"the Pod was terminated from outside: {message}")


def diagnose_silent_pod(pod: Manifest) -> RunOutcome:
    """Outcome of a Pod that succeeded without reporting results."""
    return _build_lost_outcome(
        "the Pod succeeded but reported no results; runner replaced, or termination message lost"
    )


def _diagnose_container(pod: Manifest, name: str, terminated: Manifest, is_init: bool) -> RunOutcome:
    code, reason, message_text = (
        int(terminated["exitCode"]),
        str(terminated.get("reason") or ""),
        _redact_and_truncate(terminated.get("message") or ""),
    )
    if reason == "OOMKilled":
        limit = _find_memory_limit(pod, name)
        limit_text = f"the memory limit of {limit}" if limit else "the available memory"
        container_text = "the notebook" if name == VALIDATOR_CONTAINER else f"container {name}"
        advice = "raise podConfig.resources.limits.memory, or use less memory"
        return RunOutcome(
            False, f"{container_text} used more than {limit_text}; {advice}", failure_category_names.EXECUTION
        )
    if reason in ("ContainerCannotRun", "StartError") or code in COMMAND_NOT_FOUND_CODES:
        required_programs = (
            "git and sh"
            if name in (CLONE_CONTAINER, GOLDEN_CLONE_CONTAINER)
            else "python3"
            if name == VALIDATOR_CONTAINER
            else "its command"
        )
        suffix = f": {message_text}" if message_text else ""
        message = f"container {name} cannot run: its image must contain {required_programs}{suffix}"
        return RunOutcome(False, message, failure_category_names.ENVIRONMENT)
    if name in (CLONE_CONTAINER, GOLDEN_CLONE_CONTAINER) and code in CLONE_EXIT_CODES:
        category, is_retriable = CLONE_EXIT_CODES[code]
        return RunOutcome(False, f"{name}: {message_text or f'git exited with {code}'}", category, is_retriable)
    if code in KILLED_EXIT_CODES:
        return _build_lost_outcome(
            f"container {name} was killed (exit code {code}); its Node may be out of memory, or was drained"
        )
    container_text = "init container" if is_init else "container"
    suffix = f": {message_text}" if message_text else "; see its logs"
    return RunOutcome(
        False, f"{container_text} {name} exited with code {code}{suffix}", failure_category_names.ENVIRONMENT
    )


# -- pending Pods


def diagnose_pending_pod(
    pod: Manifest, waited_seconds: float, max_wait_seconds: float
) -> tuple[RunOutcome | None, str]:
    """Outcome if waiting longer for a pending Pod is pointless, and the reason why it waits."""
    status = pod.get("status") or {}
    for name, waiting in _iterate_waiting(status):
        reason, message = str(waiting.get("reason") or ""), _redact_and_truncate(waiting.get("message") or "")
        reason_text = f"container {name}: {reason}" + (f": {message}" if message else "")
        if reason in INVALID_IMAGE_REASONS:
            return RunOutcome(
                False, f"{reason_text}; correct the image name", failure_category_names.CONFIGURATION
            ), reason_text
        if reason in CREATION_ERROR_REASONS and any(word in message.lower() for word in SECURITY_WORDS):
            advice = "use an image that does not run as root"
            return RunOutcome(False, f"{reason_text}; {advice}", failure_category_names.ENVIRONMENT), reason_text
        if reason in (*IMAGE_PULL_REASONS, *CREATION_ERROR_REASONS):
            is_overdue = waited_seconds > CREATION_GRACE_SECONDS
            return (
                RunOutcome(False, reason_text, failure_category_names.ENVIRONMENT, retriable=True)
                if is_overdue
                else None
            ), reason_text
    message = _find_scheduling_message(status)
    if waited_seconds > max_wait_seconds:
        return _build_lost_outcome(
            f"the Pod did not start within {max_wait_seconds:g} s: {message or 'no reason given'}"
        ), message
    return None, message


def _find_scheduling_message(status: Manifest) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return (
                f"{condition.get('reason') or 'Unschedulable'}: {_redact_and_truncate(condition.get('message') or '')}"
            )
    return ""


# -- helpers


def _build_lost_outcome(message: str) -> RunOutcome:
    return RunOutcome(False, message, failure_category_names.INFRASTRUCTURE, retriable=True)


def _iterate_terminated(status: Manifest) -> Iterator[tuple[str, Manifest, bool]]:
    for field, is_init in (("initContainerStatuses", True), ("containerStatuses", False)):
        for container_status in status.get(field) or ():
            if terminated := (container_status.get("state") or {}).get("terminated"):
                yield str(container_status.get("name")), terminated, is_init


def _iterate_waiting(status: Manifest) -> Iterator[tuple[str, Manifest]]:
    for field in ("initContainerStatuses", "containerStatuses"):
        for container_status in status.get(field) or ():
            if waiting := (container_status.get("state") or {}).get("waiting"):
                yield str(container_status.get("name")), waiting


def _find_memory_limit(pod: Manifest, name: str) -> str:
    for field in ("initContainers", "containers"):
        for container in pod["spec"].get(field) or ():
            if container["name"] == name:
                return str(((container.get("resources") or {}).get("limits") or {}).get("memory") or "")
    return ""


def _redact_and_truncate(text: Any) -> str:
    """Collapse to one redacted line."""
    return redact(" ".join(str(text).split()))[:_MAX_TEXT_CHARACTERS]
