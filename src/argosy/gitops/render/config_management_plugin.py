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
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.render.build_environment import substitute
from argosy.gitops.render.external_program import Command, manifests_in, output_of
from argosy.gitops.render.settings import PluginCommand
from argosy.gitops.render.tree_export import exported
from argosy.isolation.limits import ProgramLimits
from argosy.kube.objects import Manifest
from argosy.languages.globs import glob_pattern

LIMITS = ProgramLimits(wall=60, cpu=60, memory=1 << 30, output=64 << 20, scratch=1 << 30)
_SETTING = "render.plugin."


def generate(
    tree: Tree,
    folder: str,
    options: PluginOptions | None,
    plugins: Mapping[str, PluginCommand],
    environment: Mapping[str, str],
    *,
    limits: ProgramLimits = LIMITS,
) -> list[Manifest]:
    """Run the plug-in named by the source, or else the first plug-in whose globs match a file in the folder."""
    options = options or PluginOptions()
    name = options.name or _discovered(tree, folder, plugins)
    if name not in plugins:
        known = ", ".join(sorted(plugins)) or "none"
        message = f"unknown plug-in {name!r} (declared: {known}); declare it as {_SETTING}{name} in argosy-cm"
        raise RenderError(message, where=folder or ".")
    plugin = plugins[name]
    limits = replace(limits, wall=plugin.seconds, cpu=plugin.seconds)
    # argo: a plug-in gets a writable copy of the whole repository, and runs in the source's folder.
    with exported(tree, writable=True) as root:
        told = variables(options, environment)
        command = Command(plugin.generate, f"plug-in {name}", root, folder, limits, told, scratch=root.parent)
        if plugin.init:
            output_of(command._replace(argv=plugin.init, name=f"init of plug-in {name}"))
        return manifests_in(output_of(command), command)


def variables(options: PluginOptions, environment: Mapping[str, str]) -> dict[str, str]:
    """Build a plug-in's environment: build variables override parameters, and the source's `env` gets a prefix."""
    # argo: without the prefix a source could set PATH or LD_PRELOAD.
    own = {f"ARGOCD_ENV_{each.name}": substitute(each.value, environment) for each in options.env}
    parameters = json.dumps([dict(each) for each in options.parameters] or None, separators=(",", ":"))
    given = {name: text for each in options.parameters for name, text in _parameter(each)}
    told = {**given, **own, "ARGOCD_APP_PARAMETERS": parameters, **environment}
    return {name: text for name, text in told.items() if "\0" not in name + text and "=" not in name}


def _parameter(parameter: Mapping[str, Any]) -> list[tuple[str, str]]:
    name = str(parameter.get("name", ""))
    found = [("", parameter["string"])] if "string" in parameter else []
    found += [(f"_{number}", text) for number, text in enumerate(parameter.get("array") or ())]
    found += [(f"_{key}", text) for key, text in (parameter.get("map") or {}).items()]
    return [("PARAM_" + re.sub(r"[^A-Z0-9_]", "_", (name + key).upper()), str(text)) for key, text in found]


def _discovered(tree: Tree, folder: str, plugins: Mapping[str, PluginCommand]) -> str:
    names = [entry.name for entry in tree.listing(folder)]
    for name, plugin in plugins.items():
        patterns = [glob_pattern(each, _SETTING + name) for each in plugin.files]
        if any(pattern.fullmatch(each) for pattern in patterns for each in names):
            return name
    raise RenderError(
        "no plug-in matches the files here; set source.plugin.name, or `files` of a plug-in in argosy-cm",
        where=folder or ".",
    )
