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
from argosy.kube.schema.name_label_address_syntax import check_dns_label, check_dns_subdomain

RBAC_WAVES_BEFORE_JOB: Final = 3
POD_START_SECONDS: Final = 300  # a Pod whose image cannot be pulled runs no script, so the Job needs its own deadline
DEFAULT_SERVICE_ACCOUNT: Final = "default"  # the service account of every namespace, which must not be managed from Git
MAX_WAIT_SECONDS: Final = 7 * 24 * 3600  # seconds; more is a typing error, and Kubernetes rejects much larger numbers
MAX_WAVE: Final = 10**6  # leaves space for earlier waves: Argo CD treats an unreadable wave as 0
MAX_SHOWN_CHARACTERS: Final = 100  # characters of user input in a message

_HOST = r"[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?(:[0-9]{1,5})?/"
_PART = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
is_tag: Final = re.compile(_TAG, re.ASCII).fullmatch
_is_image: Final = re.compile(
    rf"(?=.{{1,512}}\Z)({_HOST})?{_PART}(/{_PART})*(:{_TAG})?(@sha256:[0-9a-f]{{64}})?", re.ASCII
).fullmatch


@dataclass(frozen=True)
class WaitJob:
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
    finished_ttl_seconds: int | None = None


def load_script(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def build_job(wait_job: WaitJob) -> Manifest:
    spec: dict[str, Any] = {
        "activeDeadlineSeconds": wait_job.timeout + POD_START_SECONDS,
        "backoffLimit": 0,
        "template": {
            "spec": {
                "serviceAccountName": wait_job.service_account,
                "restartPolicy": "Never",
                "containers": [_build_container(wait_job)],
            }
        },
    }
    if wait_job.finished_ttl_seconds is not None:
        spec["ttlSecondsAfterFinished"] = wait_job.finished_ttl_seconds
    # argo: waves order within a phase only, so what waits for an object of the Sync phase is a hook of that phase
    annotations = {SYNC_WAVE: str(wait_job.wave), HOOK: "Sync", HOOK_DELETE_POLICY: "BeforeHookCreation"}
    metadata = {"name": wait_job.name, "namespace": wait_job.namespace, "annotations": annotations}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _build_container(wait_job: WaitJob) -> dict[str, Any]:
    return {
        "name": wait_job.container,
        "image": wait_job.image,
        "command": ["/bin/bash", "-c"],
        "args": [wait_job.script],
        "env": [{"name": name, "value": value} for name, value in wait_job.environment.items()],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def build_rbac(wait_job: WaitJob, rules: Sequence[Mapping[str, Any]]) -> list[Manifest]:
    """A ServiceAccount with a Role, waves before the Job. The Role has the Job's name, so that two Jobs can share the
    account."""
    account = {"kind": "ServiceAccount", "name": wait_job.service_account, "namespace": wait_job.namespace}
    group = "rbac.authorization.k8s.io"
    manifests: list[Manifest] = []
    if wait_job.service_account != DEFAULT_SERVICE_ACCOUNT:
        manifests.append(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": _build_early_metadata(wait_job, wait_job.service_account),
            }
        )
    version = f"{group}/v1"
    role_ref = {"apiGroup": group, "kind": "Role", "name": wait_job.name}
    manifests.append(
        {
            "apiVersion": version,
            "kind": "Role",
            "metadata": _build_early_metadata(wait_job, wait_job.name),
            "rules": list(rules),
        }
    )
    manifests.append(
        {
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": _build_early_metadata(wait_job, wait_job.name),
            "roleRef": role_ref,
            "subjects": [account],
        }
    )
    return manifests


def _build_early_metadata(wait_job: WaitJob, name: str) -> dict[str, Any]:
    wave = {SYNC_WAVE: str(wait_job.wave - RBAC_WAVES_BEFORE_JOB)}
    return {"name": name, "namespace": wait_job.namespace, "annotations": wave}


def check_dns_label_flag(flag: str, value: str) -> None:
    _raise_on_complaints(flag, value, check_dns_label(value))


def check_name(flag: str, value: str) -> None:
    _raise_on_complaints(flag, value, check_dns_subdomain(value))


def _raise_on_complaints(flag: str, value: str, complaints: Sequence[str]) -> None:
    if complaints:
        raise UserError(f"{flag} {value!r} is not a valid Kubernetes name: {complaints[0]}; choose another")


def check_image(flag: str, value: str) -> None:
    if not _is_image(value):
        problem = f"{flag} {value[:MAX_SHOWN_CHARACTERS]!r} is not a valid image"
        raise UserError(f"{problem}; write HOST/PATH:TAG or HOST/PATH@sha256:DIGEST")


def check_seconds(flag: str, value: int) -> None:
    if not 1 <= value <= MAX_WAIT_SECONDS:
        value_text = str(value) if abs(value) < 10**12 else "with so many digits"
        raise UserError(f"{flag} {value_text} is not a valid time; expected seconds, 1 to {MAX_WAIT_SECONDS}")


def check_wave(flag: str, value: int) -> None:
    if abs(value) > MAX_WAVE:
        raise UserError(f"{flag} is not a valid wave; expected a number from -{MAX_WAVE} to {MAX_WAVE}")
