"""Servers for the table: one real `argosy sandbox start` for each kubectl."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from support.clusters import sandbox
from support.kubectl_transcripts import Outcome, Scenario, Shell, play, scenarios

Played = dict[str, list[Outcome]]


@pytest.fixture(scope="module")
def play_with(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Played]:
    """Plays the table with this kubectl on a fresh server that enforces RBAC; skipped by name without the program."""

    def played(kubectl: Path | None, name: str, chosen: Sequence[Scenario] = ()) -> Played:
        if kubectl is None:
            pytest.skip(f"{name}: it is not here (make install)")
        folder = tmp_path_factory.mktemp("kubectl")
        with sandbox(folder / "data", "--port", "0", "--rbac") as server:
            return play(chosen or scenarios(), Shell(kubectl, server.kubeconfig, folder / "shell"))

    return played
