"""Hostile repositories: symlinks, paths, submodules, hooks, Git settings, and local repositories outside the roots."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.errors import CorruptSource, RenderError, SourceError, SourceRefused
from argosy.gitops.application import Application, Source
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.render import render
from argosy.gitops.source.git.commit_tree import GitTree
from argosy.gitops.source.git.object_reader import ObjectReader
from argosy.gitops.source.repository_access_settings import SourceLimits, SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories

pytestmark = pytest.mark.anyio
Opened = Callable[..., Repositories]


async def test_symlinks_in_a_commit_are_listed_but_never_followed(repository, opened: Opened) -> None:
    links = {"out": "/etc", "passwd": "/etc/passwd", "up": "../../..", "inside": "real"}
    entries = [("120000", repository.blob(target.encode()), name) for name, target in links.items()]
    real = repository.tree(("100644", repository.blob(b"here"), "file"))
    repository.commit_tree(repository.tree(*sorted([*entries, ("40000", real, "real")], key=lambda entry: entry[2])))
    tree = (await opened().checkout(str(repository.path), "main")).tree
    for name, target in links.items():
        assert tree.find_entry(name).kind == "link"
        assert tree.read_file(name) == target.encode()
        assert tree.list_folder(name) == ()
    assert tree.find_entry("out/passwd") is None and tree.find_entry("inside/file") is None
    with pytest.raises(SourceError, match="out is a link"):
        tree.read_file("out/passwd")


@pytest.mark.parametrize("path", ["..", "../x", "a/../../x", "/etc/passwd", "a//b", "./a", "a/", "a\0b", "."])
async def test_invalid_paths_are_rejected_by_a_git_tree(repository, opened: Opened, path: str) -> None:
    repository.commit({"a/b": "1"})
    tree = (await opened().checkout(str(repository.path), "main")).tree
    for question in (tree.find_entry, tree.list_folder, tree.read_file):
        with pytest.raises(SourceError, match="not a valid path"):
            question(path)


async def test_unusual_file_names_are_listed_and_read(repository, opened: Opened) -> None:
    names = sorted(
        ["new\nline", 'quo"te', "back\\slash", "tab\t", " space ", "--option", "é", "*", "%2e%2e", "...", "a\x1b[2J"],
        key=os.fsencode,
    )
    entries = [("100644", repository.blob(name.encode()), name) for name in names]
    entries.append(("100644", repository.blob(b"raw"), os.fsdecode(b"\xff\xfe")))
    repository.commit_tree(repository.tree(*entries))
    tree = (await opened().checkout(str(repository.path), "main")).tree
    assert {entry.name for entry in tree.list_folder("")} == {*names, os.fsdecode(b"\xff\xfe")}
    for name in names:
        assert tree.read_file(name) == name.encode()


async def test_submodule_is_an_empty_folder_and_rendering_it_is_rejected(
    repository, opened: Opened, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    modules = f'[submodule "lib"]\n\tpath = lib\n\turl = https://example.com/lib\n\tupdate = none\n# {canary}\n'
    commit = repository.commit({"a": "1"}, branch="other")
    entries = [("100644", repository.blob(modules.encode()), ".gitmodules"), ("160000", commit, "lib")]
    repository.commit_tree(repository.tree(*entries))
    tree = (await opened().checkout(str(repository.path), "main")).tree
    assert tree.find_entry("lib").kind == "folder"
    assert tree.list_folder("lib") == () and tree.find_entry("lib/a") is None
    with pytest.raises(SourceError, match="lib is a submodule"):
        tree.read_file("lib/a")
    app = Application(name="app")
    for path in ("lib", "lib/deploy"):
        with pytest.raises(RenderError, match=f"{path}: lib is a Git submodule whose files are not fetched"):
            render(Checkout(tree, "r"), app, Source(path=path))


BAD_MODULES = [
    '[submodule "../../hooks"]\n\tpath = x\n\turl = https://example.com/x\n',
    '[submodule "x"]\n\tpath = x\n\turl = --upload-pack=touch\n',
    '[submodule "x"]\n\tpath = -x\n\turl = https://example.com/x\n',
]


@pytest.mark.parametrize("modules", BAD_MODULES)
async def test_malicious_gitmodules_are_rejected(repository, opened: Opened, modules: str) -> None:
    entries = [("100644", repository.blob(modules.encode()), ".gitmodules")]
    repository.commit_tree(repository.tree(*entries))
    with pytest.raises(CorruptSource, match="forbidden objects"):
        await opened().checkout(str(repository.path), "main")


@pytest.mark.parametrize("name", [".git", ".GIT", ".", "..", "a/b", ".gıt".replace("ı", "i"), "git~1"])
async def test_dangerous_file_names_are_rejected(repository, opened: Opened, name: str) -> None:
    repository.commit_tree(repository.tree(("100644", repository.blob(b"x"), name)))
    with pytest.raises(CorruptSource):
        await opened().checkout(str(repository.path), "main")


@pytest.mark.parametrize("name", [".git", ".", "..", "a/b", ""])
def test_dangerous_file_names_are_rejected_by_object_reader(repository, name: str) -> None:
    tree = repository.tree(("100644", repository.blob(b"x"), name))
    reader = ObjectReader(repository.path, SourceLimits(), "here")
    with pytest.raises(CorruptSource):
        GitTree(reader, tree).list_folder("")
    reader.close()


def test_object_that_does_not_match_its_id_is_rejected(repository) -> None:
    honest = repository.blob(b"honest")
    tree = repository.tree(("100644", honest, "a"))
    file = repository.path / "objects" / honest[:2] / honest[2:]
    file.chmod(0o600)
    file.write_bytes(zlib.compress(b"blob 6\0forged"))
    reader = ObjectReader(repository.path, SourceLimits(), "here")
    with pytest.raises(CorruptSource, match="does not match its id"):
        GitTree(reader, tree).read_file("a")
    reader.close()


async def test_hooks_of_the_served_repository_are_not_run(repository, opened: Opened, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\necho $0 >> {canary}\n")
    script.chmod(0o700)
    hooks = repository.path / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in (
        "post-upload-pack",
        "pre-receive",
        "post-update",
        "reference-transaction",
        "post-checkout",
        "fsmonitor",
    ):
        (hooks / hook).symlink_to(script)
    settings = [
        ("core.fsmonitor", str(script)), ("core.sshCommand", str(script)), ("core.pager", str(script)),
        ("uploadpack.packObjectsHook", str(script)), ("core.alternateRefsCommand", str(script)),
        ("credential.helper", f"!{script}"), ("core.askPass", str(script)), ("core.gitProxy", str(script)),
        ("filter.x.smudge", str(script)), ("core.hooksPath", str(hooks)),
    ]  # fmt: skip
    repository.commit({".gitattributes": "* filter=x\n", "a": "1"})
    for key, value in settings:
        repository.git("config", key, value)
    canary.unlink(missing_ok=True)
    assert (await opened().checkout(str(repository.path), "main")).tree.read_file("a") == b"1"
    assert not canary.exists(), canary.read_text()


async def test_git_settings_and_environment_of_the_user_are_ignored(
    repository, opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"a": "1"})
    canary = tmp_path / "canary"
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f'[url "{tmp_path}/nowhere"]\n\tinsteadOf = {repository.path}\n[core]\n\tsshCommand = touch {canary}\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_SSH_COMMAND", f"touch {canary}")
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.hooksPath=/x'")
    assert (await opened().checkout(str(repository.path), "main")).tree.read_file("a") == b"1"
    assert not canary.exists() and not (tmp_path / "trace").exists()


async def test_replace_refs_are_ignored(repository, opened: Opened) -> None:
    repository.commit({"a": "honest"})
    honest, evil = repository.git("rev-parse", "main:a"), repository.blob(b"evil")
    repository.git("update-ref", f"refs/replace/{honest}", evil)
    repositories = opened()
    checkout = await repositories.checkout(str(repository.path), "main")
    assert checkout.tree.read_file("a") == b"honest"


# -- local repository roots ------------------------------------------------------------------------------------------


async def test_repository_outside_the_roots_gives_the_same_error_as_a_missing_one(
    repository, opened: Opened, tmp_path: Path
) -> None:
    repository.commit({"a": "1"})
    outside = tmp_path / "served-too"
    repository.path.rename(outside)
    with pytest.raises(SourceRefused, match=r"source\.local\.roots") as there:
        await opened().checkout(str(outside), "main")
    with pytest.raises(SourceRefused, match=r"source\.local\.roots") as missing:
        await opened().checkout(str(tmp_path / "none"), "main")
    assert there.value.message == missing.value.message


async def test_links_from_a_root_to_outside_are_rejected(repository, opened: Opened, tmp_path: Path) -> None:
    repository.commit({"a": "1"})
    outside = tmp_path / "outside"
    repository.path.rename(outside)
    repository.path.symlink_to(outside)
    redirected = tmp_path / "served" / "redirected"
    redirected.mkdir()
    (redirected / ".git").write_text(f"gitdir: {outside}\n")
    linked = tmp_path / "served" / "linked"
    linked.mkdir()
    (linked / ".git").symlink_to(outside)
    for path in (repository.path, redirected, linked):
        with pytest.raises(SourceRefused, match=r"source\.local\.roots"):
            await opened().checkout(str(path), "main")


async def test_local_repository_is_rejected_without_roots(repository, tmp_path: Path) -> None:
    repository.commit({"a": "1"})
    with pytest.raises(SourceRefused):
        await Repositories(tmp_path / "m", SourceSettings()).checkout(str(repository.path), "main")
