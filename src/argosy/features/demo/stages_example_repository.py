"""Content of the example `stages`: a repository with three branches, and later commits on two of them.

In: files that ship with argosy. Out: commits and manifests. Never: differs from examples/stages/ at the tip of main.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from argosy.features.demo.content import ANN, BEN, HOUR_SECONDS
from argosy.features.init.template_files import list_stages_example_files
from argosy.gitops.workspace.git_repository_creation import RepositoryFile
from argosy.gitops.workspace.hosted_bare_repository import BareRepository, CommitContent
from argosy.kube.objects import Manifest, read_manifests

REPOSITORY_NAME: Final = "private-ai-demo.git"
REPOSITORY_URL: Final = "https://github.com/your-org/private-ai-demo.git"
LEGACY_BRANCH, FEATURE_BRANCH = "stage1-complete", "feature/stage2-implementation"
ROOT_FILE: Final = "gitops/argocd/private-ai-demo-root.yaml"
APPLICATIONS_FOLDER: Final = "gitops/argocd/applications/"
SERVING_FOLDER: Final = "gitops/stage01/model-serving/"
SERVING_KUSTOMIZATION: Final = f"{SERVING_FOLDER}kustomization.yaml"
MOVED_FOLDER: Final = "serving/vllm/"  # folder on main of files that the older branch has next to its kustomization
ALIGNMENT_KUSTOMIZATION: Final = "gitops/stage02/model-alignment/kustomization.yaml"
HALF_CHANGE_MESSAGE: Final = "stage01: list the files as main does"
LABELS_KEY: Final = "labels:\n"
CONTEXT_LENGTH_CHANGE: Final = ("--max-model-len=16384", "--max-model-len=8192")


def create_stages_repository(folder: Path) -> BareRepository:
    """Create the repository as of the first deployment: the branches are complete, and the Applications track them."""
    repository = BareRepository(folder)
    if repository.exists:
        return repository
    repository.create()
    now_seconds, files = int(time.time()), list_stages_example_files()
    serving = [file for file in files if file.path.startswith(SERVING_FOLDER)]
    older_files = [_build_older_file(file) for file in serving]
    labelled_file = next(file for file in files if file.path == ALIGNMENT_KUSTOMIZATION)
    unlabelled_file = RepositoryFile(
        labelled_file.path, _text_before(labelled_file.content.decode(), LABELS_KEY).encode()
    )
    moved_paths = [file.path for file in older_files if file.path not in {new.path for new in serving}]
    _, second, third = repository.commit(
        [
            CommitContent(
                _select_stage_files(files, "stage00"),
                "stage00: operators, GPUs, storage, the mesh",
                ANN,
                now_seconds - 900 * HOUR_SECONDS,
            ),
            CommitContent(
                [*_select_stage_files(files, "stage01", excluded_prefix=SERVING_FOLDER), *older_files],
                "stage01: serve a model, and keep a registry",
                BEN,
                now_seconds - 600 * HOUR_SECONDS,
            ),
            CommitContent(
                serving,
                "stage01: one folder for each way to serve",
                BEN,
                now_seconds - 400 * HOUR_SECONDS,
                removed=moved_paths,
            ),
        ]
    )
    empty_change = CommitContent([], "stage01: done", BEN, now_seconds - 590 * HOUR_SECONDS)
    repository.commit([empty_change], branch=LEGACY_BRANCH, start=second)
    second_stage = _select_stage_files(files, "stage02")
    older_stage = [unlabelled_file if file == labelled_file else file for file in second_stage]
    feature_change = CommitContent(
        older_stage, "stage02: a playground, and a reader of documents", ANN, now_seconds - 200 * HOUR_SECONDS
    )
    repository.commit([feature_change], branch=FEATURE_BRANCH, start=third)
    main_change = CommitContent(
        second_stage, "stage02: a playground, a reader of documents, and labels", ANN, now_seconds - 50 * HOUR_SECONDS
    )
    repository.commit([main_change])
    return repository


def add_later_commits(repository: BareRepository) -> None:
    """Add later commits: one branch gets half of a change, the other labels existing objects."""
    now_seconds, files = int(time.time()), {file.path: file for file in list_stages_example_files()}
    removed_paths = [
        f"{SERVING_FOLDER}{PurePosixPath(path).name}"
        for path in files
        if path.startswith(f"{SERVING_FOLDER}{MOVED_FOLDER}")
    ]
    half_change = CommitContent(
        [files[SERVING_KUSTOMIZATION]],
        HALF_CHANGE_MESSAGE,
        BEN,
        now_seconds - 2 * HOUR_SECONDS,
        removed=sorted(removed_paths),
    )
    repository.commit([half_change], branch=LEGACY_BRANCH)
    labels = CommitContent(
        [files[ALIGNMENT_KUSTOMIZATION]], "stage02: label what the stage brings", ANN, now_seconds - HOUR_SECONDS
    )
    repository.commit([labels], branch=FEATURE_BRANCH)


def has_later_commits(repository: BareRepository) -> bool:
    return any(HALF_CHANGE_MESSAGE in message for message in repository.list_messages(LEGACY_BRANCH).values())


def read_root_application(repository: BareRepository) -> Manifest:
    [manifest] = read_manifests(repository.read_file(ROOT_FILE), where=ROOT_FILE)
    return manifest


def _select_stage_files(
    files: Sequence[RepositoryFile], stage: str, excluded_prefix: str = "-"
) -> list[RepositoryFile]:
    """Files of a stage: its Applications and their folders; the first stage includes the root Application."""
    prefixes = [f"gitops/{stage}/", f"{APPLICATIONS_FOLDER}{stage}/", *([ROOT_FILE] if stage == "stage00" else [])]
    return [
        file for file in files if file.path.startswith(tuple(prefixes)) and not file.path.startswith(excluded_prefix)
    ]


def _build_older_file(file: RepositoryFile) -> RepositoryFile:
    """The file before the move to subfolders, and with the shorter model context length."""
    text = file.content.decode().replace(*CONTEXT_LENGTH_CHANGE)
    new_text = text.replace(MOVED_FOLDER, "") if file.path == SERVING_KUSTOMIZATION else text
    return RepositoryFile(file.path.replace(MOVED_FOLDER, ""), new_text.encode())


def _text_before(text: str, marker: str) -> str:
    text_before, separator, _ = text.partition(marker)
    if not separator:
        raise AssertionError(f"{ALIGNMENT_KUSTOMIZATION} does not hold {marker!r}")
    return text_before
