"""Builds the Pod of a run.

In: a job, a run. Out: a manifest that a restricted namespace admits. Never: contains a credential, or shell text made
of user input; sets a fixed user; grants a permission that the job's ServiceAccount does not have.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any, Final

from argosy.annotations import SIMULATED
from argosy.features.notebooks.notebook_validation_job_parser import JobMount, NotebookJob, NotebookLocation
from argosy.features.notebooks.pod_runs import runner_archive_config_map
from argosy.features.notebooks.pod_runs.object_metadata import INPUT_FILE, build_metadata
from argosy.features.notebooks.run_backend import RunKey, build_pod_name
from argosy.features.notebooks.runner.run_request import RunRequest
from argosy.features.notebooks.standard_environment_variables import WORKSPACE, build_variables
from argosy.kube.objects import Manifest

GIT_IMAGE: Final = "quay.io/takinosh/git-init-rhel9:latest"
HOME: Final = "/home/jovyan"
RUNNER_PATH, INPUT_PATH, CREDENTIALS_PATH = "/opt/argosy/runner", "/opt/argosy/order", "/opt/argosy/git"
SECRETS_VOLUME_PREFIX, SECRETS_PATH = "argosy-given", "/opt/argosy/given"
RUNNER_VOLUME, INPUT_VOLUME, GIT_VOLUME, GOLDEN_GIT_VOLUME = (
    "argosy-runner",
    "argosy-order",
    "argosy-git",
    "argosy-golden-git",
)
CLONE_CONTAINER, GOLDEN_CLONE_CONTAINER, VALIDATOR_CONTAINER = "git-clone", "golden-git-clone", "validator"
# Seconds beyond the job's timeout, which excludes image pulls and clones: a last resort.
DEADLINE_GRACE_SECONDS: Final = 900.0
TERMINATION_GRACE_SECONDS: Final = 10  # seconds that a cancelled run gets to stop
SANDBOX_PREFIX: Final = "sandbox.argosy.dev/"
RESTRICTED_SECURITY_CONTEXT: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}

Fields = dict[str, Any]


def build_pod(job: NotebookJob, run: RunKey) -> Manifest:
    pod_metadata = build_metadata(job, run)
    pod_metadata["annotations"] |= _copy_sandbox_annotations(job)
    init_containers = [_build_clone_container(job, CLONE_CONTAINER, job.notebook, f"{WORKSPACE}/repo", GIT_VOLUME)]
    if job.golden is not None:
        init_containers.append(
            _build_clone_container(job, GOLDEN_CLONE_CONTAINER, job.golden, f"{WORKSPACE}/golden", GOLDEN_GIT_VOLUME)
        )
    spec: Fields = {
        "restartPolicy": "Never",
        "serviceAccountName": job.service_account,
        "activeDeadlineSeconds": math.ceil(job.timeout + DEADLINE_GRACE_SECONDS),
        "terminationGracePeriodSeconds": TERMINATION_GRACE_SECONDS,
        "enableServiceLinks": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "initContainers": [
            *init_containers,
            *(_restrict_user_container(container) for container in job.init_containers),
        ],
        "containers": [_build_validator_container(job)],
        "volumes": _build_volumes(job),
        **job.scheduling,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": pod_metadata, "spec": spec}


def build_runner_input(job: NotebookJob) -> str:
    """Input of the runner: the run request with paths inside the Pod, and reporting settings."""
    request = RunRequest(
        notebook=f"{WORKSPACE}/repo/{job.notebook.path}", named=job.notebook.path,
        golden=f"{WORKSPACE}/golden/{job.golden.path}" if job.golden else "",
        output=f"{WORKSPACE}/output.ipynb", results=f"{WORKSPACE}/results.json", events=f"{WORKSPACE}/events.jsonl",
        parameters=dict(job.parameters), timeout_seconds=job.timeout, comparison=dict(job.comparison),
        validation=dict(job.validation),
    )  # fmt: skip
    claims = job.map_claims()
    writable_paths = [entry.path for entry in job.mounts if entry.volume in claims and not entry.read_only]
    secret_volumes = {entry.name for entry in job.volumes if entry.kind == "secret"}
    secrets = [entry.path for entry in job.mounts if entry.volume in secret_volumes] + [SECRETS_PATH] * bool(
        _list_variable_secrets(job)
    )
    reporting = {"report": build_pod_name(job.name), "claims": writable_paths, "secrets": secrets}
    return json.dumps({"order": json.loads(request.to_json()), **reporting})


# -- containers


def _build_clone_container(
    job: NotebookJob, name: str, notebook: NotebookLocation, folder: str, credentials: str
) -> Fields:
    mounts = [
        _build_read_only_mount(RUNNER_VOLUME, RUNNER_PATH),
        _build_read_only_mount(INPUT_VOLUME, INPUT_PATH),
        {"name": "workspace", "mountPath": WORKSPACE},
    ]
    env = {"HOME": "/tmp", "SETTINGS": INPUT_PATH}  # noqa: S108  # private to the container
    if notebook.secret:
        mounts.append(_build_read_only_mount(credentials, CREDENTIALS_PATH))
        env["CREDENTIALS"] = CREDENTIALS_PATH
    arguments = [_escape_variables(argument) for argument in (notebook.url, notebook.ref, folder, notebook.path)]
    return {
        "name": name,
        "image": os.environ.get("GIT_INIT_IMAGE") or GIT_IMAGE,
        "command": ["/bin/sh", f"{RUNNER_PATH}/{runner_archive_config_map.CLONE_SCRIPT_KEY}"],
        "args": arguments,
        "env": _build_env(env),
        "volumeMounts": mounts,
        "securityContext": RESTRICTED_SECURITY_CONTEXT,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **_build_resources(job),
    }


def _build_validator_container(job: NotebookJob) -> Fields:
    own_names = {str(entry.get("name")) for entry in job.env}
    env = [entry for entry in _build_env(build_variables(job)) if entry["name"] not in own_names]
    mounts = [
        {"name": "workspace", "mountPath": WORKSPACE},
        {"name": "jovyan-home", "mountPath": HOME},
        _build_read_only_mount(RUNNER_VOLUME, RUNNER_PATH),
        _build_read_only_mount(INPUT_VOLUME, INPUT_PATH),
        *(
            _build_read_only_mount(f"{SECRETS_VOLUME_PREFIX}-{number}", f"{SECRETS_PATH}/{number}")
            for number, _ in enumerate(_list_variable_secrets(job))
        ),
        *(_build_mount(entry) for entry in job.mounts),
    ]
    return {
        "name": VALIDATOR_CONTAINER,
        "image": job.image,
        "workingDir": WORKSPACE,
        "command": ["python3", f"{RUNNER_PATH}/{runner_archive_config_map.ARCHIVE_KEY}", f"{INPUT_PATH}/{INPUT_FILE}"],
        "env": [*env, *(dict(entry) for entry in job.env)],
        "envFrom": [dict(entry) for entry in job.env_from],
        "volumeMounts": mounts,
        "securityContext": RESTRICTED_SECURITY_CONTEXT,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **_build_resources(job),
    }


def _restrict_user_container(container: Any) -> Fields:
    """A user's init container; its securityContext is kept but cannot weaken the restricted one."""
    return {**container, "securityContext": {**(container.get("securityContext") or {}), **RESTRICTED_SECURITY_CONTEXT}}


def _build_resources(job: NotebookJob) -> Fields:
    """For all containers: they run one after another, so that the Pod needs no more."""
    return {"resources": dict(job.resources)} if job.resources else {}


def _escape_variables(text: str) -> str:
    """k8s: `$(NAME)` in an argument would be expanded."""
    return text.replace("$", "$$")


def _build_env(values: dict[str, str]) -> list[Fields]:
    return [{"name": name, "value": _escape_variables(value)} for name, value in values.items()]


# -- volumes


def _build_volumes(job: NotebookJob) -> list[Fields]:
    secrets = {GIT_VOLUME: job.notebook.secret, GOLDEN_GIT_VOLUME: job.golden.secret if job.golden else ""}
    return [
        {"name": "workspace", "emptyDir": {}},
        {"name": "jovyan-home", "emptyDir": {}},
        {"name": RUNNER_VOLUME, "configMap": {"name": runner_archive_config_map.build_config_map_name()}},
        {"name": INPUT_VOLUME, "configMap": {"name": build_pod_name(job.name)}},
        *({"name": name, "secret": {"secretName": secret}} for name, secret in secrets.items() if secret),
        *(
            {"name": f"{SECRETS_VOLUME_PREFIX}-{number}", "secret": entry}
            for number, entry in enumerate(_list_variable_secrets(job))
        ),
        *({"name": entry.name, entry.kind: dict(entry.source)} for entry in job.volumes),
    ]


def _list_variable_secrets(job: NotebookJob) -> list[Fields]:
    """Secrets used as variables, also mounted as files, so that the runner can redact their values."""
    keys_by_secret: dict[str, set[str]] = {}
    for entry in job.env:
        if reference := (entry.get("valueFrom") or {}).get("secretKeyRef"):
            keys_by_secret.setdefault(str(reference.get("name")), set()).add(str(reference.get("key")))
    full_secrets = {str(entry["secretRef"].get("name")): None for entry in job.env_from if entry.get("secretRef")}
    partial_sources: list[Fields] = [
        {"secretName": name, "items": [{"key": key, "path": str(number)} for number, key in enumerate(sorted(keys))]}
        for name, keys in keys_by_secret.items() if name not in full_secrets
    ]  # fmt: skip
    # Optional here: a missing Secret already fails as a variable.
    full_sources: list[Fields] = [{"secretName": name} for name in full_secrets]
    return [{**entry, "optional": True} for entry in (*full_sources, *partial_sources)]


def _build_read_only_mount(volume: str, path: str) -> Fields:
    return {"name": volume, "mountPath": path, "readOnly": True}


def _build_mount(mount: JobMount) -> Fields:
    mount_fields: Fields = {"name": mount.volume, "mountPath": mount.path}
    if mount.sub_path:
        mount_fields["subPath"] = mount.sub_path
    return {**mount_fields, "readOnly": True} if mount.read_only else mount_fields


def _copy_sandbox_annotations(job: NotebookJob) -> dict[str, str]:
    """Annotations for the sandbox's simulators; without effect on a real cluster."""
    return {
        name: text for name, text in job.annotations.items() if name.startswith(SANDBOX_PREFIX) and name != SIMULATED
    }
