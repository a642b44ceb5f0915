"""Runs config management plug-ins: programs that an installation declares for sources of other tools.

In: a tree, the plug-in's command, the source's plug-in options. Out: the manifests that the program prints.
Never: runs a command that is not declared, or an unconfined program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from argosy.errors import RenderError
from argosy.gitops.application import PluginOptions
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.build_environment import substitute
from argosy.gitops.render.external_program import Command, read_manifests, run_program
from argosy.gitops.render.settings import PluginCommand
from argosy.gitops.render.tree_export import export_tree
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.kube.objects import Manifest
from argosy.languages.globs import compile_glob

PLUGIN_LIMITS = ProgramLimits(wall=60, cpu=60, memory=1 << 30, output=64 << 20, scratch=1 << 30)
_SETTING_PREFIX = "render.plugin."


def generate_manifests(
    tree: FileTree,
    folder: str,
    options: PluginOptions | None,
    plugins: Mapping[str, PluginCommand],
    environment: Mapping[str, str],
    *,
    limits: ProgramLimits = PLUGIN_LIMITS,
) -> list[Manifest]:
    """Run the declared plug-in that `find_declared_plugin` finds. Raises RenderError if there is none."""
    options = options or PluginOptions()
    name = find_declared_plugin(tree, folder, options, plugins)
    if not name:
        raise _build_unknown_error(options.name, folder, plugins)
    plugin = plugins[name]
    limits = replace(limits, wall=plugin.timeout_seconds, cpu=plugin.timeout_seconds)
    # argo: a plug-in gets a writable copy of the whole repository, and runs in the source's folder.
    with export_tree(tree, writable=True) as root:
        plugin_environment = build_plugin_environment(options, environment)
        command = Command(
            plugin.generate, f"plug-in {name}", root, folder, limits, plugin_environment, scratch=root.parent
        )
        if plugin.init:
            run_program(command._replace(argv=plugin.init, name=f"init of plug-in {name}"))
        return read_manifests(run_program(command), command)


def build_plugin_environment(options: PluginOptions, environment: Mapping[str, str]) -> dict[str, str]:
    """Build a plug-in's environment: build variables override parameters, and the source's `env` gets a prefix."""
    # argo: without the prefix a source could set PATH or LD_PRELOAD.
    env_variables = {f"ARGOCD_ENV_{entry.name}": substitute(entry.value, environment) for entry in options.env}
    parameters_json = json.dumps([dict(entry) for entry in options.parameters] or None, separators=(",", ":"))
    parameter_variables = {
        name: text for entry in options.parameters for name, text in _list_parameter_variables(entry)
    }
    all_variables = {**parameter_variables, **env_variables, "ARGOCD_APP_PARAMETERS": parameters_json, **environment}
    return {name: text for name, text in all_variables.items() if "\0" not in name + text and "=" not in name}


def _list_parameter_variables(parameter: Mapping[str, Any]) -> list[tuple[str, str]]:
    name = str(parameter.get("name", ""))
    suffixed_values = [("", parameter["string"])] if "string" in parameter else []
    suffixed_values += [(f"_{i}", text) for i, text in enumerate(parameter.get("array") or ())]
    suffixed_values += [(f"_{key}", text) for key, text in (parameter.get("map") or {}).items()]
    return [("PARAM_" + re.sub(r"[^A-Z0-9_]", "_", (name + key).upper()), str(text)) for key, text in suffixed_values]


def find_declared_plugin(
    tree: FileTree, folder: str, options: PluginOptions | None, plugins: Mapping[str, PluginCommand]
) -> str:
    """Return the plug-in that the source names, or else the first whose globs match a file there; "" if none."""
    if options and options.name:
        return options.name if options.name in plugins else ""
    names = [entry.name for entry in tree.list_folder(folder)]
    for name, plugin in plugins.items():
        patterns = [compile_glob(text, _SETTING_PREFIX + name) for text in plugin.file_globs]
        if any(pattern.fullmatch(text) for pattern in patterns for text in names):
            return name
    return ""


def _build_unknown_error(name: str, folder: str, plugins: Mapping[str, PluginCommand]) -> RenderError:
    if not name:
        message = "no plug-in matches the files here; set source.plugin.name, or `files` of a plug-in in argosy-cm"
        return RenderError(message, where=folder or ".")
    plugin_names = ", ".join(sorted(plugins)) or "none"
    message = f"unknown plug-in {name!r} (declared: {plugin_names}); declare it as {_SETTING_PREFIX}{name} in argosy-cm"
    return RenderError(message, where=folder or ".")
