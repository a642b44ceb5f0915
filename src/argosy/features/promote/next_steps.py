"""Finds the next step that brings an environment to the state in Git.

In: the environment's state and its deployed release. Out: NextStep. Never: a step that changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from argosy.features.promote.gates import Standing
from argosy.features.promote.releases import Release
from argosy.gitops.delivery_file.values import Environment, Sync


@dataclass(frozen=True)
class Running:
    """The revision deployed last, empty if none was, and its release, None if this clone lacks the revision."""

    revision: str = ""
    release: Release | None = None

    def __str__(self) -> str:
        if self.release is not None:
            return str(self.release)
        return f"{self.revision[:7]}, not in this clone" if self.revision else "nothing yet"


@dataclass(frozen=True)
class Step:
    brief: str  # sync it
    command: str


def step(
    environment: Environment, standing: Standing | None, running: Running | None, release: Release, *, is_unpushed: bool
) -> Step | None:
    """Return None if the environment is up to date, its state is unknown, or it is held."""
    if standing is None or running is None or standing.hold:
        return None
    is_there = running.release is not None and running.release.commit == release.commit
    if is_there and standing.sync != "OutOfSync":
        return None
    app = environment.application
    if standing.back:
        return Step("rolled back: fix it in Git", f"argosy app diff {app}")
    if running.revision and running.release is None:
        return Step("pull", "git pull")
    word = "wait" if environment.sync == Sync.AUTO else "sync"
    if is_unpushed:
        return Step(f"push, then {word}", f"git push; then: argosy app {word} {app}")
    return Step("wait for its sync" if word == "wait" else "sync it", f"argosy app {word} {app}")
