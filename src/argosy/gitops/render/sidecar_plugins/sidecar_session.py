"""Chooses the plug-in server of one source, and renders the source with it.

In: a source's tree and folder, the folder of the sockets. Out: the plug-in, its manifests. Never: sends credentials to
a plug-in that does not ask for them; takes a plug-in that does not answer for one that does not support the source.
"""

from __future__ import annotations

import os
import posixpath
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from argosy.errors import ManifestError, RenderError
from argosy.gitops.application import PluginOptions
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.config_management_plugin import build_plugin_environment
from argosy.gitops.render.manifest_generate_paths import list_generate_paths
from argosy.gitops.render.settings import SidecarSettings
from argosy.gitops.render.sidecar_plugins.plugin_client import ArchiveRequest, SidecarPlugin
from argosy.gitops.render.sidecar_plugins.source_archive import SourceArchive, write_archive
from argosy.isolation.scratch_folders import create_scratch_folder
from argosy.kube.objects import Manifest, read_yaml_documents

SECONDS: Final = 55.0  # for all calls of one render; the render itself has a minute
_SOCKET_SUFFIX: Final = ".sock"
_MAX_SOCKETS: Final = 100

FindGitEnvironment = Callable[[], Mapping[str, str]]
"""Returns the variables with which git in a plug-in reads private repositories."""


@dataclass(frozen=True)
class SidecarSource:
    """A source for plug-ins. `generate_paths`: the annotation manifest-generate-paths of its Application."""

    tree: FileTree
    folder: str
    options: PluginOptions | None
    environment: Mapping[str, str]
    generate_paths: str = ""


@contextmanager
def open_sidecar_session(source: SidecarSource, settings: SidecarSettings) -> Iterator[SidecarSession]:
    """Archives that plug-ins need are written once, and removed at the end."""
    with ExitStack() as files:
        yield SidecarSession(source, settings, files, time.monotonic() + SECONDS)


@dataclass
class SidecarSession:
    source: SidecarSource
    settings: SidecarSettings
    files: ExitStack
    deadline: float
    _plugins: dict[str, SidecarPlugin | None] = field(default_factory=dict)  # that were looked for, by name
    _archives: dict[str, SourceArchive] = field(default_factory=dict)
    _scratch: Path | None = None
    _environment: Mapping[str, str] | None = None

    def find_plugin(self, name: str = "") -> SidecarPlugin | None:
        """Return the plug-in of this name, or without one the first that supports the source; None if there is none.

        argo: a plug-in without discovery rules renders only sources that name it.
        """
        if name not in self._plugins:
            names = [name] if name else list_plugin_names(self.settings.folder)
            plugins = filter(None, map(self._open_plugin, names))
            supporting = (plugin for plugin in plugins if self._supports_source(plugin, is_named=bool(name)))
            self._plugins[name] = next(supporting, None)
        return self._plugins[name]

    def generate_manifests(
        self, plugin: SidecarPlugin, find_git_environment: FindGitEnvironment | None = None
    ) -> list[Manifest]:
        """Return the manifests that the plug-in prints for the source."""
        root = self._find_common_root() if self.settings.sends_generate_paths_only else ""
        environment = self._plugin_environment()
        if plugin.fetch_configuration().get("provideGitCreds") and find_git_environment is not None:
            environment = {**environment, **find_git_environment()}
        texts = plugin.generate_manifests(self._build_request(root, environment))
        return [manifest for text in texts for manifest in _read_manifests(text, plugin, self.source.folder)]

    def _open_plugin(self, name: str) -> SidecarPlugin | None:
        if "/" in name or "\0" in name or name.startswith("."):  # argo: never outside the folder
            return None
        path = os.path.join(self.settings.folder, name + _SOCKET_SUFFIX)
        return SidecarPlugin(name, path, self.deadline) if _is_socket(path) else None

    def _supports_source(self, plugin: SidecarPlugin, *, is_named: bool) -> bool:
        if not plugin.fetch_configuration().get("isDiscoveryConfigured"):
            return is_named
        answer = plugin.match_repository(self._build_request("", self._plugin_environment()))
        return bool(answer.get("isSupported")) or (is_named and not answer.get("isDiscoveryEnabled"))

    def _plugin_environment(self) -> Mapping[str, str]:
        # All variables are looked up, the revision too: what a plug-in says holds for one commit only.
        if self._environment is None:
            options = self.source.options or PluginOptions()
            self._environment = build_plugin_environment(options, self.source.environment)
        return self._environment

    def _build_request(self, root: str, environment: Mapping[str, str]) -> ArchiveRequest:
        folder = self.source.folder.removeprefix(root).strip("/")
        return ArchiveRequest(self._pack(root), folder, environment)

    def _pack(self, root: str) -> SourceArchive:
        if self._scratch is None:
            self._scratch = self.files.enter_context(create_scratch_folder("argosy-tree-"))
        if root not in self._archives:
            file = self._scratch / f"{len(self._archives)}.tgz"
            self._archives[root] = write_archive(self.source.tree, root, file, self.settings.excluded_globs)
        return self._archives[root]

    def _find_common_root(self) -> str:
        """argo: the deepest folder that holds the source and all paths of manifest-generate-paths."""
        paths = list_generate_paths(self.source.generate_paths, self.source.folder)
        if not paths:
            return ""
        return posixpath.commonpath([f"/{path}" for path in (self.source.folder, *paths)]).strip("/")


def list_plugin_names(folder: str) -> Sequence[str]:
    """Return the names of the plug-ins whose sockets are in the folder, in the order in which they are asked."""
    try:
        names = sorted(os.listdir(folder)) if folder else []
    except OSError:
        return ()  # no folder: the installation has no such plug-ins
    sockets = [name for name in names if name.endswith(_SOCKET_SUFFIX) and _is_socket(os.path.join(folder, name))]
    return [name.removesuffix(_SOCKET_SUFFIX) for name in sockets[:_MAX_SOCKETS]]


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def _read_manifests(text: str, plugin: SidecarPlugin, folder: str) -> list[Manifest]:
    where = folder or "."
    try:
        values = [value for value in read_yaml_documents(text.encode(), where=plugin.name) if value is not None]
    except ManifestError as problem:
        message = f"plug-in {plugin.name} did not print manifests: {problem.message}"
        raise RenderError(message, where=where) from None
    if any(not isinstance(value, dict) for value in values):
        raise RenderError(f"plug-in {plugin.name} printed a document that is not a mapping", where=where)
    return values
