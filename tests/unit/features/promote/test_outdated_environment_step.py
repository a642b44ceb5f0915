"""Next step that brings an outdated environment to the state in Git."""

from __future__ import annotations

from dataclasses import replace

import pytest

from argosy.features.promote.classified_manifest_fields import Release
from argosy.features.promote.environment_sync_next_step import DeployedRelease, find_next_step
from argosy.features.promote.gates import EnvironmentState
from argosy.gitops.delivery_file.delivery_value_types import DeliveryEnvironment, SyncMode

NEW, OLD = Release("r4", "a" * 40), Release("r2", "b" * 40)
BY_HAND = DeliveryEnvironment("staging", "web", "ns", "s", SyncMode.MANUAL, after="dev")
ITSELF = replace(BY_HAND, sync=SyncMode.AUTO)
FINE = EnvironmentState("Healthy", sync="Synced")
APART = EnvironmentState("Healthy", sync="OutOfSync")


@pytest.mark.parametrize(
    ("environment", "standing", "running", "is_unpushed", "command"),
    [
        (BY_HAND, FINE, DeployedRelease("c" * 40, OLD), False, "argosy app sync web"),
        (BY_HAND, FINE, DeployedRelease("c" * 40, OLD), True, "git push; then: argosy app sync web"),
        (BY_HAND, APART, DeployedRelease("c" * 40, NEW), False, "argosy app sync web"),
        (BY_HAND, APART, DeployedRelease(), False, "argosy app sync web"),
        (ITSELF, APART, DeployedRelease("c" * 40, OLD), False, "argosy app wait web"),
        (BY_HAND, FINE, DeployedRelease("c" * 40), False, "git pull"),
        (
            BY_HAND,
            replace(APART, rollback_note="rolled back"),
            DeployedRelease("c" * 40, OLD),
            False,
            "argosy app diff web",
        ),
    ],
)
def test_next_step_brings_the_environment_to_the_state_in_git(
    environment: DeliveryEnvironment,
    standing: EnvironmentState,
    running: DeployedRelease,
    is_unpushed: bool,
    command: str,
) -> None:
    step = find_next_step(environment, standing, running, NEW, is_unpushed=is_unpushed)
    assert step is not None and step.command == command


@pytest.mark.parametrize(
    ("standing", "running"),
    [
        (FINE, DeployedRelease("c" * 40, NEW)),
        (None, None),
        (EnvironmentState("Healthy", sync="OutOfSync", hold="held by bob"), DeployedRelease("c" * 40, OLD)),
    ],
)
def test_up_to_date_unknown_or_held_environment_needs_no_step(
    standing: EnvironmentState | None, running: DeployedRelease | None
) -> None:
    assert find_next_step(BY_HAND, standing, running, NEW, is_unpushed=True) is None
