"""Every folder of Argo CD's own end-to-end test data, delivered by Argo CD and by argosy: the same status."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from support.argocd.known_differences import find_unexplained
from support.argocd.pair import Pair, save_pair
from support.argocd.programs import VERSION, Installation, find_folder
from support.engine import Repository

pytestmark = pytest.mark.tier("argocd")

# Not sources of Applications: they are used by tests that set up something else first.
ONE_RETRY = {"limit": 1, "backoff": {"duration": "1s"}}
NOT_SOURCES = {"applicationset", "gpg"}
_TESTDATA = find_folder(VERSION) / "source/test/e2e/testdata"
FOLDERS = (
    sorted(path.name for path in _TESTDATA.iterdir() if path.is_dir() and path.name not in NOT_SOURCES)
    if _TESTDATA.is_dir()
    else []
)


def name_application(folder: str) -> str:
    return f"td-{re.sub('[^a-z0-9]+', '-', folder.lower()).strip('-')}"


def build_application(folder: str, url: str) -> dict[str, Any]:
    name = name_application(folder)
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {
            "project": "default",
            "source": {"repoURL": url, "path": folder, "targetRevision": "HEAD"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": name},
            "syncPolicy": {"automated": {}, "syncOptions": ["CreateNamespace=true"], "retry": ONE_RETRY},
        },
    }


@pytest.fixture(scope="module")
def delivered(pair: Pair, installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("testdata")
    repository = Repository(folder / "repository")
    shutil.copytree(installation.testdata, repository.path, dirs_exist_ok=True, symlinks=True)
    repository.push({})
    applications = [build_application(name, repository.url) for name in FOLDERS]
    for application in applications:  # in turn, because some deliver the same objects
        pair.apply(application)
        pair.wait_until_settled(application["metadata"]["name"])
    pair.wait_until_quiet([application["metadata"]["name"] for application in applications])
    save_pair(pair, pair.folder / "testdata.json")
    yield pair


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_of_testdata_gives_the_same_status(delivered: Pair, folder: str) -> None:
    unexplained = find_unexplained(f"testdata/{folder}", delivered.compare_application(name_application(folder)))
    assert not unexplained, "\n".join(map(str, unexplained))
