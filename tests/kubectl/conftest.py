"""Servers for the kubectl transcripts: one real `argosy sandbox start` for each kubectl."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.clusters import sandbox
from support.kubectl_transcripts import Outcome, Shell, play

Played = dict[str, list[Outcome]]


@pytest.fixture(scope="module")
def play_with(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Played]:
    """Play the selected scenarios of this file with the given kubectl, on a new server that enforces RBAC."""

    def played(kubectl: Path | None, name: str) -> Played:
        if kubectl is None:
            pytest.skip(f"{name}: it is not here (make install)")
        chosen = [item.callspec.params["scenario"] for item in request.session.items if item.path == request.path]
        folder = tmp_path_factory.mktemp("kubectl")
        with sandbox(folder / "data", "--port", "0", "--rbac") as server:
            return play(chosen, Shell(kubectl, server.kubeconfig, folder / "shell"))

    return played
