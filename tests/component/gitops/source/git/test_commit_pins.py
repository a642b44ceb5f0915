"""Commits requested by id are pinned in the mirror after the host dropped them, up to a limit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from argosy.gitops.source.git.mirror import COMMIT_PIN_PREFIXES, Mirror
from argosy.gitops.source.repository_mirrors import Repositories

pytestmark = pytest.mark.anyio
Opened = Callable[..., Repositories]


async def list_pinned_commits(mirror: Mirror) -> list[str]:
    return sorted((await mirror._run_local_git("for-each-ref", "--format=%(objectname)", *COMMIT_PIN_PREFIXES)).split())


async def test_compact_keeps_commit_pins_in_use_and_then_the_newest(
    repository, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argosy.gitops.source.git.mirror.MAX_COMMIT_PINS", 2)
    main = repository.commit({"a": "main"})
    repositories, url = opened(), str(repository.path)
    mirror, commits = repositories.mirror(url), []
    await mirror.checkout("main")

    async def delivered(text: str) -> None:
        tree = repository.tree(("100644", repository.blob(text.encode()), "a"))
        who = f"ann <ann@example.com> {1_700_000_000 + len(commits)} +0000"
        words = f"tree {tree}\nauthor {who}\ncommitter {who}\n\n{text}\n"  # no parent: the last commit is lost
        commits.append(repository.git("hash-object", "-t", "commit", "-w", "--stdin", input=words.encode()))
        repository.git("update-ref", "refs/heads/work", commits[-1])
        await mirror.checkout(commits[-1])

    for number in range(4):
        await delivered(str(number))
    await mirror.compact()
    assert await list_pinned_commits(mirror) == sorted(commits[-2:])
    assert (await mirror.checkout(commits[2])).tree.read_file("a") == b"2"  # commit 2 is now in use, commit 3 is not
    await delivered("4")
    await mirror.compact()
    assert await list_pinned_commits(mirror) == sorted([commits[2], commits[4]])
    assert (await opened().checkout(url, main)).revision == main


async def test_cached_refs_are_limited(repository, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.gitops.source.git.mirror.MAX_CACHED_REFS", 2)
    repositories, url = opened(), str(repository.path)
    commits = [repository.commit({"a": str(number)}, branch=f"b{number}") for number in range(4)]
    mirror = repositories.mirror(url)
    for commit in commits:
        await mirror.checkout(commit)
    assert len(mirror._pinned_revisions) == 2
    assert (await mirror.checkout(commits[0])).revision == commits[0]
