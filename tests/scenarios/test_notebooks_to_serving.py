"""examples/notebooks-to-serving: one push trains and serves a model, and another push replaces it."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import TransientError
from argosy.features.models.lineage_lookup import Tracer
from argosy.features.notebooks.addon import make as make_notebooks
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.http_client.anonymous_request import send_plain_request
from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.objects import read_manifests
from argosy.sandbox.simulators import make as make_simulators
from support.deadlines import HANG_SECONDS
from support.demo_on_real_server import BESIDE
from support.engine import CONTROL, Room, engine_room
from support.real_server import REAL

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="folders are mounted on Linux alone"),
]
FOLDER = Path(__file__).parents[2] / "examples" / "notebooks-to-serving"
APP, SPACE, MODEL = "notebooks-to-serving", "ml-platform", "fraud-detection-model"
JOBS = ("data-preprocessing", "model-training", "model-validation")
KIND, SERVICE = "mlops.mlops.dev/NotebookValidationJob", "serving.kserve.io/InferenceService"
VERSIONS = "notebooks-to-serving/manifests/kustomization.yaml"
TRAINING = "notebooks-to-serving/notebooks/02-train-model.ipynb"


def files() -> dict[str, str]:
    """Return the files as a reader copies them into the repository."""
    paths = (path for path in sorted(FOLDER.rglob("*")) if path.suffix in (".yaml", ".ipynb"))
    return {f"{FOLDER.name}/{path.relative_to(FOLDER)}": path.read_text() for path in paths}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=["embedded", REAL])
async def room(
    anyio_backend: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Room]:
    """An engine with the example pushed and its Application applied; no other action is needed."""
    folder = tmp_path_factory.mktemp("story")
    data_folder = folder / "data"
    data_folder.mkdir()
    is_real = request.param == "real"
    server = request.getfixturevalue("real_server") if is_real else None
    async with engine_room(folder, flavour=request.param, server=server) as opened_room:
        [app] = read_manifests((FOLDER / "application.yaml").read_bytes(), where="application.yaml")
        url = app["spec"]["source"]["repoURL"]
        await opened_room.configure({"source.mirrors": f"{url} {opened_room.repository.url}\n"}, "argosy-cm")
        opened_room.repository.push(files())
        addons = [make_simulators(BESIDE if is_real else ""), make_notebooks("")]
        async with run_addons(addons, opened_room.cluster, on_failure=lambda: None, folder=data_folder):
            await opened_room.cluster.create({**app, "metadata": {**app["metadata"], "namespace": CONTROL}})
            yield opened_room


def words(status: dict[str, Any]) -> tuple[str, str]:
    return status["sync"]["status"], status["health"]["status"]


async def status_of(room: Room, job: str) -> dict[str, Any]:
    return (await room.get(KIND, job, SPACE) or {}).get("status") or {}


async def answer(room: Room, *instance: float) -> dict[str, Any]:
    """Return the prediction of the served model."""
    url = (await room.get(SERVICE, MODEL, SPACE) or {})["status"]["url"]
    response = await asyncio.to_thread(
        send_plain_request, f"{url}/v1/models/{MODEL}:predict", {"instances": [instance]}
    )
    prediction: dict[str, Any] = response.read_json()["predictions"][0]
    return prediction


async def until_answers(room: Room, version: str) -> None:
    """Poll until this version answers. Every poll must succeed, with one retry for a broken connection."""
    async with asyncio.timeout(HANG_SECONDS):
        while True:
            try:
                prediction = await answer(room, 3.0, 1, 1)
            except TransientError:
                prediction = await answer(room, 3.0, 1, 1)
            if prediction["version"] == version:
                return
            await asyncio.sleep(0.1)


async def origin(room: Room) -> tuple[tuple[str, ...], set[str], bool]:
    """Return the jobs that made the served model, their commits, and whether the model is current."""
    desk = ApplicationService(room.cluster, "here", "argocd", "argocd")
    [lineage] = (await Tracer(desk).trace_object(f"isvc/{MODEL}")).lineages
    return tuple(run.job for run in lineage.runs), {run.commit for run in lineage.runs}, lineage.is_current


def retrained(version: str) -> dict[str, str]:
    before = files()[VERSIONS]
    assert before.count('version: "1"') == 1
    return {VERSIONS: before.replace('version: "1"', f'version: "{version}"')}


@pytest.mark.tier("all")
async def test_one_push_trains_and_serves_a_model(room: Room) -> None:
    app = await room.until(lambda status: words(status) == ("Synced", "Healthy"), APP)
    assert app["status"]["operationState"]["phase"] == "Succeeded"
    done = [await status_of(room, job) for job in JOBS]
    assert [job_status["phase"] for job_status in done] == ["Succeeded"] * 3
    assert {job_status["gitCommit"] for job_status in done} == {room.repository.head}
    for before, after in itertools.pairwise(done):
        assert before["completionTime"] <= after["startTime"]
    assert await answer(room, 3.0, 1, 1) == {"fraud": True, "score": 1.0, "version": "1"}
    assert (await answer(room, 0.1, 0, 0))["fraud"] is False
    assert await origin(room) == (JOBS[1:], {room.repository.head}, True)


@pytest.mark.tier("all")
async def test_retrained_model_replaces_the_served_one(room: Room) -> None:
    commit = room.repository.push(retrained("2"))
    await until_answers(room, "2")
    app = await room.until_synced(commit, APP)
    assert app["status"]["operationState"]["phase"] == "Succeeded"
    [trigger] = [
        trigger_entry
        for trigger_entry in (await status_of(room, JOBS[-1]))["triggers"]
        if trigger_entry["generation"] == 2
    ]
    assert (trigger["kind"], trigger["action"]) == ("InferenceService", "restart")
    assert await origin(room) == (JOBS[1:], {commit}, True)


@pytest.mark.tier("all")
async def test_failing_notebook_keeps_the_old_model_serving(room: Room) -> None:
    good, served, text = room.repository.head, await answer(room, 0.5, 1, 0), files()[TRAINING]
    commit = room.repository.push({TRAINING: text.replace("epochs = 80", "epochs = 0"), **retrained("3")})
    app = await room.until(lambda status: status["operationState"]["phase"] == "Failed", APP)
    assert app["status"]["operationState"]["syncResult"]["revision"] == commit
    failed = await status_of(room, JOBS[-1])
    assert failed["phase"] == "Failed" and failed["message"].startswith("Cell execution failed: AssertionError: ")
    assert failed["message"].endswith("% is below the required 90%")
    error_message = next(result["errorMessage"] for result in failed["results"] if result["status"] == "Failure")
    assert error_message.startswith("AssertionError: ") and error_message.endswith("% is below the required 90%")
    await room.until(lambda status: status["health"]["status"] == "Degraded", APP)
    assert await answer(room, 0.5, 1, 0) == served
    assert served["version"] == "2"
    assert await origin(room) == (JOBS[1:], {good}, True)
