"""The next step that brings an environment to the state in Git."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.features.promote.gates import Standing
from argosy.features.promote.next_steps import Running, step
from argosy.features.promote.releases import Release
from argosy.gitops.delivery_file.values import Environment, Sync

NEW, OLD = Release("r4", "a" * 40), Release("r2", "b" * 40)
BY_HAND = Environment("staging", "web", "ns", "s", Sync.MANUAL, after="dev")
ITSELF = replace(BY_HAND, sync=Sync.AUTO)
FINE = Standing("Healthy", sync="Synced")
APART = Standing("Healthy", sync="OutOfSync")


@pytest.mark.parametrize(
    ("environment", "standing", "running", "is_unpushed", "command"),
    [
        (BY_HAND, FINE, Running("c" * 40, OLD), False, "argosy app sync web"),
        (BY_HAND, FINE, Running("c" * 40, OLD), True, "git push; then: argosy app sync web"),
        (BY_HAND, APART, Running("c" * 40, NEW), False, "argosy app sync web"),
        (BY_HAND, APART, Running(), False, "argosy app sync web"),
        (ITSELF, APART, Running("c" * 40, OLD), False, "argosy app wait web"),
        (BY_HAND, FINE, Running("c" * 40), False, "git pull"),
        (BY_HAND, replace(APART, back="rolled back"), Running("c" * 40, OLD), False, "argosy app diff web"),
    ],
)
def test_a_step_leads_to_what_git_says(
    environment: Environment, standing: Standing, running: Running, is_unpushed: bool, command: str
) -> None:
    found = step(environment, standing, running, NEW, is_unpushed=is_unpushed)
    assert found is not None and found.command == command


@pytest.mark.parametrize(
    ("standing", "running"),
    [
        (FINE, Running("c" * 40, NEW)),
        (None, None),
        (Standing("Healthy", sync="OutOfSync", hold="held by bob"), Running("c" * 40, OLD)),
    ],
)
def test_what_is_so_already_or_not_known_or_held_needs_no_step(
    standing: Standing | None, running: Running | None
) -> None:
    assert step(BY_HAND, standing, running, NEW, is_unpushed=True) is None
