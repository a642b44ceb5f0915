"""Deletion: preconditions, propagation policies, grace periods, finalizers and responses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.sandbox.apiserver.control_plane import ControlPlane
from support.api_client import CONFIGS, TOKEN, Api, config, deployment, named, pod

pytestmark = pytest.mark.anyio
PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
BOTH = "orphanDependents and deletionPropagation cannot be both set"


async def test_object_without_finalizers_is_deleted_at_once(api: Api) -> None:
    config_map = await api.made(CONFIGS, config("a"))
    answer = await api.delete(f"{CONFIGS}/a")
    details = {"name": "a", "kind": "configmaps", "uid": config_map["metadata"]["uid"]}
    assert (answer.code, answer.json["status"], answer.json["details"]) == (200, "Success", details)
    assert (await api.get(f"{CONFIGS}/a")).code == 404


REFUSED = [
    ({"preconditions": {"uid": "u"}}, "", 409, "the UID in the precondition (u) does not match the UID in record"),
    ({"preconditions": {"resourceVersion": "1"}}, "", 409, "the ResourceVersion in the precondition (1) does not"),
    ({"propagationPolicy": "Bogus"}, "", 422, 'supported values: "Foreground", "Background", "Orphan", "nil"'),
    ({"propagationPolicy": "Orphan", "orphanDependents": True}, "", 422, BOTH),
    ({"dryRun": ["Some"]}, "", 422, 'dryRun: Unsupported value: []string{"Some"}'),
    (None, "propagationPolicy=Zzz", 422, 'propagationPolicy: Unsupported value: "Zzz"'),
    (None, "gracePeriodSeconds=abc", 400, 'strconv.ParseInt: parsing "abc": invalid syntax'),
    (None, "dryRun=x", 422, "dryRun: Unsupported value"),
    ({"gracePeriodSeconds": "x"}, "", 400, "cannot unmarshal string"),
    ({"preconditions": []}, "", 400, "cannot unmarshal array"),
    ([], "", 400, "no object"),
]


@pytest.mark.parametrize(("body", "query", "code", "words"), REFUSED)
async def test_invalid_delete_options_delete_nothing(api: Api, body: Any, query: str, code: int, words: str) -> None:
    config_map = await api.made(CONFIGS, config("x"))
    answer = await api.delete(f"{CONFIGS}/x?{query}", body)
    assert (answer.code, words in answer.message) == (code, True), answer.body
    assert (await api.get(f"{CONFIGS}/x")).json == config_map


async def test_preconditions_apply_to_deletion_of_a_collection(api: Api) -> None:
    await api.made(CONFIGS, config("x"))
    answer = await api.delete(f"{CONFIGS}?fieldSelector=metadata.name%3Dx", {"preconditions": {"uid": "other"}})
    assert answer.code == 409 and (await api.get(f"{CONFIGS}/x")).code == 200


async def test_matching_preconditions_allow_deletion(api: Api) -> None:
    about = (await api.made(CONFIGS, config("x")))["metadata"]
    right = {"uid": about["uid"], "resourceVersion": about["resourceVersion"]}
    assert (await api.delete(f"{CONFIGS}/x", {"preconditions": right})).json["status"] == "Success"


POLICIES = [
    ({}, "", []),
    ({"propagationPolicy": "Background"}, "", []),
    ({"propagationPolicy": "Foreground"}, "", ["foregroundDeletion"]),
    ({"propagationPolicy": "Orphan"}, "", ["orphan"]),
    ({"orphanDependents": True}, "", ["orphan"]),
    ({"orphanDependents": False}, "", []),
    (None, "propagationPolicy=Foreground", ["foregroundDeletion"]),
    (None, "orphanDependents=true", ["orphan"]),
]


@pytest.mark.parametrize(("body", "query", "added"), POLICIES)
async def test_propagation_policy_is_stored_as_a_finalizer(api: Api, body: Any, query: str, added: list[str]) -> None:
    await api.made(CONFIGS, config("x", finalizers=["a.b/c"]))
    answer = await api.delete(f"{CONFIGS}/x?{query}", body)
    assert answer.json["metadata"]["finalizers"] == ["a.b/c", *added]
    assert answer.json["metadata"]["deletionGracePeriodSeconds"] == 0


async def test_later_deletion_can_change_the_propagation_policy(api: Api) -> None:
    await api.made(CONFIGS, config("x", finalizers=["a.b/c"]))
    finalizers = []
    for policy in ("Foreground", "Orphan", "Background"):
        answer = await api.delete(f"{CONFIGS}/x", {"propagationPolicy": policy})
        finalizers.append(answer.json["metadata"]["finalizers"][1:])
    assert finalizers == [["foregroundDeletion"], ["orphan"], []]


async def test_terminating_object_stays_until_its_last_finalizer_is_removed(api: Api) -> None:
    await api.made(CONFIGS, config("x", {"a": "1"}, finalizers=["a.b/c"]))
    dying = (await api.delete(f"{CONFIGS}/x")).json["metadata"]
    assert (await api.delete(f"{CONFIGS}/x")).json["metadata"] == dying
    added = await api.patch(f"{CONFIGS}/x", {"metadata": {"finalizers": ["a.b/c", "d.e/f"]}})
    assert added.code == 422 and "no new finalizers can be added if the object is being deleted" in added.message
    revived = await api.patch(f"{CONFIGS}/x", {"metadata": {"deletionTimestamp": None}})
    assert revived.json["metadata"]["deletionTimestamp"] == dying["deletionTimestamp"]
    replaced = await api.put(f"{CONFIGS}/x", config("x", {"a": "2"}, finalizers=["a.b/c"]))
    assert replaced.json["metadata"]["deletionTimestamp"] == dying["deletionTimestamp"]
    last = await api.patch(f"{CONFIGS}/x", {"metadata": {"finalizers": None}, "data": {"a": "3"}})
    assert (last.code, last.json["data"]) == (200, {"a": "3"})
    assert (await api.get(f"{CONFIGS}/x")).code == 404


async def test_dry_run_delete_shows_deletion_timestamp_and_writes_nothing(api: Api) -> None:
    config_map = await api.made(CONFIGS, config("x", finalizers=["a.b/c"]))
    preview = await api.delete(f"{CONFIGS}/x?dryRun=All")
    assert preview.json["metadata"]["deletionTimestamp"] and (await api.get(f"{CONFIGS}/x")).json == config_map
    body = await api.delete(f"{CONFIGS}/x", {"dryRun": ["All"]})
    assert body.json["metadata"]["deletionTimestamp"] and (await api.get(f"{CONFIGS}/x")).json == config_map


async def test_deletion_request_increments_the_generation(api: Api) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    sent = deployment("d")
    await api.made(path, {**sent, "metadata": {"name": "d", "finalizers": ["a.b/c"]}})
    assert (await api.delete(f"{path}/d")).json["metadata"]["generation"] == 2


async def test_deleting_a_job_orphans_its_pods_by_default(api: Api) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = named("batch/v1", "Job", "j", spec={"template": template})
    await api.made(JOBS, job)
    answer = await api.delete(f"{JOBS}/j")
    assert answer.json["metadata"]["finalizers"] == ["orphan"]
    assert "child pods are preserved by default when jobs are deleted" in answer.headers["warning"]


# -- grace ---------------------------------------------------------------------------------------------

NOON = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)


async def test_grace_period_of_a_running_pod_can_only_be_shortened(tmp_path: Any) -> None:
    now = NOON
    async with ControlPlane.open(admin_token=TOKEN, clock=lambda: now) as plane:
        api = Api(plane)
        await api.made(PODS, pod("p", "node1"))
        grace_periods = []
        for seconds in (60, None, 90, 20, -3):
            answer = await api.delete(f"{PODS}/p", {"gracePeriodSeconds": seconds})
            about = answer.json["metadata"]
            grace_periods.append((about["deletionGracePeriodSeconds"], about["deletionTimestamp"]))
            now += timedelta(seconds=5)
        minute, third = "2030-01-01T12:01:00Z", "2030-01-01T12:00:20Z"
        assert grace_periods == [(60, minute), (60, minute), (60, minute), (20, third), (1, "2030-01-01T12:00:01Z")]
        last = await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
        assert last.json["kind"] == "Pod" and last.json["metadata"]["deletionGracePeriodSeconds"] == 0
        assert (await api.get(f"{PODS}/p")).code == 404


async def test_unscheduled_or_finished_pod_is_deleted_without_grace_period(api: Api) -> None:
    await api.made(PODS, pod("unscheduled"))
    await api.made(PODS, pod("finished", "node1"))
    await api.patch(f"{PODS}/finished/status", {"status": {"phase": "Succeeded"}})
    for name in ("unscheduled", "finished"):
        assert (await api.delete(f"{PODS}/{name}")).json["metadata"]["deletionGracePeriodSeconds"] == 0
        assert (await api.get(f"{PODS}/{name}")).code == 404


async def test_default_grace_period_comes_from_the_pod_spec(api: Api) -> None:
    sent = pod("p", "node1")
    sent["spec"]["terminationGracePeriodSeconds"] = 7
    await api.made(PODS, sent)
    assert (await api.delete(f"{PODS}/p")).json["metadata"]["deletionGracePeriodSeconds"] == 7
    assert (await api.get(f"{PODS}/p")).code == 200


async def test_force_deleted_pod_still_waits_for_its_finalizers(api: Api) -> None:
    await api.made(PODS, pod("p", "node1", finalizers=["a.b/c"]))
    assert (await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})).json["metadata"]["finalizers"] == ["a.b/c"]
    await api.patch(f"{PODS}/p", {"metadata": {"finalizers": None}})
    assert (await api.get(f"{PODS}/p")).code == 404


# -- collections ---------------------------------------------------------------------------------------------


async def test_collection_deletion_honors_selectors_and_limit(api: Api) -> None:
    for number in range(6):
        await api.made(CONFIGS, config(f"c{number}", labels={"odd": str(number % 2)}))
    odd = await api.delete(f"{CONFIGS}?labelSelector=odd%3D1")
    assert odd.json["kind"] == "ConfigMapList"
    assert [manifest["metadata"]["name"] for manifest in odd.json["items"]] == ["c1", "c3", "c5"]
    one = await api.delete(f"{CONFIGS}?limit=1")
    assert [manifest["metadata"]["name"] for manifest in one.json["items"]] == ["c0"]
    left = await api.get(CONFIGS)
    assert [manifest["metadata"]["name"] for manifest in left.json["items"]] == ["c2", "c4"]


async def test_default_namespace_and_namespace_collection_cannot_be_deleted(api: Api) -> None:
    assert (await api.delete("/api/v1/namespaces/default")).code == 403
    assert (await api.delete("/api/v1/namespaces")).code == 405
