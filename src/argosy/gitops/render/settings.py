"""Reads the installation's settings for rendering.

In: the data of the ConfigMaps `argocd-cm` and `argosy-cm`. Out: BuildSettings. Never: reads a source.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from argosy.errors import RenderError
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.kube.objects.config_map_booleans import read_boolean

FetchTree = Callable[[str, str], FileTree]
"""Fetches the tree of a remote base by URL and ref; the caller that passes it decides which URLs are allowed."""


class ChartRequest(NamedTuple):
    """A chart that another one depends on. `repository` is as Chart.yaml names it: a URL, or `@` and a name."""

    repository: str
    name: str
    version: str  # or a range


FetchCharts = Callable[[Sequence[ChartRequest]], Sequence[FileTree]]
"""Fetches charts that are not in the repository; the caller that passes it decides which repositories are allowed."""

DEFAULT_KUBE_VERSION: Final = "1.32.13"  # the version of the embedded cluster
MIB: Final = 1 << 20
_TOOL_BY_ENABLE_KEY: Final = {"helm.enable": "Helm", "kustomize.enable": "Kustomize", "jsonnet.enable": "Jsonnet"}
_ENABLE_HELM: Final = "--enable-helm"
_LOAD_RESTRICTIONS_NONE: Final = "--load-restrictor=LoadRestrictionsNone"
_LOAD_RESTRICTIONS_ROOT_ONLY: Final = "--load-restrictor=LoadRestrictionsRootOnly"


class RenderLimits(NamedTuple):
    """Limits for one source of an Application."""

    manifests: int = 5_000
    manifest_bytes: int = 10 * MIB  # argo: the same limit
    files: int = 20_000  # files in a directory, read or not


class PluginCommand(NamedTuple):
    """The commands of a config management plug-in: `init` runs first, then `generate` prints the manifests."""

    generate: tuple[str, ...]
    init: tuple[str, ...] = ()
    file_globs: tuple[str, ...] = ()  # the plug-in applies to a source if any of these globs matches a file
    timeout_seconds: float = 60.0


class SidecarSettings(NamedTuple):
    """Config management plug-ins that run in containers of their own, as Argo CD's sidecars do."""

    folder: str = ""  # with a socket for each plug-in; empty: there are none
    excluded_globs: tuple[str, ...] = ()  # of paths that plug-ins do not get
    sends_generate_paths_only: bool = False  # the folder that manifest-generate-paths has in common, not all files


NO_SIDECARS: Final = SidecarSettings()


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """Settings that apply to all sources."""

    kube_version: str = DEFAULT_KUBE_VERSION
    api_versions: tuple[str, ...] = ()
    # Not in repr, so that a new kind in a cluster renders only sources again that look this variable up: plug-ins.
    cluster_api_versions: tuple[str, ...] = field(default=(), repr=False)
    disabled_tools: frozenset[str] = frozenset()  # Helm, Kustomize, Jsonnet
    kustomize_options: tuple[str, ...] = ()
    kustomize_binaries: Mapping[str, str] = field(default_factory=dict)  # version → path of the program
    plugins: Mapping[str, PluginCommand] = field(default_factory=dict)
    sidecars: SidecarSettings = NO_SIDECARS
    limits: RenderLimits = field(default_factory=RenderLimits)
    # Of the engine, which gives submodules to renders with their files. Here, so that a change renders again.
    fetches_submodules: bool = True

    @property
    def is_helm_enabled(self) -> bool:
        """True if a kustomization may inflate charts."""
        return _ENABLE_HELM in self.kustomize_options

    @property
    def can_read_outside_folder(self) -> bool:
        """True if a kustomization may read files outside its folder; never files outside the repository."""
        return _LOAD_RESTRICTIONS_NONE in self.kustomize_options

    def check_kustomize_options(self) -> None:
        for option in self.kustomize_options:
            if option not in (_ENABLE_HELM, _LOAD_RESTRICTIONS_NONE, _LOAD_RESTRICTIONS_ROOT_ONLY):
                message = f"{option!r} is not allowed, only {_ENABLE_HELM} and {_LOAD_RESTRICTIONS_NONE} are: remove it"
                raise RenderError(message, where="kustomize.buildOptions")


def read_build_settings(
    argocd: Mapping[str, str],
    argosy: Mapping[str, str] | None = None,
    *,
    kube_version: str = DEFAULT_KUBE_VERSION,
    sidecars: SidecarSettings = NO_SIDECARS,
) -> BuildSettings:
    """Read Argo CD's keys, and the keys that only argosy has."""
    argosy = argosy or {}
    return BuildSettings(
        kube_version=kube_version,
        disabled_tools=frozenset(
            tool for key, tool in _TOOL_BY_ENABLE_KEY.items() if not read_boolean(argocd, key, default=True)
        ),
        kustomize_options=_split_options(argocd.get("kustomize.buildOptions", "")),
        kustomize_binaries={
            **_select_by_prefix(argocd, "kustomize.version."),
            **_select_by_prefix(argocd, "kustomize.path."),
            **_select_by_prefix(argosy, "kustomize.binary."),
        },
        plugins={name: _read_plugin(name, text) for name, text in _select_by_prefix(argosy, "render.plugin.").items()},
        sidecars=sidecars,
        limits=RenderLimits(
            manifests=_read_positive_integer(argosy, "render.limit.manifests", RenderLimits().manifests),
            manifest_bytes=_read_positive_integer(argosy, "render.limit.bytes", RenderLimits().manifest_bytes),
        ),
    )


def read_sidecar_settings(folder: str, parameters: Mapping[str, str]) -> SidecarSettings:
    """Read the keys of argocd-cmd-params-cm. The folder is the operator's: no ConfigMap names it."""
    globs = parameters.get("reposerver.plugin.tar.exclusions", "").split(";")
    return SidecarSettings(
        folder,
        tuple(glob for glob in map(str.strip, globs) if glob),
        read_boolean(parameters, "reposerver.plugin.use.manifest.generate.paths", default=False),
    )


def _split_options(text: str) -> tuple[str, ...]:
    """Split into options; a value that follows its option is joined as `--option=value`."""
    if not text:
        return ()
    import shlex  # imported here: few installations set options

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise RenderError(f"invalid quoting ({error}): correct the quotes", where="kustomize.buildOptions") from None
    options: list[str] = []
    for word in words:
        if options and options[-1].startswith("-") and not word.startswith("-"):
            options[-1] = f"{options[-1]}={word}"
        else:
            options.append(word)
    return tuple(options)


def _select_by_prefix(data: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value.strip() for key, value in data.items() if key.startswith(prefix)}


def _read_positive_integer(data: Mapping[str, str], key: str, default: int) -> int:
    text = data.get(key, "").strip()
    if text and not (text.isdecimal() and 0 < int(text) < 1 << 40):
        raise RenderError(f"{text!r} must be a whole number above zero", where=f"argosy-cm: {key}")
    return int(text) if text else default


def _read_plugin(name: str, text: str) -> PluginCommand:
    """Read a plug-in from JSON or YAML: the lists `generate`, `init` and `files` (globs), and the number `seconds`."""
    where = f"argosy-cm: render.plugin.{name}"
    plugin_fields = _read_mapping(text, where)
    if unknown := plugin_fields.keys() - {"generate", "init", "files", "seconds"}:
        raise RenderError(f"unknown field {min(unknown)!r} of a plug-in: remove it", where=where)
    word_lists = {field: _read_string_list(plugin_fields, field, where) for field in ("generate", "init", "files")}
    if not word_lists["generate"]:
        raise RenderError("generate is missing: set it to the program and its arguments", where=where)
    seconds = plugin_fields.get("seconds", 60)
    if type(seconds) not in (int, float) or not 0 < seconds <= 600:
        raise RenderError("seconds must be a number above 0, at most 600", where=where)
    return PluginCommand(word_lists["generate"], word_lists["init"], word_lists["files"], float(seconds))


def _read_mapping(text: str, where: str) -> dict[str, Any]:
    from argosy.errors import ManifestError
    from argosy.kube.objects import read_yaml

    try:
        mapping = read_yaml(text, where=where)
    except ManifestError as error:
        raise RenderError(error.message, where=where) from error
    if not isinstance(mapping, dict):
        raise RenderError(f"must be a mapping, not {json.dumps(mapping)[:40]}", where=where)
    return mapping


def _read_string_list(plugin_fields: Mapping[str, Any], field: str, where: str) -> tuple[str, ...]:
    words = plugin_fields.get(field) or []
    if not isinstance(words, list) or not all(type(word) is str and word for word in words):
        raise RenderError(f"{field} must be a list of strings, one per argument", where=where)
    return tuple(words)
