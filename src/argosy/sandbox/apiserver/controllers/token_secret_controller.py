"""Token controller: fills Secrets of type kubernetes.io/service-account-token, and deletes them with their accounts.

In: such Secrets, ServiceAccounts. Out: their fields `token`, `ca.crt` and `namespace`. Never: replaces a token.

k8s: kube-controller-manager does the same; its references from accounts to Secrets are removed with the Secrets.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.controllers.controller import KeyedController
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.service_account_tokens import (
    ACCOUNT_NAME_ANNOTATION,
    ACCOUNT_UID_ANNOTATION,
    TOKEN_SECRET_TYPE,
    ServiceAccountTokens,
)
from argosy.sandbox.store import StoreEvent


class _SecretKey(NamedTuple):
    namespace: str
    name: str
    deleted_for: str = ""  # the account of a Secret that was deleted


class TokenSecretController(KeyedController[_SecretKey]):
    def __init__(self, registry: Registry, tokens: ServiceAccountTokens, certificate: Path | None) -> None:
        super().__init__(registry)
        self._tokens, self._certificate = tokens, certificate
        for entry in registry.store.list("secrets"):
            if _find_account_name(entry.body):
                self.enqueue(_SecretKey(entry.namespace, entry.name))

    def on_events(self, events: Sequence[StoreEvent]) -> None:
        for event in events:
            if event.bucket == "secrets" and (account := _find_account_name(event.body)):
                self.enqueue(_SecretKey(event.namespace, event.name, account if event.type == "DELETED" else ""))
            elif event.bucket == "serviceaccounts" and event.type == "DELETED":
                for entry in self.registry.store.list("secrets", event.namespace):
                    if _find_account_name(entry.body) == event.name:
                        self.enqueue(_SecretKey(entry.namespace, entry.name))

    async def reconcile(self, key: _SecretKey) -> None:
        if key.deleted_for:
            await self._remove_reference(key)
            return
        kind = self._get_core_kind("secrets")
        entry = self.registry.store.get_latest(kind.bucket, key.namespace, key.name)
        if entry is None or not (account_name := _find_account_name(entry.body)):
            return
        secret = kind.read_entry(entry)
        account = self._find_account(key.namespace, account_name)
        wanted_uid = (secret["metadata"].get("annotations") or {}).get(ACCOUNT_UID_ANNOTATION)
        if account is None or wanted_uid not in (None, "", account["metadata"]["uid"]):
            await self.delete_object(kind, entry, secret["metadata"]["uid"], None)
            return
        certificate = self._certificate.read_bytes() if self._certificate is not None else b""
        if _list_missing_data(secret, certificate):
            await self._fill(kind, secret, account, certificate)

    async def _fill(self, kind: ApiKind, secret: Manifest, account: Manifest, certificate: bytes) -> None:
        await self._tokens.ensure_key()
        metadata, missing = secret["metadata"], _list_missing_data(secret, certificate)
        if "token" in missing:
            missing["token"] = self._tokens.sign_secret_token(account["metadata"], metadata["name"]).encode()
        data = {name: base64.b64encode(value).decode() for name, value in missing.items()}
        owner = {
            ACCOUNT_NAME_ANNOTATION: account["metadata"]["name"],
            ACCOUNT_UID_ANNOTATION: account["metadata"]["uid"],
        }
        filled = {
            **secret,
            "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **owner}},
            "data": {**(secret.get("data") or {}), **data},
        }
        await self.update_object(kind, metadata["namespace"], metadata["name"], filled)

    async def _remove_reference(self, key: _SecretKey) -> None:
        account = self._find_account(key.namespace, key.deleted_for)
        references = (account or {}).get("secrets") or []
        remaining = [reference for reference in references if reference.get("name") != key.name]
        if account is not None and len(remaining) < len(references):
            kind = self._get_core_kind("serviceaccounts")
            await self.update_object(kind, key.namespace, key.deleted_for, {**account, "secrets": remaining})

    def _find_account(self, namespace: str, name: str) -> Manifest | None:
        kind = self._get_core_kind("serviceaccounts")
        entry = self.registry.store.get_latest(kind.bucket, namespace, name)
        return kind.read_entry(entry) if entry is not None else None

    def _get_core_kind(self, plural: str) -> ApiKind:
        kind = self.registry.catalog.find_resource("", "v1", plural)
        assert kind is not None
        return kind


def _find_account_name(body: bytes) -> str:
    """Name of the account that a Secret is for; empty for other Secrets."""
    if TOKEN_SECRET_TYPE.encode() not in body:
        return ""
    secret = orjson.loads(body)
    if secret.get("type") != TOKEN_SECRET_TYPE:
        return ""
    return str((secret["metadata"].get("annotations") or {}).get(ACCOUNT_NAME_ANNOTATION) or "")


def _list_missing_data(secret: Manifest, certificate: bytes) -> dict[str, bytes]:
    """Return the fields that must be written; the token is not known yet."""
    data: Mapping[str, str] = secret.get("data") or {}
    missing: dict[str, bytes] = {}
    if certificate and data.get("ca.crt") != base64.b64encode(certificate).decode():
        missing["ca.crt"] = certificate
    if not data.get("namespace"):
        missing["namespace"] = secret["metadata"]["namespace"].encode()
    if not data.get("token"):
        missing["token"] = b""
    return missing
