"""GPG public keys for commit verification, in Argo CD's ConfigMap.

In: an ApplicationService, armoured keys. Out: the stored keys. Never: stores an unreadable key; makes a key trusted:
projects list the keys that they require.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import UserError
from argosy.features.repositories.openpgp import PublicKey, read_keys
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.declared_objects import change_map, map_data
from argosy.gitops.reconciler.settings_watch import GPG_KEYS

TRUST: Final = "unknown"  # argo: trust level of imported keys


async def keys(desk: Desk) -> dict[str, PublicKey]:
    """Stored keys by id; unreadable entries are skipped."""
    found = {}
    for name, text in sorted((await map_data(desk, GPG_KEYS)).items()):
        try:
            found[name] = read_keys(text)[0]
        except UserError:
            continue
    return found


async def add(desk: Desk, text: str, *, replaces: bool) -> tuple[list[PublicKey], list[str]]:
    """Add the keys. Returns the new keys, and the ids of keys that existed already."""
    given = {each.id: each for each in read_keys(text)}
    there = await map_data(desk, GPG_KEYS)
    new = {name: each for name, each in given.items() if replaces or name not in there}
    if new:
        await change_map(desk, GPG_KEYS, lambda data: {**data, **{name: each.text for name, each in new.items()}})
    return list(new.values()), sorted(given.keys() - new.keys())


async def remove(desk: Desk, key: str) -> None:
    if key not in await map_data(desk, GPG_KEYS):
        named = repr(key) if len(key) <= 40 else "with that id"
        raise UserError(f"key {named} not found; list them: GET /api/v1/gpgkeys")
    await change_map(desk, GPG_KEYS, lambda data: {name: text for name, text in data.items() if name != key})


def document(key: PublicKey, *, is_whole: bool = False) -> dict[str, Any]:
    found = {
        "keyID": key.id,
        "fingerprint": key.fingerprint,
        "owner": key.owner,
        "trust": TRUST,
        "subType": key.algorithm,
    }
    return {**found, "keyData": key.text} if is_whole else found
