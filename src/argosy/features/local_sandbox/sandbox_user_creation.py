"""`sandbox user add`: creates a user of the running sandbox and its kubeconfig."""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from argosy.cli.running_sandbox_selection import build_admin_connection, require_running_instance
from argosy.cli.sandbox_data_folder_and_lock import DataFolder
from argosy.errors import UserError
from argosy.features.local_sandbox import kubeconfig
from argosy.kube.objects import Manifest, dump_yaml
from argosy.sandbox.apiserver.authentication import USER_SECRET_TYPE, USERS_NAMESPACE, hash_token
from argosy.sandbox.apiserver.write_call_and_result_types import ADMIN

if TYPE_CHECKING:
    from argosy.kube.client.connection_settings import Connection

RESERVED_PREFIXES = ("system:", "argosy:")


def add_user(folder: DataFolder, name: str, groups: Sequence[str]) -> str:
    """Add the user and return a kubeconfig. Adding an existing user replaces its token."""
    for text in (name, *groups):
        if not text or any(not character.isprintable() or character == "," for character in text):
            raise UserError(f"invalid name {text!r}; use printable characters and no comma")
    if name == ADMIN.name or name.startswith(RESERVED_PREFIXES):
        raise UserError(f"{name!r} is reserved; a user cannot be {ADMIN.name}, or start with system: or argosy:")
    run = require_running_instance(folder)
    token = secrets.token_urlsafe(32)
    asyncio.run(_store_secret(build_admin_connection(folder, run), _build_user_secret(name, groups, token)))
    authority = (folder.tls / "ca.crt").read_bytes()
    return dump_yaml(kubeconfig.build_kubeconfig(kubeconfig.context_name(folder), run.api, authority, name, token))


def _build_user_secret(name: str, groups: Sequence[str], token: str) -> Manifest:
    """Secret of the user, with the digest of the token."""
    readable = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")[:40] or "user"
    unique = hashlib.sha256(name.encode()).hexdigest()[:8]
    annotations = {
        "sandbox.argosy.dev/user": name,
        "sandbox.argosy.dev/groups": ",".join(groups),
        "sandbox.argosy.dev/token-digest": hash_token(token),
    }
    metadata = {"name": f"user-{readable}-{unique}", "namespace": USERS_NAMESPACE, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": USER_SECRET_TYPE}


async def _store_secret(admin: Connection, secret: Manifest) -> None:
    from argosy.kube.client.cluster_client import connect

    async with await connect(admin) as cluster:
        await cluster.apply(secret, manager="argosy-sandbox", force=True)
