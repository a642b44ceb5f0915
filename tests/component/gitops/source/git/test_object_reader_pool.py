"""Git trees in worker processes: one git process per mirror, regardless of the number of trees."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.errors import SourceError
from argosy.gitops.source.git import object_reader
from argosy.gitops.source.git.commit_tree import GitTree
from argosy.gitops.source.git.object_reader import ObjectReader, ReaderPool
from argosy.gitops.source.repository_access_settings import SourceLimits
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.isolation import ProcessPool
from support.deadlines import wait_until_async
from support.processes import children, is_running

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc here to count processes in"),
]
Opened = Callable[..., Repositories]


async def test_worker_reads_all_trees_of_a_mirror_with_one_git_process(repository, opened: Opened) -> None:
    repositories, url = opened(), str(repository.path)
    trees = []
    for text in ("one", "two", "three"):
        repository.commit({"a": text, "same": "x"})
        trees.append((await repositories.checkout(url, "main")).tree)
    crew = ProcessPool(workers=1)
    try:
        worker = await crew.run(os.getpid)
        read = [await crew.run(GitTree.read_file, tree, "a") for tree in trees * 3]
        assert read == [b"one", b"two", b"three"] * 3
        gits = children(worker)
        assert len(gits) == 1
        with pytest.raises(SourceError, match="no such file") as missing:
            await crew.run(GitTree.read_file, trees[0], "none")
        assert missing.value.where == "none"
        # The mirror folder is recreated, as after damage; the worker's open reader must not keep using the old one.
        repositories.mirror(url).folder.joinpath(object_reader.SUSPECT_MARKER).touch()
        repository.commit({"a": "four"})
        fresh = (await repositories.checkout(url, "main")).tree
        assert await crew.run(GitTree.read_file, fresh, "a") == b"four"
        gits = children(worker)
    finally:
        await crew.close()
    await wait_until_async(lambda: not any(is_running(pid) for pid in [worker, *gits]))


async def test_unpickled_trees_of_one_mirror_share_a_reader(repository, opened: Opened) -> None:
    repository.commit({"a": "x"})
    tree = (await opened().checkout(str(repository.path), "main")).tree
    one, other = (pickle.loads(pickle.dumps(tree)) for _ in range(2))
    assert one.objects is other.objects
    assert one.objects is not tree.objects
    one.objects.close()


def test_open_readers_are_limited_and_closed_ones_reopen_on_read(repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_reader, "MAX_OPEN_READERS", 2)
    repository.commit({"a": "x"})
    id = repository.git("rev-parse", "main:a")
    readers = ReaderPool()
    object_readers: list[ObjectReader] = []
    for number in range(4):
        object_readers.append(readers.get(repository.path, SourceLimits(), f"mirror {number}"))
        assert object_readers[-1].read(id).content == b"x"
    assert [reader._process is not None for reader in object_readers] == [False, False, True, True]
    assert readers.get(repository.path, SourceLimits(), "mirror 3") is object_readers[3]
    assert object_readers[0].read(id).content == b"x"
    for reader in object_readers:
        reader.close()


def test_dropped_reader_ends_its_git_process(repository) -> None:
    id = repository.commit({"a": "x"})
    reader = ObjectReader(repository.path, SourceLimits(), "here")
    before = set(children(os.getpid()))
    assert reader.read(id).kind == "commit"
    (git,) = set(children(os.getpid())) - before
    del reader
    assert not is_running(git)


def test_forked_copy_of_a_reader_leaves_the_git_process_of_its_parent(repository) -> None:
    id = repository.commit({"a": "x"})
    reader = ObjectReader(repository.path, SourceLimits(), "here")
    content = reader.read(id).content
    pid = os.fork()
    if pid == 0:
        del reader
        os._exit(0)
    os.waitpid(pid, 0)
    before = set(children(os.getpid()))
    assert reader.read(id).content == content
    assert set(children(os.getpid())) == before
    reader.close()
