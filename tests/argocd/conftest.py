"""Fixtures of the tests beside the real Argo CD: one pair of clusters for all tests of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.argocd.known_differences import list_unused_names, stories_by_entry
from support.argocd.pair import Pair, run_pair
from support.argocd.programs import VERSION, Installation, find_installation
from support.argocd.story import Story

HERE = Path(__file__).parent


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a complete run that needed fewer known differences than the table has."""
    files = {item.path for item in session.items if item.path.parent == HERE}
    is_complete = files == set(HERE.glob("test_*.py")) and not session.config.getoption("keyword")
    if not is_complete or session.testsfailed or session.config.option.collectonly:
        return
    if unused_names := list_unused_names():
        print(f"\nknown_differences.toml: no story needs {', '.join(unused_names)}; remove it")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print which stories needed which known differences, to see what an entry of the table accepts."""
    if stories_by_entry:
        stories = {story for counts in stories_by_entry.values() for story in counts}
        terminalreporter.section(f"known differences of {len(stories)} stories from Argo CD {VERSION}")
    for name, counts in sorted(stories_by_entry.items()):
        lines = ", ".join(f"{story} ({count})" for story, count in sorted(counts.items()))
        terminalreporter.write_line(f"{name}: {lines}")


@pytest.fixture(scope="session")
def installation() -> Installation:
    return find_installation()


@pytest.fixture(scope="session")
def pair(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder: Path = tmp_path_factory.mktemp("pair")
    with run_pair(installation, folder) as started:
        yield started


@pytest.fixture
def story(pair: Pair, request: pytest.FixtureRequest, tmp_path: Path) -> Story:
    """A story that is named after its test; the name is also that of its namespace."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")
    return Story(pair, words[:50].strip("-"), tmp_path)
