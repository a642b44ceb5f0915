"""Pod manifest of a notebook job: metadata, security context, volumes, environment and runner input."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from argosy.features.notebooks.notebook_validation_job_parser import read_job
from argosy.features.notebooks.pod_runs import runner_archive_config_map
from argosy.features.notebooks.pod_runs.validation_pod_manifest import build_runner_input
from argosy.features.notebooks.run_backend import build_pod_name
from argosy.features.notebooks.runner.run_request import RunRequest
from argosy.features.notebooks.spec_validation import RESERVED_VOLUME_NAMES, RESERVED_VOLUME_PREFIX
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import NOTEBOOK_JOB
from support.notebook_controller import NOTEBOOK, build_run_pod, job


def container(manifest: Manifest, name: str) -> Mapping[str, Any]:
    spec = manifest["spec"]
    return next(candidate for candidate in (*spec["initContainers"], *spec["containers"]) if candidate["name"] == name)


def values(one: Mapping[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable.get("value", "") for variable in one["env"]}


# -- Pod manifest ------------------------------------------------------------------------------------------------------


def test_pod_has_the_expected_name_labels_owner_and_run_annotation() -> None:
    metadata = build_run_pod()["metadata"]
    assert metadata["name"] == "train-validation"
    assert metadata["labels"] == {
        "app": "jupyter-notebook-validator",
        "notebookvalidationjob": "train",
        "app.kubernetes.io/name": "jupyter-notebook-validator-operator",
        "app.kubernetes.io/component": "validation-pod",
        "app.kubernetes.io/managed-by": "jupyter-notebook-validator-operator",
    }
    reference = {"kind": NOTEBOOK_JOB.kind, "name": "train", "uid": "0123456789", "controller": True}
    assert reference.items() <= metadata["ownerReferences"][0].items()
    assert metadata["annotations"] == {"mlops.dev/run": "01234567-1-1"}


def test_pod_name_of_the_longest_job_name_is_truncated_and_unique() -> None:
    name = "a" * 253
    metadata = build_run_pod(name=name)["metadata"]
    assert len(metadata["name"]) <= 253 and metadata["name"].endswith("-validation")
    assert "notebookvalidationjob" not in metadata["labels"]
    assert build_pod_name("a" * 252 + "b") != build_pod_name(name)


def test_containers_meet_the_restricted_profile_and_set_no_user() -> None:
    own = {"name": "prepare", "image": "a:1", "securityContext": {"allowPrivilegeEscalation": True}}
    golden = {"git": {"url": "https://example.org/g.git", "ref": "main"}, "path": "g.ipynb"}
    spec = build_run_pod(goldenNotebook=golden, pod={"initContainers": [own]})["spec"]
    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    names = [pod_container["name"] for pod_container in (*spec["initContainers"], *spec["containers"])]
    assert names == ["git-clone", "golden-git-clone", "prepare", "validator"]
    for pod_container in (*spec["initContainers"], *spec["containers"]):
        assert pod_container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
    assert "runAsUser" not in json.dumps(spec) and "fsGroup" not in json.dumps(spec)
    assert (spec["restartPolicy"], spec["serviceAccountName"]) == ("Never", "default")


def test_git_credentials_are_mounted_only_into_the_clone_container() -> None:
    """The original operator writes a password into the Pod's command, and a key into its environment."""
    git = {**NOTEBOOK["git"], "credentialsSecret": "robot"}  # type: ignore[dict-item]
    pod = build_run_pod(notebook={**NOTEBOOK, "git": git})
    assert {"name": "argosy-git", "secret": {"secretName": "robot"}} in pod["spec"]["volumes"]
    mounted = {mount["name"] for mount in container(pod, "git-clone")["volumeMounts"]}
    assert "argosy-git" in mounted
    assert "argosy-git" not in {mount["name"] for mount in container(pod, "validator")["volumeMounts"]}


def test_user_values_are_escaped_arguments_and_never_shell_text() -> None:
    git = {"url": "https://example.org/$(HOME).git", "ref": "main; reboot"}
    clone_container = container(build_run_pod(notebook={"git": git, "path": "$(id).ipynb"}), "git-clone")
    assert clone_container["command"] == ["/bin/sh", f"/opt/argosy/runner/{runner_archive_config_map.CLONE_SCRIPT_KEY}"]
    expected = ["https://example.org/$$(HOME).git", "main; reboot", "/workspace/repo", "$$(id).ipynb"]
    assert clone_container["args"] == expected


def test_user_variables_are_added_to_the_variables_of_the_operator() -> None:
    """In the original operator, user variables replace all others."""
    own = [{"name": "WHO", "value": "me"}, {"name": "PIP_USER", "value": "0"}]
    models = {"targetModels": ["fraud"], "predictionValidation": {"testData": "[1]", "expectedOutput": "[2]"}}
    variables = values(container(build_run_pod(pod={"env": own}, modelValidation=models), "validator"))
    expected = {
        "WHO": "me", "PIP_USER": "0", "HOME": "/workspace", "PYTHONUSERBASE": "/workspace/.local",
        "PIP_NO_CACHE_DIR": "1", "VALIDATION_LEVEL": "development", "VALIDATION_STRICT_MODE": "false",
        "VALIDATION_FAIL_ON_STDERR": "false", "VALIDATION_FAIL_ON_WARNINGS": "false",
        "VALIDATION_DETECT_SILENT_FAILURES": "true", "MODEL_VALIDATION_ENABLED": "true",
        "MODEL_VALIDATION_PLATFORM": "kserve", "MODEL_VALIDATION_NAMESPACE": "default",
        "MODEL_VALIDATION_PHASE": "both", "MODEL_VALIDATION_TARGET_MODELS": "default/fraud",
        "MODEL_VALIDATION_TARGET_MODELS_ORIGINAL": "fraud", "MODEL_VALIDATION_TARGET_NAMESPACES": "default",
        "MODEL_VALIDATION_PREDICTION_ENABLED": "true", "MODEL_VALIDATION_PREDICTION_TEST_DATA": "[1]",
        "MODEL_VALIDATION_PREDICTION_EXPECTED_OUTPUT": "[2]", "MODEL_VALIDATION_TIMEOUT": "5m",
    }  # fmt: skip
    assert variables == expected


def test_pod_config_of_the_job_is_applied_to_the_pod() -> None:
    pod_config = {
        "serviceAccountName": "trainer", "nodeSelector": {"gpu": "yes"}, "tolerations": [{"key": "gpu"}],
        "affinity": {"nodeAffinity": {}}, "resources": {"limits": {"memory": "4Gi"}},
        "envFrom": [{"configMapRef": {"name": "settings"}}], "credentials": ["aws"],
        "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}},
                    {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}],
        "volumeMounts": [{"name": "models", "mountPath": "/mnt/models", "subPath": "a", "readOnly": True},
                         {"name": "scratch", "mountPath": "/scratch"}],
    }  # fmt: skip
    pod = build_run_pod(pod=pod_config, timeout="10m")
    spec, one = pod["spec"], container(pod, "validator")
    for name in ("serviceAccountName", "nodeSelector", "tolerations", "affinity"):
        assert spec[name] == pod_config[name]
    assert {volume["name"] for volume in spec["volumes"]} >= {"workspace", "jovyan-home", "models", "scratch"}
    assert one["volumeMounts"][-2:] == pod_config["volumeMounts"]
    assert one["envFrom"] == [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "aws"}}]
    assert one["resources"] == container(pod, "git-clone")["resources"] == pod_config["resources"]
    assert 600 < spec["activeDeadlineSeconds"] <= 1500


def test_reserved_volume_names_cover_all_volumes_of_the_operator() -> None:
    git = {**NOTEBOOK["git"], "credentialsSecret": "robot"}  # type: ignore[dict-item]
    both = {**NOTEBOOK, "git": git}
    env = [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "aws", "key": "key"}}}]
    names = [
        volume["name"]
        for volume in build_run_pod(notebook=both, goldenNotebook=both, pod={"env": env})["spec"]["volumes"]
    ]
    assert [
        name for name in names if name not in RESERVED_VOLUME_NAMES and not name.startswith(RESERVED_VOLUME_PREFIX)
    ] == []


def test_secrets_used_as_variables_are_mounted_as_files_for_redaction() -> None:
    variables = [{"name": name, "valueFrom": {"secretKeyRef": {"name": "aws", "key": name.lower()}}} for name in "AB"]
    pod_config = {
        "env": variables, "credentials": ["all"],
        "volumes": [{"name": "more", "secret": {"secretName": "more"}}],
        "volumeMounts": [{"name": "more", "mountPath": "/more"}],
    }  # fmt: skip
    spec = build_run_pod(pod=pod_config)["spec"]
    secrets = [volume["secret"] for volume in spec["volumes"] if volume["name"].startswith("argosy-given")]
    items = [{"key": "a", "path": "0"}, {"key": "b", "path": "1"}]
    whole, parts = {"secretName": "all", "optional": True}, {"secretName": "aws", "items": items, "optional": True}
    assert secrets == [whole, parts]
    assert json.loads(build_runner_input(read_job(job(pod=pod_config))))["secrets"] == ["/more", "/opt/argosy/given"]


def test_git_image_is_set_by_the_git_init_image_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_INIT_IMAGE", "registry.example.com/git:2")
    assert container(build_run_pod(), "git-clone")["image"] == "registry.example.com/git:2"


def test_runner_input_has_the_paths_of_the_pod() -> None:
    claim = {"name": "models", "persistentVolumeClaim": {"claimName": "models"}}
    mounts = [{"name": "models", "mountPath": "/mnt/models"}]
    manifest = job(pod={"volumes": [claim], "volumeMounts": mounts}, parameters={"rate": 2}, timeout="5m")
    runner_input = json.loads(build_runner_input(read_job(manifest)))
    order = RunRequest.from_json(json.dumps(runner_input["order"]))
    assert (order.notebook, order.timeout_seconds) == ("/workspace/repo/train.ipynb", 300.0)
    assert (order.results, order.output) == ("/workspace/results.json", "/workspace/output.ipynb")
    assert (runner_input["report"], runner_input["claims"], order.parameters) == (
        "train-validation",
        ["/mnt/models"],
        {"rate": 2},
    )
