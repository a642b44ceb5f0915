"""Checkouts: resolving a ref to a revision, reading its files, fetch errors and damaged mirrors."""

from __future__ import annotations

import asyncio
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from argosy.errors import CorruptSource, SourceError, SourceRefused, SourceTimeout, SourceTooLarge, UnknownRef
from argosy.gitops.source.git.fetch_locks import hold_lock
from argosy.gitops.source.git.mirror import Mirror
from argosy.gitops.source.git.mirror_remote import MirrorRemote
from argosy.gitops.source.git.object_reader import SUSPECT_MARKER
from argosy.gitops.source.git.refs import Refs
from argosy.gitops.source.repository_access_settings import SourceLimits
from argosy.gitops.source.repository_mirrors import Repositories

pytestmark = pytest.mark.anyio
Opened = Callable[..., Repositories]


async def test_every_form_of_ref_resolves_to_its_commit(repository, opened: Opened) -> None:
    old = repository.commit({"model.yaml": "a: 1"})
    repository.tag("v1.0.0")
    repository.git("tag", "-a", "-m", "noted", "v1.1.0", "main")
    new = repository.commit({"model.yaml": "a: 2"})
    repository.git(
        "update-ref", "refs/pull/7/head", repository.git("commit-tree", f"{new}^{{tree}}", "-m", "asked for")
    )
    repositories, url = opened(), str(repository.path)
    pulled = repository.git("rev-parse", "refs/pull/7/head")
    expected = {
        "": new, "HEAD": new, "main": new, "refs/heads/main": new, new: new, new.upper(): new, new[:7]: new,
        "v1.0.0": old, "refs/tags/v1.0.0": old, "v1.1.0": old, "1.x": old, "~1.0": old, old: old, old[:10]: old,
        "refs/pull/7/head": pulled, "pull/7/head": pulled,
    }  # fmt: skip
    for ref, revision in expected.items():
        assert (await repositories.checkout(url, ref)).revision == revision, ref


async def test_checkout_contains_the_files_of_its_revision(repository, opened: Opened) -> None:
    repository.commit({"base/model.yaml": "a: 1", "overlays/dev/patch.yaml": "b: 2", "README": "hi"})
    tree = (await opened().checkout(f"file://{repository.path}", "main")).tree
    assert [(entry.name, entry.kind) for entry in tree.list_folder("")] == [
        ("README", "file"), ("base", "folder"), ("overlays", "folder")
    ]  # fmt: skip
    assert tree.read_file("overlays/dev/patch.yaml") == b"b: 2"
    assert tree.find_entry("base/model.yaml").id == repository.git("rev-parse", "main:base/model.yaml")
    assert tree.find_entry("").id == repository.git("rev-parse", "main^{tree}")
    assert tree.find_entry("base/none") is None and tree.find_entry("README/none") is None
    assert tree.list_folder("README") == () and tree.list_folder("none") == ()


async def test_pickled_tree_reads_the_same_files(repository, opened: Opened) -> None:
    repository.commit({"a": "x"})
    tree = (await opened().checkout(str(repository.path), "main")).tree
    other = pickle.loads(pickle.dumps(tree))
    assert other.read_file("a") == tree.read_file("a") == b"x"
    other.objects.close()


async def test_new_commit_is_fetched_and_old_checkout_stays_readable(repository, opened: Opened) -> None:
    repository.commit({"a": "old"})
    repositories, url = opened(), str(repository.path)
    before = await repositories.checkout(url, "main")
    repository.commit({"a": "new"})  # no parent: this is a forced push
    after = await repositories.checkout(url, "main")
    assert (before.tree.read_file("a"), after.tree.read_file("a")) == (b"old", b"new")
    assert (await repositories.checkout(url, before.revision)).tree.read_file("a") == b"old"


async def test_deleted_branch_raises_unknown_ref_and_its_last_checkout_stays_usable(repository, opened: Opened) -> None:
    repository.commit({"a": "main"})
    good = repository.commit({"a": "feature"}, branch="feature")
    repositories, url = opened(), str(repository.path)
    await repositories.checkout(url, "feature")
    repository.git("update-ref", "-d", "refs/heads/feature")
    repository.git("gc", "--quiet", "--prune=now")
    repository.commit({"a": "newer"})
    await repositories.checkout(url, "main")
    await repositories.mirror(url).compact()
    with pytest.raises(UnknownRef, match="no branch, tag or commit 'feature'"):
        await repositories.checkout(url, "feature")
    assert (await opened().checkout(url, good)).tree.read_file("a") == b"feature"


async def test_last_checkout_survives_repository_deletion_and_restart(repository, opened: Opened) -> None:
    good = repository.commit({"a": "1"})
    repositories, url = opened(), str(repository.path)
    mirror = repositories.mirror(url)
    await mirror.checkout("main")
    shutil.rmtree(repository.path)
    fresh = Mirror(mirror.folder, mirror.remote)  # simulates a restart
    with pytest.raises(SourceRefused, match="repository not found"):
        await fresh.checkout("main")
    assert (await fresh.checkout(good)).tree.read_file("a") == b"1"
    fresh.close()


async def test_unknown_ref_error_suggests_similar_refs(repository, opened: Opened) -> None:
    repository.commit({"a": "1"}, branch="staging")
    with pytest.raises(UnknownRef, match="did you mean staging"):
        await opened().checkout(str(repository.path), "stagin")


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("^7", "none of the 1 tags is in the range"),
        ("deadbeef", "no branch, tag or commit"),
        ("d" * 40, "not found; push it first"),
        ("--upload-pack=touch /tmp/x", "no branch, tag or commit"),
        ("--output=/tmp/x", "no branch, tag or commit"),
        ("main^", "no branch, tag or commit"),
        ("main:a", "no branch, tag or commit"),
        ("@{-1}", "no branch, tag or commit"),
        ("a\nb", r"'a\\nb'"),
        ("\x1b[2J", r"\\x1b"),
        ("refs/argosy/last/x", "no branch, tag or commit"),
        ("x" * 100_000, "no branch, tag or commit"),
    ],
)
async def test_missing_or_malformed_ref_raises_unknown_ref(repository, opened: Opened, ref: str, said: str) -> None:
    repository.commit({"a": "1"})
    repository.tag("v1.0.0")
    with pytest.raises(UnknownRef, match=said):
        await opened().checkout(str(repository.path), ref)


async def test_empty_repository_raises_unknown_ref(repository, opened: Opened) -> None:
    with pytest.raises(UnknownRef, match="empty"):
        await opened().checkout(str(repository.path), "main")


async def test_refs_that_look_like_git_options_are_treated_as_names(repository, opened: Opened, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    name = f"--upload-pack=touch${{IFS}}{canary}"
    repository.commit({"a": "1"})
    commit = repository.git("rev-parse", "main")
    packed = repository.path / "packed-refs"
    packed.write_text(f"{commit} refs/heads/{name}\n{commit} refs/tags/-x\n")
    repositories = opened()
    assert (await repositories.checkout(str(repository.path), name)).revision == commit
    assert (await repositories.checkout(str(repository.path), "-x")).revision == commit
    assert not canary.exists()


async def test_branch_can_be_replaced_by_branches_below_its_name(repository, opened: Opened) -> None:
    repository.commit({"a": "1"}, branch="release")
    repositories, url = opened(), str(repository.path)
    await repositories.checkout(url, "release")
    repository.git("update-ref", "-d", "refs/heads/release")
    repository.commit({"a": "2"}, branch="release/one")
    assert (await repositories.checkout(url, "release/one")).tree.read_file("a") == b"2"


async def test_sha256_repository_is_checked_out(tmp_path: Path, opened: Opened) -> None:
    path = tmp_path / "served" / "wide.git"
    work = tmp_path / "work"
    subprocess.run(["git", "init", "-q", "--object-format=sha256", "-b", "main", work], check=True)
    (work / "a").write_text("wide")
    who = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run(["git", "-C", work, "add", "a"], check=True)
    subprocess.run(["git", "-C", work, *who, "commit", "-qm", "x"], check=True)
    path.parent.mkdir()
    (work / ".git").rename(path)
    checkout = await opened().checkout(str(path), "main")
    assert len(checkout.revision) == 64 and checkout.tree.read_file("a") == b"wide"


async def test_second_checkout_without_changes_adds_no_pack(repository, opened: Opened) -> None:
    repository.commit({"a": "1"})
    repositories, url = opened(), str(repository.path)
    await repositories.checkout(url, "main")
    pack = repositories.mirror(url).folder / "objects" / "pack"
    before = sorted(os.listdir(pack))
    await repositories.checkout(url, "main")
    assert sorted(os.listdir(pack)) == before


# -- failures --------------------------------------------------------------------------------------------------------


async def test_concurrent_fetches_of_one_repository_succeed(repository, opened: Opened) -> None:
    commits = {branch: repository.commit({"a": branch}, branch=branch) for branch in ("one", "two", "three", "four")}
    url = str(repository.path)
    # Each has its own mirror object, as separate processes would.
    checkouts = await asyncio.gather(*(opened().checkout(url, branch) for branch in commits))
    assert [checkout.revision for checkout in checkouts] == list(commits.values())


FETCH_AND_HANG = """
import asyncio, os, signal, sys
from pathlib import Path
from argosy.gitops.source.git.fetch_locks import hold_lock
async def hold():
    async with hold_lock(Path(sys.argv[1]), seconds=5):
        print("held", flush=True)
        await asyncio.Event().wait()
asyncio.run(hold())
"""


async def test_leftover_locks_of_a_killed_fetch_are_removed(repository, opened: Opened) -> None:
    repository.commit({"a": "1"})
    repositories, url = opened(), str(repository.path)
    await repositories.checkout(url, "main")
    folder = repositories.mirror(url).folder
    holder = subprocess.Popen(
        [sys.executable, "-c", FETCH_AND_HANG, folder.with_name(f"{folder.name}.lock")], stdout=subprocess.PIPE
    )
    assert holder.stdout and holder.stdout.readline() == b"held\n"
    for left in ("packed-refs.lock", "HEAD.lock", "refs/heads/main.lock", "objects/pack/tmp_pack_x1"):
        (folder / left).touch()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    new = repository.commit({"a": "2"})
    assert (await repositories.checkout(url, "main")).revision == new
    assert not list(folder.rglob("*.lock")) and not list(folder.rglob("tmp_*"))


async def test_fetch_lock_held_too_long_raises_source_timeout(repository, opened: Opened) -> None:
    repository.commit({"a": "1"})
    repositories = opened(limits=SourceLimits(fetch_seconds=0.1))
    mirror = repositories.mirror(str(repository.path))
    mirror.folder.parent.mkdir()
    async with hold_lock(mirror.folder.with_name(f"{mirror.folder.name}.lock"), seconds=1):
        with pytest.raises(SourceTimeout, match="another fetch"):
            await mirror.checkout("main")


def _damage_pack(folder: Path) -> None:
    for pack in folder.glob("objects/pack/*.pack"):
        pack.chmod(0o600)
        content = bytearray(pack.read_bytes())
        content[12:-20] = b"\xff" * (len(content) - 32)
        pack.write_bytes(content)


def _empty_packs(folder: Path) -> None:
    shutil.rmtree(folder / "objects" / "pack")


def _break_config(folder: Path) -> None:
    (folder / "config").write_text("[core\nnonsense")


def _break_refs(folder: Path) -> None:
    (folder / "packed-refs").write_bytes(b"\0" * 100)


def _lose_head(folder: Path) -> None:
    (folder / "HEAD").unlink()


DAMAGED_IN_MAKE_TEST = {(_damage_pack, True), (_break_config, False), (_lose_head, True)}


@pytest.mark.parametrize(
    ("damage", "moves"),
    [
        pytest.param(damage, moves, marks=() if (damage, moves) in DAMAGED_IN_MAKE_TEST else pytest.mark.tier("all"))
        for moves in (False, True)
        for damage in (_damage_pack, _empty_packs, _break_config, _break_refs, _lose_head)
    ],
)
async def test_damaged_mirror_is_repaired_within_two_checkouts(
    repository, opened: Opened, damage: Callable[[Path], None], moves: bool
) -> None:
    repository.commit({"a": "1"})
    repositories, url = opened(), str(repository.path)
    await repositories.checkout(url, "main")
    mirror = repositories.mirror(url)
    mirror.close()
    damage(mirror.folder)
    if moves:
        repository.commit({"a": "2"})
    content = None
    for _ in range(2):
        try:
            content = (await opened().checkout(url, "main")).tree.read_file("a")
            break
        except SourceError as error:
            assert isinstance(error, CorruptSource), error
    assert content == (b"2" if moves else b"1")


async def test_recreated_mirror_keeps_the_last_checkouts_that_are_intact(repository, opened: Opened) -> None:
    good = repository.commit({"a": "good"}, branch="gone")
    repository.commit({"a": "1"})
    repositories, url = opened(), str(repository.path)
    await repositories.checkout(url, "gone")
    repository.git("update-ref", "-d", "refs/heads/gone")
    repository.git("gc", "--quiet", "--prune=now")
    mirror = repositories.mirror(url)
    (mirror.folder / SUSPECT_MARKER).touch()
    await repositories.checkout(url, "main")
    assert not (mirror.folder / SUSPECT_MARKER).exists()
    assert (await opened().checkout(url, good)).tree.read_file("a") == b"good"


async def test_object_reader_restarts_a_killed_git_process(repository, opened: Opened) -> None:
    repository.commit({"a": "1"})
    repositories, url = opened(), str(repository.path)
    tree = (await repositories.checkout(url, "main")).tree
    process = repositories.mirror(url).objects._process
    assert process is not None
    process.kill()
    process.wait()
    assert tree.read_file("a") == b"1"
    assert not (repositories.mirror(url).folder / SUSPECT_MARKER).exists()


@pytest.mark.tier("all")
async def test_packs_are_limited_to_max_packs(repository, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.gitops.source.git.mirror.MAX_PACKS", 3)
    repositories, url = opened(), str(repository.path)
    for number in range(8):
        commit = repository.commit({"a": str(number)})
        checkout = await repositories.checkout(url, "main")
        assert checkout.revision == commit and checkout.tree.read_file("a") == str(number).encode()
        assert len(list(repositories.mirror(url).folder.glob("objects/pack/*.pack"))) <= 3


async def test_corrupt_remote_raises_error_and_mirror_keeps_old_commits(repository, opened: Opened) -> None:
    good = repository.commit({"a": "good"})
    repositories, url = opened(), str(repository.path)
    await repositories.checkout(url, "main")
    repository.commit({"a": "bad"})
    blob = repository.git("rev-parse", "main:a")
    (repository.path / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(CorruptSource, match="git fsck"):
        await repositories.checkout(url, "main")
    assert (await repositories.checkout(url, good)).tree.read_file("a") == b"good"


async def test_fetch_over_the_pack_size_limit_is_rejected(repository, opened: Opened) -> None:
    repository.commit_tree(repository.tree(("100644", repository.blob(os.urandom(300_000)), "weights")))
    with pytest.raises(SourceTooLarge, match="exceeds the size limit"):
        await opened(limits=SourceLimits(pack_bytes=100_000)).checkout(str(repository.path), "main")


async def test_ref_list_over_the_size_limit_is_rejected(repository, opened: Opened) -> None:
    repository.commit({"a": "1"})
    with pytest.raises(SourceTooLarge, match="branches and tags"):
        await opened(limits=SourceLimits(refs_bytes=10)).checkout(str(repository.path), "main")


async def test_file_over_the_limit_is_rejected_and_others_stay_readable(repository, opened: Opened) -> None:
    blobs = [("100644", repository.blob(b"0" * 5_000_000), "huge"), ("100644", repository.blob(b"small"), "small")]
    repository.commit_tree(repository.tree(*blobs))
    tree = (await opened(limits=SourceLimits(file_bytes=1000)).checkout(str(repository.path), "main")).tree
    with pytest.raises(SourceTooLarge, match="5000000 bytes"):
        tree.read_file("huge")
    assert tree.read_file("small") == b"small"


async def test_missing_git_raises_source_error(repository, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit({"a": "1"})
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SourceError, match="git is not installed"):
        await opened().checkout(str(repository.path), "main")


@pytest.mark.parametrize(
    "said",
    ["git version 2.25.1", pytest.param("git version 1.8.3", marks=pytest.mark.tier("all")), "nothing"],
)
async def test_git_older_than_2_31_is_rejected(
    repository, opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str
) -> None:
    (tmp_path / "git").write_text(f"#!/bin/sh\necho {said}\n")
    (tmp_path / "git").chmod(0o700)
    repository.commit({"a": "1"})
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SourceError, match=r"git is too old.*2\.31"):
        await opened().checkout(str(repository.path), "main")


async def test_consecutive_ref_requests_share_responses_of_the_host(repository, opened: Opened) -> None:
    revision = repository.commit({"model.yaml": "a: 1"})
    mirror = opened().mirror(str(repository.path))
    counting = CountingRemote(*(getattr(mirror.remote, field.name) for field in fields(MirrorRemote)))
    mirror.remote = counting

    async def ask_later(number: int) -> Refs:
        await asyncio.sleep(number * 0.02)
        return await mirror.list_refs()

    all_refs = await asyncio.gather(*map(ask_later, range(40)))
    assert {refs.commits["refs/heads/main"] for refs in all_refs} == {revision}
    assert len(counting.requests) < 20  # and not 40


class CountingRemote(MirrorRemote):
    requests: list[str] = []  # noqa: RUF012 - used by one test only

    async def list_refs(self, scratch: Path) -> Refs:
        self.requests.append("refs")
        return await super().list_refs(scratch)


async def test_resolved_revision_and_ref_error_are_each_logged_once(
    repository, opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    revision = repository.commit({"a": "1"})
    repositories, url = opened(), f"file://{repository.path}"
    with caplog.at_level("INFO", "argosy.gitops.source"):
        for _ in range(2):
            await repositories.checkout(url, "main")
            with pytest.raises(UnknownRef):
                await repositories.checkout(url, "gone")
    assert [record.getMessage().split(": ", 2)[2].partition(";")[0] for record in caplog.records] == [
        f"main is {revision}", "there is no branch, tag or commit 'gone'"
    ]  # fmt: skip
