"""The files of examples/notebooks-to-serving: lint-free notebooks, five sync waves, and the example's model server."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

from argosy.annotations import SYNC_WAVE
from argosy.errors import TransientError
from argosy.features.notebooks.files.lint import lint_notebook
from argosy.features.notebooks.runner.run_request import ValidationConfig
from argosy.http_client.anonymous_request import send_plain_request
from argosy.kube.objects import Manifest, get_annotation, read_manifests

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks-to-serving"
MODEL = 'def predict(instances):\n    return [{"sum": sum(each)} for each in instances]\n'


def manifests() -> list[Manifest]:
    files = sorted(file for file in (FOLDER / "manifests").glob("*.yaml") if file.stem != "kustomization")
    return [manifest for file in files for manifest in read_manifests(file.read_bytes(), where=file.name)]


def test_manifests_use_exactly_sync_waves_0_to_4() -> None:
    assert sorted({get_annotation(manifest, SYNC_WAVE) for manifest in manifests()}) == ["0", "1", "2", "3", "4"]


def test_notebooks_are_committed_without_outputs_and_lint_findings() -> None:
    for file in sorted((FOLDER / "notebooks").glob("*.ipynb")):
        notebook = json.loads(file.read_text())
        assert lint_notebook(file.name, notebook, ValidationConfig(), ["version"]) == []
        cells = notebook["cells"]
        assert [cell["outputs"] for cell in cells if cell["cell_type"] == "code"] == [[]] * (len(cells) - 1), file.name
        assert all(cell.get("execution_count") is None for cell in cells), file.name


def test_model_server_script_serves_predictions_from_the_model_file(tmp_path: Path) -> None:
    [script] = [manifest["data"]["server.py"] for manifest in manifests() if manifest["kind"] == "ConfigMap"]
    (tmp_path / "model.py").write_text(MODEL)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", script, "sums", str(tmp_path), str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            address = f"http://127.0.0.1:{port}/v1/models/sums"
            while True:
                assert process.poll() is None
                try:
                    assert send_plain_request(address).read_json() == {"name": "sums", "ready": True}
                    break
                except TransientError:
                    continue
            assert send_plain_request(f"{address}:predict", {"instances": [[1, 2]]}).read_json() == {
                "predictions": [{"sum": 3}]
            }
            assert send_plain_request(f"{address}:predict", {"rows": []}).code == 400
            assert send_plain_request(f"{address}s", {}).code == 404
        finally:
            process.kill()
