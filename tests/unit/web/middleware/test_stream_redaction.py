"""Streams are masked with the Secrets that exist when each part is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from argosy.web.auth.caller import NOBODY
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from argosy.web.request import QueryParameters, RequestContext
from argosy.web.responses import StreamResponse
from argosy.web.route import RequiresPermission, ResolvedObject, Route
from argosy.web.secret_mask_by_request_scope import build_text_mask, find_request_mask
from support import scope_manifests
from support.page_site import KnownPeople, StillLookout, a_request, a_site, anything
from support.scope_manifests import project
from support.tenants import ask

pytestmark = pytest.mark.anyio
VALUE = "of-jobs-0f5d4c"


def app(*namespaces: str) -> dict[str, Any]:
    rows = [
        {"kind": "ConfigMap", "namespace": namespace, "name": "c", "status": "OutOfSync"} for namespace in namespaces
    ]
    return scope_manifests.application(namespace=namespaces[0], status={"resources": rows})


def secret(value: str = VALUE, version: int = 1) -> dict[str, Any]:
    return scope_manifests.secret("jobs", value, version)


def tracked() -> dict[str, Any]:
    """A live object of the Application in the namespace that its project forbids."""
    annotations = {"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:jobs/c"}
    metadata = {"name": "c", "namespace": "jobs", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


BOTH = project("web", "jobs")
CHANGES: dict[str, tuple[list[dict[str, Any]], dict[str, Any], tuple[bool, bool]]] = {
    # initial manifests, the change while the stream is open, and whether the value is shown before and after it
    "a Secret is created": ([BOTH, app("web", "jobs")], secret(), (True, False)),
    "a Secret gets another value": ([BOTH, app("jobs"), secret("another-value", 1)], secret(VALUE, 2), (True, False)),
    "a Secret loses the value": ([BOTH, app("jobs"), secret(VALUE, 1)], secret("another-value", 2), (False, True)),
    "the Application gets an object there": ([BOTH, app("web"), secret()], app("web", "jobs"), (True, False)),
    "the Application moves there": ([BOTH, app("web"), secret()], app("jobs"), (True, False)),
    "the project permits more": ([project("web"), app("jobs"), secret()], BOTH, (True, False)),
    "the project is narrowed": ([BOTH, app("jobs"), secret()], project("web"), (False, True)),
    "a narrowed project has live objects": ([BOTH, app("jobs"), secret(), tracked()], project("web"), (False, False)),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_open_stream_is_masked_with_the_current_secrets(change: str) -> None:
    manifests, changed, expected = CHANGES[change]
    site = a_site(manifests, KnownPeople({"ann": anything}))
    lookout: Any = site.cluster_view

    async def chunks() -> AsyncIterator[bytes]:
        yield f"data: first {VALUE}\n\n".encode()
        lookout.put(changed)
        yield f"data: then {VALUE}\n\n".encode()

    async def answer(request: RequestContext) -> StreamResponse:
        return StreamResponse(chunks=chunks())

    async def subject(request: RequestContext) -> ResolvedObject:
        return ResolvedObject(None, "ml/shop")

    entry = WebApplication(
        site, [Route("GET", "/api/v1/x", RequiresPermission("applications", "get", subject), answer)]
    )
    got = await ask(entry, "GET", "/api/v1/x", {"Authorization": "Bearer ann"}, reads_stream=True)
    first, _, then = got.body.partition(b"then")
    assert (VALUE.encode() in first, VALUE.encode() in then) == expected


@pytest.mark.parametrize("change", CHANGES)
def test_followed_log_lines_are_masked_with_the_current_secrets(change: str) -> None:
    """Log lines are masked before they are filtered, not only when they are sent."""
    manifests, changed, expected = CHANGES[change]
    site = a_site(manifests)
    lookout: Any = site.cluster_view
    request = a_request(site, "GET", "/apps/x", {}, QueryParameters([]), {}, NOBODY, rbac_object="ml/shop")
    hide = build_text_mask(request)
    before = VALUE in hide(f"first {VALUE}")
    lookout.put(changed)
    assert (before, VALUE in hide(f"then {VALUE}")) == expected


# -- namespaces of requests, and of objects without an Application ---------------------------------------------------


def mask_for(path: str, query: list[tuple[str, str]], manifests: list[dict[str, Any]]) -> Callable[[str], str]:
    request = a_request(a_site(manifests), "GET", path, {}, QueryParameters(query), rbac_object="ml/shop")
    return find_request_mask(request).mask_text


@pytest.mark.parametrize("path", ["/api/v1/applications/shop/logs", "/api/v1/applications/shop/resource"])
def test_logs_and_objects_are_masked_with_secrets_of_the_requested_namespace(path: str) -> None:
    """An object below a cluster-scoped owner may be in a namespace that the Application's status does not name."""
    manifests = [project("web"), app("web"), secret()]
    assert VALUE not in mask_for(path, [("namespace", "jobs")], manifests)(VALUE)
    assert VALUE in mask_for(path, [], manifests)(VALUE), "it is not asked for"
    assert VALUE in mask_for(path, [("namespace", "web")], manifests)(VALUE)
    other = "/api/v1/applications/shop/events"
    assert VALUE in mask_for(other, [("namespace", "jobs")], manifests)(VALUE), "a word of the caller alone"


@pytest.mark.parametrize("mark", ["annotation", "label", "none"])
def test_narrowed_project_unmasks_nothing_where_live_objects_remain(mark: str) -> None:
    live = tracked()
    if mark != "annotation":
        del live["metadata"]["annotations"]
    if mark == "label":
        live["metadata"]["labels"] = {"app.kubernetes.io/instance": "shop"}
    lookout = StillLookout([project("web"), app("jobs"), secret(), live])
    site = a_site()
    object.__setattr__(site, "cluster_view", lookout)
    request = a_request(site, "GET", "/apps/x", {}, QueryParameters([]), {}, NOBODY, rbac_object="ml/shop")
    assert (VALUE in request.masks.get_mask_for_application("shop").mask_text(VALUE)) is (mark == "none")


def test_object_without_an_application_is_masked_with_its_namespace_secrets() -> None:
    request = a_request(a_site([secret()]), "GET", "/activity", {}, QueryParameters([]), {}, NOBODY)
    masks = request.masks
    assert VALUE not in masks.get_mask_for_namespace("jobs").mask_text(VALUE)
    assert VALUE in masks.get_mask_for_namespace("web").mask_text(VALUE)
    assert VALUE in masks.get_mask_for_namespace("").mask_text(VALUE)
