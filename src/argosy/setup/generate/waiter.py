"""A Job that holds up a sync, and the rights it needs. In: what to run and when. Out: manifests. Never: a Job without
an end, or rights that come in the wave of the Job or after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from argosy.model.annotations import HOOK, HOOK_DELETE_POLICY, SYNC_WAVE
from argosy.model.errors import UserError
from argosy.model.manifest import Manifest
from argosy.schema.syntax import dns_label, dns_subdomain

RIGHTS_COME_WAVES_EARLIER: Final = 3
SECONDS_TO_START: Final = 300  # a Pod whose image cannot be pulled runs no script, so the Job needs an end of its own
NOT_OURS: Final = "default"  # the service account that every namespace has; nobody should manage it from Git


@dataclass(frozen=True)
class Waiter:
    """`environment` is all that the script knows: no text of a user becomes shell code."""

    name: str
    namespace: str
    wave: int
    service_account: str
    container: str
    image: str
    script: str
    environment: Mapping[str, str]
    timeout: int
    keeps_finished: int | None = None


def script(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def job(waiter: Waiter) -> Manifest:
    spec: dict[str, Any] = {
        "activeDeadlineSeconds": waiter.timeout + SECONDS_TO_START,
        "backoffLimit": 0,
        "template": {
            "spec": {
                "serviceAccountName": waiter.service_account,
                "restartPolicy": "Never",
                "containers": [_container(waiter)],
            }
        },
    }
    if waiter.keeps_finished is not None:
        spec["ttlSecondsAfterFinished"] = waiter.keeps_finished
    # argo: waves order within a phase only, so what waits for an object of the Sync phase is a hook of that phase
    annotations = {SYNC_WAVE: str(waiter.wave), HOOK: "Sync", HOOK_DELETE_POLICY: "BeforeHookCreation"}
    metadata = {"name": waiter.name, "namespace": waiter.namespace, "annotations": annotations}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _container(waiter: Waiter) -> dict[str, Any]:
    return {
        "name": waiter.container,
        "image": waiter.image,
        "command": ["/bin/bash", "-c"],
        "args": [waiter.script],
        "env": [{"name": name, "value": value} for name, value in waiter.environment.items()],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def rights(waiter: Waiter, rules: Sequence[Mapping[str, Any]]) -> list[Manifest]:
    """A ServiceAccount with a Role, waves before the Job. The Role has the Job's name, so that two Jobs can share the
    account."""
    account = {"kind": "ServiceAccount", "name": waiter.service_account, "namespace": waiter.namespace}
    group = "rbac.authorization.k8s.io"
    made: list[Manifest] = []
    if waiter.service_account != NOT_OURS:
        made.append({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _early(waiter, waiter.service_account)})
    version = f"{group}/v1"
    bound = {"apiGroup": group, "kind": "Role", "name": waiter.name}
    made.append({"apiVersion": version, "kind": "Role", "metadata": _early(waiter, waiter.name), "rules": list(rules)})
    made.append(
        {
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": _early(waiter, waiter.name),
            "roleRef": bound,
            "subjects": [account],
        }
    )
    return made


def _early(waiter: Waiter, name: str) -> dict[str, Any]:
    wave = {SYNC_WAVE: str(waiter.wave - RIGHTS_COME_WAVES_EARLIER)}
    return {"name": name, "namespace": waiter.namespace, "annotations": wave}


def check_label(flag: str, value: str) -> None:
    _check(flag, value, dns_label(value))


def check_name(flag: str, value: str) -> None:
    _check(flag, value, dns_subdomain(value))


def _check(flag: str, value: str, complaints: Sequence[str]) -> None:
    if complaints:
        raise UserError(f"{flag} {value!r} is no name that Kubernetes takes: {complaints[0]}; choose another")


def check_seconds(flag: str, value: int) -> None:
    if value < 1:
        raise UserError(f"{flag} {value} is no time to wait; give a number of seconds, at least 1")
