"""Plug-ins in sidecars, with a stand-in for their server: choice, archive, environment, limits and errors."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from argosy.errors import LimitError, RenderError, TransientError
from argosy.gitops.application import Application, Destination, read_source
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.render import BuildSettings, are_inputs_unchanged, build_environment, read_sidecar_settings, render
from argosy.gitops.render.sidecar_plugins import sidecar_session
from argosy.gitops.source.folder_tree import FolderTree
from support.file_trees import TextTree
from support.plugin_server import PluginFailure, PluginServer, ReceivedSource

APP = Application(name="demo", project="default", destination=Destination(namespace="space"))
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\n"
TREE = TextTree({"app/in.txt": "hello", "app/plain.yaml": CONFIG_MAP.replace("made", "plain"), "other/x": "beside"})


@pytest.fixture
def sockets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s")  # a short path: the path of a socket has at most 107 bytes


def make_settings(sockets: Path, **parameters: str) -> BuildSettings:
    keys = {f"reposerver.plugin.{name.replace('_', '.')}": value for name, value in parameters.items()}
    return BuildSettings(sidecars=read_sidecar_settings(str(sockets), keys))


def rendered(settings: BuildSettings, tree=TREE, app: Application = APP, **source):
    return render(
        Checkout(tree, "abc"), app, read_source({"path": "app", "repoURL": "https://x/y", **source}), settings
    )


def print_config_map(source: ReceivedSource) -> list[str]:
    return [CONFIG_MAP, '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "second"}}']


def list_names(result) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in result.manifests]


def test_named_plugin_gets_the_whole_repository_and_the_variables(sockets: Path):
    with PluginServer(generate=print_config_map).listen(sockets, "mine-v1") as server:
        plugin = {"name": "mine-v1", "env": [{"name": "STAGE", "value": "$ARGOCD_APP_NAME-x"}, {"name": "EMPTY"}]}
        result = rendered(make_settings(sockets), plugin=plugin)
    assert (result.tool, list_names(result)) == ("Plugin", ["made", "second"])
    [source] = server.sources
    assert source.folder == "app"
    assert source.contents == {name: bytes(data) for name, data in TREE.files.items()}
    assert source.environment["ARGOCD_ENV_STAGE"] == "demo-x"
    assert source.environment["ARGOCD_ENV_EMPTY"] == ""
    assert source.environment["ARGOCD_APP_SOURCE_PATH"] == "app"


def test_plugin_with_discovery_renders_sources_that_it_supports(sockets: Path):
    server = PluginServer(has_discovery=True, generate=print_config_map)
    with server.listen(sockets, "finder"):
        assert list_names(rendered(make_settings(sockets))) == ["made", "second"]
        server.is_supported = False
        result = rendered(make_settings(sockets))
    assert (result.tool, list_names(result)) == ("Directory", ["plain"])


def test_plugin_without_discovery_renders_only_sources_that_name_it(sockets: Path):
    with PluginServer(generate=print_config_map).listen(sockets, "mine") as server:
        assert rendered(make_settings(sockets)).tool == "Directory"
    assert server.methods == ["CheckPluginConfiguration"]


def test_named_plugin_that_does_not_support_the_source_is_an_error(sockets: Path):
    with (
        PluginServer(has_discovery=True, is_supported=False).listen(sockets, "mine"),
        pytest.raises(RenderError, match="unknown plug-in 'mine'"),
    ):
        rendered(make_settings(sockets), plugin={"name": "mine"})


def test_source_with_settings_of_another_tool_is_not_shown_to_plugins(sockets: Path):
    with PluginServer(has_discovery=True).listen(sockets, "finder") as server:
        assert rendered(make_settings(sockets), directory={"recurse": False}).tool == "Directory"
    assert not server.methods


@pytest.mark.parametrize("name", ["../escape", "/etc/x", ".hidden", "a\0b"])
def test_name_of_a_plugin_cannot_leave_the_folder(sockets: Path, name: str):
    (sockets / "inner").mkdir()
    with (
        PluginServer(generate=print_config_map).listen(sockets, "escape") as server,
        pytest.raises(RenderError, match="unknown plug-in"),
    ):
        rendered(make_settings(sockets / "inner"), plugin={"name": name})
    assert not server.methods


def test_failed_plugin_reports_its_message(sockets: Path):
    def fail(source: ReceivedSource) -> list[str]:
        raise PluginFailure("error generating manifests: `cue export` failed exit status 1: app.cue:7: expected '}'")

    with (
        PluginServer(generate=fail).listen(sockets, "cue"),
        pytest.raises(RenderError, match=r"^app: plug-in cue failed: .*app\.cue:7: expected"),
    ):
        rendered(make_settings(sockets), plugin={"name": "cue"})


def test_plugin_that_does_not_answer_is_not_taken_for_one_that_does_not_match(sockets: Path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(sockets / "gone.sock"))
    with pytest.raises(TransientError, match="plug-in gone does not answer: connection refused"):
        rendered(make_settings(sockets))


def test_slow_plugin_exceeds_the_deadline(sockets: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sidecar_session, "SECONDS", 0.05)
    server = PluginServer(answer_late=threading.Event())
    with server.listen(sockets, "slow"):
        start = time.monotonic()
        with pytest.raises(LimitError, match="plug-in slow takes too long"):
            rendered(make_settings(sockets), plugin={"name": "slow"})
        assert time.monotonic() - start < 30
        server.answer_late.set()  # type: ignore[union-attr]


def test_output_that_is_no_mapping_is_an_error(sockets: Path):
    with (
        PluginServer(generate=lambda source: ["- a list"]).listen(sockets, "mine"),
        pytest.raises(RenderError, match="printed a document that is not a mapping"),
    ):
        rendered(make_settings(sockets), plugin={"name": "mine"})


def test_output_of_a_plugin_counts_for_one_commit(sockets: Path):
    with PluginServer(generate=print_config_map).listen(sockets, "mine"):
        result = rendered(make_settings(sockets), plugin={"name": "mine"})
    source = read_source({"path": "app", "repoURL": "https://x/y", "plugin": {"name": "mine"}})
    for revision, is_same in (("abc", True), ("def", False)):
        environment = build_environment(APP, source, revision, make_settings(sockets))
        assert are_inputs_unchanged(result.inputs, {"": TREE}, environment) is is_same


def test_archive_keeps_links_and_executable_files_and_omits_git(sockets: Path, tmp_path: Path):
    app = tmp_path / "app"
    app.mkdir()
    (app / "run.sh").write_text("#!/bin/sh\n")
    (app / "run.sh").chmod(0o755)
    (app / "plain.txt").write_text("plain")
    (app / "link").symlink_to("../app/plain.txt")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("[core]")
    with PluginServer(generate=print_config_map).listen(sockets, "mine") as server:
        rendered(make_settings(sockets), FolderTree(tmp_path), plugin={"name": "mine"})
    entries = server.sources[0].entries
    assert set(entries) == {"app", "app/run.sh", "app/plain.txt", "app/link"}
    assert (entries["app/run.sh"].mode, entries["app/plain.txt"].mode) == (0o755, 0o644)
    assert (entries["app/link"].issym(), entries["app/link"].linkname) == (True, "../app/plain.txt")


@pytest.mark.parametrize("target", ["../../outside", "/etc/passwd", "a/../../../b"])
def test_link_that_leaves_the_repository_is_refused(sockets: Path, target: str):
    tree = TextTree({"app/a": "x"}, {"app/link": target})
    with (
        PluginServer(generate=print_config_map).listen(sockets, "mine") as server,
        pytest.raises(RenderError, match="leads out of the repository"),
    ):
        rendered(make_settings(sockets), tree, plugin={"name": "mine"})
    assert "GenerateManifest" not in server.methods


def test_excluded_paths_are_not_sent(sockets: Path):
    settings = make_settings(sockets, tar_exclusions="other;*/*.yaml;in.txt")
    with PluginServer(generate=print_config_map).listen(sockets, "mine") as server:
        rendered(settings, plugin={"name": "mine"})
    assert set(server.sources[0].contents) == {"app/in.txt"}


def test_only_the_common_folder_of_generate_paths_is_sent_if_set(sockets: Path):
    tree = TextTree({"apps/a/in.txt": "a", "apps/lib/b.txt": "b", "top.txt": "t"})
    annotations = {"argocd.argoproj.io/manifest-generate-paths": ".;../lib"}
    settings = make_settings(sockets, use_manifest_generate_paths="true")
    with PluginServer(generate=print_config_map).listen(sockets, "mine") as server:
        rendered(settings, tree, replace(APP, annotations=annotations), path="apps/a", plugin={"name": "mine"})
    assert server.sources[0].folder == "a"
    assert set(server.sources[0].contents) == {"a/in.txt", "lib/b.txt"}


def test_large_archive_is_streamed(sockets: Path):
    import random

    data = random.Random(1).randbytes(3 << 20)
    with PluginServer(generate=print_config_map).listen(sockets, "mine") as server:
        rendered(make_settings(sockets), TextTree({"app/data.bin": data}), plugin={"name": "mine"})
    assert server.sources[0].contents["app/data.bin"] == data


def test_archive_over_the_limit_is_refused(sockets: Path, monkeypatch: pytest.MonkeyPatch):
    from argosy.gitops.render.sidecar_plugins import source_archive
    from argosy.gitops.render.tree_export import ExportLimits

    monkeypatch.setattr(source_archive, "LIMITS", ExportLimits(files=2))
    with (
        PluginServer(generate=print_config_map).listen(sockets, "mine"),
        pytest.raises(LimitError, match="more than 2 files"),
    ):
        rendered(make_settings(sockets), plugin={"name": "mine"})


def test_missing_folder_means_no_plugins(tmp_path: Path):
    assert rendered(make_settings(tmp_path / "absent")).tool == "Directory"


@pytest.mark.parametrize("wants_credentials", [False, True])
def test_git_credentials_are_looked_up_only_for_a_plugin_that_asks_for_them(sockets: Path, wants_credentials: bool):
    calls: list[str] = []

    def find_git_environment() -> dict[str, str]:
        calls.append("asked")
        return {"GIT_ASKPASS": "argocd"}

    source = read_source({"path": "app", "repoURL": "https://x/y", "plugin": {"name": "mine"}})
    server = PluginServer(wants_credentials=wants_credentials, generate=print_config_map)
    with server.listen(sockets, "mine"):
        settings = make_settings(sockets)
        render(Checkout(TREE, "abc"), APP, source, settings, find_git_environment=find_git_environment)
    assert (len(calls), server.sources[0].environment.get("GIT_ASKPASS")) == (
        (1, "argocd") if wants_credentials else (0, None)
    )
