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
from typing import TYPE_CHECKING, Final

from argosy.gitops.application import APPLICATION
from argosy.kube.controller.log_context import fields
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

if TYPE_CHECKING:
    from argosy.gitops.redaction.redaction import Mask
    from argosy.gitops.redaction.secret_provenance import SecretOrigin, SecretScope

TEXT, JSON = "text", "json"
LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}
SEEN: Final = ("Application", "AppProject", "Namespace")  # their names are public, even if a Secret contains them
PROJECT: Final = ("argoproj.io", "AppProject")
AUDIT: Final = "argosy.audit"  # its messages are JSON documents
WORDS: Final = {"WARNING": "warning", "CRITICAL": "fatal"}  # argo: level names of its logs
_PLAIN: Final = re.compile(r"[A-Za-z0-9\-._/@^+]+")


def begin(form: str = TEXT, level: str = "info") -> None:
    """Send all log records to stderr from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(form))
    root, chosen = logging.getLogger(), LEVELS[level]
    for each in tuple(root.handlers):
        root.removeHandler(each)
    root.addHandler(handler)
    root.setLevel(max(chosen, logging.INFO))  # debug output of libraries is dropped
    logging.getLogger("argosy").setLevel(chosen)


class Lines(logging.Formatter):
    """argo: formats records as its own logs do, so that known searches work."""

    def __init__(self, form: str = TEXT) -> None:
        super().__init__()
        self._is_json = form == JSON

    def format(self, record: logging.LogRecord) -> str:
        known = told(record)
        return json.dumps(known, ensure_ascii=False) if self._is_json else line(known)


def told(record: logging.LogRecord) -> dict[str, object]:
    """Return time, level and message first, then the context fields."""
    when = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    level = WORDS.get(record.levelname, record.levelname.lower())
    message, more = record.getMessage(), dict[str, object](fields())
    if record.name == AUDIT:
        message, more = _of_audit(message, more)
    stack = record.exc_text or (record.exc_info and logging.Formatter().formatException(record.exc_info))
    if stack:
        more["stack"] = str(stack)
    return {"time": when, "level": level, "msg": message, **{name: more[name] for name in sorted(more)}}


def line(known: Mapping[str, object]) -> str:
    """Format as `name=value`; values with characters other than letters, digits and a few signs are quoted."""
    return " ".join(f"{name}={_quoted(str(value), is_sure=name in ('time', 'msg'))}" for name, value in known.items())


def _quoted(text: str, *, is_sure: bool) -> str:
    return text if not is_sure and _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _of_audit(message: str, more: dict[str, object]) -> tuple[str, dict[str, object]]:
    """Unpack the fields of an audit document."""
    try:
        document = json.loads(message)
        return f"{document['who']}: {document['what']}", {**document, **more}
    except (ValueError, KeyError, TypeError):  # masked, so no longer valid JSON
        return message, more


class QuotableSecrets:
    """Secrets that log lines of an engine could quote: its settings, and Secrets that Applications deliver.

    Other Secrets are not searched for, to save memory. A line about an Application is masked with the Secrets of its
    project and namespaces, so that no other tenant's Secret masks a word in it.
    """

    def __init__(
        self,
        control_namespace: str,
        is_tracked: Callable[[Manifest], bool],
        find: Callable[[ResourceKey], Manifest | None] = lambda key: None,
    ) -> None:
        from argosy.gitops.redaction.public_words import Public
        from argosy.gitops.redaction.redaction import Mask
        from argosy.gitops.redaction.scope_cache import ScopeCache

        self._scopes = ScopeCache(has_remote_secrets=True)
        self._control, self._is_tracked, self._find = control_namespace, is_tracked, find
        self._public = Public(control=control_namespace)
        self._projects: dict[ResourceKey, str] = {}  # key -> project, for values declared for one project only
        self.mask = Mask(lambda: (), self._public, self._find_origin)
        self.mask.find_line_scope = self._find_line_scope

    def noticed(self, before: Manifest | None, after: Manifest | None, cluster: str = "") -> None:
        """Handle a change in this cluster, or in another."""
        manifest = after or before or {}
        kind = manifest.get("kind")
        if kind == "Secret" and any(each is not None and self._concerns(each, cluster) for each in (before, after)):
            from argosy.gitops.redaction.secret_provenance import declared_project

            key = key_of(manifest)
            place = ResourceKey(key.group, key.kind, f"{cluster}/{key.namespace}", key.name)
            self._declare(place, declared_project(after) if after and not cluster else "")
            self.mask.needles.noticed(place, after)
        elif kind in SEEN and after is not None and not cluster:
            self._see(after)
        elif kind == APPLICATION[1] and not cluster:
            self._scopes.forget(key_of(manifest))

    def _concerns(self, secret: Manifest, cluster: str) -> bool:
        is_setting = not cluster and secret["metadata"].get("namespace") == self._control
        return is_setting or self._is_tracked(secret)

    def _see(self, manifest: Manifest) -> None:
        from argosy.gitops.redaction.redaction import passwords

        self._public.see(manifest)
        if found := passwords(manifest):
            self._declare(key_of(manifest), str((manifest.get("spec") or {}).get("project") or "default"))
            self.mask.needles.noticed(key_of(manifest), {"stringData": found})

    def _declare(self, key: ResourceKey, project: str) -> None:
        if project:
            self._projects[key] = project
        else:
            self._projects.pop(key, None)

    def _find_origin(self, key: ResourceKey) -> SecretOrigin:
        from argosy.gitops.redaction.secret_provenance import SecretOrigin

        cluster, _, namespace = key.namespace.rpartition("/")
        is_installation = not cluster and namespace == self._control and key.kind == "Secret"
        return SecretOrigin(namespace, self._projects.get(key, ""), is_installation)

    def _find_line_scope(self) -> SecretScope | None:
        namespace, _, name = fields().get("application", "").rpartition("/")
        application = self._find(ResourceKey(*APPLICATION, namespace, name)) if name else None
        if application is None:
            return None
        project = str((application.get("spec") or {}).get("project") or "default")
        rules = self._find(ResourceKey(*PROJECT, self._control, project))
        return replace(self._scopes.get(application, rules), has_guessable=True)


@contextlib.contextmanager
def masked(mask: Mask) -> Iterator[None]:
    """Mask secret values in all log lines of the process."""
    from argosy.gitops.redaction.redaction import MaskedLogs

    loggers = (logging.getLogger(), logging.getLogger("argosy"), logging.getLogger(AUDIT))
    handlers = [handler for each in loggers for handler in each.handlers]
    handlers += [logging.lastResort] if logging.lastResort else []
    hiding = MaskedLogs(mask)
    for each in handlers:
        each.addFilter(hiding)
    try:
        yield
    finally:
        for each in handlers:
            each.removeFilter(hiding)
