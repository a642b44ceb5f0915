"""Diagnoses why a Pod failed or does not start.

In: a live Pod. Out: an outcome with a message and whether a retry may help, or what the Pod waits for. Never: treats a
Pod without results as a passed notebook; reads reasons from logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from argosy.features.notebooks.pod_runs.pod import CLONE, GOLDEN_CLONE, VALIDATOR
from argosy.features.notebooks.redaction import redact
from argosy.features.notebooks.run_backend import Outcome
from argosy.features.notebooks.runner import categories
from argosy.kube.objects import Manifest

GIT_REFUSED, GIT_FAILED = "git_authentication_failed", "git_clone_failed"
# Exit codes of clone.sh: category, retriable
CLONED: Final = {10: (GIT_REFUSED, False), 11: (GIT_FAILED, False), 12: (GIT_FAILED, True), 13: (GIT_FAILED, False)}
NO_PROGRAM: Final = (126, 127)
KILLED: Final = (137, 143)
NOT_PULLED: Final = ("ImagePullBackOff", "ErrImagePull", "ImageInspectError", "RegistryUnavailable")
NEVER_PULLED: Final = ("InvalidImageName", "ErrImageNeverPull")
NOT_MADE: Final = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff")
SECURITY: Final = ("runasnonroot", "run as non-root", "run as root", "scc", "security context", "forbidden")
PATIENCE: Final = 120.0  # seconds that container creation may fail: images or Secrets may appear
_LONGEST: Final = 500


def failed(pod: Manifest) -> Outcome:
    """Outcome of a failed Pod whose validator reported no results."""
    status = pod.get("status") or {}
    reason = str(status.get("reason") or "")
    if reason == "DeadlineExceeded":
        seconds = pod["spec"].get("activeDeadlineSeconds")
        return Outcome(False, f"the Pod did not finish within {seconds} s; allow more time", categories.TIMEOUT)
    for name, ended, is_init in _ended(status):
        if int(ended.get("exitCode") or 0):
            return _of_container(pod, name, ended, is_init)
    said = _short(status.get("message") or reason or "no reason given")
    return _lost(f"the Pod was terminated from outside: {said}")


def silent(pod: Manifest) -> Outcome:
    """Outcome of a Pod that succeeded without reporting results."""
    return _lost("the Pod succeeded but reported no results; runner replaced, or termination message lost")


def _of_container(pod: Manifest, name: str, ended: Manifest, is_init: bool) -> Outcome:
    code, reason, said = int(ended["exitCode"]), str(ended.get("reason") or ""), _short(ended.get("message") or "")
    if reason == "OOMKilled":
        limit = _memory(pod, name)
        allowed = f"the memory limit of {limit}" if limit else "the available memory"
        which = "the notebook" if name == VALIDATOR else f"container {name}"
        advice = "raise podConfig.resources.limits.memory, or use less memory"
        return Outcome(False, f"{which} used more than {allowed}; {advice}", categories.EXECUTION)
    if reason in ("ContainerCannotRun", "StartError") or code in NO_PROGRAM:
        lacks = "git and sh" if name in (CLONE, GOLDEN_CLONE) else "python3" if name == VALIDATOR else "its command"
        told = f": {said}" if said else ""
        message = f"container {name} cannot run: its image must contain {lacks}{told}"
        return Outcome(False, message, categories.ENVIRONMENT)
    if name in (CLONE, GOLDEN_CLONE) and code in CLONED:
        category, again = CLONED[code]
        return Outcome(False, f"{name}: {said or f'git exited with {code}'}", category, again)
    if code in KILLED:
        return _lost(f"container {name} was killed (exit code {code}); its Node may be out of memory, or was drained")
    which = "init container" if is_init else "container"
    told = f": {said}" if said else "; see its logs"
    return Outcome(False, f"{which} {name} exited with code {code}{told}", categories.ENVIRONMENT)


# -- pending Pods


def stuck(pod: Manifest, waited: float, most: float) -> tuple[Outcome | None, str]:
    """Outcome if waiting longer for a pending Pod is pointless, and the reason why it waits."""
    status = pod.get("status") or {}
    for name, waiting in _waiting(status):
        reason, said = str(waiting.get("reason") or ""), _short(waiting.get("message") or "")
        why = f"container {name}: {reason}" + (f": {said}" if said else "")
        if reason in NEVER_PULLED:
            return Outcome(False, f"{why}; correct the image name", categories.CONFIGURATION), why
        if reason in NOT_MADE and any(word in said.lower() for word in SECURITY):
            advice = "use an image that does not run as root"
            return Outcome(False, f"{why}; {advice}", categories.ENVIRONMENT), why
        if reason in (*NOT_PULLED, *NOT_MADE):
            over = waited > PATIENCE
            return (Outcome(False, why, categories.ENVIRONMENT, retriable=True) if over else None), why
    said = _unscheduled(status)
    if waited > most:
        return _lost(f"the Pod did not start within {most:g} s: {said or 'no reason given'}"), said
    return None, said


def _unscheduled(status: Manifest) -> str:
    for each in status.get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            return f"{each.get('reason') or 'Unschedulable'}: {_short(each.get('message') or '')}"
    return ""


# -- helpers


def _lost(message: str) -> Outcome:
    return Outcome(False, message, categories.INFRASTRUCTURE, retriable=True)


def _ended(status: Manifest) -> Iterator[tuple[str, Manifest, bool]]:
    for field, is_init in (("initContainerStatuses", True), ("containerStatuses", False)):
        for each in status.get(field) or ():
            if ended := (each.get("state") or {}).get("terminated"):
                yield str(each.get("name")), ended, is_init


def _waiting(status: Manifest) -> Iterator[tuple[str, Manifest]]:
    for field in ("initContainerStatuses", "containerStatuses"):
        for each in status.get(field) or ():
            if waiting := (each.get("state") or {}).get("waiting"):
                yield str(each.get("name")), waiting


def _memory(pod: Manifest, name: str) -> str:
    for field in ("initContainers", "containers"):
        for each in pod["spec"].get(field) or ():
            if each["name"] == name:
                return str(((each.get("resources") or {}).get("limits") or {}).get("memory") or "")
    return ""


def _short(text: Any) -> str:
    """Collapse to one redacted line."""
    return redact(" ".join(str(text).split()))[:_LONGEST]
