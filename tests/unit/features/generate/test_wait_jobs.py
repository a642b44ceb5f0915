"""Generated wait Jobs: sync wave and hook, deadline, RBAC and validated input."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import UserError
from argosy.features.generate.image_wait_job_manifests import ImageWait
from argosy.features.generate.notebook_wait_job_manifests import NotebookWait
from argosy.kube.objects import Manifest, get_annotation

WAVE, HOOK = "argocd.argoproj.io/sync-wave", "argocd.argoproj.io/hook"
BY_IMAGE = ImageWait(name="notebook-validator", image_tag="notebook-validator:latest", namespace="ml")
BY_NOTEBOOK = NotebookWait(name="model-training", namespace="ml")


def changed(wait: Any, **changes: Any) -> list[Manifest]:
    manifests: list[Manifest] = type(wait)(**{**wait.__dict__, **changes}).build_manifests()
    return manifests


def test_image_wait_job_matches_the_tutorial() -> None:
    (job,) = BY_IMAGE.build_manifests()
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    assert job["metadata"] == {
        "name": "wait-for-notebook-validator-image",
        "namespace": "ml",
        "annotations": {WAVE: "-3", HOOK: "Sync", f"{HOOK}-delete-policy": "BeforeHookCreation"},
    }
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    assert (spec["backoffLimit"], spec["ttlSecondsAfterFinished"], pod["restartPolicy"]) == (0, 300, "Never")
    (container,) = pod["containers"]
    assert container["image"] == "image-registry.openshift-image-registry.svc:5000/openshift/cli:latest"
    assert container["command"] == ["/bin/bash", "-c"]
    assert container["resources"] == {
        "requests": {"cpu": "50m", "memory": "64Mi"},
        "limits": {"cpu": "200m", "memory": "128Mi"},
    }
    values = {variable["name"]: variable["value"] for variable in container["env"]}
    assert (values["IMAGE_TAG"], values["TIMEOUT"], values["INTERVAL"]) == ("notebook-validator:latest", "3600", "30")


def test_rbac_objects_are_in_an_earlier_wave_than_the_job() -> None:
    for manifests in (
        changed(BY_IMAGE, has_rbac=True),
        changed(BY_IMAGE, has_rbac=True, wave=2),
        BY_NOTEBOOK.build_manifests(),
    ):
        *rights, job = manifests
        assert [manifest["kind"] for manifest in rights] == ["ServiceAccount", "Role", "RoleBinding"]
        assert {int(get_annotation(manifest, WAVE)) for manifest in rights} == {int(get_annotation(job, WAVE)) - 3}
        assert not any(get_annotation(manifest, HOOK) for manifest in rights)


def test_role_grants_only_what_the_job_needs() -> None:
    role = changed(BY_IMAGE, has_rbac=True)[1]
    read = ["get", "list", "watch"]
    assert role["rules"] == [
        {"apiGroups": ["image.openshift.io"], "resources": ["imagestreams", "imagestreamtags"], "verbs": read},
        {"apiGroups": ["build.openshift.io"], "resources": ["builds"], "verbs": read},
    ]
    started = changed(BY_IMAGE, has_rbac=True, starts_build=True)[1]["rules"][2:]
    assert started == [
        {"apiGroups": ["build.openshift.io"], "resources": ["buildconfigs/instantiate"], "verbs": ["create"]}
    ]
    notebooks = [{"apiGroups": ["mlops.mlops.dev"], "resources": ["notebookvalidationjobs"], "verbs": ["get"]}]
    assert BY_NOTEBOOK.build_manifests()[1]["rules"] == notebooks


def test_role_binding_names_the_service_account_of_the_job() -> None:
    account, _, binding, job = changed(BY_IMAGE, has_rbac=True, service_account="builder")
    assert account["metadata"]["name"] == "builder" == job["spec"]["template"]["spec"]["serviceAccountName"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "builder", "namespace": "ml"}]


def test_default_service_account_is_not_generated() -> None:
    kinds = [manifest["kind"] for manifest in changed(BY_IMAGE, has_rbac=True, service_account="default")]
    assert kinds == ["Role", "RoleBinding", "Job"]


@pytest.mark.parametrize("blocked", [-2, 0, 4])
def test_notebook_wait_job_is_a_sync_hook_one_wave_before_the_blocked_wave(blocked: int) -> None:
    job = changed(BY_NOTEBOOK, block_wave=blocked)[-1]
    assert (get_annotation(job, HOOK), get_annotation(job, WAVE)) == ("Sync", str(blocked - 1))


def test_notebook_wait_job_uses_the_names_of_the_guide() -> None:
    job = BY_NOTEBOOK.build_manifests()[-1]
    pod = job["spec"]["template"]["spec"]
    assert job["metadata"]["name"] == "wait-for-model-training-completion"
    assert (pod["serviceAccountName"], pod["restartPolicy"]) == ("argocd-sync-waiter", "Never")
    assert pod["containers"][0]["image"] == "bitnami/kubectl:latest"


def test_every_job_has_an_active_deadline_and_no_retries() -> None:
    for manifests in (changed(BY_IMAGE, timeout=60), changed(BY_NOTEBOOK, timeout=60)):
        assert manifests[-1]["spec"]["activeDeadlineSeconds"] == 360
        assert manifests[-1]["spec"]["backoffLimit"] == 0


def test_user_input_is_not_part_of_the_shell_script() -> None:
    script = BY_IMAGE.build_manifests()[-1]["spec"]["template"]["spec"]["containers"][0]["args"]
    other = changed(BY_IMAGE, image="a/b:c", image_tag="x:reboot")[-1]
    assert script == other["spec"]["template"]["spec"]["containers"][0]["args"]


@pytest.mark.parametrize(
    ("wait", "changes", "said"),
    [
        (BY_IMAGE, {"image_tag": "notebook-validator"}, "STREAM:TAG"),
        (BY_IMAGE, {"image_tag": "quay.io/ml/x:1"}, "STREAM:TAG"),
        (BY_IMAGE, {"image_tag": "x:$(id)"}, "STREAM:TAG"),
        (BY_IMAGE, {"image_tag": "x:la test"}, "STREAM:TAG"),
        (BY_IMAGE, {"image_tag": "x:latest\n"}, "STREAM:TAG"),
        (BY_IMAGE, {"image_tag": "x@sha256:abc"}, "STREAM:TAG"),
        (BY_IMAGE, {"image_tag": "x:" + "t" * 129}, "STREAM:TAG"),
        (BY_IMAGE, {"image_tag": "X:latest"}, "STREAM:TAG"),
        (BY_IMAGE, {"image": ""}, "--image"),
        (BY_IMAGE, {"image": "foo bar;id"}, "--image"),
        (BY_IMAGE, {"image": "cli:latest\n"}, "--image"),
        (BY_NOTEBOOK, {"image": "$(IMAGE)"}, "--image"),
        (BY_NOTEBOOK, {"image": "a/" * 300 + "b"}, "--image"),
        (BY_NOTEBOOK, {"timeout": 99999999999999999999}, "1 to 604800"),
        (BY_NOTEBOOK, {"interval": 604801}, "1 to 604800"),
        (BY_NOTEBOOK, {"block_wave": 10**7}, "--block-wave"),
        (BY_NOTEBOOK, {"notebook_wave": -(10**30)}, "--notebook-wave"),
        (BY_IMAGE, {"wave": 10**20}, "--sync-wave"),
        (BY_IMAGE, {"name": "Notebook_Validator"}, "--name"),
        (BY_IMAGE, {"name": "n" * 60}, "the Job's name"),
        (BY_IMAGE, {"namespace": "ML"}, "--namespace"),
        (BY_IMAGE, {"timeout": 0}, "--timeout"),
        (BY_NOTEBOOK, {"interval": -1}, "--interval"),
        (BY_NOTEBOOK, {"notebook_wave": 4}, "an earlier wave"),
        (BY_NOTEBOOK, {"service_account": "Waiter"}, "--service-account"),
    ],
)
def test_invalid_option_is_rejected(wait: Any, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        changed(wait, **changes)


@pytest.mark.parametrize(
    "image",
    [
        "kubectl",
        "bitnami/kubectl:latest",
        "registry:5000/a/b_c/d--e:V1.2",
        "image-registry.openshift-image-registry.svc:5000/openshift/cli:latest",
        "quay.io/a/b@sha256:" + "0" * 64,
        "quay.io/a/b:1@sha256:" + "0" * 64,
    ],
)
def test_valid_image_reference_is_accepted(image: str) -> None:
    assert changed(BY_IMAGE, image=image)[-1]["spec"]["template"]["spec"]["containers"][0]["image"] == image
