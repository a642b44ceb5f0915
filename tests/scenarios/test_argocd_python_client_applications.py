"""Applications through argocd-python-client: a client of Argo CD's REST API from PyPI, generated from its swagger.

The client lists, reads, creates, syncs and watches Applications. Its models come from an older Argo CD and expect
objects for times, so responses are not validated against them (`_check_return_type=False`). Requests are the client's.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from support.api_with_engine import ApiScene, a_folder, real_scene
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.anyio
argocd = pytest.importorskip("argocd_python_client", reason="argocd-python-client: pip install argosy[dev]")
service = pytest.importorskip("argocd_python_client.api.application_service_api")
LOOSE = {"_check_return_type": False}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ApiScene]:
    async with real_scene(tmp_path_factory.mktemp("client")) as opened_scene:
        opened_scene.room.repository.push({**a_folder(), "other/one.yaml": a_folder()["app/settings.yaml"]})
        await opened_scene.room.deliver()
        await opened_scene.room.until(lambda status: status["sync"]["status"] == "OutOfSync")
        await opened_scene.seen("models", lambda app: app["status"]["sync"]["status"] == "OutOfSync")
        elsewhere = {"server": "https://kubernetes.default.svc", "namespace": "untouched"}
        await opened_scene.room.deliver("unsynced", destination=elsewhere)  # no test syncs it
        await opened_scene.room.until(lambda status: status["sync"]["status"] == "OutOfSync", "unsynced")
        await opened_scene.seen("unsynced", lambda app: app["status"]["sync"]["status"] == "OutOfSync")
        yield opened_scene


async def client(api: ApiScene, token: str = "") -> Any:
    configuration = argocd.Configuration(host=f"http://127.0.0.1:{api.client.port}")
    authorization = f"Bearer {token or await api.token()}"
    return service.ApplicationServiceApi(argocd.ApiClient(configuration, "Authorization", authorization))


async def called(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    return await asyncio.to_thread(call, *arguments, **LOOSE, **named)


async def test_client_lists_and_reads_applications(api: ApiScene) -> None:
    their = await client(api)
    listed = await called(their.application_service_list)
    assert "models" in [application["metadata"]["name"] for application in listed["items"]]
    app = await called(their.application_service_get, "unsynced")
    assert app["spec"]["destination"]["namespace"] == "untouched" and app["status"]["sync"]["status"] == "OutOfSync"
    none = await called(their.application_service_list, selector="env=none")
    assert none["items"] == []
    tree = await called(their.application_service_resource_tree, "unsynced")
    assert {node["health"]["status"] for node in tree["nodes"]} == {"Missing"}
    manifests = await called(their.application_service_get_manifests, "models")
    assert len(manifests["manifests"]) == 5
    windows = await called(their.application_service_get_application_sync_windows, "models")
    assert windows["can_sync"] is True


async def test_client_creates_syncs_and_deletes_an_application(api: ApiScene) -> None:
    from argocd_python_client.model.application_application_sync_request import ApplicationApplicationSyncRequest
    from argocd_python_client.model.v1_object_meta import V1ObjectMeta
    from argocd_python_client.model.v1alpha1_application import V1alpha1Application
    from argocd_python_client.model.v1alpha1_application_destination import V1alpha1ApplicationDestination
    from argocd_python_client.model.v1alpha1_application_source import V1alpha1ApplicationSource
    from argocd_python_client.model.v1alpha1_application_spec import V1alpha1ApplicationSpec

    their = await client(api)
    source = V1alpha1ApplicationSource(repo_url=api.room.repository.url, path="other", target_revision="main")
    destination = V1alpha1ApplicationDestination(server="https://kubernetes.default.svc", namespace="ml")
    spec = V1alpha1ApplicationSpec(project="default", source=source, destination=destination)
    body = V1alpha1Application(metadata=V1ObjectMeta(name="theirs"), spec=spec)
    created = await called(their.application_service_create, body)
    assert created["metadata"]["name"] == "theirs"
    sync_response = await called(
        their.application_service_sync, "theirs", ApplicationApplicationSyncRequest(prune=True)
    )
    assert sync_response["operation"]["sync"]["prune"] is True
    done = await api.over("theirs")
    assert done["status"]["operationState"]["phase"] == "Succeeded"
    assert (await api.room.get("ConfigMap", "settings") or {})["data"] == {"a": "one"}
    await called(their.application_service_delete, "theirs", cascade=False)
    await api.room.until_gone("argoproj.io/Application", "theirs", "argocd")


async def test_client_watches_an_application(api: ApiScene) -> None:
    """With `_preload_content=False` the client returns the raw response; its frames are parsed as documented."""
    their, frames, has_begun = await client(api), [], threading.Event()

    def watch() -> None:
        answer = their.application_service_watch(name="models", _preload_content=False, _request_timeout=HANG_SECONDS)
        rest = b""
        for chunk in answer.stream(1 << 16):
            *whole, rest = (rest + chunk).split(b"\n")
            frames.extend(json.loads(line)["result"] for line in whole if line)
            has_begun.set()
            if any(frame["application"]["metadata"].get("labels") == {"seen": "yes"} for frame in frames):
                break
        answer.close()

    work = asyncio.create_task(asyncio.to_thread(watch))
    await asyncio.to_thread(has_begun.wait, HANG_SECONDS)
    await api.room.patch_app({"metadata": {"labels": {"seen": "yes"}}})
    await asyncio.wait_for(work, HANG_SECONDS)
    assert frames[0]["type"] == "ADDED" and frames[-1]["type"] == "MODIFIED"
    assert {frame["application"]["metadata"]["name"] for frame in frames} == {"models"}


async def test_client_reads_pod_logs(api: ApiScene) -> None:
    their = await client(api)
    await api.room.sync()
    await api.over("models")
    await api.seen("models", lambda app: app["status"]["sync"]["status"] == "Synced")

    def read() -> bytes:
        answer = their.application_service_pod_logs("models", "one", namespace="ml", _preload_content=False)
        logs: bytes = answer.read()
        return logs

    frames = [json.loads(line)["result"] for line in (await asyncio.to_thread(read)).splitlines()]
    assert frames[0]["content"] == "listening on 8080" and frames[-1]["last"] is True


async def test_client_raises_forbidden_and_unauthorized_exceptions(api: ApiScene) -> None:
    from argocd_python_client.exceptions import ForbiddenException, UnauthorizedException

    with pytest.raises(ForbiddenException, match="permission denied"):
        await called((await client(api)).application_service_get, "nobodys")
    with pytest.raises(UnauthorizedException, match="no session information"):
        await called((await client(api, "stranger")).application_service_get, "models")
