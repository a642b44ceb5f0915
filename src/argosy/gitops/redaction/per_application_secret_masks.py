"""Redaction per Application: each text is redacted with the Secrets that its Application can use.

In: manifests, rows and page values. Out: masks, and the same values redacted. Never:
redacts a value of one tenant's Secret in another tenant's texts, which would confirm a guess; scans unchanged objects.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import orjson

from argosy.gitops.application_client.filtered_app_list import AppRow
from argosy.gitops.policy.destination_cluster_lookup import read_clusters
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.render_cache import RenderCache
from argosy.gitops.redaction.application_secret_scope import is_in_scoped_cluster
from argosy.gitops.redaction.application_secret_scope_cache import ScopeCache
from argosy.gitops.redaction.cluster_secret_mask_builder import SecretCacheSource, find_instance_label
from argosy.gitops.redaction.unmasked_manifest_words import GitText, GitWords
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.controller.cache import InformerCache
from argosy.kube.controller.log_context import get_log_fields as fields_of_line
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APP_PROJECT, APPLICATION, SECRET
from argosy.observability.redaction.secret_mask import MASK_BYTES, SecretMask
from argosy.observability.redaction.secret_origin_and_scope import INSTALLATION, SecretScope
from argosy.observability.redaction.secret_text_extraction import list_url_credentials

MAX_CACHED_OBJECTS: Final = 20_000  # objects
MAX_DEPTH: Final = 20  # of values of a page
TRACKING_ID: Final = "argocd.argoproj.io/tracking-id"
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
T = TypeVar("T")


class _MaskedObject(NamedTuple):
    """A redacted object, and the inputs that it depends on."""

    manifest: Manifest
    scope: SecretScope
    version: int  # version of the Secret values in the scope
    masked: Manifest


class ApplicationMasks:
    """Redacts the texts of Applications. Use from one event loop only."""

    def __init__(
        self,
        mask: SecretMask,
        cache: InformerCache,
        control: str,
        find_git: Callable[[Manifest], GitText | None] = lambda _: None,
    ) -> None:
        """`find_git` returns the words in an Application's manifests in Git, if they are cached."""
        self._mask, self._cache, self._control, self._find_git = mask, cache, control, find_git
        self._scopes = ScopeCache(control_namespace=control)
        self._manifests: OrderedDict[ResourceKey, _MaskedObject] = OrderedDict()  # least recently used first
        self._last_rows: tuple[Sequence[AppRow], int, Sequence[AppRow]] = ((), -1, ())
        self._cached_rows: dict[int, tuple[AppRow, SecretScope, int, AppRow]] = {}

    # -- Applications --------------------------------------------------------------------------------------------

    def for_scope(self, scope: SecretScope, sent: Callable[[], Iterable[str]] | None = None) -> SecretMask:
        """Return the mask of a scope. `sent` returns the texts that the caller sent; see `SecretMask.for_scope`."""
        return self._mask.for_scope(scope, sent)

    def get_scope(self, namespace: str, name: str) -> SecretScope:
        """Return the scope of an Application; of the installation, if there is no such Application."""
        application = self._cache.get(ResourceKey(*APPLICATION, namespace, name))
        return INSTALLATION if application is None else self._build_scope(application)

    def get_mask_for_path(self, path: str) -> SecretMask:
        """Return the mask for a page path: /apps/NAMESPACE/NAME and below."""
        parts = path.split("?")[0].split("/")
        is_application_page = len(parts) > 3 and parts[1] == "apps"
        return self._mask.for_scope(self.get_scope(parts[2], parts[3]) if is_application_page else INSTALLATION)

    def get_mask_for_namespace(self, namespace: str) -> SecretMask:
        """Return the mask for an object without an Application; without a namespace, the installation's."""
        return self._mask.for_scope(SecretScope("", frozenset({namespace} - {""})))

    def get_mask_for_application(self, name: str) -> SecretMask:
        """Return the mask for NAMESPACE/NAME, or a name in the control plane namespace."""
        namespace, _, name = name.rpartition("/")
        return self._mask.for_scope(self.get_scope(namespace or self._control, name))

    def find_log_scope(self) -> SecretScope | None:
        """Return the scope of the Application that the current task logs about."""
        namespace, _, name = fields_of_line().get("application", "").rpartition("/")
        application = self._cache.get(ResourceKey(*APPLICATION, namespace, name)) if name else None
        return None if application is None else replace(self._build_scope(application), has_guessable=True)

    def _build_scope(self, application: Manifest) -> SecretScope:
        spec = application.get("spec")
        project = str(spec.get("project") or "default") if isinstance(spec, dict) else "default"
        project_manifest = self._cache.get(ResourceKey(*APP_PROJECT, self._control, project))
        git = self._find_git(application)
        return self._scopes.get_or_build(application, project_manifest, partial(self._may_deliver, application), git)

    def _may_deliver(self, application: Manifest, namespace: str) -> bool:
        """True if the Application delivers to a namespace that the spec of its project forbids."""
        clusters = read_clusters(self._cache.list(SECRET, namespace=self._control)).known_clusters
        return is_in_scoped_cluster(application, namespace, clusters) or self._has_objects(application, namespace)

    def _has_objects(self, application: Manifest, namespace: str) -> bool:
        """True if the Application tracks live objects in a namespace. Checked only if its project forbids that."""
        app_metadata = application["metadata"]
        app_namespace, name = str(app_metadata.get("namespace") or ""), str(app_metadata.get("name") or "")
        instance = name if app_namespace == self._control else f"{app_namespace}_{name}"
        label_keys = {INSTANCE_LABEL, find_instance_label(self._cache, self._control)}
        for kind in self._cache.kinds():
            for manifest in self._cache.list(kind, namespace=namespace):
                metadata = as_mapping(manifest.get("metadata"))
                tracking_id = str(as_mapping(metadata.get("annotations")).get(TRACKING_ID) or "")
                labels = as_mapping(metadata.get("labels"))
                if tracking_id.startswith(f"{instance}:") or any(labels.get(key) == instance for key in label_keys):
                    return True
        return False

    def drop(self, key: ResourceKey) -> None:
        """Drop what is cached of a changed or deleted object: it holds the previous version."""
        self._manifests.pop(key, None)
        if key[:2] == APPLICATION:
            self._scopes.drop(key)

    def mask_application(self, manifest: Manifest) -> Manifest:
        """Return a redacted Application for lists. The same value while nothing changed."""
        return self._get_cached(manifest, self._build_scope(manifest), self._build_masked_application)

    def _get_cached(
        self, manifest: Manifest, scope: SecretScope, build: Callable[[Manifest, SecretScope], Manifest]
    ) -> Manifest:
        """Return the cached value of an object while its scope and the Secret values in the scope are unchanged."""
        key, version = key_of(manifest), self._mask.version(scope.namespaces)
        cached = self._manifests.get(key)
        if cached is None or cached.manifest is not manifest or (cached.scope, cached.version) != (scope, version):
            cached = self._manifests[key] = _MaskedObject(manifest, scope, version, build(manifest, scope))
            if len(self._manifests) > MAX_CACHED_OBJECTS:
                self._manifests.popitem(last=False)
        self._manifests.move_to_end(key)
        return cached.masked

    def mask_object(self, manifest: Manifest, application: Manifest | None) -> Manifest:
        """Return a redacted live object for lists; its Application decides which Secrets it may contain."""
        if application is None:
            scope = SecretScope("", frozenset({str(manifest["metadata"].get("namespace") or "")}))
        else:
            scope = self._build_scope(application)
        return self._get_cached(manifest, scope, self._build_masked_object)

    def _build_masked_object(self, manifest: Manifest, scope: SecretScope) -> Manifest:
        if not self._mask.search.find_needles(orjson.dumps(manifest)):
            return manifest
        return self._mask.for_scope(scope).mask_manifest(manifest)

    def _build_masked_application(self, manifest: Manifest, scope: SecretScope) -> Manifest:
        """Remove passwords from URLs in metadata and spec, and redact Secret values."""
        masked = manifest
        data = orjson.dumps(manifest)
        if b"@" in data and b"://" in data:
            without_url_passwords = {name: mask_url_passwords(manifest.get(name)) for name in ("metadata", "spec")}
            masked = {**manifest, **without_url_passwords}
        if self._mask.search.find_needles(data):
            masked = self._mask.for_scope(scope).mask_manifest(masked)
        return masked

    # -- lists ---------------------------------------------------------------------------------------------------

    def mask_rows(self, rows: Sequence[AppRow]) -> Sequence[AppRow]:
        """Return redacted rows of Applications, so that a search finds nothing that is hidden."""
        if self._last_rows[0] is rows and self._last_rows[1] == self._mask.generation:
            return self._last_rows[2]
        previous, self._cached_rows = self._cached_rows, {}
        masked_rows = []
        for row in rows:
            scope = self.get_scope(row.namespace, row.name)
            version = self._mask.version(scope.namespaces)
            cached = previous.get(id(row))
            if cached is None or cached[0] is not row or cached[1:3] != (scope, version):
                cached = (row, scope, version, self.mask_row(row))
            self._cached_rows[id(row)] = cached
            masked_rows.append(cached[3])
        self._last_rows = (rows, self._mask.generation, masked_rows)
        return masked_rows

    def mask_row(self, row: AppRow) -> AppRow:
        if not self._mask.search.find_needles(
            f"{row.why}\n{row.health_message}\n{row.repo}\n{row.search_text}".encode()
        ):
            return row
        hide = self._mask.for_scope(self.get_scope(row.namespace, row.name)).mask_text
        masked_reason, health = hide(row.why), hide(row.health_message)
        searched = (
            row.search_text.replace(row.why.lower(), masked_reason.lower())
            if masked_reason != row.why
            else row.search_text
        )
        return replace(row, why=masked_reason, health_message=health, repo=hide(row.repo), search_text=hide(searched))


class MaskSource(SecretCacheSource, Protocol):
    """The part of ClusterView that the masks of Applications need."""

    @property
    def render_cache(self) -> RenderCache: ...

    @property
    def rules(self) -> ReconcilerSettings: ...


def build_masks(source: MaskSource, control_namespace: str, mask: SecretMask) -> ApplicationMasks:
    """Build the masks of an installation, using manifests that its cluster view has rendered."""
    git_words = GitWords(source.render_cache, lambda: source.rules.build)
    masks = ApplicationMasks(mask, source.cache, control_namespace, git_words.find)

    def on_change(old: Manifest | None, new: Manifest | None) -> None:
        key = key_of(new or old or {})
        masks.drop(key)
        if key[:2] == APPLICATION:
            (git_words.drop if new is None else git_words.forget_version)(key)

    source.add_listener(on_change)
    return masks


def mask_texts(value: T, mask: SecretMask, depth: int = 0) -> T:
    """Redact all texts in a page value; dataclasses, tuples, lists and mappings keep their shape."""
    masked: Any = value
    if isinstance(value, str):
        masked = mask.mask_text(value)
    elif depth > MAX_DEPTH:
        masked = value
    elif is_dataclass(value) and not isinstance(value, type):
        inner = {item.name: getattr(value, item.name) for item in fields(value) if item.init}
        changed = {name: new for name, old in inner.items() if (new := mask_texts(old, mask, depth + 1)) is not old}
        masked = replace(value, **changed) if changed else value
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        masked = type(value)(*(mask_texts(inner, mask, depth + 1) for inner in value))
    elif isinstance(value, list | tuple):
        masked = type(value)(mask_texts(inner, mask, depth + 1) for inner in value)
    elif isinstance(value, dict):
        masked = {name: mask_texts(inner, mask, depth + 1) for name, inner in value.items()}
    return masked if masked != value else value


def mask_url_passwords(value: Any) -> Any:
    """Replace passwords of URLs in texts by placeholders."""
    if isinstance(value, str):
        for password in list_url_credentials(value) if "://" in value and "@" in value else ():
            value = value.replace(password, MASK_BYTES.decode())
        return value
    if isinstance(value, dict):
        return {name: mask_url_passwords(inner) for name, inner in value.items()}
    return [mask_url_passwords(inner) for inner in value] if isinstance(value, list) else value
