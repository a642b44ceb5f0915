"""Until the demo of stages is as it is told: eight applications, all healthy, of which three are synced.

In: a cluster with an engine, a repository. Out: the state that users meet first. Never: writes a status: what is wrong
is done as it happens in life, by pushes, by an operator, by a person.
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
PERSON: Final = "kubectl-edit"  # k8s: as whom `kubectl edit` writes
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
        return not have_branches_gone_on(self.repository)  # one that was killed while it began goes on

    async def deliver(self) -> None:
        self.tell("delivering eight applications: the first one makes the others")
        for name in STATES:
            await self.until(name, _is_delivered)
        # Whoever syncs last has the namespace that two stages share.
        await self.sync(SERVING, self.repository.commits(LEGACY)[-1])
        self.tell("letting months pass: two branches go on, and somebody switches off self-heal by hand")
        let_branches_go_on(self.repository)
        automated = {"spec": {"syncPolicy": {"automated": {"selfHeal": False}}}}
        await self.cluster.patch(self.key(GPUS), automated, manager=PERSON)
        self.tell("waiting until every application says what is wrong with it")
        for name, (words, conditions) in STATES.items():
            await self.until(name, partial(_is, words, conditions))


def _is_delivered(status: dict[str, Any]) -> bool:
    is_done = (status.get("operationState") or {}).get("phase") == "Succeeded"
    return is_done and words_of(status)[1] == "Healthy"


def _is(words: tuple[str, str], conditions: set[str], status: dict[str, Any]) -> bool:
    return words_of(status) == words and {each["type"] for each in conditions_of(status)} == conditions
