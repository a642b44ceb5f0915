"""`argosy demo --no-engine`, as next to an Argo CD: setup commands work the same, and no status is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.clusters import KUBECTL
from support.demo import Demo, demo

pytestmark = [
    pytest.mark.tier("all"),
    pytest.mark.skipif(not KUBECTL.exists(), reason=f"kubectl: there is none at {KUBECTL} (make install)"),
]
APPS = Path(__file__).parents[2] / "llmops-via-argocd/argocd-apps"


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo(tmp_path_factory.mktemp("alone"), "--api-port", "0", "--no-engine") as running:
        yield running


@pytest.fixture(scope="module")
def delivering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo(tmp_path_factory.mktemp("delivering"), "--api-port", "0") as running:
        yield running


def steps(output: str) -> list[str]:
    """Return the lines on checks and steps, without addresses and the Application table, which needs an engine."""
    return [
        re.sub(r"https?://\S+", "URL", line) for line in output.splitlines() if re.match(r"[✓✗⚠]|Step|  \w+\.\w", line)
    ]


COMMANDS = (
    ("setup", "argocd", "--apps", str(APPS)),
    ("setup", "apps", str(APPS)),
    ("health", "apply", "--force", "--settle", "0"),
    ("health", "verify"),
    ("health", "apply", "--force", "--settle", "0"),
)


def test_setup_and_health_give_the_same_results_with_an_engine_and_without(alone: Demo, delivering: Demo) -> None:
    alone.argosy(*COMMANDS[0])  # creates the namespaces; an engine has already created some of them
    delivering.argosy(*COMMANDS[0])
    for command in COMMANDS:
        without, beside = (steps(running_demo.argosy(*command)) for running_demo in (alone, delivering))
        assert without == beside != [], command


def test_init_and_generate_do_not_depend_on_an_engine(alone: Demo, delivering: Demo, tmp_path: Path) -> None:
    files: list[dict[str, bytes]] = []
    for number, running_demo in enumerate((alone, delivering)):
        folder = tmp_path / str(number) / "new"
        folder.parent.mkdir()
        running_demo.argosy("init", str(folder), "--no-commit")
        paths = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
        files.append({str(path.relative_to(folder)): path.read_bytes() for path in paths})
    assert files[0] == files[1] and files[0]
    job = ("generate", "wait-for-image", "--name", "built", "--image-tag", "built:latest", "-n", "ml", "--with-rbac")
    assert alone.argosy(*job) == delivering.argosy(*job) != ""


def test_no_application_status_is_written_without_an_engine(alone: Demo) -> None:
    for command in COMMANDS:
        alone.argosy(*command)
    assert {name: app.get("status") for name, app in alone.apps().items()} == dict.fromkeys(alone.apps())
    assert sorted(alone.apps()) == ["llmops-dev", "llmops-production", "llmops-staging"]
    managers = {
        entry["manager"] for app in alone.apps().values() for entry in app["metadata"].get("managedFields", [])
        if "f:status" in entry.get("fieldsV1", {})
    }  # fmt: skip
    assert managers == set()
