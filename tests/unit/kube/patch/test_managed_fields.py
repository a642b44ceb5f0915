from __future__ import annotations

import copy
from typing import Any

import pytest

from argosy.errors import PatchError
from argosy.kube.patch.field_sets import FieldSet
from argosy.kube.patch.managed_fields import (
    Manager,
    keep_live_if_only_times_differ,
    read_managers,
    record_update,
    with_managers,
)
from support.patch_shapes import CONFIG_MAP, POD, WIDGET

T1, T2, T3 = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z"


def config_map(data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    manifest: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}}
    return manifest if data is None else manifest | {"data": data}


def update(
    live: dict[str, Any] | None, new: dict[str, Any], manager: str = "m", now: str = T1, **more: Any
) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "empty_object": None,
        "api_version": new["apiVersion"],
        "subresource": "",
        "shape": CONFIG_MAP,
        **more,
    }
    before = copy.deepcopy((live, new))
    result = record_update(live, new, manager=manager, now=now, **arguments)
    assert (live, new) == before, "an input was changed"
    return result


def owners(manifest: dict[str, Any]) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in manifest["metadata"].get("managedFields", [])}


def times(manifest: dict[str, Any]) -> dict[str, str]:
    return {entry["manager"]: entry["time"] for entry in manifest["metadata"]["managedFields"]}


def test_creator_owns_all_fields_and_their_parents() -> None:
    created = update(None, config_map({"a": "1"}, labels={"x": "y"}, finalizers=["f"]))
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "m",
            "operation": "Update",
            "apiVersion": "v1",
            "time": T1,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:data": {".": {}, "f:a": {}},
                "f:metadata": {"f:finalizers": {".": {}, 'v:"f"': {}}, "f:labels": {".": {}, "f:x": {}}},
            },
        }
    ]


def test_name_and_server_set_metadata_have_no_owner() -> None:
    server_fields = {"namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 1, "creationTimestamp": T1}
    assert owners(update(None, config_map(None, **server_fields))) == {}


def test_fields_equal_to_the_empty_object_have_no_owner() -> None:
    zero = {"metadata": {"creationTimestamp": None}, "spec": {"containers": None, "strategy": {}}, "status": {}}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "strategy": {"type": "x"}, "nodeName": "n"},
        "status": {},
    }
    created = update(None, manifest, empty_object=zero, shape=POD)
    assert owners(created)["m"] == {
        "f:spec": {
            "f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}}},
            "f:nodeName": {},
            "f:strategy": {"f:type": {}},
        }
    }


def test_manager_that_changes_a_value_takes_over_the_field() -> None:
    live = update(None, config_map({"a": "1", "b": "1"}), "first")
    changed = update(live, config_map({"a": "2", "b": "1", "c": "3"}), "second", T2)
    assert owners(changed) == {
        "first": {"f:data": {".": {}, "f:b": {}}},
        "second": {"f:data": {"f:a": {}, "f:c": {}}},
    }
    assert times(changed) == {"first": T1, "second": T2}


def test_update_takes_over_fields_of_appliers() -> None:
    applier = Manager("applier", "Apply", "v1", T1, FieldSet.from_paths(["f:data", "f:a"]))
    live = with_managers(config_map({"a": "1"}), [applier])
    assert owners(update(live, config_map({"a": "2"}), "u", T2)) == {"u": {"f:data": {"f:a": {}}}}


def test_removed_field_is_dropped_from_all_managers() -> None:
    live = update(None, config_map({"a": "1", "b": "1"}), "first")
    live = update(live, config_map({"a": "1", "b": "2"}), "second", T2)
    removed = update(live, config_map({"a": "1"}), "third", T3)
    assert owners(removed) == {"first": {"f:data": {".": {}, "f:a": {}}}}


def test_second_change_by_a_manager_extends_its_entry() -> None:
    live = update(None, config_map({"a": "1"}))
    again = update(live, config_map({"a": "1", "b": "1"}), now=T2)
    assert owners(again) == {"m": {"f:data": {".": {}, "f:a": {}, "f:b": {}}}}
    assert times(again) == {"m": T2}


@pytest.mark.parametrize("with_fields", [True, False])
def test_no_op_update_keeps_managers_and_times(with_fields: bool) -> None:
    live = update(None, config_map({"a": "1"}))
    same = copy.deepcopy(live if with_fields else config_map({"a": "1"}))
    assert update(live, same, "other", T2) == live


def test_new_resource_version_alone_is_not_a_change() -> None:
    live = update(None, config_map({"a": "1"}, resourceVersion="1"))
    after = update(live, config_map({"a": "1"}, resourceVersion="2", generation=3), "other", T2)
    assert after["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_managers_that_lose_no_field_keep_their_entry() -> None:
    live = update(None, config_map({"a": "1"}), "first")
    changed = update(live, config_map({"a": "1"}, labels={"x": "y"}), "second", T2)
    assert owners(changed)["first"] == owners(live)["first"]


@pytest.mark.parametrize("reset", [[], [{}]])
def test_client_can_reset_managed_fields_and_stop_tracking(reset: list[Any]) -> None:
    live = update(None, config_map({"a": "1"}))
    cleared = update(live, config_map({"a": "1"}, managedFields=reset), now=T2)
    assert "managedFields" not in cleared["metadata"]
    assert "managedFields" not in update(cleared, config_map({"a": "2"}), now=T3)["metadata"]


def test_client_can_edit_managed_fields() -> None:
    live = update(None, config_map({"a": "1"}))
    edited = copy.deepcopy(live)
    edited["metadata"]["managedFields"][0]["manager"] = "renamed"
    assert list(owners(update(live, edited, now=T2))) == ["renamed"]


def test_invalid_edited_managed_fields_are_ignored() -> None:
    live = update(None, config_map({"a": "1"}))
    edited = copy.deepcopy(live)
    edited["metadata"]["managedFields"][0]["operation"] = "Frob"
    assert update(live, edited, now=T2) == live


def test_subresource_update_has_its_own_entry_and_edits_no_others() -> None:
    widget = {"apiVersion": "x/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    live = update(None, widget, shape=WIDGET)
    sent = widget | {"metadata": {"name": "w", "managedFields": []}, "status": {"phase": "ok"}}
    after = update(live, sent, "m", T2, shape=WIDGET, subresource="status")
    assert [(entry.get("subresource"), entry["fieldsV1"]) for entry in after["metadata"]["managedFields"]] == [
        (None, {"f:spec": {".": {}, "f:size": {}}}),
        ("status", {"f:status": {".": {}, "f:phase": {}}}),
    ]


def test_ignored_fields_are_not_tracked() -> None:
    widget = {"apiVersion": "x/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    widget["status"] = {"phase": "x"}
    created = update(None, widget, shape=WIDGET, ignored_fields=FieldSet.from_paths(["f:status"]))
    assert owners(created) == {"m": {"f:spec": {".": {}, "f:size": {}}}}


def test_oldest_updaters_are_merged_into_ancient_changes() -> None:
    live = update(None, config_map({"k00": "1"}), "m00", "2026-01-01T00:00:00Z")
    data = {"k00": "1"}
    for number in range(1, 12):
        data = data | {f"k{number:02}": "1"}
        live = update(live, config_map(data), f"m{number:02}", f"2026-01-01T00:00:{number:02}Z")
    fields_by_manager = owners(live)
    assert len(fields_by_manager) == 10
    assert fields_by_manager["ancient-changes"] == {"f:data": {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}}}
    assert times(live)["ancient-changes"] == "2026-01-01T00:00:02Z"


def test_entries_are_sorted_by_operation_time_and_name() -> None:
    fields = FieldSet.from_paths(["f:data", "f:a"])
    shuffled = [
        Manager("b", "Update", "v1", T1, fields),
        Manager("a", "Update", "v1", T2, fields),
        Manager("z", "Apply", "v1", T2, fields),
        Manager("y", "Apply", "v1", "", fields),
        Manager("a", "Update", "v1", T1, fields, "status"),
    ]
    manifest = with_managers(config_map(), shuffled)
    assert [(m.name, m.time) for m in read_managers(manifest)] == [
        ("y", ""),
        ("z", T2),
        ("a", T1),
        ("b", T1),
        ("a", T2),
    ]
    assert "time" not in manifest["metadata"]["managedFields"][0]


def test_managers_survive_a_round_trip_and_none_removes_managed_fields() -> None:
    live = update(None, config_map({"a": "1"}))
    assert with_managers(live, read_managers(live)) == live
    assert with_managers(live, []) == config_map({"a": "1"})


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"manager": "m"}, "operation must be `Apply` or `Update`"),
        ({"manager": "m", "operation": "Apply"}, "apiVersion must not be empty"),
        ({"operation": "Apply", "apiVersion": "v1"}, "missing fieldsType in managed fields entry 0"),
        (
            {"operation": "Apply", "apiVersion": "v1", "fieldsType": "V2"},
            'invalid fieldsType "V2" in managed fields entry 0',
        ),
    ],
)
def test_malformed_entry_gives_the_error_message_of_the_server(entry: dict[str, str], message: str) -> None:
    with pytest.raises(PatchError) as caught:
        read_managers(config_map(managedFields=[entry]))
    assert str(caught.value) == message


def test_free_form_json_is_owned_by_key_and_lists_are_atomic() -> None:
    widget: dict[str, Any] = {"apiVersion": "x/v1", "kind": "Widget", "metadata": {"name": "w"}}
    widget["spec"] = {"free": {"a": {"b": 1}, "l": [1]}}
    live = update(None, widget, shape=WIDGET)
    assert owners(live)["m"] == {"f:spec": {".": {}, "f:free": {".": {}, "f:a": {".": {}, "f:b": {}}, "f:l": {}}}}
    changed = update(live, widget | {"spec": {"free": {"a": 7, "l": [1, 2]}}}, "n", T2, shape=WIDGET)
    assert owners(changed) == {
        "m": {"f:spec": {".": {}, "f:free": {}}},
        "n": {"f:spec": {"f:free": {"f:a": {}, "f:l": {}}}},
    }


def test_list_items_with_the_same_key_are_one_field() -> None:
    widget = {"apiVersion": "x/v1", "kind": "Widget", "metadata": {"name": "w"}}
    twice = widget | {"spec": {"items": [{"name": "a", "value": 1}, {"name": "a", "value": 2}, {"name": "b"}]}}
    live = update(None, twice, shape=WIDGET)
    assert owners(live)["m"]["f:spec"]["f:items"] == {
        ".": {},
        'k:{"name":"a"}': {},
        'k:{"name":"b"}': {".": {}, "f:name": {}},
    }
    once = update(live, widget | {"spec": {"items": [{"name": "a", "value": 1}, {"name": "b"}]}}, "n", T2, shape=WIDGET)
    assert owners(once)["n"] == {"f:spec": {"f:items": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:value": {}}}}}


def test_field_that_became_atomic_is_owned_as_a_whole() -> None:
    written = FieldSet.from_paths(["f:spec", "f:tolerations", 'k:{"key":"a"}'], ["f:spec", "f:nodeSelector", "f:x"])
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    pod["spec"] = {"tolerations": [{"key": "a"}]}
    live = with_managers(pod, [Manager("old", "Apply", "v1", T1, written)])
    after = update(live, pod | {"spec": pod["spec"] | {"nodeName": "n"}}, "new", T2, shape=POD)
    assert owners(after)["old"] == {"f:spec": {"f:nodeSelector": {}, "f:tolerations": {}}}


def test_update_that_changes_only_times_keeps_the_live_object() -> None:
    live = update(None, config_map({"a": "1"}))
    later = copy.deepcopy(live)
    later["metadata"]["managedFields"][0]["time"] = T3
    assert keep_live_if_only_times_differ(live, later) is live
    later["data"] = {"a": "2"}
    assert keep_live_if_only_times_differ(live, later) is later
