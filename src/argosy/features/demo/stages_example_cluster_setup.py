"""Initial state of the example `stages`: eight Applications, all healthy, three of them synced.

In: a cluster with an engine, a repository. Out: the initial state. Never: writes a status: problems are caused by
pushes, the operator and manual edits, as in reality.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from argosy.features.demo.initial_demo_state import InitialStateSetup, read_conditions, read_sync_and_health
from argosy.features.demo.stages_example_repository import (
    LEGACY_BRANCH,
    REPOSITORY_URL,
    add_later_commits,
    has_later_commits,
    read_root_application,
)

ROOT_APP: Final = "private-ai-demo-root"
GPU_APP, SERVING_APP = "stage00-gpu-infrastructure", "stage01-model-serving"
EDIT_FIELD_MANAGER: Final = "kubectl-edit"  # k8s: field manager of `kubectl edit`
SYNCED_HEALTHY: Final = ("Synced", "Healthy")
OUT_OF_SYNC_HEALTHY: Final = ("OutOfSync", "Healthy")
EXPECTED_STATES: Final[Mapping[str, tuple[tuple[str, str], set[str]]]] = {
    ROOT_APP: (OUT_OF_SYNC_HEALTHY, set()),
    "stage00-datasciencecluster": (OUT_OF_SYNC_HEALTHY, set()),
    GPU_APP: (SYNCED_HEALTHY, set()),
    "stage00-minio": (OUT_OF_SYNC_HEALTHY, set()),
    "stage00-operators": (SYNCED_HEALTHY, set()),
    "stage01-model-registry": (SYNCED_HEALTHY, {"SharedResourceWarning"}),
    SERVING_APP: (("Unknown", "Healthy"), {"ComparisonError"}),
    "stage02-model-alignment": (OUT_OF_SYNC_HEALTHY, {"SyncError"}),
}


class StagesInitialState(InitialStateSetup):
    async def create_objects(self) -> bool:
        await self.set_mirror(REPOSITORY_URL)
        await self.create_if_missing(read_root_application(self.repository))
        return not has_later_commits(self.repository)  # resume a demo that was killed during the setup

    async def sync_applications(self) -> None:
        self.report("syncing eight applications: the first one creates the others")
        for name in EXPECTED_STATES:
            await self.wait_for_status(name, _is_succeeded_and_healthy)
        # The Application that syncs last owns the namespace that two stages share.
        await self.sync_application(SERVING_APP, self.repository.list_commits(LEGACY_BRANCH)[-1])
        self.report("simulating later changes: commits on two branches, and self-heal disabled manually")
        add_later_commits(self.repository)
        automated = {"spec": {"syncPolicy": {"automated": {"selfHeal": False}}}}
        await self.cluster.patch(self.application_key(GPU_APP), automated, manager=EDIT_FIELD_MANAGER)
        self.report("waiting for the expected status of every application")
        for name, (expected, conditions) in EXPECTED_STATES.items():
            await self.wait_for_status(name, partial(_has_expected_state, expected, conditions))


def _is_succeeded_and_healthy(status: dict[str, Any]) -> bool:
    is_done = (status.get("operationState") or {}).get("phase") == "Succeeded"
    return is_done and read_sync_and_health(status)[1] == "Healthy"


def _has_expected_state(expected: tuple[str, str], conditions: set[str], status: dict[str, Any]) -> bool:
    return (
        read_sync_and_health(status) == expected
        and {condition["type"] for condition in read_conditions(status)} == conditions
    )
