"""Fixtures for scenarios that run the real `argosy` command, each with its own home folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.clusters import KUBECTL, Sandbox, sandbox
from support.real_server import WipedServer, wiped_server


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def running(home: Path) -> Iterator[Sandbox]:
    """A sandbox for this test only."""
    with sandbox(home / "data", "--port", "0") as started:
        yield started


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One sandbox for all tests of a file; each test uses its own object names."""
    with sandbox(tmp_path_factory.mktemp("shared") / "data", "--port", "0") as started:
        yield started


@pytest.fixture
def needs_kubectl() -> None:
    if not KUBECTL.exists():
        pytest.skip(f"kubectl: there is none at {KUBECTL} (make install)")


@pytest.fixture(scope="module")
def openshift(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with sandbox(tmp_path_factory.mktemp("setup") / "data", "--port", "0", "--addons", "argocd_operator") as started:
        yield started


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    folder = tmp_path_factory.mktemp("plain") / "data"
    with sandbox(folder, "--port", "0", "--addons", "argocd_operator=plain") as started:
        yield started


@pytest.fixture(scope="session")
def real_server() -> Iterator[WipedServer]:
    """One real server for the session; it is wiped before each test."""
    with wiped_server() as server:
        yield server
