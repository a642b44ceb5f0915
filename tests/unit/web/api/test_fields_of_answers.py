"""Only what is asked for is answered."""

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


def test_only_the_paths_that_are_named_are_left_item_by_item():
    assert select_fields("items.metadata.name,items.status.sync") == {
        "items": [
            {"metadata": {"name": "a"}, "status": {"sync": {"status": "Synced"}}},
            {"metadata": {"name": "b"}},
        ]
    }


def test_a_minus_before_the_first_path_leaves_all_of_them_out():
    assert select_fields("-items.status,items.metadata.labels,metadata") == {
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}, "spec": {"project": "default"}}]
    }


@pytest.mark.parametrize("text", ["items.metadata,items.metadata.name", "items.metadata.name,items.metadata"])
def test_a_path_within_another_takes_nothing_away_from_it(text):
    assert select_fields(text)["items"][0] == {"metadata": LIST["items"][0]["metadata"]}


@pytest.mark.parametrize("text", ["", ",", "-", " , -"])
def test_no_path_at_all_asks_for_everything(text):
    assert parse_field_selection(text) is None


def test_a_path_through_what_is_no_object_gives_what_is_there():
    assert select_fields("metadata.resourceVersion.deeper") == {"metadata": {"resourceVersion": "7"}}


@pytest.mark.parametrize("text", [",".join(f"a{number}" for number in range(MAX_PATHS + 1)), ".".join("a" * 99)])
def test_more_paths_than_anybody_needs_are_refused(text):
    with pytest.raises(UserError, match="are allowed"):
        parse_field_selection(text)


def test_the_document_itself_stays_as_it_is():
    before = str(LIST)
    select_fields("-items.metadata.labels")
    assert str(LIST) == before
