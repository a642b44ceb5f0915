"""Builds the mask of all Secrets of a cluster view, and keeps it up to date.

In: a cluster view. Out: a SecretMask. Never: lets the name of an object unmask a value in another namespace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from argosy.gitops.live.tracking import read_tracking
from argosy.gitops.redaction.application_secret_scope import find_origin
from argosy.gitops.redaction.local_manifest_secrets import LocalManifestSecrets
from argosy.gitops.redaction.never_masked_object_names import PublicWords, list_repo_and_server_urls
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.controller.cache import InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP, SECRET
from argosy.observability.redaction.secret_mask import SecretMask
from argosy.observability.redaction.secret_origin_and_scope import SecretOrigin
from argosy.observability.redaction.secret_text_extraction import list_url_credentials


class SecretCacheSource(Protocol):
    """The part of ClusterView that masking needs."""

    @property
    def cache(self) -> InformerCache: ...

    def add_listener(self, callback: Callable[[Manifest | None, Manifest | None], None]) -> Callable[[], None]: ...


def find_instance_label(cache: InformerCache, control_namespace: str) -> str:
    """Return the label key that names an object's Application, by the current settings."""
    settings = as_mapping(as_mapping(cache.get(ResourceKey(*CONFIG_MAP, control_namespace, "argocd-cm"))).get("data"))
    return read_tracking({name: str(text) for name, text in settings.items()}, control_namespace).label


def build_mask(source: SecretCacheSource, control_namespace: str = "") -> SecretMask:
    """Build a mask from the Secrets of a ClusterView. Names of objects are public in their namespace: a host name in a
    Secret is also the name of a Service.
    """
    cache, projects, local_manifests = source.cache, dict[ResourceKey, str](), LocalManifestSecrets()

    public = PublicWords(
        control_namespace=control_namespace, find_label=lambda: find_instance_label(cache, control_namespace)
    )

    def find_secret_origin(key: ResourceKey) -> SecretOrigin | None:
        project = projects.get(key)
        return find_origin(key, cache, control_namespace) if project is None else SecretOrigin(key.namespace, project)

    mask = SecretMask(lambda: cache.list(SECRET), public, find_secret_origin)

    def on_change(before: Manifest | None, after: Manifest | None) -> None:
        changed: Manifest = after or before or {}
        if changed.get("kind") == SECRET.kind:
            mask.search.on_change(key_of(changed), after)
            mask.invalidate()
        elif after is not None:
            add_object(after)
        elif changed.get("kind") == "AppProject":
            mask.invalidate()

    def add_object(manifest: Manifest) -> None:
        withdrawals = public.withdrawals
        public.add_object(manifest)
        if public.withdrawals != withdrawals:
            mask.invalidate()
        if secret := read_application_secret(manifest, local_manifests):
            projects[key_of(manifest)] = str(as_mapping(manifest.get("spec")).get("project") or "default")
            mask.search.on_change(key_of(manifest), secret)
            mask.invalidate()
        elif manifest.get("kind") == "AppProject":
            mask.invalidate()

    for kind in cache.kinds():
        for manifest in cache.list(kind) if kind != SECRET else ():
            add_object(manifest)
    source.add_listener(on_change)
    mask.search.update_index()
    return mask


def read_application_secret(manifest: Manifest, local_manifests: LocalManifestSecrets) -> dict[str, dict[str, str]]:
    """Return the fields of a Secret with all secret values in an Application; empty if there are none.

    These are passwords in repository URLs, and values of Secrets that its operation carries. They stay known after its
    deletion.
    """
    if manifest.get("kind") != "Application":
        return {}
    fields = local_manifests.read(manifest)
    string_data = {**read_application_url_passwords(manifest), **fields.get("stringData", {})}
    return {**fields, "stringData": string_data} if string_data or fields.get("data") else {}


def read_application_url_passwords(manifest: Manifest) -> dict[str, str]:
    """List the passwords in an Application's repository URLs."""
    values = [
        value
        for address in list_repo_and_server_urls(manifest)
        if "@" in address
        for value in list_url_credentials(address)
    ]
    return {str(number): value for number, value in enumerate(values)}
