"""Servers for the table: one real `argosy sandbox start` for each kubectl."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "realcluster")]

from serving import sandbox  # noqa: E402
from transcript import Outcome, Shell, play, scenarios  # noqa: E402

Played = dict[str, list[Outcome]]


@pytest.fixture(scope="module")
def play_with(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path | None, str], Played]:
    """Plays the table with this kubectl on a fresh server that enforces RBAC; skipped by name without the program."""

    def played(kubectl: Path | None, name: str) -> Played:
        if kubectl is None:
            pytest.skip(f"{name}: it is not here (make install)")
        folder = tmp_path_factory.mktemp("kubectl")
        with sandbox(folder / "data", "--port", "0", "--rbac") as server:
            return play(scenarios(), Shell(kubectl, server.kubeconfig, folder / "shell"))

    return played
