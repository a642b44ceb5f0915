"""Initial state of the example `stages`: eight Applications, all healthy, three of them synced.

In: a cluster with an engine, a repository. Out: the initial state. Never: writes a status: problems are caused by
pushes, the operator and manual edits, as in reality.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from argosy.features.demo.initial_state import Arranger, conditions_of, words_of
from argosy.features.demo.stages_content import (
    LEGACY,
    URL,
    have_branches_gone_on,
    let_branches_go_on,
    root_application,
)

ROOT: Final = "private-ai-demo-root"
GPUS, SERVING = "stage00-gpu-infrastructure", "stage01-model-serving"
PERSON: Final = "kubectl-edit"  # k8s: field manager of `kubectl edit`
GOOD: Final = ("Synced", "Healthy")
DRIFTED: Final = ("OutOfSync", "Healthy")
STATES: Final[Mapping[str, tuple[tuple[str, str], set[str]]]] = {
    ROOT: (DRIFTED, set()),
    "stage00-datasciencecluster": (DRIFTED, set()),
    GPUS: (GOOD, set()),
    "stage00-minio": (DRIFTED, set()),
    "stage00-operators": (GOOD, set()),
    "stage01-model-registry": (GOOD, {"SharedResourceWarning"}),
    SERVING: (("Unknown", "Healthy"), {"ComparisonError"}),
    "stage02-model-alignment": (DRIFTED, {"SyncError"}),
}


class StagesArranger(Arranger):
    async def prepare(self) -> bool:
        await self.set_mirror(URL)
        await self.make(root_application(self.repository))
        return not have_branches_gone_on(self.repository)  # resume a demo that was killed during the setup

    async def deliver(self) -> None:
        self.tell("syncing eight applications: the first one creates the others")
        for name in STATES:
            await self.until(name, _is_delivered)
        # The Application that syncs last owns the namespace that two stages share.
        await self.sync(SERVING, self.repository.commits(LEGACY)[-1])
        self.tell("simulating later changes: commits on two branches, and self-heal disabled manually")
        let_branches_go_on(self.repository)
        automated = {"spec": {"syncPolicy": {"automated": {"selfHeal": False}}}}
        await self.cluster.patch(self.key(GPUS), automated, manager=PERSON)
        self.tell("waiting for the expected status of every application")
        for name, (words, conditions) in STATES.items():
            await self.until(name, partial(_is, words, conditions))


def _is_delivered(status: dict[str, Any]) -> bool:
    is_done = (status.get("operationState") or {}).get("phase") == "Succeeded"
    return is_done and words_of(status)[1] == "Healthy"


def _is(words: tuple[str, str], conditions: set[str], status: dict[str, Any]) -> bool:
    return words_of(status) == words and {each["type"] for each in conditions_of(status)} == conditions
