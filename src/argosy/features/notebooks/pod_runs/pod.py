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
from argosy.features.notebooks.environment import WORKSPACE, variables
from argosy.features.notebooks.job import Job, Mount, Notebook
from argosy.features.notebooks.pod_runs import runner_archive
from argosy.features.notebooks.pod_runs.objects import ERRAND, metadata
from argosy.features.notebooks.run_backend import RunKey, pod_name
from argosy.features.notebooks.runner.order import Order
from argosy.kube.objects import Manifest

GIT_IMAGE: Final = "quay.io/takinosh/git-init-rhel9:latest"
HOME: Final = "/home/jovyan"
RUNNER_AT, ORDER_AT, CREDENTIALS_AT = "/opt/argosy/runner", "/opt/argosy/order", "/opt/argosy/git"
GIVEN, GIVEN_AT = "argosy-given", "/opt/argosy/given"
RUNNER, ORDER, GIT, GOLDEN_GIT = "argosy-runner", "argosy-order", "argosy-git", "argosy-golden-git"
CLONE, GOLDEN_CLONE, VALIDATOR = "git-clone", "golden-git-clone", "validator"
GRACE: Final = 900.0  # seconds beyond the job's timeout, which excludes image pulls and clones: a last resort
STOP: Final = 10  # seconds that a cancelled run gets to stop
SANDBOX: Final = "sandbox.argosy.dev/"
RESTRICTED: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}

Fields = dict[str, Any]


def pod(job: Job, run: RunKey) -> Manifest:
    about = metadata(job, run)
    about["annotations"] |= _for_the_sandbox(job)
    init = [_clone(job, CLONE, job.notebook, f"{WORKSPACE}/repo", GIT)]
    if job.golden is not None:
        init.append(_clone(job, GOLDEN_CLONE, job.golden, f"{WORKSPACE}/golden", GOLDEN_GIT))
    spec: Fields = {
        "restartPolicy": "Never",
        "serviceAccountName": job.account,
        "activeDeadlineSeconds": math.ceil(job.timeout + GRACE),
        "terminationGracePeriodSeconds": STOP,
        "enableServiceLinks": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "initContainers": [*init, *(_given(each) for each in job.init_containers)],
        "containers": [_validator(job)],
        "volumes": _volumes(job),
        **job.placing,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}


def errand(job: Job) -> str:
    """Input of the runner: the run request with paths inside the Pod, and reporting settings."""
    order = Order(
        notebook=f"{WORKSPACE}/repo/{job.notebook.path}", named=job.notebook.path,
        golden=f"{WORKSPACE}/golden/{job.golden.path}" if job.golden else "",
        output=f"{WORKSPACE}/output.ipynb", results=f"{WORKSPACE}/results.json", events=f"{WORKSPACE}/events.jsonl",
        parameters=dict(job.parameters), timeout_seconds=job.timeout, comparison=dict(job.comparison),
        validation=dict(job.validation),
    )  # fmt: skip
    claims = job.claims()
    written = [each.path for each in job.mounts if each.volume in claims and not each.read_only]
    mounted = {each.name for each in job.volumes if each.kind == "secret"}
    secrets = [each.path for each in job.mounts if each.volume in mounted] + [GIVEN_AT] * bool(_given_secrets(job))
    told = {"report": pod_name(job.name), "claims": written, "secrets": secrets}
    return json.dumps({"order": json.loads(order.dump()), **told})


# -- containers


def _clone(job: Job, name: str, notebook: Notebook, folder: str, credentials: str) -> Fields:
    mounts = [_mount(RUNNER, RUNNER_AT), _mount(ORDER, ORDER_AT), {"name": "workspace", "mountPath": WORKSPACE}]
    env = {"HOME": "/tmp", "SETTINGS": ORDER_AT}  # noqa: S108  # private to the container
    if notebook.secret:
        mounts.append(_mount(credentials, CREDENTIALS_AT))
        env["CREDENTIALS"] = CREDENTIALS_AT
    words = [_literal(each) for each in (notebook.url, notebook.ref, folder, notebook.path)]
    return {
        "name": name, "image": os.environ.get("GIT_INIT_IMAGE") or GIT_IMAGE,
        "command": ["/bin/sh", f"{RUNNER_AT}/{runner_archive.CLONE}"], "args": words, "env": _env(env),
        "volumeMounts": mounts, "securityContext": RESTRICTED, "terminationMessagePolicy": "FallbackToLogsOnError",
        **_resources(job),
    }  # fmt: skip


def _validator(job: Job) -> Fields:
    own = {str(each.get("name")) for each in job.env}
    env = [each for each in _env(variables(job)) if each["name"] not in own]
    mounts = [
        {"name": "workspace", "mountPath": WORKSPACE}, {"name": "jovyan-home", "mountPath": HOME},
        _mount(RUNNER, RUNNER_AT), _mount(ORDER, ORDER_AT),
        *(_mount(f"{GIVEN}-{number}", f"{GIVEN_AT}/{number}") for number, _ in enumerate(_given_secrets(job))),
        *(_mounted(each) for each in job.mounts),
    ]  # fmt: skip
    return {
        "name": VALIDATOR, "image": job.image, "workingDir": WORKSPACE,
        "command": ["python3", f"{RUNNER_AT}/{runner_archive.RUNNER}", f"{ORDER_AT}/{ERRAND}"],
        "env": [*env, *(dict(each) for each in job.env)], "envFrom": [dict(each) for each in job.env_from],
        "volumeMounts": mounts, "securityContext": RESTRICTED, "terminationMessagePolicy": "FallbackToLogsOnError",
        **_resources(job),
    }  # fmt: skip


def _given(container: Any) -> Fields:
    """A user's init container; its securityContext is kept but cannot weaken the restricted one."""
    return {**container, "securityContext": {**(container.get("securityContext") or {}), **RESTRICTED}}


def _resources(job: Job) -> Fields:
    """For all containers: they run one after another, so that the Pod needs no more."""
    return {"resources": dict(job.resources)} if job.resources else {}


def _literal(text: str) -> str:
    """k8s: `$(NAME)` in an argument would be expanded."""
    return text.replace("$", "$$")


def _env(values: dict[str, str]) -> list[Fields]:
    return [{"name": name, "value": _literal(value)} for name, value in values.items()]


# -- volumes


def _volumes(job: Job) -> list[Fields]:
    secrets = {GIT: job.notebook.secret, GOLDEN_GIT: job.golden.secret if job.golden else ""}
    return [
        {"name": "workspace", "emptyDir": {}},
        {"name": "jovyan-home", "emptyDir": {}},
        {"name": RUNNER, "configMap": {"name": runner_archive.name()}},
        {"name": ORDER, "configMap": {"name": pod_name(job.name)}},
        *({"name": name, "secret": {"secretName": secret}} for name, secret in secrets.items() if secret),
        *({"name": f"{GIVEN}-{number}", "secret": each} for number, each in enumerate(_given_secrets(job))),
        *({"name": each.name, each.kind: dict(each.source)} for each in job.volumes),
    ]


def _given_secrets(job: Job) -> list[Fields]:
    """Secrets used as variables, also mounted as files, so that the runner can redact their values."""
    found: dict[str, set[str]] = {}
    for each in job.env:
        if reference := (each.get("valueFrom") or {}).get("secretKeyRef"):
            found.setdefault(str(reference.get("name")), set()).add(str(reference.get("key")))
    whole = {str(each["secretRef"].get("name")): None for each in job.env_from if each.get("secretRef")}
    parts: list[Fields] = [
        {"secretName": name, "items": [{"key": key, "path": str(number)} for number, key in enumerate(sorted(keys))]}
        for name, keys in found.items() if name not in whole
    ]  # fmt: skip
    # Optional here: a missing Secret already fails as a variable.
    all_of: list[Fields] = [{"secretName": name} for name in whole]
    return [{**each, "optional": True} for each in (*all_of, *parts)]


def _mount(volume: str, path: str) -> Fields:
    return {"name": volume, "mountPath": path, "readOnly": True}


def _mounted(mount: Mount) -> Fields:
    found: Fields = {"name": mount.volume, "mountPath": mount.path}
    if mount.sub_path:
        found["subPath"] = mount.sub_path
    return {**found, "readOnly": True} if mount.read_only else found


def _for_the_sandbox(job: Job) -> dict[str, str]:
    """Annotations for the sandbox's simulators; without effect on a real cluster."""
    return {name: text for name, text in job.annotations.items() if name.startswith(SANDBOX) and name != SIMULATED}
