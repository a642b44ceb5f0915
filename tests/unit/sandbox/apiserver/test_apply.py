"""Server-side apply through the API server: field ownership per path, version and schema of a kind."""

from __future__ import annotations

from typing import Any

import pytest

from support.api_client import (
    CONFIGS,
    DEFINITIONS,
    JSON_PATCH,
    WIDGETS,
    Api,
    config,
    definition,
    deployment,
    named,
    schema,
    version,
    widget,
)

pytestmark = pytest.mark.anyio
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
EVENTS = {"v1": "/api/v1/namespaces/default/events", "events": "/apis/events.k8s.io/v1/namespaces/default/events"}


def owners(manifest: Any) -> dict[tuple[str, str, str], Any]:
    entries = manifest["metadata"].get("managedFields") or []
    return {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"] for entry in entries
    }


REFUSED = [
    (config("other"), 400, "the name of the object (other) does not match the name on the URL (a)"),
    ({"apiVersion": "v1", "kind": "ConfigMap"}, 400, "the name of the object (a based on URL) was undeterminable"),
    (config("a", namespace="other"), 400, "does not match the namespace sent on the request"),
    ({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}}, 400, "invalid object type: /v2, Kind="),
    ({"kind": "ConfigMap", "metadata": {"name": "a"}}, 400, "invalid object type: /, Kind=ConfigMap"),
    (config("a", managedFields=[{}]), 400, "metadata.managedFields must be nil"),
    (config("a", uid="u"), 409, "uid mismatch: the provided object specified uid u, and no existing object was found"),
    ({**config("a"), "bogus": 1}, 500, ".bogus: field not declared in schema"),
    ([], 400, "error decoding YAML"),
]


@pytest.mark.parametrize(("body", "code", "words"), REFUSED)
async def test_invalid_apply_is_rejected_and_writes_nothing(api: Api, body: Any, code: int, words: str) -> None:
    before = api.plane.store.revision
    answer = await api.apply(f"{CONFIGS}/a", body)
    assert (answer.code, words in answer.message) == (code, True), answer.body
    assert api.plane.store.revision == before


async def test_apply_requires_a_field_manager(api: Api) -> None:
    answer = await api.ask("PATCH", f"{CONFIGS}/a", config("a"), "application/apply-patch+yaml")
    assert answer.code == 422 and "fieldManager: Required value: is required for apply patch" in answer.message


async def test_apply_creates_shares_drops_and_takes_over_fields(api: Api) -> None:
    path = f"{CONFIGS}/a"
    response = await api.apply(path, config("a", {"x": "1", "y": "1"}))
    assert response.code == 201
    shared = await api.apply(path, config("a", {"x": "1"}), "m2")
    assert set(owners(shared.json)) == {("m1", "Apply", ""), ("m2", "Apply", "")}
    refused = await api.apply(path, config("a", {"x": "2"}), "m2")
    assert (refused.code, refused.message) == (409, 'Apply failed with 1 conflict: conflict with "m1": .data.x')
    dropped = await api.apply(path, config("a", {"x": "1"}))
    assert dropped.json["data"] == {"x": "1"}  # y had no other owner
    taken = await api.apply(path, config("a", {"x": "2"}), "m2", "&force=true")
    assert taken.json["data"] == {"x": "2"} and set(owners(taken.json)) == {("m2", "Apply", "")}


async def test_apply_without_changes_writes_nothing(api: Api) -> None:
    response = await api.apply(f"{CONFIGS}/a", config("a", {"x": "1"}))
    before = api.plane.store.revision
    again = await api.apply(f"{CONFIGS}/a", config("a", {"x": "1"}))
    assert (again.code, again.json, api.plane.store.revision) == (200, response.json, before)


async def test_apply_with_old_resource_version_is_a_conflict(api: Api) -> None:
    await api.apply(f"{CONFIGS}/a", config("a", {"x": "1"}))
    assert (await api.apply(f"{CONFIGS}/a", config("a", {"x": "1"}, resourceVersion="1"))).code == 409


async def test_dry_run_apply_stores_nothing(api: Api) -> None:
    assert (await api.apply(f"{CONFIGS}/a", config("a"), more="&dryRun=All")).code == 201
    assert (await api.get(f"{CONFIGS}/a")).code == 404


async def test_defaults_have_no_owner_and_ports_merge_by_number_and_protocol(api: Api) -> None:
    sent = deployment("d")
    sent["spec"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    applied = (await api.apply(f"{DEPLOYMENTS}/d", sent)).json
    fields = owners(applied)["m1", "Apply", ""]["f:spec"]
    assert "f:strategy" not in fields and "strategy" in applied["spec"]
    second = deployment("d")
    del second["spec"]["replicas"], second["spec"]["selector"]
    ports = [{"containerPort": 80, "protocol": "TCP", "name": "web"}, {"containerPort": 80, "protocol": "UDP"}]
    containers = [{"name": "side", "image": "s"}, {"name": "c", "ports": ports}]
    second["spec"]["template"]["spec"]["containers"] = containers
    merged = (await api.apply(f"{DEPLOYMENTS}/d", second, "m2")).json["spec"]["template"]["spec"]["containers"]
    by_name = {container["name"]: container for container in merged}
    assert by_name["c"]["image"] == "nginx" and by_name["side"]["image"] == "s"
    assert [(p["containerPort"], p["protocol"], p.get("name")) for p in by_name["c"]["ports"]] == [
        (80, "TCP", "web"), (80, "UDP", None),
    ]  # fmt: skip


async def test_spec_and_status_are_applied_only_through_their_own_path(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    applied = (await api.apply(f"{WIDGETS}/w", {**widget("w", size=1), "status": {"size": 9}})).json
    assert "status" not in applied and owners(applied) == {("m1", "Apply", ""): {"f:spec": {"f:size": {}}}}
    status = {**widget("w", size=7), "status": {"size": 3}}
    reported = (await api.apply(f"{WIDGETS}/w/status", status, "reporter")).json
    assert (reported["spec"]["size"], reported["status"]) == (1, {"size": 3})
    assert owners(reported)["reporter", "Apply", "status"] == {"f:status": {"f:size": {}}}
    assert (await api.apply(f"{WIDGETS}/none/status", {**widget("none"), "status": {}})).code == 404


async def test_applied_scale_owns_the_replicas(api: Api) -> None:
    await api.made(DEPLOYMENTS, deployment("d", 2))
    scale = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "d"}, "spec": {"replicas": 7}}
    refused = await api.apply(f"{DEPLOYMENTS}/d/scale", scale, "scaler")
    assert refused.code == 409 and ".spec.replicas" in refused.message
    scaled = await api.apply(f"{DEPLOYMENTS}/d/scale", scale, "scaler", "&force=true")
    assert (scaled.json["kind"], scaled.json["spec"]) == ("Scale", {"replicas": 7})
    live = (await api.get(f"{DEPLOYMENTS}/d")).json
    assert owners(live)["scaler", "Apply", "scale"] == {"f:spec": {"f:replicas": {}}}
    assert live["metadata"]["generation"] == 2


async def test_fields_from_before_the_first_apply_keep_an_owner(api: Api) -> None:
    await api.made(CONFIGS, config("a", {"x": "1"}))
    await api.patch(f"{CONFIGS}/a", [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}], JSON_PATCH)
    applied = await api.apply(f"{CONFIGS}/a", config("a", {"y": "1"}))
    assert set(owners(applied.json)) == {("m1", "Apply", ""), ("before-first-apply", "Update", "")}


# -- one kind in two shapes -------------------------------------------------------------------------------------


def scaler() -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50, "scaleTargetRef": target}
    return named("autoscaling/v1", "HorizontalPodAutoscaler", "h", spec=spec)


async def test_autoscaler_is_one_object_in_both_api_versions(api: Api) -> None:
    first, second = SCALERS.format("v1"), SCALERS.format("v2")
    created = await api.made(first, scaler())
    read = (await api.get(f"{second}/h")).json
    target = {"type": "Utilization", "averageUtilization": 50}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    assert (read["apiVersion"], read["spec"]["metrics"]) == ("autoscaling/v2", [metric])
    assert read["metadata"]["uid"] == created["metadata"]["uid"]
    assert (await api.patch(f"{second}/h", {"spec": {"maxReplicas": 5}})).json["spec"]["metrics"] == [metric]
    old = (await api.get(f"{first}/h")).json
    assert (old["spec"]["maxReplicas"], old["spec"]["targetCPUUtilizationPercentage"]) == (5, 50)
    applied = named("autoscaling/v1", "HorizontalPodAutoscaler", "h", spec={"minReplicas": 2})
    assert (await api.apply(f"{first}/h", applied, more="&force=true")).json["spec"]["minReplicas"] == 2
    for path, kind in ((first, "autoscaling/v1"), (second, "autoscaling/v2")):
        listed = (await api.get(path)).json
        assert listed["apiVersion"] == kind and len(listed["items"]) == 1


async def test_event_is_one_object_in_both_api_groups(api: Api) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    event = named("v1", "Event", "e", involvedObject=about, message="hi", reason="R", type="Normal", count=1)
    await api.made(EVENTS["v1"], event)
    read = (await api.get(f"{EVENTS['events']}/e")).json
    assert (read["regarding"], read["note"], read["deprecatedCount"]) == (about, "hi", 1)
    assert "message" not in read and "involvedObject" not in read
    listed = (await api.get(f"{EVENTS['events']}?fieldSelector=regarding.name%3Dp")).json["items"]
    assert [listed_event["note"] for listed_event in listed] == ["hi"]
    async with api.watch(EVENTS["events"]) as watching:
        await watching.count(1)
        await api.patch(f"{EVENTS['v1']}/e", {"count": 2})
        events = await watching.count(2)
    assert [watch_event["object"]["deprecatedCount"] for watch_event in events] == [1, 2]
    await api.delete(f"{EVENTS['events']}/e")
    assert (await api.get(f"{EVENTS['v1']}/e")).code == 404


# -- custom kinds -----------------------------------------------------------------------------------------------

SIZE, TEXT = {"type": "integer"}, {"type": "string"}


def spec_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


async def test_other_version_shows_object_after_both_schemas(api: Api) -> None:
    one = version("v1", spec=spec_of(size=SIZE, old=TEXT, mode={**TEXT, "default": "slow"}))
    two = version("v2", storage=False, spec=spec_of(size=SIZE, mode=TEXT, new={**TEXT, "default": "unseen"}))
    await api.made(DEFINITIONS, definition(one, two))
    other = WIDGETS.replace("/v1/", "/v2/")
    await api.made(WIDGETS, widget("w", size=1, old="o"))
    live = (await api.get(f"{other}/w")).json
    assert (live["apiVersion"], live["spec"]) == ("argosy.dev/v2", {"size": 1, "mode": "slow"})
    assert [manifest["spec"] for manifest in (await api.get(other)).json["items"]] == [{"size": 1, "mode": "slow"}]
    async with api.watch(other) as watching:
        (event,) = await watching.count(1)
    assert event["object"]["spec"] == {"size": 1, "mode": "slow"}


async def test_crd_versions_share_field_ownership(api: Api) -> None:
    await api.made(DEFINITIONS, definition(version("v1"), version("v2", storage=False)))
    await api.apply(f"{WIDGETS}/w", widget("w", size=1))
    other = WIDGETS.replace("/v1/", "/v2/")
    assert (await api.apply(f"{other}/w", widget("w", "v2", size=1), "m2")).code == 200
    refused = await api.apply(f"{other}/w", widget("w", "v2", size=2), "m2")
    assert refused.code == 409 and '"m1"' in refused.message


async def test_new_schema_prunes_and_defaults_on_read_without_new_revision(api: Api) -> None:
    await api.made(DEFINITIONS, definition(version(spec=spec_of(size=SIZE, old=TEXT))))
    created = await api.made(WIDGETS, widget("w", size=1, old="x"))
    crd = f"{DEFINITIONS}/widgets.argosy.dev"
    fresh = schema(spec_of(size=SIZE, color={**TEXT, "default": "red"}))
    change = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": fresh}]
    assert (await api.patch(crd, change, JSON_PATCH)).code == 200
    for manifest in ((await api.get(f"{WIDGETS}/w")).json, (await api.get(WIDGETS)).json["items"][0]):
        assert manifest["spec"] == {"size": 1, "color": "red"}
        assert manifest["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
    async with api.watch(WIDGETS) as watching:
        (event,) = await watching.count(1)
    assert event["object"]["spec"]["color"] == "red"
    relabelled = (await api.patch(f"{WIDGETS}/w", {"metadata": {"labels": {"a": "b"}}})).json
    assert relabelled["spec"] == {"size": 1, "color": "red"}


async def test_unknown_fields_of_custom_objects_are_pruned_or_rejected(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    sent = widget("w", size=1, extra=True)
    assert (await api.post(f"{WIDGETS}?fieldValidation=Strict", sent)).code == 400
    response = await api.post(WIDGETS, sent)
    assert response.json["spec"] == {"size": 1, "mode": "slow"}
    assert 'unknown field \\"spec.extra\\"' in response.headers["warning"]


WRONG = [
    ({"kind": "Other", "apiVersion": "argosy.dev/v1", "metadata": {"name": "x"}}, 422, "kind: Invalid value"),
    ({"kind": "Widget", "apiVersion": "argosy.dev/v9", "metadata": {"name": "x"}}, 400, "does not match the expected"),
    (widget("x", size="big"), 422, "must be of type integer"),
]


@pytest.mark.parametrize(("body", "code", "words"), WRONG)
async def test_invalid_custom_object_is_rejected(api: Api, body: Any, code: int, words: str) -> None:
    await api.made(DEFINITIONS, definition())
    answer = await api.post(WIDGETS, body)
    assert (answer.code, words in answer.message) == (code, True), answer.body


async def test_custom_object_replace_requires_current_resource_version(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    created = await api.made(WIDGETS, widget("w", size=1))
    assert (await api.put(f"{WIDGETS}/w", widget("w", size=2))).code == 422
    created["spec"]["size"] = 2
    assert (await api.put(f"{WIDGETS}/w", created)).code == 200
    assert (await api.put(f"{WIDGETS}/w", created)).code == 409
