"""Field selection of API responses."""

from __future__ import annotations

import pytest

from argosy.errors import UserError
from argosy.web.api.field_selection import MAX_PATHS, parse_field_selection

LIST = {
    "metadata": {"resourceVersion": "7"},
    "items": [
        {"metadata": {"name": "a", "labels": {"x": "y"}}, "status": {"sync": {"status": "Synced"}, "resources": [1]}},
        {"metadata": {"name": "b"}, "spec": {"project": "default"}},
    ],
}


def select_fields(text: str) -> object:
    fields = parse_field_selection(text)
    assert fields is not None
    return fields.apply(LIST)


def test_selected_paths_are_kept_in_each_list_item():
    assert select_fields("items.metadata.name,items.status.sync") == {
        "items": [
            {"metadata": {"name": "a"}, "status": {"sync": {"status": "Synced"}}},
            {"metadata": {"name": "b"}},
        ]
    }


def test_leading_minus_excludes_all_listed_paths():
    assert select_fields("-items.status,items.metadata.labels,metadata") == {
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}, "spec": {"project": "default"}}]
    }


@pytest.mark.parametrize("text", ["items.metadata,items.metadata.name", "items.metadata.name,items.metadata"])
def test_path_within_another_does_not_narrow_it(text):
    assert select_fields(text)["items"][0] == {"metadata": LIST["items"][0]["metadata"]}


@pytest.mark.parametrize("text", ["", ",", "-", " , -"])
def test_empty_selection_selects_everything(text):
    assert parse_field_selection(text) is None


def test_path_through_a_scalar_returns_the_scalar():
    assert select_fields("metadata.resourceVersion.deeper") == {"metadata": {"resourceVersion": "7"}}


@pytest.mark.parametrize("text", [",".join(f"a{number}" for number in range(MAX_PATHS + 1)), ".".join("a" * 99)])
def test_too_many_or_too_deep_paths_are_rejected(text):
    with pytest.raises(UserError, match="are allowed"):
        parse_field_selection(text)


def test_selection_does_not_modify_the_document():
    before = str(LIST)
    select_fields("-items.metadata.labels")
    assert str(LIST) == before
