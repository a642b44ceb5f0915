"""The documented pipeline with unchanged manifests: an Application, a PVC, notebooks in sync waves, and a model."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from argosy.features.notebooks.addon import make as make_notebooks
from argosy.http_client.anonymous_request import send_plain_request
from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.objects import Manifest, read_manifests
from argosy.sandbox.simulators import make as make_simulators
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, Room, engine_room, furnish
from support.notebook_jobs import notebook

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
DOCUMENTS = Path(__file__).parents[3] / "shared" / "seeds"
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not DOCUMENTS.is_dir(), reason="../shared/seeds is not here"),
    pytest.mark.skipif(sys.platform != "linux", reason="folders are mounted on Linux alone"),
]
FENCE = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
HOSTS = ("https://github.com/example/ml-pipeline", "https://github.com/example/ml-models")
SPACE, APP, MODEL = "ml-platform", "ml-training-pipeline", "fraud-detection-model"
KIND, SERVICE = "mlops.mlops.dev/NotebookValidationJob", "serving.kserve.io/InferenceService"
IN_ORDER = ("data-preprocessing", "model-training", "model-validation")
WRITES = """
import pathlib
place = pathlib.Path('/mnt/models/fraud-detection')
place.mkdir(exist_ok=True)
(place / 'model.py').write_text('def predict(instances):\\n    return [sum(each) > 1 for each in instances]\\n')
"""
NOTEBOOKS = {
    "notebooks/01-preprocess-data.ipynb": notebook("print('made ready')"),
    "notebooks/02-train-model.ipynb": notebook(WRITES),
    "notebooks/03-validate-model.ipynb": notebook(
        "import runpy\npredict = runpy.run_path('/mnt/models/fraud-detection/model.py')['predict']",
        "assert predict([[1, 1]]) == [True]",
    ),
    "notebooks/fraud-detection/train.ipynb": notebook("open('/mnt/models/first', 'w').close()"),
}


def block(name: str) -> str:
    """Return the first YAML block of the document that contains an object of this name."""
    [text] = [file.read_text() for file in sorted(DOCUMENTS.glob("002*.txt"))]
    return next(
        yaml_block for yaml_block in FENCE.findall(text) if re.search(rf"^  name: {name}$", yaml_block, re.MULTILINE)
    )


async def until_ready(room: Room) -> Manifest:
    async with asyncio.timeout(HANG_SECONDS):
        while True:
            service = await room.get(SERVICE, MODEL, SPACE) or {}
            conditions = {
                condition["type"]: condition["status"]
                for condition in (service.get("status") or {}).get("conditions") or ()
            }
            if conditions.get("Ready") == "True":
                return service
            await asyncio.sleep(0.02)


@pytest.mark.tier("all")
async def test_documented_pipeline_runs_unchanged_up_to_a_served_model(tmp_path: Path) -> None:
    application, _, training = block(APP).partition("---\n")
    data_folder = tmp_path / "data"
    data_folder.mkdir()
    async with engine_room(tmp_path) as room:
        await furnish(room.cluster, SPACE)
        lines = "".join(f"{host} {room.repository.url}\n" for host in HOSTS)
        await room.configure({"source.mirrors": lines}, "argosy-cm")
        pipeline = {"manifests/training.yaml": training, "manifests/pipeline.yaml": block("data-preprocessing")}
        room.repository.push({**NOTEBOOKS, **pipeline})
        addons = [make_simulators(""), make_notebooks("")]
        async with run_addons(addons, room.cluster, on_failure=lambda: None, folder=data_folder):
            [app] = read_manifests(application.encode(), where="document")
            assert app["metadata"]["namespace"] == CONTROL
            await room.cluster.create(app)
            health_statuses: list[str] = []

            def is_well(status: dict[str, Any]) -> bool:
                health_statuses.append(status["health"]["status"])
                over = (status.get("operationState") or {}).get("phase") == "Succeeded"
                return over and health_statuses[-1] == "Healthy"

            final_app = await room.until(is_well, APP)
            assert "Progressing" in health_statuses
            done = [(await room.get(KIND, name, SPACE) or {})["status"] for name in IN_ORDER]
            assert [job_status["phase"] for job_status in done] == ["Succeeded"] * 3
            times = [job_status[name] for job_status in done for name in ("startTime", "completionTime")]
            service = await until_ready(room)
            assert service["status"]["clusterServingRuntimeName"] == "kserve-sklearnserver"
            times.append(service["metadata"]["creationTimestamp"])
            assert times == sorted(times)
            address = f"{service['status']['url']}/v1/models/{MODEL}:predict"
            answered = await asyncio.to_thread(send_plain_request, address, {"instances": [[1, 1], [0, 0]]})
            assert answered.read_json() == {"predictions": [True, False]}
            # kserve: its webhook rewrites `sklearn` to `model`, so the InferenceService always differs from Git
            differs = [
                resource["kind"] for resource in final_app["status"]["resources"] if resource["status"] == "OutOfSync"
            ]
            assert set(differs) <= {"InferenceService"}
