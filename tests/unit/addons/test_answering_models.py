"""Models that answer: confined processes behind InferenceServices of the embedded cluster, asked over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import pickle
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from modelled_world import MODEL_KINDS, POD, SERVICE, model, runtime
from simulated_world import World, condition, key, made

from argosy.addons.simulators import make
from argosy.apiserver.embedded import EmbeddedCluster
from argosy.app.addons import running
from argosy.model.manifest import Manifest

pytestmark = pytest.mark.anyio
KINDS = "+".join(kind.kind for kind in MODEL_KINDS)
DOUBLING = "def predict(instances):\n    return [2 * each for each in instances]\n"
PYTHON = {"modelFormat": {"name": "python"}, "storageUri": "pvc://models/doubling"}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can pass: a confined process may be somebody else."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@contextlib.asynccontextmanager
async def answering(cluster: EmbeddedCluster, place: Path) -> AsyncIterator[World]:
    async with running([make(KINDS)], cluster, on_failure=lambda: None, folder=place):
        formats = [{"name": each, "autoSelect": True} for each in ("vLLM", "python", "sklearn")]
        await cluster.create(runtime(formats=formats))
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await cluster.create(made("v1", "PersistentVolumeClaim", spec, "models"))
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
    """As curl does: names under localhost are this machine."""
    name, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
    data = json.dumps(document).encode() if document is not None else b""
    verb = "GET" if document is None else "POST"
    head = f"{verb} {path} HTTP/1.1\r\nHost: {host or name}\r\nContent-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    told, _, body = (await asyncio.wait_for(reader.read(), 20)).partition(b"\r\n\r\n")
    writer.close()
    if not told:
        raise ConnectionResetError
    return int(told.split()[1]), body if b"event-stream" in told else json.loads(body)


async def refused(url: str) -> bool:
    try:
        return (await ask(url, "/v2/health/ready"))[0] == 404
    except OSError:
        return True


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not await holds():
            await asyncio.sleep(0.02)


async def test_a_file_of_python_on_a_volume_is_a_model_that_answers(cluster: EmbeddedCluster, place: Path) -> None:
    put(place, "model.py", DOUBLING)
    async with answering(cluster, place) as world:
        await cluster.create(model(**PYTHON))
        live = await world.becomes(SERVICE, is_ready)
        url = live["status"]["url"]
        assert url.startswith("http://web-default.localhost:")
        assert await ask(url, "/v1/models/web:predict", {"instances": [1, 21]}) == (200, {"predictions": [2, 42]})
        tensor = {"name": "x", "shape": [2], "datatype": "INT64", "data": [3, 4]}
        code, found = await ask(url, "/v2/models/web/infer", {"inputs": [tensor]})
        assert (code, found["outputs"][0]["data"], found["outputs"][0]["datatype"]) == (200, [6, 8], "INT64")
        assert (await ask(url, "/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}))[0] == 400
    assert await refused(url)


async def test_a_text_model_is_a_stub_that_says_so(cluster: EmbeddedCluster, place: Path) -> None:
    async with answering(cluster, place) as world:
        await cluster.create(model())
        url = (await world.becomes(SERVICE, is_ready))["status"]["url"]
        said = {"messages": [{"role": "user", "content": "Hello"}]}
        code, found = await ask(url, "/v1/chat/completions", said)
        text = found["choices"][0]["message"]["content"]
        assert code == 200 and text.startswith("stub of web: simulated by argosy") and text.endswith("You said: Hello")
        _, streamed = await ask(url, "/v1/chat/completions", {**said, "stream": True})
        assert streamed.endswith(b"data: [DONE]\n\n")


async def test_nobody_answers_for_a_model_that_was_deleted(cluster: EmbeddedCluster, place: Path) -> None:
    put(place, "model.py", DOUBLING)
    async with answering(cluster, place) as world:
        other = model()
        other["metadata"]["name"] = "other"
        for manifest in (model(**PYTHON), other):
            await cluster.create(manifest)
        urls = [(await world.becomes(SERVICE, is_ready, name))["status"]["url"] for name in ("web", "other")]
        for name, url in zip(("web", "other"), urls, strict=True):
            await cluster.delete(key(SERVICE, name))
            await until(lambda url=url: refused(url))


async def test_a_new_pod_reads_the_model_anew(cluster: EmbeddedCluster, place: Path) -> None:
    file = put(place, "model.py", DOUBLING)
    async with answering(cluster, place) as world:
        await cluster.create(model(**PYTHON))
        url = (await world.becomes(SERVICE, is_ready))["status"]["url"]
        file.write_text("def predict(instances):\n    return ['anew' for each in instances]\n")

        async def answers() -> Any:
            live = await cluster.get(key(SERVICE, "web"))
            assert live is not None
            with contextlib.suppress(OSError, ValueError):
                return (await ask(live["status"]["url"], "/v1/models/web:predict", {"instances": [1]}))[1]

        assert await answers() == {"predictions": [2]}
        for pod in await world.all(POD):
            await cluster.delete(key(POD, pod["metadata"]["name"]))

        async def is_anew() -> bool:
            return bool(await answers() == {"predictions": ["anew"]})

        await until(is_anew)
        live = await world.becomes(SERVICE, is_ready)
        assert live["status"]["url"] == url


async def test_a_process_that_is_killed_comes_back_at_the_same_address(cluster: EmbeddedCluster, place: Path) -> None:
    put(place, "model.py", "import os\n\ndef predict(instances):\n    return [os.getppid(), os.kill(os.getpid(), 9)]\n")
    async with answering(cluster, place) as world:
        await cluster.create(model(**PYTHON))
        url = (await world.becomes(SERVICE, is_ready))["status"]["url"]
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
        ("model.py", "raise SystemExit(3)\n", "model.py ends with exit code 3"),
        ("model.pkl", b"no pickle", "model.pkl cannot be loaded: UnpicklingError"),
        ("model.pkl", pickle.dumps([1]), "model.pkl holds a list, which cannot predict"),
        ("README", "no model", "pvc://models/doubling: there is none of model.py, model.joblib, model.pkl"),
    ],
)
async def test_a_model_that_cannot_be_loaded_says_why(
    cluster: EmbeddedCluster, place: Path, name: str, content: str | bytes, why: str
) -> None:
    put(place, name, content)
    async with answering(cluster, place) as world:
        await cluster.create(model(**PYTHON))
        live = await world.becomes(SERVICE, is_failed)
        assert why in live["status"]["modelStatus"]["lastFailureInfo"]["message"]
        assert "simulated by argosy" in condition(live, "Ready")["message"]


@pytest.mark.skipif(importlib.util.find_spec("joblib") is not None, reason="joblib: it is installed")
async def test_a_missing_library_is_named_with_what_to_install(cluster: EmbeddedCluster, place: Path) -> None:
    put(place, "model.joblib", b"")
    async with answering(cluster, place) as world:
        await cluster.create(model(**{**PYTHON, "modelFormat": {"name": "sklearn"}}))
        live = await world.becomes(SERVICE, is_failed)
        assert "pip install scikit-learn" in condition(live, "Ready")["message"]


async def test_a_path_out_of_the_volume_is_refused(cluster: EmbeddedCluster, place: Path) -> None:
    put(place, "model.py", DOUBLING)
    (place / "volumes" / "default" / "models" / "link").symlink_to("/etc")
    async with answering(cluster, place) as world:
        await cluster.create(model(**{**PYTHON, "storageUri": "pvc://models/link"}))
        live = await world.becomes(SERVICE, is_failed)
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


async def test_a_model_reaches_neither_files_nor_network_nor_processes(cluster: EmbeddedCluster, place: Path) -> None:
    (place / "secret").write_text("secret")
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    put(place, "model.py", STEALING.format(port=port, folder=str(place), pid=os.getpid()))
    async with server, answering(cluster, place) as world:
        await cluster.create(model(**PYTHON))
        url = (await world.becomes(SERVICE, is_ready))["status"]["url"]
        _, found = await ask(url, "/v1/models/web:predict", {"instances": [1]})
        assert found == {"predictions": ["refused"] * 4}

