"""Plug-ins in sidecars, with Argo CD's own plug-in server and ask-pass program: what argosy renders with them."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from argosy.errors import RenderError
from argosy.gitops.application import Application, Destination, read_source
from argosy.gitops.application.repository_url_parser import parse_url
from argosy.gitops.application.step_results import Checkout, RenderResult
from argosy.gitops.render import BuildSettings, read_sidecar_settings, render
from argosy.gitops.source.credentials import HostTrust, RepositoryCredential
from argosy.gitops.source.folder_tree import FolderTree
from argosy.gitops.source.git.plugin_git_access import open_plugin_access
from support.argocd.programs import Installation, find_installation
from support.control_plane import die_with_parent
from support.deadlines import wait_until

pytestmark = pytest.mark.tier("argocd")
APP = Application(name="demo", destination=Destination(namespace="space"))
PLUGIN = """\
apiVersion: argoproj.io/v1alpha1
kind: ConfigManagementPlugin
metadata: {name: shell}
spec:
  version: v1
  preserveFileMode: true
  discover: {fileName: "generate.sh"}
  generate: {command: [./generate.sh]}
"""
SCRIPT = """\
#!/bin/sh
test -f ../lib/link || { echo "no link" >&2; exit 3; }
test -z "$ARGOCD_ENV_FAIL" || { echo "app.cue:7: $ARGOCD_ENV_FAIL" >&2; exit 4; }
echo '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "'$ARGOCD_APP_NAME'"}}'
"""


@contextmanager
def run_plugin_server(installation: Installation, folder: Path, sockets: Path) -> Iterator[None]:
    folder.mkdir()
    (folder / "plugin.yaml").write_text(PLUGIN)
    settings = {"ARGOCD_BINARY_NAME": "argocd-cmp-server", "ARGOCD_PLUGINSOCKFILEPATH": str(sockets)}
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [installation.folder / "argocd", "--config-dir-path", folder],
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "ARGOCD_CMP_WORKDIR": str(folder), **settings},
            stdout=log, stderr=subprocess.STDOUT, preexec_fn=die_with_parent,  # noqa: PLW1509 - takes no lock
        )  # fmt: skip
    try:
        wait_until(lambda: _is_served(sockets / "shell-v1.sock"), "the plug-in server listens")
        yield
    finally:
        process.kill()
        process.wait()


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(path)) == 0


def render_source(folder: Path, sockets: Path, **source: object) -> RenderResult:
    settings = BuildSettings(sidecars=read_sidecar_settings(str(sockets), {}))
    spec = {"repoURL": "https://git.example.com/app", "path": "app", **source}
    return render(Checkout(FolderTree(folder), "abc"), APP, read_source(spec), settings)


def test_real_plugin_server_renders_files_with_modes_and_links(tmp_path_factory: pytest.TempPathFactory) -> None:
    sockets, repository = tmp_path_factory.mktemp("s"), tmp_path_factory.mktemp("r")
    for name in ("app", "lib", "other"):
        (repository / name).mkdir()
    (repository / "app/generate.sh").write_text(SCRIPT)
    (repository / "app/generate.sh").chmod(0o755)
    (repository / "lib/file").write_text("x")
    (repository / "lib/link").symlink_to("file")
    (repository / "other/manifest.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n")
    with run_plugin_server(find_installation(), tmp_path_factory.mktemp("p") / "config", sockets):
        for plugin in ({}, {"plugin": {}}, {"plugin": {"name": "shell-v1"}}):
            result = render_source(repository, sockets, **plugin)
            assert [manifest["metadata"]["name"] for manifest in result.manifests] == ["demo"]
        assert render_source(repository, sockets, path="other").tool == "Directory"
        with pytest.raises(RenderError, match=r"^app: plug-in shell-v1 failed: .* exit status 4: app\.cue:7: expected"):
            render_source(repository, sockets, plugin={"env": [{"name": "FAIL", "value": "expected }"}]})


async def test_real_ask_pass_program_gets_the_password(tmp_path: Path) -> None:
    import asyncio

    program = find_installation().folder / "argocd"
    url = parse_url("https://git.example.com/app.git")
    credential = RepositoryCredential(url, "argocd/repo", username="ann", password="word")
    async with open_plugin_access(tmp_path, url, credential, HostTrust()) as variables:
        for prompt, text in (("Username for 'https://git.example.com'", "ann"), ("Password for", "word")):
            process = await asyncio.create_subprocess_exec(
                program, prompt, env={**variables, "HOME": str(tmp_path)}, stdout=subprocess.PIPE
            )
            assert (await process.communicate())[0].decode().strip() == text
