"""Kubeconfig files that argosy writes: of a sandbox, entries in another file, and one with only a current-context."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from argosy.cli.sandbox_data_folder_and_lock import DataFolder, get_state_folder, write_private_text
from argosy.errors import UserError
from argosy.kube.objects import dump_yaml, read_yaml
from argosy.sandbox.apiserver.write_call_and_result_types import ADMIN


def context_name(folder: DataFolder) -> str:
    """Context name of a sandbox; it contains the folder name, so that one file can hold several sandboxes."""
    return f"argosy-{folder.root.name}"


def build_kubeconfig(context: str, api: str, ca_certificate: bytes, user: str, token: str) -> dict[str, Any]:
    cluster = {"server": api, "certificate-authority-data": base64.b64encode(ca_certificate).decode()}
    context_entry_name = context if user == ADMIN.name else f"{context}-{user}"
    account = f"{context}-{user}"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": cluster}],
        "users": [{"name": account, "user": {"token": token}}],
        "contexts": [
            {"name": context_entry_name, "context": {"cluster": context, "user": account, "namespace": "default"}}
        ],
        "current-context": context_entry_name,
        "preferences": {},
    }


def write_current_context_kubeconfig(context: str) -> Path:
    """Write a kubeconfig with only a current-context: first in KUBECONFIG, it selects a context of the other files."""
    name = hashlib.sha256(context.encode()).hexdigest()[:16]  # context names may contain / and :
    file = (get_state_folder() / "contexts" / f"{name}.yaml").absolute()
    try:
        write_private_text(file, dump_yaml({"apiVersion": "v1", "kind": "Config", "current-context": context}))
    except OSError as error:
        message = f"cannot be written ({error.strerror}); set XDG_STATE_HOME to a folder that can be written"
        raise UserError(message, where=str(file)) from error
    return file


def add_entries(file: Path, kubeconfig: dict[str, Any]) -> None:
    """Add the entries to the file; other entries and the current-context are kept."""
    try:
        text = file.read_bytes() if file.exists() else b""
    except OSError as error:
        message = f"cannot be read ({error.strerror}); choose another file with --kubeconfig"
        raise UserError(message, where=str(file)) from error
    if text.strip():
        existing = read_yaml(text, where=str(file))
        if not _is_kubeconfig(existing):
            raise UserError("is not a kubeconfig; choose another file with --kubeconfig", where=str(file))
        kubeconfig = _merge_entries(existing, kubeconfig)
    try:
        write_private_text(file, dump_yaml(kubeconfig))
    except OSError as error:
        message = f"cannot be written ({error.strerror}); choose another file with --kubeconfig"
        raise UserError(message, where=str(file)) from error


def remove_entries(file: Path, kubeconfig: dict[str, Any]) -> None:
    """Remove the entries of a deleted cluster from the file."""
    existing = read_yaml(file.read_bytes(), where=str(file)) if file.exists() else None
    if existing is None or not _is_kubeconfig(existing):
        return
    remaining = dict(existing)
    for part in ("clusters", "users", "contexts"):
        own_names = {entry["name"] for entry in kubeconfig[part]}
        remaining[part] = [entry for entry in existing.get(part) or [] if entry.get("name") not in own_names]
    if remaining.get("current-context") == kubeconfig["current-context"]:
        remaining["current-context"] = ""
    write_private_text(file, dump_yaml(remaining))


def _is_kubeconfig(document: Any) -> bool:
    if not isinstance(document, dict) or document.get("kind", "Config") != "Config":
        return False
    parts = [document.get(part) or [] for part in ("clusters", "users", "contexts")]
    return all(isinstance(part, list) and all(_is_entry(entry) for entry in part) for part in parts)


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name", ""), str)


def _merge_entries(existing: dict[str, Any], kubeconfig: dict[str, Any]) -> dict[str, Any]:
    merged = {**existing, "current-context": existing.get("current-context") or kubeconfig["current-context"]}
    for part in ("clusters", "users", "contexts"):
        own_names = {entry["name"] for entry in kubeconfig[part]}
        other_entries = [entry for entry in existing.get(part) or [] if entry.get("name") not in own_names]
        merged[part] = [*other_entries, *kubeconfig[part]]
    return merged
