from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.errors import PatchError
from argosy.kube.patch import strategic_merge
from support.examples import examples
from support.patch_shapes import POD, SERVICE, WIDGET


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(containers), **spec}}


def names(document: dict[str, Any], field: str = "containers") -> list[Any]:
    return [item["name"] for item in document["spec"][field]]


A, B, C = {"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c", "image": "3"}

CASES: dict[str, tuple[Any, Any, Any]] = {
    "elements merge by key": (pod(A, B), pod({"name": "b", "image": "9"}), pod(A, {"name": "b", "image": "9"})),
    "a new element comes before what the patch does not name": (pod(A, B), pod(C), pod(C, A, B)),
    "a new element after a known one stays after it": (
        pod(A, B),
        pod({"name": "a", "image": "1"}, C),
        pod(A, C, B),
    ),
    "the patch's order wins among its elements": (pod(A, B, C), pod({"name": "c"}, {"name": "a"}), pod(B, C, A)),
    "an element is deleted by directive": (pod(A, B), pod({"name": "a", "$patch": "delete"}), pod(B)),
    "deleting what is not there is no fault": (pod(A), pod({"name": "z", "$patch": "delete"}), pod(A)),
    "a list is replaced by directive": (pod(A, B), pod({"$patch": "replace"}, C), pod(C)),
    "a list is emptied by directive": (pod(A, B), pod({"$patch": "replace"}), pod()),
    "a map is replaced by directive": (
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {"labels": {"$patch": "replace", "b": "2"}}},
        {"metadata": {"labels": {"b": "2"}}},
    ),
    "a map is emptied by directive": (
        {"metadata": {"labels": {"a": "1"}}},
        {"metadata": {"labels": {"$patch": "delete"}}},
        {"metadata": {"labels": {}}},
    ),
    "a directive that meets nothing leaves nothing": (
        {"metadata": {}},
        {"metadata": {"labels": {"$patch": "delete"}}},
        {"metadata": {}},
    ),
    "null deletes a field": (pod(A, nodeName="n"), {"spec": {"nodeName": None}}, pod(A)),
    "null deletes inside an element": (pod(A), pod({"name": "a", "image": None}), pod({"name": "a"})),
    "null in a value that is new is dropped": (
        {"spec": {}},
        {"spec": {"strategy": {"type": "x", "rollingUpdate": None}}},
        {"spec": {"strategy": {"type": "x"}}},
    ),
    "null that meets nothing does nothing": (pod(A), {"spec": {"nodeName": None}}, pod(A)),
    "a list without a merge strategy is replaced": (
        pod(A, tolerations=[{"key": "x"}]),
        {"spec": {"tolerations": [{"key": "y"}]}},
        pod(A, tolerations=[{"key": "y"}]),
    ),
    "a list of scalars replaces where it has no strategy": (
        pod({"name": "a", "command": ["x", "y"]}),
        pod({"name": "a", "command": ["z"]}),
        pod({"name": "a", "command": ["z"]}),
    ),
    "a list of scalars with strategy merge is a set": (
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"finalizers": ["c", "a"]}},
        {"metadata": {"finalizers": ["c", "a", "b"]}},
    ),
    "scalars are deleted by a parallel list": (
        {"metadata": {"finalizers": ["a", "b", "c"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "c"]}},
        {"metadata": {"finalizers": ["b"]}},
    ),
    "a deletion from a list that is missing does nothing": (
        {"metadata": {}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
        {"metadata": {}},
    ),
    "scalars are added, ordered and deleted at once": (
        {"metadata": {"finalizers": ["a", "b", "live"]}},
        {
            "metadata": {
                "finalizers": ["c"],
                "$deleteFromPrimitiveList/finalizers": ["a"],
                "$setElementOrder/finalizers": ["c", "b"],
            }
        },
        {"metadata": {"finalizers": ["c", "b", "live"]}},
    ),
    "element order is set without any change": (
        pod(A, B, C),
        {"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}]}},
        pod(C, B, A),
    ),
    "live elements weave into a set order": (
        pod(A, {"name": "live"}, B),
        {"spec": {"$setElementOrder/containers": [{"name": "a"}, {"name": "c"}, {"name": "b"}], "containers": [C]}},
        pod(A, C, {"name": "live"}, B),
    ),
    "a field with strategy replace is replaced whole": (
        {"spec": {"template": {"name": "x", "old": 1}}},
        {"spec": {"template": {"name": "y"}}},
        {"spec": {"template": {"name": "y"}}},
    ),
    "retainKeys clears what it does not name": (
        {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}},
        {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
        {"spec": {"strategy": {"type": "Recreate"}}},
    ),
    "retainKeys works in an element": (
        {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
        {"spec": {"volumes": [{"name": "v", "$retainKeys": ["configMap", "name"], "configMap": {"name": "c"}}]}},
        {"spec": {"volumes": [{"name": "v", "configMap": {"name": "c"}}]}},
    ),
    "a map takes the place of a scalar": (
        {"spec": {"strategy": "odd"}},
        {"spec": {"strategy": {"type": "x"}}},
        {"spec": {"strategy": {"type": "x"}}},
    ),
    "nested lists merge in matched elements": (
        pod({"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}),
        pod({"name": "a", "env": [{"name": "Y", "value": "3"}]}),
        pod({"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "3"}]}),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_strategic_merge_patch_gives_expected_object(name: str) -> None:
    document, patch, expected = copy.deepcopy(CASES[name])
    assert strategic_merge.apply(document, patch, POD) == expected
    assert (document, patch) == CASES[name][:2], "an input was changed"


@pytest.mark.parametrize(
    ("document", "patch", "message"),
    [
        (pod(A), pod({"image": "x"}), "map: map[image:x] does not contain declared merge key: name"),
        (pod(A), pod({"$patch": "delete"}), "map: map[$patch:delete] does not contain declared merge key: name"),
        (pod(A), pod({"$patch": "merge"}), "merging lists cannot yet be specified in the patch"),
        (
            pod(A),
            pod({"$patch": "frob", "name": "a"}),
            "unknown patch type: frob in map: map[$patch:frob name:a]",
        ),
        (pod(A), {"spec": {"$patch": "merge"}}, "unknown patch type: merge in map: map[$patch:merge]"),
        (pod(A), pod("text"), "list element types are not identical: [[map[image:1 name:a]] [text]]"),  # type: ignore[arg-type]
        (
            {"spec": {"strategy": {"type": "x"}}},
            {"spec": {"strategy": {"$retainKeys": ["type"], "rollingUpdate": {}}}},
            "invalid patch format of retainKeys",
        ),
        (
            {"spec": {"strategy": {"type": "x"}}},
            {"spec": {"strategy": {"$retainKeys": "type"}}},
            "invalid patch format of retainKeys",
        ),
        (pod(A), {"spec": {"$setElementOrder/containers": "a"}}, "expected a []interface {}, but received a string"),
        (pod(A), {"spec": {"$setElementOrder": []}}, "invalid patch format of setElementOrder list"),
        (
            {"metadata": {"finalizers": ["a"]}},
            {"metadata": {"$deleteFromPrimitiveListfinalizers": ["a"]}},
            "invalid patch format of primitive list",
        ),
        (
            pod(A),
            {"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [C]}},
            "The order in patch list:\n[map[image:3 name:c]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
        ),
        (
            pod(A),
            {"spec": {"$setElementOrder/containers": [{"nom": "a"}]}},
            "map: map[nom:a] does not contain declared merge key: name",
        ),
        (
            {"metadata": {"finalizers": [["a"]]}},
            {"metadata": {"finalizers": ["b"]}},
            "lists of lists are not supported",
        ),
    ],
)
def test_invalid_patch_is_rejected_with_server_message(document: Any, patch: Any, message: str) -> None:
    with pytest.raises(PatchError) as caught:
        strategic_merge.apply(document, patch, POD)
    assert str(caught.value) == message


def test_merge_into_field_unknown_to_schema_is_rejected() -> None:
    with pytest.raises(PatchError, match='unable to find api field "bogus"'):
        strategic_merge.apply({"bogus": {"a": 1}}, {"bogus": {"b": 1}}, POD)


def test_service_ports_merge_by_port_number_alone() -> None:
    document = {"spec": {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}}
    patched = strategic_merge.apply(document, {"spec": {"ports": [{"port": 53, "name": "dns"}]}}, SERVICE)
    assert [port.get("name") for port in patched["spec"]["ports"]].count("dns") == 1


def test_schemaless_field_merges_maps_and_replaces_lists() -> None:
    document = {"spec": {"free": {"a": {"x": 1}, "l": [1, 2]}}}
    patched = strategic_merge.apply(document, {"spec": {"free": {"a": {"y": 2}, "l": [3]}}}, WIDGET)
    assert patched == {"spec": {"free": {"a": {"x": 1, "y": 2}, "l": [3]}}}


def test_patched_object_shares_unpatched_parts_with_input() -> None:
    document = pod(A, tolerations=[{"key": "x"}])
    patched = strategic_merge.apply(document, {"spec": {"nodeName": "n"}}, POD)
    assert patched["spec"]["containers"] is document["spec"]["containers"]


element_names = st.lists(st.sampled_from("abcdefg"), unique=True, max_size=6)


@settings(max_examples=examples())
@given(live=element_names, desired=element_names, data=st.data())
def test_set_element_order_is_applied_and_live_elements_keep_their_order(
    live: list[str], desired: list[str], data: st.DataObject
) -> None:
    if not desired or not live:
        return
    changed = [name for name in desired if name not in live or data.draw(st.booleans())]
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": name} for name in desired],
            "containers": [{"name": name, "image": "new"} for name in changed],
        }
    }
    patched = strategic_merge.apply(pod(*({"name": name} for name in live)), patch, POD)
    result = names(patched)
    assert sorted(result) == sorted({*live, *desired} - ({*desired} - {*live} - {*changed}))
    assert [name for name in result if name in desired] == [name for name in desired if name in result]
    assert [name for name in result if name not in desired] == [name for name in live if name not in desired]
