"""Content of the example `stages`: a repository with three branches, and later commits on two of them.

In: files that ship with argosy. Out: commits and manifests. Never: differs from examples/stages/ at the tip of main.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from argosy.features.demo.content import ANN, BEN, HOUR
from argosy.features.init.template_files import stage_files
from argosy.gitops.workspace.bare_repository import BareRepository, Change
from argosy.gitops.workspace.new_repository import File
from argosy.kube.objects import Manifest, read_manifests

REPOSITORY: Final = "private-ai-demo.git"
URL: Final = "https://github.com/your-org/private-ai-demo.git"
LEGACY, FEATURE = "stage1-complete", "feature/stage2-implementation"
ROOT_FILE: Final = "gitops/argocd/private-ai-demo-root.yaml"
APPLICATIONS: Final = "gitops/argocd/applications/"
SERVING: Final = "gitops/stage01/model-serving/"
SERVING_LIST: Final = f"{SERVING}kustomization.yaml"
MOVED: Final = "serving/vllm/"  # folder on main of files that the older branch has next to its kustomization
ALIGNMENT_LIST: Final = "gitops/stage02/model-alignment/kustomization.yaml"
HALF: Final = "stage01: list the files as main does"
LABELS: Final = "labels:\n"
LENGTH: Final = ("--max-model-len=16384", "--max-model-len=8192")


def make_stages(folder: Path) -> BareRepository:
    """Create the repository as of the first deployment: the branches are complete, and the Applications track them."""
    repository = BareRepository(folder)
    if repository.is_there:
        return repository
    repository.create()
    now, files = int(time.time()), stage_files()
    serving = [each for each in files if each.path.startswith(SERVING)]
    older = [_flat(each) for each in serving]
    labelled = next(each for each in files if each.path == ALIGNMENT_LIST)
    plain = File(labelled.path, _before(labelled.content.decode(), LABELS).encode())
    moves = [each.path for each in older if each.path not in {new.path for new in serving}]
    _, second, third = repository.commit(
        [
            Change(_of(files, "stage00"), "stage00: operators, GPUs, storage, the mesh", ANN, now - 900 * HOUR),
            Change(
                [*_of(files, "stage01", but=SERVING), *older],
                "stage01: serve a model, and keep a registry",
                BEN,
                now - 600 * HOUR,
            ),
            Change(serving, "stage01: one folder for each way to serve", BEN, now - 400 * HOUR, removed=moves),
        ]
    )
    nothing = Change([], "stage01: done", BEN, now - 590 * HOUR)
    repository.commit([nothing], branch=LEGACY, start=second)
    second_stage = _of(files, "stage02")
    older_stage = [plain if each == labelled else each for each in second_stage]
    begun = Change(older_stage, "stage02: a playground, and a reader of documents", ANN, now - 200 * HOUR)
    repository.commit([begun], branch=FEATURE, start=third)
    merged = Change(second_stage, "stage02: a playground, a reader of documents, and labels", ANN, now - 50 * HOUR)
    repository.commit([merged])
    return repository


def let_branches_go_on(repository: BareRepository) -> None:
    """Add later commits: one branch gets half of a change, the other labels existing objects."""
    now, files = int(time.time()), {each.path: each for each in stage_files()}
    moved = [f"{SERVING}{PurePosixPath(path).name}" for path in files if path.startswith(f"{SERVING}{MOVED}")]
    half = Change([files[SERVING_LIST]], HALF, BEN, now - 2 * HOUR, removed=sorted(moved))
    repository.commit([half], branch=LEGACY)
    labels = Change([files[ALIGNMENT_LIST]], "stage02: label what the stage brings", ANN, now - HOUR)
    repository.commit([labels], branch=FEATURE)


def have_branches_gone_on(repository: BareRepository) -> bool:
    return any(HALF in message for message in repository.messages(LEGACY).values())


def root_application(repository: BareRepository) -> Manifest:
    [found] = read_manifests(repository.read(ROOT_FILE), where=ROOT_FILE)
    return found


def _of(files: Sequence[File], stage: str, but: str = "-") -> list[File]:
    """Files of a stage: its Applications and their folders; the first stage includes the root Application."""
    places = [f"gitops/{stage}/", f"{APPLICATIONS}{stage}/", *([ROOT_FILE] if stage == "stage00" else [])]
    return [each for each in files if each.path.startswith(tuple(places)) and not each.path.startswith(but)]


def _flat(file: File) -> File:
    """The file before the move to subfolders, and with the shorter model context length."""
    text = file.content.decode().replace(*LENGTH)
    listed = text.replace(MOVED, "") if file.path == SERVING_LIST else text
    return File(file.path.replace(MOVED, ""), listed.encode())


def _before(text: str, words: str) -> str:
    head, found, _ = text.partition(words)
    if not found:
        raise AssertionError(f"{ALIGNMENT_LIST} does not hold {words!r}")
    return head
