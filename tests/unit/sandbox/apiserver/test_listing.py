"""Lists: consistent pages, selectors and requested resource versions."""

from __future__ import annotations

import base64

import orjson
import pytest

from support.api_client import (
    CONFIGS,
    DEFINITIONS,
    TABLE_OF,
    WIDGETS,
    Api,
    config,
    definition,
    named,
    pod,
    version,
    widget,
)

pytestmark = pytest.mark.anyio
ALL = "/api/v1/configmaps"
PODS = "/api/v1/namespaces/default/pods"


async def names(api: Api, path: str = CONFIGS) -> list[str]:
    answer = await api.get(path)
    assert answer.code == 200, answer.body
    return [manifest["metadata"]["name"] for manifest in answer.json["items"]]


async def fill(api: Api, count: int, prefix: str = "c") -> None:
    for number in range(count):
        await api.made(CONFIGS, config(f"{prefix}{number}", labels={"odd": str(number % 2)}))


async def test_pages_show_one_revision_despite_later_writes(api: Api) -> None:
    await fill(api, 5)
    first = (await api.get(f"{CONFIGS}?limit=2")).json
    assert first["metadata"]["remainingItemCount"] == 3
    await api.made(CONFIGS, config("c1a"))
    await api.delete(f"{CONFIGS}/c3")
    await api.patch(f"{CONFIGS}/c4", {"data": {"new": "1"}})
    second = (await api.get(f"{CONFIGS}?limit=2&continue={first['metadata']['continue']}")).json
    third = (await api.get(f"{CONFIGS}?limit=2&continue={second['metadata']['continue']}")).json
    pages = [first, second, third]
    assert [[e["metadata"]["name"] for e in page["items"]] for page in pages] == [["c0", "c1"], ["c2", "c3"], ["c4"]]
    assert len({page["metadata"]["resourceVersion"] for page in pages}) == 1
    assert "data" not in third["items"][0] and "continue" not in third["metadata"]


async def test_all_namespaces_are_listed_in_path_order_across_pages(api: Api) -> None:
    for namespace in ("team", "team-a", "a"):
        await api.made("/api/v1/namespaces", named("v1", "Namespace", namespace))
        for name in ("x", "b"):
            await api.made(f"/api/v1/namespaces/{namespace}/configmaps", config(name))
    listed_names, token = [], ""
    while True:
        page = (await api.get(f"{ALL}?limit=1&continue={token}")).json
        listed_names += [
            f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}" for manifest in page["items"]
        ]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert listed_names == ["a/b", "a/x", "team-a/b", "team-a/x", "team/b", "team/x"]


async def test_page_of_a_selection_is_full_and_has_no_remaining_item_count(api: Api) -> None:
    await fill(api, 6)
    page = (await api.get(f"{CONFIGS}?labelSelector=odd%3D1&limit=2")).json
    assert [manifest["metadata"]["name"] for manifest in page["items"]] == ["c1", "c3"]
    assert "remainingItemCount" not in page["metadata"]
    rest = (await api.get(f"{CONFIGS}?labelSelector=odd%3D1&limit=2&continue={page['metadata']['continue']}")).json
    assert [manifest["metadata"]["name"] for manifest in rest["items"]] == ["c5"]


async def test_expired_continue_token_returns_a_token_to_continue(api: Api) -> None:
    await fill(api, 4)
    token = (await api.get(f"{CONFIGS}?limit=2")).json["metadata"]["continue"]
    await api.made(CONFIGS, config("c1a"))
    await api.made(CONFIGS, config("c9"))
    await api.plane.store.compact(api.plane.store.revision)
    expired = await api.get(f"{CONFIGS}?limit=2&continue={token}")
    assert (expired.code, expired.json["reason"]) == (410, "Expired")
    fresh = expired.json["metadata"]["continue"]
    assert await names(api, f"{CONFIGS}?continue={fresh}") == ["c1a", "c2", "c3", "c9"]


def token(**fields: object) -> str:
    return base64.urlsafe_b64encode(orjson.dumps({"v": "meta.k8s.io/v1", **fields})).decode().rstrip("=")


BAD_TOKENS = [
    "!!!",
    token(rv=1),
    token(start="a"),
    token(rv="x", start="a"),
    token(rv=1, start="a", v="other"),
    "bm9wZQ",
]


@pytest.mark.parametrize("bad", BAD_TOKENS)
async def test_invalid_continue_token_is_rejected(api: Api, bad: str) -> None:
    answer = await api.get(f"{CONFIGS}?continue={bad}")
    assert answer.code == 400 and answer.message.startswith(("invalid continue token", "continue key is not valid"))


async def test_continue_token_of_a_future_revision_is_rejected(api: Api) -> None:
    answer = await api.get(f"{CONFIGS}?continue={token(rv=10**6, start='a')}")
    assert answer.code in (400, 410, 500) and "internal error" not in answer.message


# (resourceVersion, match, code): "now" is the newest revision, "old" is an earlier one
MATRIX = [
    ("", "", 200),
    ("0", "", 200),
    ("0", "NotOlderThan", 200),
    ("0", "Exact", 422),
    ("", "Exact", 422),
    ("", "NotOlderThan", 422),
    ("old", "", 200),
    ("old", "NotOlderThan", 200),
    ("old", "Exact", 200),
    ("now", "Exact", 200),
    ("now", "Bogus", 422),
    ("abc", "", 500),
]


@pytest.mark.parametrize(("requested_version", "match", "code"), MATRIX)
async def test_resource_version_and_match_select_the_listed_revision(
    api: Api, requested_version: str, match: str, code: int
) -> None:
    await fill(api, 2)
    old = api.plane.store.revision
    await fill(api, 1, "new")
    value = {"old": str(old), "now": str(api.plane.store.revision)}.get(requested_version, requested_version)
    answer = await api.get(f"{CONFIGS}?resourceVersion={value}&resourceVersionMatch={match}")
    assert answer.code == code, answer.body
    if code == 200:
        exactly = requested_version == "old" and match == "Exact"
        assert len(answer.json["items"]) == (2 if exactly else 3)
        assert not exactly or answer.json["metadata"]["resourceVersion"] == str(old)


async def test_list_at_resource_version_zero_ignores_the_limit(api: Api) -> None:
    await fill(api, 4)
    assert len(await names(api, f"{CONFIGS}?limit=2&resourceVersion=0")) == 4


@pytest.mark.parametrize("limit", ["-1", "0"])
async def test_limit_of_zero_or_less_is_ignored(api: Api, limit: str) -> None:
    await fill(api, 3)
    assert len(await names(api, f"{CONFIGS}?limit={limit}")) == 3


async def test_list_at_compacted_revision_returns_410(api: Api) -> None:
    await fill(api, 3)
    await api.plane.store.compact(api.plane.store.revision)
    answer = await api.get(f"{CONFIGS}?resourceVersion=2&resourceVersionMatch=Exact")
    assert (answer.code, answer.message) == (410, "The resourceVersion for the provided list is too old.")


async def test_list_at_future_revision_times_out_with_504(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.sandbox.apiserver.listing.REVISION_WAIT_SECONDS", 0.05)
    answer = await api.get(f"{CONFIGS}?resourceVersion={api.plane.store.revision + 5}")
    assert (answer.code, answer.headers["retry-after"]) == (504, "1")
    assert answer.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


SELECTORS = [
    ("labelSelector=odd", ["c0", "c1", "c2"]),
    ("labelSelector=!odd", []),
    ("labelSelector=odd%3D%3D1", ["c1"]),
    ("labelSelector=odd!%3D1", ["c0", "c2"]),
    ("labelSelector=odd+in+(0,7)", ["c0", "c2"]),
    ("labelSelector=odd+notin+(0)", ["c1"]),
    ("fieldSelector=metadata.name%3Dc1", ["c1"]),
    ("fieldSelector=metadata.name!%3Dc1", ["c0", "c2"]),
    ("fieldSelector=metadata.namespace%3Ddefault,metadata.name%3Dc0", ["c0"]),
    ("fieldSelector=metadata.namespace%3Dother", []),
    ("fieldSelector=metadata.name%3Dc1&labelSelector=odd%3D0", []),
]


@pytest.mark.parametrize(("query", "expected"), SELECTORS)
async def test_label_and_field_selectors_filter_the_list(api: Api, query: str, expected: list[str]) -> None:
    await fill(api, 3)
    assert await names(api, f"{CONFIGS}?{query}") == expected


BAD_QUERIES = [
    "labelSelector=a+b+c",
    "fieldSelector=spec.size%3D1",
    "fieldSelector=x",
    "limit=abc",
    "continue=a&resourceVersion=5",
]


@pytest.mark.parametrize("query", BAD_QUERIES)
async def test_invalid_list_query_returns_400(api: Api, query: str) -> None:
    assert (await api.get(f"{CONFIGS}?{query}")).code == 400


async def test_pods_are_selected_by_node_and_phase(api: Api) -> None:
    await api.made(PODS, pod("here", "n1"))
    await api.made(PODS, pod("nowhere"))
    assert await names(api, f"{PODS}?fieldSelector=spec.nodeName%3Dn1") == ["here"]
    assert await names(api, f"{PODS}?fieldSelector=status.phase%3DPending,spec.nodeName!%3Dn1") == ["nowhere"]


async def test_custom_objects_are_selected_by_selectable_fields(api: Api) -> None:
    await api.made(DEFINITIONS, definition(version(selectableFields=[{"jsonPath": ".spec.mode"}])))
    await api.made(WIDGETS, widget("fast", mode="fast"))
    await api.made(WIDGETS, widget("usual"))
    assert await names(api, f"{WIDGETS}?fieldSelector=spec.mode%3Dslow") == ["usual"]
    assert (await api.get(f"{WIDGETS}?fieldSelector=spec.size%3D1")).code == 400


async def test_items_have_a_kind_in_custom_lists_but_not_in_built_in_lists(api: Api) -> None:
    await api.made(CONFIGS, config("a"))
    await api.made(DEFINITIONS, definition())
    await api.made(WIDGETS, widget("w"))
    built_in, custom = [(await api.get(path)).json for path in (CONFIGS, WIDGETS)]
    assert "kind" not in built_in["items"][0] and "continue" not in built_in["metadata"]
    assert custom["items"][0]["kind"] == "Widget" and custom["metadata"]["continue"] == ""


async def test_list_of_a_missing_namespace_is_empty(api: Api) -> None:
    assert (await api.get("/api/v1/namespaces/nope/configmaps")).json["items"] == []


async def test_table_has_a_row_for_each_object_of_the_page(api: Api) -> None:
    await fill(api, 3)
    table = (await api.get(f"{CONFIGS}?limit=2", TABLE_OF)).json
    assert [row["cells"][0] for row in table["rows"]] == ["c0", "c1"] and table["metadata"]["continue"]
