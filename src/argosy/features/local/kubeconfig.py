"""Kubeconfig files that argosy writes: of a sandbox, entries in another file, and one with only a current-context."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from argosy.cli.data_folder import DataFolder, state_home, write_text
from argosy.errors import UserError
from argosy.kube.objects import dump, load
from argosy.sandbox.apiserver.registry_call import ADMIN


def context_of(folder: DataFolder) -> str:
    """Context name of a sandbox; it contains the folder name, so that one file can hold several sandboxes."""
    return f"argosy-{folder.root.name}"


def document(context: str, api: str, authority: bytes, user: str, token: str) -> dict[str, Any]:
    cluster = {"server": api, "certificate-authority-data": base64.b64encode(authority).decode()}
    named = context if user == ADMIN.name else f"{context}-{user}"
    account = f"{context}-{user}"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": cluster}],
        "users": [{"name": account, "user": {"token": token}}],
        "contexts": [{"name": named, "context": {"cluster": context, "user": account, "namespace": "default"}}],
        "current-context": named,
        "preferences": {},
    }


def write_current_context(context: str) -> Path:
    """Write a kubeconfig with only a current-context: first in KUBECONFIG, it selects a context of the other files."""
    name = hashlib.sha256(context.encode()).hexdigest()[:16]  # context names may contain / and :
    file = (state_home() / "contexts" / f"{name}.yaml").absolute()
    try:
        write_text(file, dump({"apiVersion": "v1", "kind": "Config", "current-context": context}))
    except OSError as error:
        message = f"cannot be written ({error.strerror}); set XDG_STATE_HOME to a folder that can be written"
        raise UserError(message, where=str(file)) from error
    return file


def add_to(file: Path, wanted: dict[str, Any]) -> None:
    """Add the entries to the file; other entries and the current-context are kept."""
    try:
        text = file.read_bytes() if file.exists() else b""
    except OSError as error:
        message = f"cannot be read ({error.strerror}); choose another file with --kubeconfig"
        raise UserError(message, where=str(file)) from error
    if text.strip():
        found = load(text, where=str(file))
        if not _is_kubeconfig(found):
            raise UserError("is not a kubeconfig; choose another file with --kubeconfig", where=str(file))
        wanted = _merged(found, wanted)
    try:
        write_text(file, dump(wanted))
    except OSError as error:
        message = f"cannot be written ({error.strerror}); choose another file with --kubeconfig"
        raise UserError(message, where=str(file)) from error


def remove_from(file: Path, unwanted: dict[str, Any]) -> None:
    """Remove the entries of a deleted cluster from the file."""
    found = load(file.read_bytes(), where=str(file)) if file.exists() else None
    if found is None or not _is_kubeconfig(found):
        return
    kept = dict(found)
    for part in ("clusters", "users", "contexts"):
        ours = {entry["name"] for entry in unwanted[part]}
        kept[part] = [entry for entry in found.get(part) or [] if entry.get("name") not in ours]
    if kept.get("current-context") == unwanted["current-context"]:
        kept["current-context"] = ""
    write_text(file, dump(kept))


def _is_kubeconfig(found: Any) -> bool:
    if not isinstance(found, dict) or found.get("kind", "Config") != "Config":
        return False
    parts = [found.get(part) or [] for part in ("clusters", "users", "contexts")]
    return all(isinstance(part, list) and all(_is_entry(entry) for entry in part) for part in parts)


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name", ""), str)


def _merged(found: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    merged = {**found, "current-context": found.get("current-context") or wanted["current-context"]}
    for part in ("clusters", "users", "contexts"):
        ours = {entry["name"] for entry in wanted[part]}
        others = [entry for entry in found.get(part) or [] if entry.get("name") not in ours]
        merged[part] = [*others, *wanted[part]]
    return merged
