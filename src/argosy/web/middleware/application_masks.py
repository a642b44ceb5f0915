"""Redaction per Application: each text is redacted with the Secrets that its Application can use.

In: a request, or manifests, rows and page values of a list. Out: masks, and the same values redacted. Never:
redacts a value of one tenant's Secret in another tenant's texts, which would confirm a guess; scans unchanged objects.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from argosy.gitops.application import APPLICATION
from argosy.gitops.application_client.app_list import AppRow
from argosy.gitops.redaction.redaction import MARK, Mask, find_instance_label, mask_of
from argosy.gitops.redaction.scope_cache import ScopeCache
from argosy.gitops.redaction.secret_provenance import INSTALLATION, SecretScope
from argosy.gitops.redaction.secret_values import in_address
from argosy.gitops.status.wire_format import mapping
from argosy.kube.controller.cache import Cache
from argosy.kube.controller.log_context import fields as fields_of_line
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.web.middleware.echoed_input import sent_texts
from argosy.web.middleware.git_words import GitText, GitWords
from argosy.web.request import Asked
from argosy.web.site import Site

PROJECT: Final = ("argoproj.io", "AppProject")
MAX_REMEMBERED: Final = 20_000  # objects
MAX_DEPTH: Final = 20  # of values of a page
SCOPE, PAGE, NEEDS = "scope", "page", "needs"  # keys in the cache of a request
OF_TENANTS: Final = ("applications", "applicationsets", "projects", "logs")  # resources that tenants write
OF_OBJECTS: Final = ("/logs", "/resource")  # routes that return one object of an Application
TRACKING_ID: Final = "argocd.argoproj.io/tracking-id"
INSTANCE: Final = "app.kubernetes.io/instance"
T = TypeVar("T")


class _Masked(NamedTuple):
    """A redacted object, and the inputs that it depends on."""

    manifest: Manifest
    scope: SecretScope
    version: int  # version of the Secret values in the scope
    shown: Manifest


class ApplicationMasks:
    """Redacts the texts of Applications. Use from one event loop only."""

    def __init__(
        self, mask: Mask, cache: Cache, control: str, find_git: Callable[[Manifest], GitText | None] = lambda _: None
    ) -> None:
        """`find_git` returns the words in an Application's manifests in Git, if they are cached."""
        self._mask, self._cache, self._control, self._find_git = mask, cache, control, find_git
        self._scopes = ScopeCache(control=control)
        self._manifests: OrderedDict[ResourceKey, _Masked] = OrderedDict()  # least recently used first
        self._rows: tuple[Sequence[AppRow], int, Sequence[AppRow]] = ((), -1, ())
        self._row: dict[int, tuple[AppRow, SecretScope, int, AppRow]] = {}

    # -- requests ------------------------------------------------------------------------------------------------

    def for_request(self, asked: Asked, *, quotes_sent: bool = False) -> Mask:
        """Return the mask of the Application that a request is about, else that of the installation.

        `quotes_request`: the texts quote the request body of a change, such as an error message.
        """
        asked = asked.kept.get(PAGE, asked)
        # the scope of the original request, without placeholders, resolved on each use: Secrets, projects and rendered
        # manifests change while a stream is open
        find_scope = asked.kept.setdefault(SCOPE, partial(self._scope_of_request, asked))
        return self._mask.within(find_scope(), (lambda: sent_texts(asked)) if quotes_sent else None)

    def hide_for(self, asked: Asked) -> Callable[[str], str]:
        """Return a function that redacts the texts of a long-running request with the current Secrets."""
        return lambda text: self.for_request(asked).hide_text(text)

    def _scope_of_request(self, asked: Asked) -> SecretScope:
        project, _, place = asked.thing.partition("/")
        namespace, _, name = place.rpartition("/")
        scope = self.scope(namespace or self._control, name) if name else INSTALLATION
        if scope is INSTALLATION:
            resource = getattr(asked.kept.get(NEEDS), "resource", "")
            scope = SecretScope(project, has_guessable=resource not in OF_TENANTS)
        if asked.path.endswith(OF_OBJECTS) and name and asked.query.get("namespace"):
            # the route returns only objects of the Application; those of a cluster-scoped owner can be in any namespace
            scope = replace(scope, namespaces=scope.namespaces | {asked.query["namespace"]})
        about = asked.subject
        metadata = about.get("metadata") if isinstance(about, Mapping) else None
        is_foreign = isinstance(about, Mapping) and not str(about.get("apiVersion")).startswith(f"{APPLICATION[0]}/")
        if isinstance(metadata, Mapping) and metadata.get("uid") and is_foreign:
            # a live object that the caller may see
            scope = replace(scope, namespaces=scope.namespaces | {str(metadata.get("namespace") or "")})
        return scope

    # -- Applications --------------------------------------------------------------------------------------------

    def scope(self, namespace: str, name: str) -> SecretScope:
        application = self._cache.get(ResourceKey(*APPLICATION, namespace, name))
        return INSTALLATION if application is None else self._build(application)

    def by_path(self, path: str) -> Mask:
        """Return the mask for a page path: /apps/NAMESPACE/NAME and below."""
        parts = path.split("?")[0].split("/")
        known = len(parts) > 3 and parts[1] == "apps"
        return self._mask.within(self.scope(parts[2], parts[3]) if known else INSTALLATION)

    def by_namespace(self, namespace: str) -> Mask:
        """Return the mask for an object without an Application; without a namespace, the installation's."""
        return self._mask.within(SecretScope("", frozenset({namespace} - {""})))

    def by_name(self, name: str) -> Mask:
        """Return the mask for NAMESPACE/NAME, or a name in the control plane namespace."""
        namespace, _, name = name.rpartition("/")
        return self._mask.within(self.scope(namespace or self._control, name))

    def line_scope(self) -> SecretScope | None:
        """Return the scope of the Application that the current task logs about."""
        namespace, _, name = fields_of_line().get("application", "").rpartition("/")
        application = self._cache.get(ResourceKey(*APPLICATION, namespace, name)) if name else None
        return None if application is None else replace(self._build(application), has_guessable=True)

    def _build(self, application: Manifest) -> SecretScope:
        spec = application.get("spec")
        project = str(spec.get("project") or "default") if isinstance(spec, dict) else "default"
        rules = self._cache.get(ResourceKey(*PROJECT, self._control, project))
        git = self._find_git(application)
        return self._scopes.get(application, rules, partial(self._has_objects, application), git)

    def _has_objects(self, application: Manifest, namespace: str) -> bool:
        """True if the Application tracks live objects in a namespace. Checked only if its project forbids that."""
        own = application["metadata"]
        place, name = str(own.get("namespace") or ""), str(own.get("name") or "")
        instance = name if place == self._control else f"{place}_{name}"
        label_keys = {INSTANCE, find_instance_label(self._cache, self._control)}
        for kind in self._cache.kinds():
            for manifest in self._cache.list(kind, namespace=namespace):
                metadata = mapping(manifest.get("metadata"))
                tracked = str(mapping(metadata.get("annotations")).get(TRACKING_ID) or "")
                labels = mapping(metadata.get("labels"))
                if tracked.startswith(f"{instance}:") or any(labels.get(key) == instance for key in label_keys):
                    return True
        return False

    def forget(self, key: ResourceKey) -> None:
        """Drop the cached value of a deleted object."""
        self._manifests.pop(key, None)
        if key[:2] == APPLICATION:
            self._scopes.forget(key)

    def application(self, manifest: Manifest) -> Manifest:
        """Return a redacted Application for lists. The same value while nothing changed."""
        return self._remember(manifest, self._build(manifest), self._masked)

    def _remember(
        self, manifest: Manifest, scope: SecretScope, build: Callable[[Manifest, SecretScope], Manifest]
    ) -> Manifest:
        """Return the cached value of an object while its scope and the Secret values in the scope are unchanged."""
        key, version = key_of(manifest), self._mask.version(scope.namespaces)
        known = self._manifests.get(key)
        if known is None or known.manifest is not manifest or (known.scope, known.version) != (scope, version):
            known = self._manifests[key] = _Masked(manifest, scope, version, build(manifest, scope))
            if len(self._manifests) > MAX_REMEMBERED:
                self._manifests.popitem(last=False)
        self._manifests.move_to_end(key)
        return known.shown

    def object(self, manifest: Manifest, application: Manifest | None) -> Manifest:
        """Return a redacted live object for lists; its Application decides which Secrets it may contain."""
        if application is None:
            scope = SecretScope("", frozenset({str(manifest["metadata"].get("namespace") or "")}))
        else:
            scope = self._build(application)
        return self._remember(manifest, scope, self._masked_object)

    def _masked_object(self, manifest: Manifest, scope: SecretScope) -> Manifest:
        if not self._mask.needles.near(orjson.dumps(manifest)):
            return manifest
        return self._mask.within(scope).hide_values(manifest)

    def _masked(self, manifest: Manifest, scope: SecretScope) -> Manifest:
        """Remove passwords from URLs in metadata and spec, and redact Secret values."""
        made = manifest
        data = orjson.dumps(manifest)
        if b"@" in data and b"://" in data:
            written = {name: without_passwords(manifest.get(name)) for name in ("metadata", "spec")}
            made = {**manifest, **written}
        if self._mask.needles.near(data):
            made = self._mask.within(scope).hide_values(made)
        return made

    # -- lists ---------------------------------------------------------------------------------------------------

    def rows(self, rows: Sequence[AppRow]) -> Sequence[AppRow]:
        """Return redacted rows of Applications, so that a search finds nothing that is hidden."""
        if self._rows[0] is rows and self._rows[1] == self._mask.generation:
            return self._rows[2]
        remembered, self._row = self._row, {}
        made = []
        for row in rows:
            scope = self.scope(row.namespace, row.name)
            version = self._mask.version(scope.namespaces)
            known = remembered.get(id(row))
            if known is None or known[0] is not row or known[1:3] != (scope, version):
                known = (row, scope, version, self.row(row))
            self._row[id(row)] = known
            made.append(known[3])
        self._rows = (rows, self._mask.generation, made)
        return made

    def row(self, row: AppRow) -> AppRow:
        if not self._mask.needles.near(f"{row.why}\n{row.health_message}\n{row.repo}\n{row.searched}".encode()):
            return row
        hide = self._mask.within(self.scope(row.namespace, row.name)).hide_text
        why, health = hide(row.why), hide(row.health_message)
        searched = row.searched.replace(row.why.lower(), why.lower()) if why != row.why else row.searched
        return replace(row, why=why, health_message=health, repo=hide(row.repo), searched=hide(searched))


def build_masks(site: Site, mask: Mask) -> ApplicationMasks:
    """Build the masks of a site, using manifests that its cluster view has rendered."""
    lookout = site.lookout
    words = GitWords(lookout.renders, lambda: lookout.rules.build)
    masks = ApplicationMasks(mask, lookout.cache, site.desk.control, words.find)

    def forget(before: Manifest | None, after: Manifest | None) -> None:
        if before is None or after is not None:
            return
        key = key_of(before)
        masks.forget(key)
        if key[:2] == APPLICATION:
            words.forget(key)
            lookout.renders.forget(key)

    lookout.listen(forget)
    return masks


def masks_of(asked: Asked) -> ApplicationMasks:
    """Return the masks of the server that handles a request."""
    if asked.entry is not None:
        found: ApplicationMasks = asked.entry.masks
        return found
    site = asked.site  # called by a program, without the middleware
    if ApplicationMasks not in site.kept:
        site.kept[ApplicationMasks] = build_masks(site, mask_of(site.lookout, site.desk.control))
    kept: ApplicationMasks = site.kept[ApplicationMasks]
    return kept


def mask_texts(value: T, mask: Mask, depth: int = 0) -> T:
    """Redact all texts in a page value; dataclasses, tuples, lists and mappings keep their shape."""
    made: Any = value
    if isinstance(value, str):
        made = mask.hide_text(value)
    elif depth > MAX_DEPTH:
        made = value
    elif is_dataclass(value) and not isinstance(value, type):
        inner = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        changed = {name: new for name, old in inner.items() if (new := mask_texts(old, mask, depth + 1)) is not old}
        made = replace(value, **changed) if changed else value
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        made = type(value)(*(mask_texts(inner, mask, depth + 1) for inner in value))
    elif isinstance(value, list | tuple):
        made = type(value)(mask_texts(inner, mask, depth + 1) for inner in value)
    elif isinstance(value, dict):
        made = {name: mask_texts(inner, mask, depth + 1) for name, inner in value.items()}
    return made if made != value else value


def without_passwords(value: Any) -> Any:
    """Replace passwords of URLs in texts by placeholders."""
    if isinstance(value, str):
        for password in in_address(value) if "://" in value and "@" in value else ():
            value = value.replace(password, MARK.decode())
        return value
    if isinstance(value, dict):
        return {name: without_passwords(inner) for name, inner in value.items()}
    return [without_passwords(inner) for inner in value] if isinstance(value, list) else value
