"""Read the server from argocd's configuration file, as written by `argocd login`.

In: the path of the file, or the environment; the name of a context. Out: an address. Never: writes the file; reads
tokens or passwords from it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from argosy.errors import UserError
from argosy.kube.objects import read_yaml


class ConfiguredServer(NamedTuple):
    """A server of the file; with `is_core`, commands go to the cluster of the kubeconfig instead."""

    address: str
    is_core: bool = False


def find_config_file() -> Path:
    """argo: ARGOCD_CONFIG_DIR, else ~/.argocd if it exists, else the folder below XDG_CONFIG_HOME or ~/.config."""
    if folder := os.environ.get("ARGOCD_CONFIG_DIR"):
        return Path(folder) / "config"
    legacy = Path.home() / ".argocd"
    if legacy.is_dir():
        return legacy / "config"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "argocd" / "config"


def load_server(file: Path, context: str = "") -> ConfiguredServer | None:
    """Load the server of a context, by default the current one; None if the file or the context does not exist."""
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"cannot read the file: {error.strerror or error}", where=str(file)) from error
    config = read_yaml(text, where=str(file)) if text.strip() else {}
    if not isinstance(config, dict):
        raise UserError("not an argocd configuration: the top level is not a map", where=str(file))
    name = context or config.get("current-context")
    selected = _find_entry(config, "contexts", "name", name)
    if selected is None or not selected.get("server"):
        return None
    server = _find_entry(config, "servers", "server", selected["server"]) or {}
    return ConfiguredServer(str(selected["server"]), is_core=server.get("core") is True)


def _find_entry(config: dict[str, Any], section: str, field: str, value: Any) -> dict[str, Any] | None:
    entries = config.get(section)
    candidates = (entry for entry in entries if isinstance(entry, dict)) if isinstance(entries, list) else ()
    return next((entry for entry in candidates if value and entry.get(field) == value), None)
