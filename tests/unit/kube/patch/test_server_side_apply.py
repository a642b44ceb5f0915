from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.annotations import LAST_APPLIED
from argosy.errors import PatchError
from argosy.kube.patch.field_sets import FieldSet
from argosy.kube.patch.managed_fields import read_managers, record_update, without_managed_fields
from argosy.kube.patch.merge_schema_protocol import Shape
from argosy.kube.patch.server_side_apply import FieldConflicts, apply
from support.examples import examples
from support.patch_shapes import CONFIG_MAP, POD, SERVICE, WIDGET

T1, T2, T3 = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z"


def config_map(data: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    manifest: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s", **metadata}}
    return manifest if data is None else manifest | {"data": data}


def widget(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "x/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


def applied(
    live: dict[str, Any] | None,
    config: dict[str, Any],
    manager: str = "m1",
    *,
    force: bool = False,
    now: str = T1,
    shape: Shape = CONFIG_MAP,
    **more: Any,
) -> dict[str, Any]:
    before = copy.deepcopy((live, config))
    result = apply(
        live, config, manager=manager, force=force, api_version=config["apiVersion"], now=now, shape=shape, **more
    )
    assert (live, config) == before, "an input was changed"
    return result


def updated(live: dict[str, Any], new: dict[str, Any], manager: str = "probe") -> dict[str, Any]:
    shape = CONFIG_MAP
    return record_update(
        live,
        new,
        empty_object=None,
        manager=manager,
        api_version=new["apiVersion"],
        subresource="",
        now=T2,
        shape=shape,
    )


def owners(manifest: dict[str, Any]) -> list[tuple[str, str, Any]]:
    entries = manifest["metadata"].get("managedFields", [])
    return [(entry["manager"], entry["operation"], entry["fieldsV1"]) for entry in entries]


def test_config_map_shared_by_managers_is_owned_as_on_real_server() -> None:
    live = applied(None, config_map({"a": "1", "b": "2"}))
    assert owners(live) == [("m1", "Apply", {"f:data": {"f:a": {}, "f:b": {}}})]
    assert applied(live, config_map({"a": "1", "b": "2"}), now=T2) == live, "a no-op changes nothing"
    live = applied(live, config_map({"a": "1"}))
    assert live["data"] == {"a": "1"}
    live = applied(live, config_map({"a": "1"}), "m2")
    shared = {"f:data": {"f:a": {}}}
    assert owners(live) == [("m2", "Apply", shared), ("m1", "Apply", shared)], "who changed nothing has no time yet"
    with pytest.raises(FieldConflicts) as caught:
        applied(live, config_map({"a": "9"}), "m2")
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "m1": .data.a'
    live = applied(live, config_map({"a": "9"}), "m2", force=True)
    assert owners(live) == [("m2", "Apply", shared)]
    live = updated(live, config_map({"a": "10", "z": "1"}))
    assert owners(live) == [("probe", "Update", {"f:data": {"f:a": {}, "f:z": {}}})]
    with pytest.raises(FieldConflicts) as caught:
        applied(live, config_map({"a": "9"}), "m2")
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "probe" using v1: .data.a'
    live = applied(live, config_map({"a": "10"}))
    assert [name for name, _, _ in owners(live)] == ["m1", "probe"]
    live = updated(live, config_map({"a": "11"}), "putter")
    assert owners(live) == [("putter", "Update", shared)]


def test_unowned_fields_go_to_manager_before_first_apply() -> None:
    live = applied(config_map({"a": "11"}), config_map({"a": "11"}), "m3")
    assert owners(live) == [
        ("m3", "Apply", {"f:data": {"f:a": {}}}),
        ("before-first-apply", "Update", {"f:data": {".": {}, "f:a": {}}}),
    ]


def test_conflict_message_groups_fields_by_manager() -> None:
    live = applied(config_map({"a": "11", "b": "1"}), config_map({"a": "11"}), "m3")
    with pytest.raises(FieldConflicts) as caught:
        applied(live, config_map({"a": "1", "b": "2"}))
    assert caught.value.message == (
        'Apply failed with 3 conflicts: conflicts with "before-first-apply" using v1:\n- .data.a\n- .data.b\n'
        'conflicts with "m3":\n- .data.a'
    )
    assert caught.value.causes == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "m3"', "field": ".data.a"},
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "before-first-apply" using v1',
            "field": ".data.a",
        },
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "before-first-apply" using v1',
            "field": ".data.b",
        },
    ]
    assert caught.value.code == 409
    assert caught.value.details == {"causes": caught.value.causes}
    assert caught.value.conflicts[0] == ("m3", "Apply", "v1", ".data.a", "")


def test_conflict_message_names_subresource_of_manager() -> None:
    live = applied(None, widget(size=1), shape=WIDGET, subresource="status")
    with pytest.raises(FieldConflicts) as caught:
        applied(live, widget(size=2), "m2", shape=WIDGET)
    assert 'conflict with "m1" with subresource "status": .spec.size' in caught.value.message


@pytest.mark.parametrize(
    ("config", "shape", "words"),
    [
        (
            config_map() | {"bogus": 1},
            CONFIG_MAP,
            "failed to create typed patch object (/s; /v1, Kind=ConfigMap): .bogus: field not declared in schema",
        ),
        (
            widget(items=[{"name": "a"}, {"name": "a"}]),
            WIDGET,
            "failed to create typed patch object (/w; x/v1, Kind=Widget): .spec.items: "
            'duplicate entries for key [name="a"]',
        ),
        (
            widget(items=[{"value": 1}]),
            WIDGET,
            "failed to create typed patch object (/w; x/v1, Kind=Widget): .spec.items: element 0: associative list "
            'with keys has an element that omits key field "name" (and doesn\'t have default value)',
        ),
        (
            widget(items={"a": 1}),
            WIDGET,
            "failed to create typed patch object (/w; x/v1, Kind=Widget): .spec.items: expected list, got &{map[a:1]}",
        ),
        (
            widget(tags=["a", "a"]) | {"metadata": {"name": "w", "namespace": "n"}},
            WIDGET,
            "failed to create typed patch object (n/w; x/v1, Kind=Widget): .spec.tags: "
            'duplicate entries for key [="a"]',
        ),
        (
            widget(nope=1, size={}) | {"extra": 1},
            WIDGET,
            "failed to create typed patch object (/w; x/v1, Kind=Widget): errors:\n"
            "  .spec.nope: field not declared in schema\n  .extra: field not declared in schema",
        ),
        (config_map(managedFields=[{"manager": "x"}]), CONFIG_MAP, "metadata.managedFields must be nil"),
    ],
)
def test_invalid_configuration_is_rejected(config: dict[str, Any], shape: Shape, words: str) -> None:
    with pytest.raises(PatchError) as caught:
        applied(None, config, shape=shape)
    assert str(caught.value) == words


def test_configuration_of_another_api_version_is_rejected() -> None:
    with pytest.raises(PatchError, match="Specified patch version: v1, expected: v2"):
        apply(None, config_map(), manager="m", force=False, api_version="v2", now=T1, shape=CONFIG_MAP)


def test_map_list_items_are_owned_per_item() -> None:
    live = applied(None, widget(items=[{"name": "n1", "value": "v"}]), "m8", shape=WIDGET)
    live = applied(live, widget(items=[{"name": "n2", "value": "z"}]), "m9", shape=WIDGET)
    assert live["spec"]["items"] == [{"name": "n1", "value": "v"}, {"name": "n2", "value": "z"}]
    item = {'k:{"name":"n2"}': {".": {}, "f:name": {}, "f:value": {}}}
    assert ("m9", "Apply", {"f:spec": {"f:items": item}}) in owners(live)
    live = applied(live, widget(items=[]), "m8", shape=WIDGET)
    assert live["spec"]["items"] == [{"name": "n2", "value": "z"}]


@pytest.mark.parametrize(
    ("live", "config", "expected"),
    [
        (["a", "b", "c"], ["c", "a"], ["b", "c", "a"]),
        (["a", "b"], ["x"], ["a", "b", "x"]),
        (["a", "b"], ["x", "a"], ["x", "a", "b"]),
        (["a", "b", "c"], ["a", "x", "c"], ["a", "b", "x", "c"]),
        ([], ["x", "y"], ["x", "y"]),
        (["a"], [], ["a"]),
    ],
)
def test_live_and_applied_list_items_are_interleaved(live: list[str], config: list[str], expected: list[str]) -> None:
    before = applied(None, widget(tags=live, items=[{"name": name} for name in live]), "other", shape=WIDGET)
    after = applied(before, widget(tags=config, items=[{"name": name} for name in config]), shape=WIDGET)
    assert after["spec"]["tags"] == expected
    assert [entry["name"] for entry in after["spec"]["items"]] == expected


def test_omitted_list_map_key_takes_its_default() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    live = applied(None, service | {"spec": {"ports": [{"port": 80, "protocol": "TCP"}]}}, "other", shape=SERVICE)
    after = applied(live, service | {"spec": {"ports": [{"port": 80, "name": "web"}]}}, shape=SERVICE)
    assert after["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "name": "web"}]
    assert owners(after)[-1][2]["f:spec"]["f:ports"].keys() == {'k:{"port":80,"protocol":"TCP"}'}


def test_atomic_map_is_owned_as_a_whole() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    live = applied(None, service | {"spec": {"selector": {"a": "1"}}}, shape=SERVICE)
    with pytest.raises(FieldConflicts, match=r"conflict with \"m1\": \.spec\.selector"):
        applied(live, service | {"spec": {"selector": {"b": "1"}}}, "m2", shape=SERVICE)
    after = applied(live, service | {"spec": {"selector": {"b": "1"}}}, "m2", force=True, shape=SERVICE)
    assert after["spec"]["selector"] == {"b": "1"}
    assert owners(after) == [("m2", "Apply", {"f:spec": {"f:selector": {}}})]


def test_conflict_path_includes_list_item_key() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "finalizers": ["x/y"]}}
    live = applied(None, pod | {"spec": {"containers": [{"name": "c", "image": "1"}]}}, shape=POD)
    with pytest.raises(FieldConflicts) as caught:
        applied(live, pod | {"spec": {"containers": [{"name": "c", "image": "2"}]}}, "m2", shape=POD)
    assert caught.value.conflicts[0].path == '.spec.containers[name="c"].image'


def test_dropped_field_stays_while_another_applier_owns_it() -> None:
    live = applied(None, config_map({"a": "1"}))
    live = applied(live, config_map({"a": "1", "b": "2"}), "m2")
    live = applied(live, config_map())
    assert live["data"] == {"a": "1", "b": "2"}
    assert [name for name, _, _ in owners(live)] == ["m2"]


def test_apply_keeps_field_owned_by_an_updater() -> None:
    live = applied(None, config_map({"a": "1", "b": "1"}))
    live = updated(live, config_map({"a": "1", "b": "1", "c": "1"}))
    live = applied(live, config_map({"a": "1"}))
    assert live["data"] == {"a": "1", "c": "1"}


def test_map_that_loses_its_last_key_is_removed() -> None:
    live = updated(applied(None, config_map({"a": "1"})), config_map({"a": "1"}, labels={"x": "y"}))
    assert "data" not in applied(live, config_map())


def test_manager_time_is_that_of_last_effective_apply() -> None:
    live = applied(None, config_map({"a": "1"}), now=T1)
    live = applied(live, config_map({"a": "1"}), now=T2)
    assert read_managers(live)[0].time == T1
    live = applied(live, config_map({"a": "2"}), now=T3)
    assert read_managers(live)[0].time == T3


def test_ignored_fields_are_not_owned() -> None:
    config = widget(size=1) | {"status": {"phase": "x"}}
    live = applied(None, config, shape=WIDGET, ignored_fields=FieldSet.from_paths(["f:status"]))
    assert owners(live) == [("m1", "Apply", {"f:spec": {"f:size": {}}})]


def test_kubectl_takes_over_fields_of_client_side_apply() -> None:
    last = config_map({"a": "1"})
    noted = config_map({"a": "1"}, annotations={LAST_APPLIED: json.dumps(last)})
    live = record_update(
        None,
        noted,
        empty_object=None,
        manager="kubectl-client-side-apply",
        api_version="v1",
        subresource="",
        now=T1,
        shape=CONFIG_MAP,
    )
    with pytest.raises(FieldConflicts):
        applied(live, config_map({"a": "2"}), "someone")
    after = applied(live, config_map({"a": "2"}), "kubectl", now=T2)
    assert after["data"] == {"a": "2"}
    assert json.loads(after["metadata"]["annotations"][LAST_APPLIED]) == config_map({"a": "2"})
    drifted = updated(live, noted | {"data": {"a": "5"}})
    with pytest.raises(FieldConflicts, match=r'conflict with "probe" using v1: \.data\.a'):
        applied(drifted, config_map({"a": "2"}), "kubectl")


names = st.sampled_from("abcd")
specs = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 3),
        "tags": st.lists(names, unique=True, max_size=4),
        "items": st.lists(
            st.fixed_dictionaries({"name": names}, optional={"value": st.integers(0, 2)}),
            unique_by=lambda item: item["name"],
            max_size=4,
        ),
        "nested": st.dictionaries(
            names, st.fixed_dictionaries({}, optional={"x": st.integers(0, 2), "y": st.just(1)}), max_size=3
        ),
        "free": st.dictionaries(
            names, st.integers(0, 2) | st.dictionaries(names, st.integers(0, 2), max_size=2), max_size=3
        ),
    },
)
widgets = specs.map(lambda spec: widget(**spec))


@settings(max_examples=examples(200))
@given(st.none() | widgets, widgets)
def test_apply_is_idempotent(live: dict[str, Any] | None, config: dict[str, Any]) -> None:
    start = None if live is None else applied(None, live, "other", shape=WIDGET)
    config = config | {"metadata": {"name": "w", "labels": {"owned": "surely"}}}
    once = applied(start, config, force=True, shape=WIDGET, now=T2)
    assert applied(once, config, shape=WIDGET, now=T3) == once


@settings(max_examples=examples(200))
@given(widgets)
def test_empty_apply_removes_exactly_the_owned_fields(config: dict[str, Any]) -> None:
    metadata = {"name": "w", "labels": {"keep": "me"}}
    base = {"apiVersion": "x/v1", "kind": "Widget", "metadata": metadata, "status": {"phase": "x"}}
    live = applied(base, {key: base[key] for key in ("apiVersion", "kind", "metadata")}, "other", shape=WIDGET)
    full = applied(live, config, shape=WIDGET)
    emptied = applied(full, {"apiVersion": "x/v1", "kind": "Widget", "metadata": {"name": "w"}}, shape=WIDGET)
    assert settled(without_managed_fields(emptied)) == base
    assert [name for name, _, _ in owners(emptied)] == ["other", "before-first-apply"]


def settled(manifest: dict[str, Any]) -> dict[str, Any]:
    """Drop empty lists: an applied empty list has no owner (as on a real server), so it may stay."""
    spec = {key: value for key, value in manifest.get("spec", {}).items() if value != []}
    return {key: value for key, value in manifest.items() if key != "spec"} | ({"spec": spec} if spec else {})


@settings(max_examples=examples(200))
@given(widgets, widgets)
def test_forced_apply_makes_the_configuration_live(one: dict[str, Any], other: dict[str, Any]) -> None:
    live = applied(applied(None, one, shape=WIDGET), other, "m2", force=True, shape=WIDGET)
    again = applied(live, other, "m2", shape=WIDGET)
    assert again == live
    if "size" in other["spec"]:
        assert live["spec"]["size"] == other["spec"]["size"]
    assert {*other["spec"].get("tags", [])} <= {*live["spec"].get("tags", [])}


@settings(max_examples=examples(200))
@given(widgets, widgets)
def test_unforced_apply_conflicts_or_keeps_fields_of_other_manager(one: dict[str, Any], other: dict[str, Any]) -> None:
    live = applied(None, one, shape=WIDGET)
    try:
        after = applied(live, other, "m2", shape=WIDGET)
    except FieldConflicts as refusal:
        assert refusal.conflicts
        return
    assert [entry for entry in owners(after) if entry[0] == "m1"] == owners(live)
