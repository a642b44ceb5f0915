"""GPG public keys for commit verification, in Argo CD's ConfigMap.

In: an ApplicationService, armoured keys. Out: the stored keys. Never: stores an unreadable key; makes a key trusted:
projects list the keys that they require.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import UserError
from argosy.features.repositories.openpgp import PublicKey, read_keys
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.argocd_secrets_and_config_maps import load_config_map_data, update_config_map
from argosy.gitops.reconciler.settings_watch import GPG_KEYS_CM

TRUST_LEVEL: Final = "unknown"  # argo: trust level of imported keys


async def list_keys(service: ApplicationService) -> dict[str, PublicKey]:
    """Stored keys by id; unreadable entries are skipped."""
    public_keys = {}
    for name, text in sorted((await load_config_map_data(service, GPG_KEYS_CM)).items()):
        try:
            public_keys[name] = read_keys(text)[0]
        except UserError:
            continue
    return public_keys


async def add_keys(service: ApplicationService, text: str, *, replaces: bool) -> tuple[list[PublicKey], list[str]]:
    """Add the keys. Returns the new keys, and the ids of keys that existed already."""
    keys_by_id = {key.id: key for key in read_keys(text)}
    stored = await load_config_map_data(service, GPG_KEYS_CM)
    new = {name: key for name, key in keys_by_id.items() if replaces or name not in stored}
    if new:
        await update_config_map(
            service, GPG_KEYS_CM, lambda data: {**data, **{name: key.text for name, key in new.items()}}
        )
    return list(new.values()), sorted(keys_by_id.keys() - new.keys())


async def remove_key(service: ApplicationService, key_id: str) -> None:
    if key_id not in await load_config_map_data(service, GPG_KEYS_CM):
        key_text = repr(key_id) if len(key_id) <= 40 else "with that id"
        raise UserError(f"key {key_text} not found; list them: GET /api/v1/gpgkeys")
    await update_config_map(
        service, GPG_KEYS_CM, lambda data: {name: text for name, text in data.items() if name != key_id}
    )


def key_to_wire(key: PublicKey, *, with_key_data: bool = False) -> dict[str, Any]:
    wire = {
        "keyID": key.id,
        "fingerprint": key.fingerprint,
        "owner": key.owner,
        "trust": TRUST_LEVEL,
        "subType": key.algorithm,
    }
    return {**wire, "keyData": key.text} if with_key_data else wire
