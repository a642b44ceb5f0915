"""Logging of the process: logfmt or JSON lines on stderr, with secret values masked.

In: log records, a format, a level; the Secrets that an engine works with. Out: lines on stderr. Never: a line with a
secret value; two lines for one record.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from argosy.kube.controller.controller_protocol import EVERY_KIND, ChangeWatch
from argosy.kube.controller.log_context import get_log_fields
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APP_PROJECT, APPLICATION

if TYPE_CHECKING:
    from argosy.gitops.policy.destination_cluster_lookup import KnownCluster
    from argosy.gitops.reconciler.remote_cluster_connection import RemoteCluster
    from argosy.observability.redaction.secret_mask import SecretMask
    from argosy.observability.redaction.secret_origin_and_scope import SecretOrigin, SecretScope

TEXT_FORMAT, JSON_FORMAT = "text", "json"
LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}
PUBLIC_NAME_KINDS: Final = (
    "Application",
    "AppProject",
    "Namespace",
)  # their names are public, even if a Secret contains them
AUDIT_LOGGER: Final = "argosy.audit"  # its messages are JSON documents
LEVEL_NAMES: Final = {"WARNING": "warning", "CRITICAL": "fatal"}  # argo: level names of its logs
_UNQUOTED_PATTERN: Final = re.compile(r"[A-Za-z0-9\-._/@^+]+")


def configure_logging(log_format: str = TEXT_FORMAT, level: str = "info") -> None:
    """Send all log records to stderr from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLineFormatter(log_format))
    root, level_number = logging.getLogger(), LEVELS[level]
    for old_handler in tuple(root.handlers):
        root.removeHandler(old_handler)
    root.addHandler(handler)
    root.setLevel(max(level_number, logging.INFO))  # debug output of libraries is dropped
    logging.getLogger("argosy").setLevel(level_number)


class LogLineFormatter(logging.Formatter):
    """argo: formats records as its own logs do, so that known searches work."""

    def __init__(self, log_format: str = TEXT_FORMAT) -> None:
        super().__init__()
        self._is_json = log_format == JSON_FORMAT

    def format(self, record: logging.LogRecord) -> str:
        log_fields = build_log_fields(record)
        return json.dumps(log_fields, ensure_ascii=False) if self._is_json else format_logfmt(log_fields)


def build_log_fields(record: logging.LogRecord) -> dict[str, object]:
    """Return time, level and message first, then the context fields."""
    timestamp = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    level = LEVEL_NAMES.get(record.levelname, record.levelname.lower())
    message, context_fields = record.getMessage(), dict[str, object](get_log_fields())
    if record.name == AUDIT_LOGGER:
        message, context_fields = _unpack_audit(message, context_fields)
    stack = record.exc_text or (record.exc_info and logging.Formatter().formatException(record.exc_info))
    if stack:
        context_fields["stack"] = str(stack)
    return {
        "time": timestamp,
        "level": level,
        "msg": message,
        **{name: context_fields[name] for name in sorted(context_fields)},
    }


def format_logfmt(log_fields: Mapping[str, object]) -> str:
    """Format as `name=value`; values with characters other than letters, digits and a few signs are quoted."""
    return " ".join(
        f"{name}={_quote_value(str(value), always=name in ('time', 'msg'))}" for name, value in log_fields.items()
    )


def _quote_value(text: str, *, always: bool) -> str:
    return text if not always and _UNQUOTED_PATTERN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _unpack_audit(message: str, context_fields: dict[str, object]) -> tuple[str, dict[str, object]]:
    """Unpack the fields of an audit document."""
    try:
        document = json.loads(message)
        return f"{document['who']}: {document['what']}", {**document, **context_fields}
    except (ValueError, KeyError, TypeError):  # masked, so no longer valid JSON
        return message, context_fields


class QuotableSecrets:
    """Secrets that log lines of an engine could quote: its settings, and Secrets that Applications deliver.

    Other Secrets are not searched for, to save memory. A line about an Application is masked with the Secrets of its
    project and namespaces, so that no other tenant's Secret masks a word in it.
    """

    def __init__(
        self,
        control_namespace: str,
        is_tracked: Callable[[Manifest], bool],
        get_manifest: Callable[[ResourceKey], Manifest | None] = lambda key: None,
    ) -> None:
        from argosy.gitops.redaction.application_secret_scope_cache import ScopeCache
        from argosy.gitops.redaction.never_masked_object_names import PublicWords
        from argosy.observability.redaction.secret_mask import SecretMask

        self._scopes = ScopeCache(has_remote_secrets=True)
        self._control_namespace, self._is_tracked, self._get_manifest = control_namespace, is_tracked, get_manifest
        self._public = PublicWords(control_namespace=control_namespace)
        self._projects: dict[ResourceKey, str] = {}  # key -> project, for values declared for one project only
        self._clusters: dict[ResourceKey, tuple[KnownCluster, ...]] = {}  # project-scoped ones, by key of their Secret
        self.mask = SecretMask(lambda: (), self._public, self._find_origin)
        self.mask.find_line_scope = self._find_line_scope

    @property
    def watches(self) -> tuple[ChangeWatch, ...]:
        """Every kind: a Secret of any API group holds values that a log line must not show."""
        return (ChangeWatch(EVERY_KIND, self.on_change),)

    def build_remote_watches(self, remote: RemoteCluster) -> tuple[ChangeWatch, ...]:
        return (ChangeWatch(EVERY_KIND, partial(self.on_change, cluster=remote.cluster.name)),)

    def on_change(self, before: Manifest | None, after: Manifest | None, cluster: str = "") -> None:
        """Handle a change in this cluster, or in another."""
        manifest = after or before or {}
        kind = manifest.get("kind")
        if kind == APPLICATION.kind and not cluster:
            self._scopes.drop(key_of(manifest))  # it holds the previous version
        if kind == "Secret" and any(
            secret is not None and self._is_quotable(secret, cluster) for secret in (before, after)
        ):
            from argosy.gitops.policy.destination_cluster_lookup import read_clusters
            from argosy.gitops.redaction.application_secret_scope import read_declared_project

            key = key_of(manifest)
            secret_key = ResourceKey(key.group, key.kind, f"{cluster}/{key.namespace}", key.name)
            project = read_declared_project(after) if after and not cluster else ""
            self._set_project(secret_key, project)
            if after is not None and project:
                self._clusters[secret_key] = read_clusters([after]).known_clusters
            else:
                self._clusters.pop(secret_key, None)
            self.mask.search.on_change(secret_key, after)
        elif kind in PUBLIC_NAME_KINDS and after is not None and not cluster:
            self._add_public_object(after)

    def _is_quotable(self, secret: Manifest, cluster: str) -> bool:
        is_setting = not cluster and secret["metadata"].get("namespace") == self._control_namespace
        return is_setting or self._is_tracked(secret)

    def _add_public_object(self, manifest: Manifest) -> None:
        from argosy.gitops.redaction.cluster_secret_mask_builder import read_application_url_passwords

        self._public.add_object(manifest)
        if url_passwords := read_application_url_passwords(manifest):
            self._set_project(key_of(manifest), str((manifest.get("spec") or {}).get("project") or "default"))
            self.mask.search.on_change(key_of(manifest), {"stringData": url_passwords})

    def _set_project(self, key: ResourceKey, project: str) -> None:
        if project:
            self._projects[key] = project
        else:
            self._projects.pop(key, None)

    def _find_origin(self, key: ResourceKey) -> SecretOrigin:
        from argosy.observability.redaction.secret_origin_and_scope import SecretOrigin

        cluster, _, namespace = key.namespace.rpartition("/")
        is_installation = not cluster and namespace == self._control_namespace and key.kind == "Secret"
        return SecretOrigin(namespace, self._projects.get(key, ""), is_installation)

    def _find_line_scope(self) -> SecretScope | None:
        namespace, _, name = get_log_fields().get("application", "").rpartition("/")
        application = self._get_manifest(ResourceKey(*APPLICATION, namespace, name)) if name else None
        if application is None:
            return None
        project = str((application.get("spec") or {}).get("project") or "default")
        project_manifest = self._get_manifest(ResourceKey(*APP_PROJECT, self._control_namespace, project))
        scope = self._scopes.get_or_build(application, project_manifest, partial(self._is_scoped, application))
        return replace(scope, has_guessable=True)

    def _is_scoped(self, application: Manifest, namespace: str) -> bool:
        from argosy.gitops.redaction.application_secret_scope import is_in_scoped_cluster

        clusters = [cluster for clusters in list(self._clusters.values()) for cluster in clusters]
        return is_in_scoped_cluster(application, namespace, clusters)


@contextlib.contextmanager
def mask_log_output(mask: SecretMask) -> Iterator[None]:
    """Mask secret values in all log lines of the process."""
    from argosy.observability.redaction.secret_mask import LogMaskFilter

    loggers = (logging.getLogger(), logging.getLogger("argosy"), logging.getLogger(AUDIT_LOGGER))
    handlers = [handler for item in loggers for handler in item.handlers]
    handlers += [logging.lastResort] if logging.lastResort else []
    log_filter = LogMaskFilter(mask)
    for item in handlers:
        item.addFilter(log_filter)
    try:
        yield
    finally:
        for item in handlers:
            item.removeFilter(log_filter)
