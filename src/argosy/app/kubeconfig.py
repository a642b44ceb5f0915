"""Kubeconfig files for the sandbox: a file of its own, or an entry in one that is there already."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from argosy.app.folder import write_private
from argosy.model.errors import UserError
from argosy.model.manifest import dump, load

CONTEXT = "argosy-sandbox"


def document(api: str, authority: bytes, user: str, token: str, *, namespace: str = "default") -> dict[str, Any]:
    cluster = {"server": api, "certificate-authority-data": base64.b64encode(authority).decode()}
    named = CONTEXT if user == "admin" else f"{CONTEXT}-{user}"
    account = f"{CONTEXT}-{user}"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": account, "user": {"token": token}}],
        "contexts": [{"name": named, "context": {"cluster": CONTEXT, "user": account, "namespace": namespace}}],
        "current-context": named,
        "preferences": {},
    }


def write(file: Path, wanted: dict[str, Any]) -> None:
    """Adds our entries to the file and makes them current; what others put there stays."""
    if file.exists() and file.read_text().strip():
        found = load(file.read_bytes(), where=str(file))
        if not isinstance(found, dict):
            raise UserError("is no kubeconfig; choose another file with --kubeconfig", where=str(file))
        wanted = _merged(found, wanted)
    try:
        write_private(file, dump(wanted))
    except OSError as error:
        message = f"cannot be written ({error.strerror}); choose another file with --kubeconfig"
        raise UserError(message, where=str(file)) from error


def _merged(found: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    merged = {**found, "current-context": wanted["current-context"]}
    for part in ("clusters", "users", "contexts"):
        ours = {entry["name"] for entry in wanted[part]}
        others = [entry for entry in found.get(part) or [] if entry.get("name") not in ours]
        merged[part] = [*others, *wanted[part]]
    return merged
