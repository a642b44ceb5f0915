"""Tests ignoreResourceUpdates: only updates that change more than ignored fields are relevant."""

from __future__ import annotations

import pytest

from argosy.gitops.diff import UpdateFilter, read_diff_settings
from argosy.kube.objects import Manifest
from support.comparisons import widget

UPDATES = "resource.customizations.ignoreResourceUpdates."
STATUS = {UPDATES + "all": "jsonPointers: [/status]"}


def matters(settings: dict[str, str], before: Manifest, after: Manifest) -> bool:
    return not UpdateFilter(read_diff_settings(settings)).is_irrelevant(before, after)


@pytest.mark.parametrize(
    ("settings", "after", "is_one"),
    [
        ({}, widget({"a": 2}), True),
        ({}, widget({"a": 1}, resourceVersion="8", generation=2, managedFields=[{}]), False),
        ({}, widget({"a": 1}, labels={"a": "b"}), True),
        ({}, widget({"a": 1}) | {"status": {"x": 1}}, True),
        (STATUS, widget({"a": 1}) | {"status": {"x": 1}}, False),
        (STATUS, widget({"a": 2}) | {"status": {"x": 1}}, True),
        (STATUS | {"resource.ignoreResourceUpdatesEnabled": "false"}, widget({"a": 1}), True),
        ({UPDATES + "example.io_Widget": "jqPathExpressions: ['.spec.a']"}, widget({"a": 2}), False),
        ({"resource.customizations": "'*/*': {ignoreResourceUpdates: 'jsonPointers: [/spec]'}"}, widget({}), False),
        ({"resource.customizations.ignoreDifferences.all": "jsonPointers: [/spec]"}, widget({}), False),
        (
            {
                "resource.customizations.ignoreDifferences.all": "jsonPointers: [/spec]",
                "resource.compareoptions": "ignoreDifferencesOnResourceUpdates: false",
            },
            widget({}),
            True,
        ),
    ],
)
def test_update_is_relevant_if_it_changes_more_than_ignored_fields(
    settings: dict[str, str], after: Manifest, is_one: bool
) -> None:
    assert matters(settings, widget({"a": 1}, resourceVersion="7", generation=1), after) is is_one
