"""Finds the next step that brings an environment to the state in Git.

In: the environment's state and its deployed release. Out: NextStep. Never: a step that changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy.features.promote.classified_manifest_fields import Release
from argosy.features.promote.gates import EnvironmentState
from argosy.gitops.delivery_file.delivery_value_types import DeliveryEnvironment, SyncMode


@dataclass(frozen=True)
class DeployedRelease:
    """The revision deployed last, empty if none was, and its release, None if this clone lacks the revision."""

    revision: str = ""
    release: Release | None = None

    def __str__(self) -> str:
        if self.release is not None:
            return str(self.release)
        return f"{self.revision[:7]}, not in this clone" if self.revision else "nothing yet"


@dataclass(frozen=True)
class NextStep:
    brief: str  # sync it
    command: str


def find_next_step(
    environment: DeliveryEnvironment,
    state: EnvironmentState | None,
    deployed: DeployedRelease | None,
    release: Release,
    *,
    is_unpushed: bool,
) -> NextStep | None:
    """Return None if the environment is up to date, its state is unknown, or it is held."""
    if state is None or deployed is None or state.hold:
        return None
    is_there = deployed.release is not None and deployed.release.commit == release.commit
    if is_there and state.sync != "OutOfSync":
        return None
    app = environment.application
    if state.rollback_note:
        return NextStep("rolled back: fix it in Git", f"argosy app diff {app}")
    if deployed.revision and deployed.release is None:
        return NextStep("pull", "git pull")
    word = "wait" if environment.sync == SyncMode.AUTO else "sync"
    if is_unpushed:
        return NextStep(f"push, then {word}", f"git push; then: argosy app {word} {app}")
    return NextStep("wait for its sync" if word == "wait" else "sync it", f"argosy app {word} {app}")
