"""Public keys that signatures of commits are checked by, in Argo CD's ConfigMap.

In: a desk, armoured keys. Out: what there is. Never: a key that cannot be read; trust in a key by itself: a project
names those that count.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import UserError
from argosy.features.repositories.openpgp import PublicKey, read_keys
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.declared_objects import change_map, map_data
from argosy.gitops.reconciler.settings_watch import GPG_KEYS

TRUST: Final = "unknown"  # argo: of each key that it did not set itself


async def keys(desk: Desk) -> dict[str, PublicKey]:
    """Those that can be read."""
    found = {}
    for name, text in sorted((await map_data(desk, GPG_KEYS)).items()):
        try:
            found[name] = read_keys(text)[0]
        except UserError:
            continue
    return found


async def add(desk: Desk, text: str, *, replaces: bool) -> tuple[list[PublicKey], list[str]]:
    """Those that are new, and ids of those that were there."""
    given = {each.id: each for each in read_keys(text)}
    there = await map_data(desk, GPG_KEYS)
    new = {name: each for name, each in given.items() if replaces or name not in there}
    if new:
        await change_map(desk, GPG_KEYS, lambda data: {**data, **{name: each.text for name, each in new.items()}})
    return list(new.values()), sorted(given.keys() - new.keys())


async def remove(desk: Desk, key: str) -> None:
    if key not in await map_data(desk, GPG_KEYS):
        named = repr(key) if len(key) <= 40 else "of that id"
        raise UserError(f"there is no key {named}; see which there are: GET /api/v1/gpgkeys")
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
