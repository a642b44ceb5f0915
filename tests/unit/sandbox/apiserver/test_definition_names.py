"""CRDs with conflicting names, preferred versions, and service accounts of namespaces and Pods."""

from __future__ import annotations

from typing import Any

import pytest

from support.api_client import DEFINITIONS, Api, definition, eventually, named, pod, version

pytestmark = pytest.mark.anyio
PODS = "/api/v1/namespaces/default/pods"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def second() -> dict[str, Any]:
    """CRD with another plural in the same group and the kind of the first CRD."""
    crd = definition()
    names = {"plural": "gadgets", "singular": "gadget", "kind": crd["spec"]["names"]["kind"]}
    return {**crd, "metadata": {"name": "gadgets.argosy.dev"}, "spec": {**crd["spec"], "names": names}}


async def conditions(api: Api, name: str) -> dict[str, tuple[str, str]]:
    status = (await api.get(f"{DEFINITIONS}/{name}")).json["status"]
    return {
        condition["type"]: (condition["status"], condition["reason"]) for condition in status.get("conditions") or []
    }


async def test_group_prefers_its_most_stable_version_over_the_first_crd(api: Api) -> None:
    for plural, name in (("gadgets", "v1alpha1"), ("widgets", "v1beta1")):
        await api.made(DEFINITIONS, definition(version(name), plural=plural))

    async def both() -> bool:
        response = await api.get("/apis/argosy.dev")
        return response.code == 200 and len(response.json["versions"]) == 2

    await eventually(both)
    assert (await api.get("/apis/argosy.dev")).json["preferredVersion"]["version"] == "v1beta1"


async def test_crd_with_conflicting_kind_is_accepted_once_the_kind_is_free(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    await api.made(DEFINITIONS, second())

    async def refused() -> bool:
        current_conditions = await conditions(api, "gadgets.argosy.dev")
        return current_conditions.get("NamesAccepted") == ("False", "KindConflict")

    await eventually(refused)
    assert (await conditions(api, "gadgets.argosy.dev"))["Established"] == ("False", "NotAccepted")
    assert (await api.get("/apis/argosy.dev/v1/gadgets")).code == 404
    await api.delete(f"{DEFINITIONS}/widgets.argosy.dev")

    async def accepted() -> bool:
        return (await conditions(api, "gadgets.argosy.dev")).get("Established") == ("True", "InitialNamesAccepted")

    await eventually(accepted)
    assert (await api.get("/apis/argosy.dev/v1/gadgets")).code == 200


async def test_deleted_default_service_account_is_recreated(api: Api) -> None:
    before = (await api.get(f"{ACCOUNTS}/default")).json["metadata"]["uid"]
    await api.delete(f"{ACCOUNTS}/default")

    async def back() -> bool:
        answer = await api.get(f"{ACCOUNTS}/default")
        return answer.code == 200 and answer.json["metadata"]["uid"] != before

    await eventually(back)


async def test_pod_requires_an_existing_service_account(api: Api) -> None:
    base_pod = pod("p")
    manifest = {**base_pod, "spec": {**base_pod["spec"], "serviceAccountName": "robot"}}
    refused = await api.post(PODS, manifest)
    assert refused.code == 403
    assert refused.message == (
        'pods "p" is forbidden: error looking up service account default/robot: serviceaccount "robot" not found'
    )
    await api.made(ACCOUNTS, named("v1", "ServiceAccount", "robot"))
    assert (await api.post(PODS, manifest)).code == 201
