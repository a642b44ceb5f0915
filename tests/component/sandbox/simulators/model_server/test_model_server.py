"""The simulated model server: confined processes behind InferenceServices of the embedded cluster, called over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import pickle
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.controller import AddOn
from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import INFERENCE_SERVICE
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators import make
from argosy.sandbox.simulators.model_server import server
from argosy.sandbox.simulators.model_server.model_file import ModelLoadError, load_model
from support.deadlines import HANG_SECONDS
from support.serving_manifests import MODEL_KINDS, POD, model, runtime
from support.simulators import World, build_manifest, condition, key
from support.tiers import IN_TEST_ALL

pytestmark = pytest.mark.anyio
KINDS = "+".join(kind.kind for kind in MODEL_KINDS)
DOUBLING = "def predict(instances):\n    return [2 * each for each in instances]\n"
PYTHON = {"modelFormat": {"name": "python"}, "storageUri": "pvc://models/doubling"}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can traverse, because a confined process may run as another user."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@contextlib.asynccontextmanager
async def answering(cluster: EmbeddedCluster, place: Path, addon: AddOn | None = None) -> AsyncIterator[World]:
    async with run_addons([addon or make(KINDS)], cluster, on_failure=lambda: None, folder=place):
        formats = [{"name": name, "autoSelect": True} for name in ("vLLM", "python", "sklearn")]
        await cluster.create(runtime(formats=formats))
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await cluster.create(build_manifest("v1", "PersistentVolumeClaim", spec, "models"))
        yield World(cluster)


def put(place: Path, name: str, content: str | bytes, folder: str = "doubling") -> Path:
    file = place / "volumes" / "default" / "models" / folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def is_ready(live: Manifest) -> bool:
    return bool(condition(live, "Ready")["status"] == "True" and ".localhost:" in live["status"]["url"])


def is_failed(live: Manifest) -> bool:
    return bool(condition(live, "Ready")["status"] == "False")


async def ask(url: str, path: str, document: Any = None, host: str | None = None) -> tuple[int, Any]:
    """Send a request as curl does: names below localhost resolve to this machine."""
    name, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
    data = json.dumps(document).encode() if document is not None else b""
    verb = "GET" if document is None else "POST"
    head = f"{verb} {path} HTTP/1.1\r\nHost: {host or name}\r\nContent-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    headers, _, body = (await asyncio.wait_for(reader.read(), HANG_SECONDS)).partition(b"\r\n\r\n")
    writer.close()
    if not headers:
        raise ConnectionResetError
    return int(headers.split()[1]), body if b"event-stream" in headers else json.loads(body)


async def refused(url: str) -> bool:
    try:
        return (await ask(url, "/v2/health/ready"))[0] == 404
    except OSError:
        return True


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not await holds():
            await asyncio.sleep(0.02)


async def test_python_file_on_a_volume_is_served_as_a_model(cluster: EmbeddedCluster, place: Path) -> None:
    put(place, "model.py", DOUBLING)
    async with answering(cluster, place) as world:
        await cluster.create(model(**PYTHON))
        live = await world.becomes(INFERENCE_SERVICE, is_ready)
        url = live["status"]["url"]
        assert url.startswith("http://web-default.localhost:")
        assert await ask(url, "/v1/models/web:predict", {"instances": [1, 21]}) == (200, {"predictions": [2, 42]})
        tensor = {"name": "x", "shape": [2], "datatype": "INT64", "data": [3, 4]}
        code, response = await ask(url, "/v2/models/web/infer", {"inputs": [tensor]})
        assert (code, response["outputs"][0]["data"], response["outputs"][0]["datatype"]) == (200, [6, 8], "INT64")
        assert (await ask(url, "/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}))[0] == 400
    assert await refused(url)


async def test_text_model_is_a_stub_that_says_so(cluster: EmbeddedCluster, place: Path) -> None:
    async with answering(cluster, place) as world:
        await cluster.create(model())
        url = (await world.becomes(INFERENCE_SERVICE, is_ready))["status"]["url"]
        chat_request = {"messages": [{"role": "user", "content": "Hello"}]}
        code, response = await ask(url, "/v1/chat/completions", chat_request)
        text = response["choices"][0]["message"]["content"]
        assert code == 200 and text.startswith("stub of web: simulated by argosy") and text.endswith("You said: Hello")
        _, streamed = await ask(url, "/v1/chat/completions", {**chat_request, "stream": True})
        assert streamed.endswith(b"data: [DONE]\n\n")


@pytest.mark.tier("all")
async def test_deleted_model_is_no_longer_served(cluster: EmbeddedCluster, place: Path) -> None:
    put(place, "model.py", DOUBLING)
    async with answering(cluster, place) as world:
        other = model()
        other["metadata"]["name"] = "other"
        for manifest in (model(**PYTHON), other):
            await cluster.create(manifest)
        urls = [(await world.becomes(INFERENCE_SERVICE, is_ready, name))["status"]["url"] for name in ("web", "other")]
        for name, url in zip(("web", "other"), urls, strict=True):
            await cluster.delete(key(INFERENCE_SERVICE, name))
            await until(lambda url=url: refused(url))


@pytest.mark.tier("all")
async def test_new_pod_reloads_the_model(cluster: EmbeddedCluster, place: Path) -> None:
    file = put(place, "model.py", DOUBLING)
    async with answering(cluster, place) as world:
        await cluster.create(model(**PYTHON))
        url = (await world.becomes(INFERENCE_SERVICE, is_ready))["status"]["url"]
        file.write_text("def predict(instances):\n    return ['anew' for each in instances]\n")

        async def answers() -> Any:
            live = await cluster.get(key(INFERENCE_SERVICE, "web"))
            assert live is not None
            with contextlib.suppress(OSError, ValueError):
                return (await ask(live["status"]["url"], "/v1/models/web:predict", {"instances": [1]}))[1]

        assert await answers() == {"predictions": [2]}
        for pod in await world.all(POD):
            await cluster.delete(key(POD, pod["metadata"]["name"]))

        async def is_anew() -> bool:
            return bool(await answers() == {"predictions": ["anew"]})

        await until(is_anew)
        live = await world.becomes(INFERENCE_SERVICE, is_ready)
        assert live["status"]["url"] == url


@pytest.mark.tier("all")
async def test_model_keeps_its_url_after_a_simulator_restart(cluster: EmbeddedCluster, place: Path) -> None:
    put(place, "model.py", DOUBLING)
    async with answering(cluster, place) as world:
        await cluster.create(model(**PYTHON))
        url = (await world.becomes(INFERENCE_SERVICE, is_ready))["status"]["url"]
    async with run_addons([make(KINDS)], cluster, on_failure=lambda: None, folder=place):

        async def answers() -> bool:
            with contextlib.suppress(OSError):
                return (await ask(url, "/v1/models/web"))[0] == 200
            return False

        await until(answers)


@pytest.mark.tier("all")
async def test_killed_model_process_restarts_at_the_same_url(cluster: EmbeddedCluster, place: Path) -> None:
    put(place, "model.py", "import os\n\ndef predict(instances):\n    return [os.getppid(), os.kill(os.getpid(), 9)]\n")
    async with answering(cluster, place) as world:
        await cluster.create(model(**PYTHON))
        url = (await world.becomes(INFERENCE_SERVICE, is_ready))["status"]["url"]
        with contextlib.suppress(OSError):
            await ask(url, "/v1/models/web:predict", {"instances": [1]})

        async def answers() -> bool:
            with contextlib.suppress(OSError):
                return (await ask(url, "/v1/models/web"))[0] == 200
            return False

        await until(answers)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("model.py", "import nothing_like_this\n", "model.py needs nothing_like_this, which is not installed"),
        ("model.py", "x = 1\n", "model.py defines no predict"),
        pytest.param("model.py", "raise SystemExit(3)\n", "model.py ends with exit code 3", marks=IN_TEST_ALL),
        pytest.param("model.pkl", b"no pickle", "model.pkl cannot be loaded: UnpicklingError", marks=IN_TEST_ALL),
        pytest.param("model.pkl", pickle.dumps([1]), "model.pkl holds a list, which cannot predict", marks=IN_TEST_ALL),
        ("README", "no model", "pvc://models/doubling: found none of model.py, model.joblib, model.pkl"),
    ],
)
async def test_model_that_cannot_be_loaded_reports_the_reason(
    cluster: EmbeddedCluster, place: Path, name: str, content: str | bytes, why: str
) -> None:
    put(place, name, content)
    async with answering(cluster, place) as world:
        await cluster.create(model(**PYTHON))
        live = await world.becomes(INFERENCE_SERVICE, is_failed)
        assert why in live["status"]["modelStatus"]["lastFailureInfo"]["message"]
        assert "simulated by argosy" in condition(live, "Ready")["message"]


LEARNED = """
import pickle, sys
import joblib
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

found = load_iris()
learned = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)).fit(found.data, found.target)
joblib.dump(learned, sys.argv[1])
with open(sys.argv[2], "wb") as file:
    pickle.dump(learned, file)
"""
FLOWERS = [[5.1, 3.5, 1.4, 0.2], [6.7, 3.0, 5.2, 2.3]]  # a setosa and a virginica


@pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="scikit-learn: it is not installed")
@pytest.mark.tier("all")
async def test_scikit_learn_model_is_served_from_joblib_and_pickle(cluster: EmbeddedCluster, place: Path) -> None:
    files = put(place, "model.joblib", b"", "joblib"), put(place, "model.pkl", b"", "pickle")
    command = [sys.executable, "-c", LEARNED, *map(str, files)]
    await asyncio.to_thread(subprocess.run, command, check=True, timeout=HANG_SECONDS)
    async with answering(cluster, place) as world:
        for name in ("joblib", "pickle"):
            served = model(modelFormat={"name": "sklearn"}, storageUri=f"pvc://models/{name}")
            served["metadata"]["name"] = name
            await cluster.create(served)
        for name in ("joblib", "pickle"):
            url = (await world.becomes(INFERENCE_SERVICE, is_ready, name))["status"]["url"]
            response = await ask(url, f"/v1/models/{name}:predict", {"instances": FLOWERS})
            assert response == (200, {"predictions": [0, 2]})
            rows = {"name": "x", "shape": [2, 4], "datatype": "FP64", "data": [one for row in FLOWERS for one in row]}
            code, response = await ask(url, f"/v2/models/{name}/infer", {"inputs": [rows]})
            assert (code, response["outputs"][0]["data"], response["outputs"][0]["datatype"]) == (200, [0, 2], "INT64")
            assert (await ask(url, f"/v2/models/{name}"))[1]["platform"] == "sklearn"


@pytest.mark.parametrize("file", ["model.joblib", "model.pkl", "model.py"])
def test_git_lfs_pointer_instead_of_a_model_is_reported(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 1\n")
    with pytest.raises(ModelLoadError, match=f"{file} is a Git LFS pointer, not the model itself; run git lfs pull"):
        load_model(str(tmp_path))


@pytest.mark.parametrize(("file", "library"), [("model.joblib", "joblib"), ("model.pkl", "sklearn")])
def test_missing_library_is_reported_with_the_package_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    (tmp_path / file).write_bytes(b"csklearn.linear_model\nLogisticRegression\n.")  # a pickle that names a class
    with pytest.raises(ModelLoadError, match=f"{file} needs scikit-learn, which is not .* pip install scikit-learn"):
        load_model(str(tmp_path))


def test_model_server_exits_if_the_model_is_still_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(server.os, "_exit", ended.append)
    for state in ("loaded", "loading"):
        server._exit_if_loading(server.ModelEntry("web-default", "web", state=state))
    assert ended == [4]


def test_request_slot_is_released_if_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(server.ThreadingHTTPServer, "process_request", refuse)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        door = server.ModelHttpServer(os.dup(listening.fileno()))
        for _ in range(server.MAX_CONCURRENT_REQUESTS + 1):
            with pytest.raises(RuntimeError):
                door.process_request(None, None)
        door.server_close()


@pytest.mark.tier("all")
async def test_crash_looping_model_process_is_a_failure_with_its_last_output(
    cluster: EmbeddedCluster, place: Path
) -> None:
    put(place, "model.py", "import os\nprint('no licence')\nos._exit(7)\n")
    async with answering(cluster, place) as world:
        await cluster.create(model(**PYTHON))
        live = await world.becomes(INFERENCE_SERVICE, is_failed)
    assert condition(live, "Ready")["message"] == (
        "model server process: exited with code 7: no licence (simulated by argosy)"
    )


async def test_pickle_that_runs_code_cannot_read_secrets(cluster: EmbeddedCluster, place: Path) -> None:
    (place / "secret.key").write_text("sesame")

    class Thief:
        def __reduce__(self) -> tuple[Any, ...]:
            return eval, (f"open({str(place / 'secret.key')!r}).read() + open('../secret.key').read()",)

    put(place, "model.pkl", pickle.dumps(Thief()))
    async with answering(cluster, place) as world:
        await cluster.create(model(**PYTHON))
        live = await world.becomes(INFERENCE_SERVICE, is_failed)
    assert "model.pkl cannot be loaded: " in condition(live, "Ready")["message"] and "sesame" not in str(live)


async def test_folder_with_the_name_of_a_model_file_is_not_a_model(cluster: EmbeddedCluster, place: Path) -> None:
    put(place, "it", "", "doubling/model.joblib")
    async with answering(cluster, place) as world:
        await cluster.create(model(**PYTHON))
        live = await world.becomes(INFERENCE_SERVICE, is_failed)
    assert "found none of model.py, model.joblib, model.pkl" in condition(live, "Ready")["message"]


async def test_storage_path_outside_the_volume_is_refused(cluster: EmbeddedCluster, place: Path) -> None:
    put(place, "model.py", DOUBLING)
    (place / "volumes" / "default" / "models" / "link").symlink_to("/etc")
    async with answering(cluster, place) as world:
        await cluster.create(model(**{**PYTHON, "storageUri": "pvc://models/link"}))
        live = await world.becomes(INFERENCE_SERVICE, is_failed)
        assert "leads out of its volume" in condition(live, "Ready")["message"]


STEALING = """
import os, socket
def predict(instances):
    found = []
    for work in (lambda: open('/etc/passwd').read(), lambda: socket.create_connection(('127.0.0.1', {port}), 1),
                 lambda: open(os.path.join({folder!r}, 'secret')).read(), lambda: os.kill({pid}, 0)):
        try:
            work()
            found.append('done')
        except OSError as error:
            found.append('refused')
    return found
"""


async def test_model_cannot_access_files_network_or_processes(cluster: EmbeddedCluster, place: Path) -> None:
    (place / "secret").write_text("secret")
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    put(place, "model.py", STEALING.format(port=port, folder=str(place), pid=os.getpid()))
    async with server, answering(cluster, place) as world:
        await cluster.create(model(**PYTHON))
        url = (await world.becomes(INFERENCE_SERVICE, is_ready))["status"]["url"]
        _, response = await ask(url, "/v1/models/web:predict", {"instances": [1]})
        assert response == {"predictions": ["refused"] * 4}


SPEAKING = "print('I am read')\n\ndef predict(instances):\n    print('asked', instances)\n    return instances\n"


async def printed(addon: AddOn, pod: Manifest, *, follow: bool = False) -> AsyncIterator[str]:
    assert addon.pod_log_reader is not None
    async for line in addon.pod_log_reader.lines(pod, container="kserve-container", follow=follow, tail=None):
        yield line


async def test_predictor_log_is_the_output_of_its_process(cluster: EmbeddedCluster, place: Path) -> None:
    put(place, "model.py", SPEAKING)
    addon = make(KINDS)
    async with answering(cluster, place, addon) as world:
        await cluster.create(model(**PYTHON))
        url = (await world.becomes(INFERENCE_SERVICE, is_ready))["status"]["url"]
        (pod,) = await world.pods()
        await ask(url, "/v1/models/web:predict", {"instances": [7]})
        async with asyncio.timeout(HANG_SECONDS):
            followed = printed(addon, pod, follow=True)
            lines = [await anext(followed) for _ in range(5)]
            assert "loading web from pvc://models/doubling (simulated by argosy)" in lines[0]
            assert lines[1] == "I am read" and "loaded in" in lines[2] and lines[3] == "asked [7]"
            assert lines[4].split(" ", 1)[1].startswith("POST '/v1/models/web:predict' 200")
            assert [line async for line in printed(addon, pod)] == lines
            await cluster.delete(key(INFERENCE_SERVICE, "web"))
            assert [line async for line in followed] == []
    assert not (place / "logs" / "models").exists()


async def test_stubs_share_a_process_but_not_log_lines(cluster: EmbeddedCluster, place: Path) -> None:
    addon = make(KINDS)
    async with answering(cluster, place, addon) as world:
        other = model()
        other["metadata"]["name"] = "other"
        for manifest in (model(), other):
            await cluster.create(manifest)
        urls = {
            name: (await world.becomes(INFERENCE_SERVICE, is_ready, name))["status"]["url"] for name in ("web", "other")
        }
        await ask(urls["other"], "/v1/completions", {"prompt": "Hello"})
        pods = {pod["metadata"]["labels"]["app"]: pod for pod in await world.pods()}

        async def lines(app: str) -> list[str]:
            return [line async for line in printed(addon, pods[app])]

        async def has_both() -> bool:
            return len(await lines("isvc.other-predictor")) == 2

        await until(has_both)
        assert "POST '/v1/completions' 200" in (await lines("isvc.other-predictor"))[1]
        (only,) = await lines("isvc.web-predictor")
        assert "a stub answers for web" in only


def test_request_for_a_model_that_is_down_is_a_503_and_not_served_by_another() -> None:
    shelf = server.ModelRegistry()
    shelf.register_from_line(json.dumps({"host": "web-staging", "name": "web"}))
    assert shelf.find("127.0.0.1:8080", "/v1/models").host == "web-staging"
    with pytest.raises(server.RequestError) as raised:
        shelf.find("web-dev.localhost:8080", "/v1/models/web")
    assert raised.value.status == 503 and "web-dev.localhost" in str(raised.value)
