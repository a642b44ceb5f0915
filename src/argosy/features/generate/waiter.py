"""Job that blocks a sync, and its RBAC. In: the script and the wave. Out: manifests. Never: builds a Job without a
deadline, or RBAC in the wave of the Job or later."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from argosy.annotations import HOOK, HOOK_DELETE_POLICY, SYNC_WAVE
from argosy.errors import UserError
from argosy.kube.objects import Manifest
from argosy.kube.schema.name_syntax import dns_label, dns_subdomain

RIGHTS_COME_WAVES_EARLIER: Final = 3
SECONDS_TO_START: Final = 300  # a Pod whose image cannot be pulled runs no script, so the Job needs its own deadline
NOT_OURS: Final = "default"  # the service account of every namespace, which must not be managed from Git
LONGEST_WAIT: Final = 7 * 24 * 3600  # seconds; more is a typing error, and Kubernetes rejects much larger numbers
LARGEST_WAVE: Final = 10**6  # leaves space for earlier waves: Argo CD treats an unreadable wave as 0
SHOWN: Final = 100  # characters of user input in a message

_HOST = r"[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?(:[0-9]{1,5})?/"
_PART = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
is_tag: Final = re.compile(_TAG, re.ASCII).fullmatch
_is_image: Final = re.compile(
    rf"(?=.{{1,512}}\Z)({_HOST})?{_PART}(/{_PART})*(:{_TAG})?(@sha256:[0-9a-f]{{64}})?", re.ASCII
).fullmatch


@dataclass(frozen=True)
class Waiter:
    """The Job; the script gets user input only through `environment`, so that it never becomes shell code."""

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
        raise UserError(f"{flag} {value!r} is not a valid Kubernetes name: {complaints[0]}; choose another")


def check_image(flag: str, value: str) -> None:
    if not _is_image(value):
        wrong = f"{flag} {value[:SHOWN]!r} is not a valid image"
        raise UserError(f"{wrong}; write HOST/PATH:TAG or HOST/PATH@sha256:DIGEST")


def check_seconds(flag: str, value: int) -> None:
    if not 1 <= value <= LONGEST_WAIT:
        shown = str(value) if abs(value) < 10**12 else "with so many digits"
        raise UserError(f"{flag} {shown} is not a valid time; expected seconds, 1 to {LONGEST_WAIT}")


def check_wave(flag: str, value: int) -> None:
    if abs(value) > LARGEST_WAVE:
        raise UserError(f"{flag} is not a valid wave; expected a number from -{LARGEST_WAVE} to {LARGEST_WAVE}")
