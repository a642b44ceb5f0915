"""`argosy generate` from the command line: a cluster accepts its output, and the scripts of its Jobs run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.clusters import KUBECTL, Sandbox, until_served
from support.deadlines import HANG_SECONDS
from support.forked_commands import Done, run

IMAGE = ["generate", "wait-for-image", "--name", "trainer", "--image-tag", "trainer:latest", "-n", "default"]
NOTEBOOK = ["generate", "wait-for-notebook", "--name", "model-training", "-n", "default"]
GROUP = "mlops.mlops.dev"


def typed(*words: str) -> Done:
    return run(words, env=os.environ, timeout=HANG_SECONDS)


def documents(*words: str) -> list[Any]:
    done = typed(*words)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def test_yaml_and_json_output_are_equal() -> None:
    for words in ([*IMAGE, "--with-rbac"], NOTEBOOK):
        listing = json.loads(typed(*words, "-o", "json").stdout)
        assert (listing["kind"], listing["items"]) == ("List", documents(*words))


def test_negative_sync_wave_is_accepted() -> None:
    job = documents(*IMAGE, "--sync-wave", "-7")[-1]
    assert job["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] == "-7"


def test_own_service_account_gets_a_note_on_required_permissions() -> None:
    done = typed(*IMAGE, "--service-account", "builder")
    assert "builder" in done.stderr
    assert "imagestreamtags" in done.stderr
    assert typed(*IMAGE, "--with-rbac").stderr == ""


def test_notebook_in_a_later_wave_is_refused_with_a_next_step() -> None:
    done = typed(*NOTEBOOK, "--block-wave", "2", "--notebook-wave", "3")
    assert (done.returncode, done.stdout) == (2, "")
    assert "next: put the notebook into an earlier wave" in done.stderr


def test_cluster_accepts_the_generated_manifests(shared: Sandbox, needs_kubectl: None) -> None:
    for words in ([*IMAGE, "--with-rbac", "--auto-start"], NOTEBOOK):
        kubectl = [KUBECTL, "--kubeconfig", shared.kubeconfig, "apply", "-f", "-"]
        done = subprocess.run(kubectl, input=typed(*words).stdout, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[-1].endswith(" created")


def run_script(words: list[str], sandbox: Sandbox, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the script of the Job with the real kubectl instead of the client of the image."""
    for name in ("kubectl", "oc"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(KUBECTL)
    container = documents(*words)[-1]["spec"]["template"]["spec"]["containers"][0]
    env = {variable["name"]: variable["value"] for variable in container["env"]}
    env |= {"PATH": f"{folder}:{os.environ['PATH']}", "KUBECONFIG": str(sandbox.kubeconfig), "HOME": str(folder)}
    command = [*container["command"], *container["args"]]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)


def define(sandbox: Sandbox, group: str, kind: str, version: str = "v1") -> str:
    """Create a CRD without a schema; return the path of its collection in namespace default."""
    plural = kind.lower() + "s"
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": free}}]
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": versions}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": spec,
    }
    command = [str(KUBECTL), "--kubeconfig", str(sandbox.kubeconfig)]
    subprocess.run([*command, "apply", "-f", "-"], input=json.dumps(definition), text=True, check=True)
    until_served(sandbox.kubeconfig, f"{plural}.{group}")
    return f"/apis/{group}/{version}/namespaces/default/{plural}"


@pytest.mark.parametrize(("phase", "code"), [("Succeeded", 0), ("Failed", 1)])
@pytest.mark.tier("all")
def test_wait_for_notebook_script_exits_by_the_notebook_phase(
    shared: Sandbox, tmp_path: Path, needs_kubectl: None, phase: str, code: int
) -> None:
    path = define(shared, GROUP, "NotebookValidationJob", "v1alpha1")
    manifest = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "NotebookValidationJob",
        "metadata": {"name": f"ends-{phase.lower()}"},
        "status": {"phase": phase},
    }
    assert shared.request("POST", path, manifest).code == 201
    words = ["generate", "wait-for-notebook", "--name", f"ends-{phase.lower()}", "-n", "default"]
    done = run_script(words, shared, tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout.splitlines()[0] == "Waiting for notebook validation to complete..."


@pytest.mark.tier("all")
def test_image_script_reports_missing_and_failed_builds(shared: Sandbox, tmp_path: Path, needs_kubectl: None) -> None:
    define(shared, "image.openshift.io", "ImageStreamTag")
    path = define(shared, "build.openshift.io", "Build")
    without = run_script([*IMAGE, "--timeout", "1", "--interval", "1"], shared, tmp_path)
    assert without.returncode == 1
    assert "no build of trainer yet" in without.stdout
    for number, phase in ((1, "Complete"), (2, "Failed")):
        manifest = {
            "apiVersion": "build.openshift.io/v1",
            "kind": "Build",
            "metadata": {"name": f"trainer-{number}", "labels": {"buildconfig": "trainer"}},
            "status": {"phase": phase, "message": "out of memory"},
        }
        assert shared.request("POST", path, manifest).code == 201
    failed = run_script(IMAGE, shared, tmp_path)
    assert failed.returncode == 1
    assert "trainer-2" in failed.stderr
    assert "out of memory" in failed.stderr
