"""Image builds for notebooks: the objects of a build, and its effect on the job."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.features.notebooks.image_builds import openshift, tekton
from argosy.features.notebooks.image_builds.dockerfile import (
    INSTALL_IMPORTS_SCRIPT,
    list_requirements_candidates,
    render_dockerfile,
)
from argosy.features.notebooks.image_builds.object_metadata import build_name
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob, read_job
from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.bundled_crds import load_definitions
from argosy.kube.well_known_kinds import NOTEBOOK_JOB
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators import build_addon
from support.deadlines import HANG_SECONDS
from support.notebook_controller import ToldRuns, World, condition, job, leaping, world
from support.serving_manifests import BUILD, BUILD_CONFIG, STREAM

pytestmark = pytest.mark.anyio
RUN = GroupKind("tekton.dev", "PipelineRun")
FAIL = {"sandbox.argosy.dev/fail": "build"}


def building(name: str = "train", **build: Any) -> Manifest:
    return job(name, pod={"buildConfig": {"enabled": True, **build}})


def read(path: str = "notebooks/train.ipynb", name: str = "train", **build: Any) -> NotebookJob:
    manifest = building(name, **build)
    manifest["spec"]["notebook"] = {"git": {"url": "https://example.org/a.git", "ref": "v1"}, "path": path}
    manifest["metadata"] |= {"uid": "u1", "generation": 3}
    return read_job(manifest)


@contextlib.asynccontextmanager
async def openshift_world(cluster: EmbeddedCluster, runs: ToldRuns | None = None) -> AsyncIterator[World]:
    simulators = [build_addon([BUILD_CONFIG, BUILD, STREAM])]
    async with run_addons(simulators, cluster, on_failure=lambda: None), world(cluster, runs) as at:
        yield at


# -- OpenShift ---------------------------------------------------------------------------------------------------------


@pytest.mark.tier("all")
async def test_job_waits_for_its_build_and_runs_in_the_built_image(cluster: EmbeddedCluster) -> None:
    async with openshift_world(cluster) as at:
        await at.apply(building())
        status = await at.ends()
        config = await cluster.get(ResourceKey(*BUILD_CONFIG, "default", "train-build"))
        stream = await cluster.get(ResourceKey(*STREAM, "default", "train-build"))
        await at.told("BuildStarted", "BuildComplete")
    assert status["phase"] == "Succeeded"
    assert (status["buildStatus"]["phase"], condition(status, "BuildReady")["status"]) == ("Complete", "True")
    assert "@sha256:" in status["buildStatus"]["imageReference"]
    assert at.runs.jobs[0].image == status["buildStatus"]["imageReference"]
    assert config is not None
    assert stream is not None
    for manifest in (config, stream):
        assert manifest["metadata"]["ownerReferences"][0]["kind"] == "NotebookValidationJob"
        assert manifest["metadata"]["labels"]["mlops.redhat.com/notebook-validation"] == "true"
    assert config["spec"]["completionDeadlineSeconds"] == 900


@pytest.mark.tier("all")
async def test_rerun_creates_a_new_buildconfig(cluster: EmbeddedCluster) -> None:
    async with openshift_world(cluster) as at:
        await at.apply(building())
        await at.ends()
        first = await cluster.get(ResourceKey(*BUILD_CONFIG, "default", "train-build"))
        await at.patch({"metadata": {"annotations": {"mlops.dev/re-run": "b"}}})
        await at.becomes(lambda status: status["observedReRun"] and status["completionTime"])
        second = await cluster.get(ResourceKey(*BUILD_CONFIG, "default", "train-build"))
    assert first is not None
    assert second is not None
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


@pytest.mark.tier("all")
async def test_jobs_with_one_name_in_two_namespaces_have_separate_builds(cluster: EmbeddedCluster) -> None:
    await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    async with openshift_world(cluster) as at:
        twin = building()
        twin["metadata"]["namespace"] = "other"
        await at.apply(building())
        await at.apply(twin)
        await at.ends()
        async with asyncio.timeout(HANG_SECONDS):
            while True:
                live = await cluster.get(ResourceKey(*NOTEBOOK_JOB, "other", "train")) or {}
                if (live.get("status") or {}).get("completionTime"):
                    break
                await asyncio.sleep(0.01)
        builds = (await cluster.list(BUILD)).items
    assert sorted(build["metadata"]["namespace"] for build in builds) == ["default", "other"]


async def test_foreign_buildconfig_fails_the_job(cluster: EmbeddedCluster) -> None:
    async with openshift_world(cluster) as at:
        foreign = {**openshift.build_manifests(read(), "x")[0]}
        foreign["metadata"] = {"name": "train-build", "namespace": "default"}
        await cluster.create(foreign)
        await at.apply(building())
        status = await at.ends()
    assert "is not owned by this job" in status["message"]
    assert at.runs.started == []


async def test_job_fails_if_the_cluster_serves_no_build_api(cluster: EmbeddedCluster) -> None:
    async with world(cluster) as at:
        await at.apply(building())
        status = await at.ends()
        await at.told("BuildFailed", "ValidationFailed")
    assert status["message"].startswith("Build failed: the cluster does not serve BuildConfig.build.openshift.io; use")
    assert (status["completionTime"], condition(status, "Failed")["reason"]) == (
        status["buildStatus"]["completionTime"], "BuildFailed",
    )  # fmt: skip


async def test_build_is_deleted_after_its_timeout(cluster: EmbeddedCluster) -> None:
    for definition in load_definitions(
        "buildconfigs.build.openshift.io", "builds.build.openshift.io", "imagestreams.image.openshift.io"
    ):
        await cluster.apply(definition, manager="test")
    async with leaping(cluster) as (at, clock):
        await at.apply(building(timeout="5m"))
        await at.becomes(lambda status: status["buildStatus"]["phase"] == "Running")
        clock.leap(301.0)
        status = await at.ends()
        assert await cluster.get(ResourceKey(*BUILD_CONFIG, "default", "train-build")) is None
    assert status["message"] == "Build failed: not done within 5m"
    assert condition(status, "Failed")["reason"] == "BuildTimeout"


BUILDS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "running", ""),
    ({"phase": "New"}, "running", ""),
    ({"phase": "Complete", "outputDockerImageReference": "r/n/x:latest", "output": {"to": {"imageDigest": "sha256:1"}}},
     "complete", "r/n/x@sha256:1"),
    ({"phase": "Complete", "outputDockerImageReference": "reg:5000/ns/x"}, "complete", "reg:5000/ns/x"),
    ({"phase": "Complete"}, "complete", ""),
    ({"phase": "Failed", "message": "no space", "logSnippet": "a\nout of disk"}, "failed", ""),
    ({"phase": "Cancelled"}, "failed", ""),
    ({"phase": "Error"}, "failed", ""),
]  # fmt: skip


@pytest.mark.parametrize(("status", "state", "image"), BUILDS)
def test_build_status_is_mapped_to_state_and_image(status: dict[str, Any], state: str, image: str) -> None:
    build_state = openshift.read_build_state({"metadata": {"name": "train-build-1"}, "status": status})
    assert (build_state.state, build_state.image) == (state, image)


def test_build_failure_message_includes_the_last_log_line() -> None:
    build_state = openshift.read_build_state({"metadata": {"name": "b"}, "status": BUILDS[5][0]})
    assert build_state.message == "Build b is Failed: no space (out of disk)"


@pytest.mark.parametrize(
    ("build", "strategy"),
    [
        ({}, {"type": "Docker", "dockerStrategy": {"from": {"kind": "DockerImage", "name": "base:1"}}}),
        ({"dockerfile": "docker/File"}, {"type": "Docker", "dockerStrategy": {"dockerfilePath": "docker/File"}}),
        ({"preferDockerfile": True}, {"type": "Docker", "dockerStrategy": {"dockerfilePath": "Dockerfile"}}),
        ({"autoGenerateRequirements": False},
         {"type": "Source", "sourceStrategy": {"from": {"kind": "DockerImage", "name": "base:1"}}}),
    ],
)  # fmt: skip
def test_buildconfig_strategy_depends_on_the_build_settings(build: dict[str, Any], strategy: dict[str, Any]) -> None:
    config = openshift.build_manifests(read(baseImage="base:1", **build), "m")[0]
    assert config["spec"]["strategy"] == strategy
    assert config["spec"]["source"]["git"] == {"uri": "https://example.org/a.git", "ref": "v1"}


def test_long_job_names_give_unique_build_names_that_fit() -> None:
    names = {build_name(read(name="n" * 60 + end)) for end in ("a", "b")}
    assert len(names) == 2
    assert all(len(name) <= 63 for name in names)


# -- Tekton ------------------------------------------------------------------------------------------------------------


async def test_tekton_strategy_builds_with_a_pipelinerun(cluster: EmbeddedCluster) -> None:
    for definition in load_definitions("pipelineruns.tekton.dev"):
        await cluster.apply(definition, manager="test")
    async with world(cluster) as at:
        await at.apply(building(strategy="tekton", strategyConfig={"registry": "quay.io/me"}))
        await at.becomes(lambda status: status["buildStatus"]["phase"] == "Running")
        key = ResourceKey(*RUN, "default", "train-build")
        live = await cluster.get(key)
        assert live is not None
        params = {param["name"]: param["value"] for param in live["spec"]["pipelineSpec"]["tasks"][-1]["params"]}
        assert params["IMAGE"] == "quay.io/me/train-build:1"
        assert live["spec"]["timeouts"] == {"pipeline": "15m"}
        results = [
            {"name": "IMAGE_URL", "value": "quay.io/me/train-build:1"},
            {"name": "IMAGE_DIGEST", "value": "sha256:2"},
        ]
        done = {"conditions": [{"type": "Succeeded", "status": "True", "reason": "Completed"}], "results": results}
        await cluster.patch(key, {"status": done}, subresource="status")
        status = await at.ends()
    assert status["buildStatus"]["imageReference"] == "quay.io/me/train-build@sha256:2"


def test_cancelled_pipelinerun_counts_as_failed() -> None:
    cancelled = {"type": "Succeeded", "status": "False", "reason": "Cancelled", "message": "by somebody"}
    build_state = tekton.read_build_state({"metadata": {"name": "r"}, "status": {"conditions": [cancelled]}})
    assert (build_state.state, build_state.message) == ("failed", "PipelineRun r: by somebody")


def test_dockerfile_is_passed_to_tekton_base64_encoded() -> None:
    tasks = tekton.build_manifests(read(requirementsFile="a'b.txt"), "m")[0]["spec"]["pipelineSpec"]["tasks"]
    step = tasks[1]["taskSpec"]["steps"][0]
    assert base64.b64decode(step["command"][3]).decode() == render_dockerfile(read(requirementsFile="a'b.txt"))


# -- Dockerfile --------------------------------------------------------------------------------------------------------


def test_requirements_are_searched_beside_the_notebook_first() -> None:
    assert list_requirements_candidates(read("deep/er/train.ipynb")) == [
        "deep/er/requirements.txt", "notebooks/requirements.txt", "requirements.txt"
    ]  # fmt: skip
    assert list_requirements_candidates(read("train.ipynb")) == ["requirements.txt", "notebooks/requirements.txt"]
    assert list_requirements_candidates(read(requirementsFile="a.txt", requirementsSources=["b.txt"])) == ["a.txt"]
    assert list_requirements_candidates(read(requirementsSources=["b.txt", "c.txt"])) == ["b.txt", "c.txt"]


@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no sh here")
@pytest.mark.parametrize(
    ("files", "fallback", "code", "said"),
    [
        (["requirements.txt"], "fail", 0, "pip install --no-cache-dir -r requirements.txt"),
        (["notebooks/requirements.txt", "requirements.txt"], "fail", 0, "-r notebooks/requirements.txt"),
        ([], "warn", 0, "WARNING: no requirements found in notebooks/requirements.txt, requirements.txt"),
        ([], "fail", 1, "no requirements found in"),
    ],
)
def test_requirements_step_depends_on_existing_files_and_fallback(
    tmp_path: Path, files: list[str], fallback: str, code: int, said: str
) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "bin" / "python").chmod(0o755)
    lines = render_dockerfile(read(fallbackStrategy=fallback)).splitlines()
    (line,) = [raw_line.removeprefix("RUN ") for raw_line in lines if raw_line.startswith("RUN if ")]
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    done = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, env={"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert said in done.stdout + done.stderr


def test_auto_fallback_installs_missing_imports_of_the_notebook(tmp_path: Path) -> None:
    cells = [
        {
            "cell_type": "code",
            "source": ["%matplotlib inline\n", "import json, not_here.part\n", "from gone_too import x"],
        },
        {"cell_type": "code", "source": "this is no python"},
        {"cell_type": "markdown", "source": "import nothing"},
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    script = INSTALL_IMPORTS_SCRIPT.replace("subprocess.check_call", "print")
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "a.ipynb")], capture_output=True, text=True, check=True
    )
    assert "['gone_too', 'not_here']" in done.stdout
    encoded = base64.b64encode(INSTALL_IMPORTS_SCRIPT.encode()).decode()
    assert encoded in render_dockerfile(read(fallbackStrategy="auto"))


@pytest.mark.parametrize("field", ["baseImage", "requirementsFile"])
async def test_line_breaks_in_build_settings_fail_the_job(cluster: EmbeddedCluster, field: str) -> None:
    async with world(cluster) as at:
        await at.apply(building(**{field: "a\nRUN evil"}))
        status = await at.ends()
    assert f"buildConfig.{field}" in status["message"]
    assert condition(status, "Failed")["reason"] == "ConfigurationError"
