from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import UserError
from argosy.features.applications.read.server_side_diff_choice import read_server_side_diff_choice
from argosy.web.request import QueryParameters

OWN = '{"kind":"ConfigMap","metadata":{"name":"a"}}'
ITEMS: list[dict[str, Any]] = [
    {"kind": "ConfigMap", "namespace": "ml", "name": "a", "targetState": OWN, "liveState": "null",
     "normalizedLiveState": "null", "predictedLiveState": '{"predicted":1}', "modified": True},
    {"group": "apps", "kind": "Deployment", "namespace": "ml", "name": "b", "targetState": "null", "liveState": "{}",
     "normalizedLiveState": '{"normalized":1}', "predictedLiveState": "null"},
]  # fmt: skip


def select(targets: list[str], resources: list[str]) -> list[dict[str, Any]]:
    pairs = [("targetManifests", text) for text in targets] + [("liveResources", text) for text in resources]
    choice = read_server_side_diff_choice(QueryParameters(pairs))
    assert choice is not None
    return choice.select(ITEMS)


def test_without_parameters_there_is_no_choice() -> None:
    assert read_server_side_diff_choice(QueryParameters([])) is None


def test_the_states_are_those_that_are_compared() -> None:
    (item,) = select([OWN], ['{"group":"","kind":"ConfigMap","namespace":"ml","name":"a"}'])
    assert (item["liveState"], item["targetState"], item["modified"]) == ("null", '{"predicted":1}', True)


def test_only_the_named_objects_are_returned() -> None:
    (item,) = select(["", "null"], ['{"group":"apps","kind":"Deployment","namespace":"ml","name":"b"}'])
    assert (item["name"], item["liveState"]) == ("b", '{"normalized":1}')


def test_a_manifest_may_be_formatted_in_another_way() -> None:
    assert len(select(['{"metadata": {"name": "a"}, "kind": "ConfigMap"}'], [])) == 2


@pytest.mark.parametrize("manifest", ["{}", '{"kind":"ConfigMap","metadata":{"name":"b"}}', "[]", "1"])
def test_a_manifest_that_is_not_from_git_is_refused(manifest: str) -> None:
    with pytest.raises(UserError, match="only manifests from Git"):
        select([OWN, manifest], [])


@pytest.mark.parametrize(("targets", "resources"), [(["{"], []), ([], ["{"]), ([], ["1"]), ([], ["[" * 500])])
def test_malformed_parameters_are_refused(targets: list[str], resources: list[str]) -> None:
    with pytest.raises(UserError):
        select(targets, resources)
