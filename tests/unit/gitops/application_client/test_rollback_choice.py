"""Tests which deployment a rollback chooses if no history ID is given."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import UserError
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.application_actions import choose_rollback_entry, is_already_deployed


def application(*revisions: str, **last_source: Any) -> Application:
    source = {"repoURL": "https://git.example/ml", "path": "app"}
    history = [
        {"id": number, "revision": revision, "source": dict(source)} for number, revision in enumerate(revisions)
    ]
    if history:
        history[-1]["source"] = {**source, **last_source}
    return read_application(
        {"metadata": {"name": "models"}, "spec": {"source": source}, "status": {"history": history}}
    )


@pytest.mark.parametrize(
    "app, chosen, compat_choice",
    [
        (application("a", "b"), 0, 0),
        (application("a", "b", "b"), 0, 1),
        (application("a", "b", "c", "c", "c"), 1, 3),
        (application("a", "a"), 0, 0),
        (application("a", "b", "b", path="other"), 1, 1),
    ],
)
def test_default_entry_is_the_last_different_deployment(app: Application, chosen: int, compat_choice: int) -> None:
    assert choose_rollback_entry(app, None).id == chosen
    assert choose_rollback_entry(app, None, is_compat=True).id == compat_choice


def test_already_deployed_entry_is_detected() -> None:
    app = application("a", "b", "b")
    assert [is_already_deployed(app, choose_rollback_entry(app, number)) for number in (0, 1, 2)] == [False, True, True]


@pytest.mark.parametrize(
    ("revisions", "syncing", "phase", "chosen"),
    [
        (("a", "b"), "c", "Running", 1),
        (("a",), "c", "Running", 0),
        (("a", "b"), "b", "Running", 0),
        (("a", "b"), "c", "Failed", 0),
    ],
    ids=["another one", "another one after the first", "the same again", "no sync runs any more"],
)
def test_default_entry_is_the_last_deployment_while_another_revision_syncs(
    revisions: tuple[str, ...], syncing: str, phase: str, chosen: int
) -> None:
    """Changes that a hanging sync made so far are in no history entry."""
    source = {"repoURL": "https://git.example/ml", "path": "app"}
    wire = dict(application(*revisions).wire)
    state = {"phase": phase, "operation": {"sync": {}}, "syncResult": {"revision": syncing, "source": source}}
    app = read_application({**wire, "operation": {"sync": {}}, "status": {**wire["status"], "operationState": state}})
    entry = choose_rollback_entry(app, None)
    assert entry.id == chosen
    assert is_already_deployed(app, entry) is False


def test_rollback_of_the_only_deployment_is_rejected() -> None:
    with pytest.raises(UserError, match="no earlier deployment"):
        choose_rollback_entry(application("a"), None)
