"""Rollback requests: the operation built from a history entry is read back unchanged."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import ManifestError
from argosy.gitops.application.operations import read_request
from argosy.gitops.sync.rollback_request import build_rollback_request
from argosy.kube.objects.strict_typed_field_reader import FieldReader

SOURCE = {"repoURL": "https://git.example/models", "path": "dev"}
ONE = {"id": 3, "revision": "abc", "source": SOURCE}
MANY = {"id": 4, "revisions": ["a", "b"], "sources": [SOURCE, SOURCE], "source": {"repoURL": ""}}


@pytest.mark.parametrize("entry", [ONE, MANY], ids=["one source", "many"])
def test_rollback_request_survives_a_round_trip_and_runs_no_hooks(entry: dict[str, Any]) -> None:
    request = build_rollback_request(entry, username="ann", prune=True, options=("Replace=true",))
    assert read_request(FieldReader(request.wire, "")) == request
    assert not request.sync.runs_hooks


def test_rollback_to_multiple_sources_has_no_single_source() -> None:
    assert "source" not in build_rollback_request(MANY).wire["sync"]


def test_history_entry_without_a_source_cannot_be_rolled_back_to() -> None:
    with pytest.raises(ManifestError, match="history entry 5: it has no source"):
        build_rollback_request({"id": 5, "revision": "abc"})


@pytest.mark.parametrize("options", [{}, {"prune": True}, {"dry_run": True}])
def test_only_options_that_are_set_are_written(options: dict[str, bool]) -> None:
    """argo: false values are omitted."""
    sync = build_rollback_request(ONE, **options).wire["sync"]
    assert [name for name in ("prune", "dryRun") if name in sync] == [
        {"prune": "prune", "dry_run": "dryRun"}[name] for name in options
    ]
