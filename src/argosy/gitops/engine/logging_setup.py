"""What this process logs, as lines that people and programs read: what happened, and which application it is about.

In: log records, a format, a level; the Secrets that an engine works with. Out: lines on stderr. Never: a line with a
value that is secret; two lines for one record.
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
SEEN: Final = ("Application", "AppProject", "Namespace")  # their names are no secrets, whoever puts them into one
PROJECT: Final = ("argoproj.io", "AppProject")
AUDIT: Final = "argosy.audit"  # its messages are documents
WORDS: Final = {"WARNING": "warning", "CRITICAL": "fatal"}  # argo: as its own logs call them
_PLAIN: Final = re.compile(r"[A-Za-z0-9\-._/@^+]+")


def begin(form: str = TEXT, level: str = "info") -> None:
    """From here on everything that is logged is told on stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(form))
    root, chosen = logging.getLogger(), LEVELS[level]
    for each in tuple(root.handlers):
        root.removeHandler(each)
    root.addHandler(handler)
    root.setLevel(max(chosen, logging.INFO))  # what libraries debug is nobody's matter here
    logging.getLogger("argosy").setLevel(chosen)


class Lines(logging.Formatter):
    """argo: the form of its own logs, so that what people search for is found."""

    def __init__(self, form: str = TEXT) -> None:
        super().__init__()
        self._is_json = form == JSON

    def format(self, record: logging.LogRecord) -> str:
        known = told(record)
        return json.dumps(known, ensure_ascii=False) if self._is_json else line(known)


def told(record: logging.LogRecord) -> dict[str, object]:
    """Time, level and message first, and then what it is about."""
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
    """As `name=value`, quoted where a value has more than letters, digits and a few signs; the time always is."""
    return " ".join(f"{name}={_quoted(str(value), is_sure=name in ('time', 'msg'))}" for name, value in known.items())


def _quoted(text: str, *, is_sure: bool) -> str:
    return text if not is_sure and _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _of_audit(message: str, more: dict[str, object]) -> tuple[str, dict[str, object]]:
    """The document's own fields, so that nobody has to unpack it."""
    try:
        document = json.loads(message)
        return f"{document['who']}: {document['what']}", {**document, **more}
    except (ValueError, KeyError, TypeError):  # masked beyond recognition
        return message, more


class QuotableSecrets:
    """Those that lines of an engine could quote: of its settings, and of what applications deliver, wherever that is.

    All others it only keeps; to look for their values, too, would cost memory for each. A line about an Application is
    masked with the Secrets of its project and its namespaces: no other tenant's Secret hides a word of it.
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
        self._projects: dict[ResourceKey, str] = {}  # of what is declared for one project alone
        self.mask = Mask(lambda: (), self._public, self._find_origin)
        self.mask.find_line_scope = self._find_line_scope

    def noticed(self, before: Manifest | None, after: Manifest | None, cluster: str = "") -> None:
        """A change in this cluster, or in another."""
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
    """No line of this process has a value that is secret, whoever writes it."""
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
