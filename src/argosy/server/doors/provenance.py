"""Provenance of secret values: which Secrets may be quoted by the text of which Application.

In: Applications, projects and the objects that hold secret values. Out: SecretScope and SecretOrigin values. Never: a
Secret of another tenant in the scope of an Application, whatever the Application or the Secret says of itself.
"""

from __future__ import annotations

import base64
import binascii
import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from argosy.language.globs import matches
from argosy.model.application import IN_CLUSTER, Destination, read_destination
from argosy.model.errors import ArgosyError
from argosy.model.manifest import Manifest
from argosy.model.names import ResourceKey
from argosy.model.project import Project, read_project
from argosy.policy.projects import permits_destination
from argosy.report.wire import mapping, mappings
from argosy.runtime.cache import Cache
from argosy.server.doors.secret_values import LABEL

# Values rather than options: a password that is passed to a chart stays hidden.
VALUE_FIELDS: Final = frozenset({"value", "values", "valuesObject", "info", "commonAnnotations", "commonLabels"})
UNGUESSABLE_LENGTH: Final = 20  # 64 bits and more, if the characters are random
UNGUESSABLE_CHARACTERS: Final = 10  # different ones
REVISION_FIELDS: Final = ("revision", "revisions")


class SecretOrigin(NamedTuple):
    """Where a secret value comes from."""

    namespace: str
    project: str = ""  # the only project that it is declared for
    is_installation: bool = False  # of the control namespace: credentials of repositories, clusters, accounts


@dataclass(frozen=True)
class SecretScope:
    """Whose Secrets a text may quote. An empty one: those of the installation.

    Tenants decide what their Applications say. So what can be guessed of the installation's Secrets is not hidden
    there: a Pod that prints guesses would learn which is right. What cannot be guessed is hidden everywhere.
    """

    project: str = ""
    namespaces: frozenset[str] = frozenset()
    words: str = field(default="", repr=False)  # of the Application, public: commits, paths, options, names

    has_guessable: bool = False  # of the installation: in what no tenant writes

    def covers(self, origin: SecretOrigin, form: bytes) -> bool:
        """True if a value of that origin is hidden; `form` is how it is spelled."""
        if origin.project:
            return origin.project == self.project
        if origin.namespace in self.namespaces:
            return True
        return origin.is_installation and (self.has_guessable or not is_guessable(form))


INSTALLATION: Final = SecretScope()


def build_scope(application: Manifest, project: Manifest | None, *, has_remote_secrets: bool = False) -> SecretScope:
    """Return the scope of an Application: its project, and the namespaces that its project lets it deliver to.

    Namespaces of another cluster count only if Secrets of other clusters are known, too.
    """
    spec, status = mapping(application.get("spec")), mapping(application.get("status"))
    place = mapping(spec.get("destination"))
    destination = read_destination(*(str(place.get(name) or "") for name in ("server", "name", "namespace")))
    rows = mappings(status.get("resources"))
    namespaces = {destination.namespace, *(str(row.get("namespace") or "") for row in rows)}
    if not destination.is_here and not has_remote_secrets:
        namespaces = set()
    if project is not None:
        try:
            rules = read_project(project, "project")
            namespaces = {name for name in namespaces if _may_deliver(rules, destination._replace(namespace=name))}
        except ArgosyError:
            namespaces = set()  # nothing is delivered by a project that cannot be read
    words = "\n".join(dict.fromkeys(_public_words(application)))
    return SecretScope(str(spec.get("project") or "default"), frozenset(namespaces) - {""}, words)


def _may_deliver(project: Project, destination: Destination) -> bool:
    """True if the project permits the destination. Of another cluster the namespace decides: it has two names."""
    if destination.is_here:
        return permits_destination(project, Destination(*IN_CLUSTER, destination.namespace))
    return any(matches(entry.namespace, destination.namespace) for entry in project.destinations)


def is_guessable(form: bytes) -> bool:
    """True if a value is so short, or of so few characters, that somebody could find it by trying."""
    text = form.decode("utf-8", "replace")
    spellings = [text, html.unescape(text), unquote(text)]
    for decode in (bytes.fromhex, base64.b64decode):
        try:
            decoded = decode(text).decode()
        except (ValueError, binascii.Error):
            continue
        if decoded.isprintable():
            spellings.append(decoded)
    return any(map(_is_short_or_plain, spellings))


def _is_short_or_plain(text: str) -> bool:
    has_mixture = any(map(str.isdigit, text)) or (text.lower() != text and text.upper() != text)
    return len(text) < UNGUESSABLE_LENGTH or len(set(text)) < UNGUESSABLE_CHARACTERS or not has_mixture


def find_origin(key: ResourceKey, cache: Cache, control: str) -> SecretOrigin | None:
    """Return None if the object is gone."""
    found = cache.get(key)
    if found is None:
        return None
    is_installation = not control or key.namespace == control
    return SecretOrigin(key.namespace, declared_project(found) if is_installation else "", is_installation)


def declared_project(secret: Manifest) -> str:
    """argo: a repository or cluster may be declared for one project alone."""
    labels, data = mapping(mapping(secret.get("metadata")).get("labels")), mapping(secret.get("data"))
    encoded = data.get("project")
    if LABEL not in labels or not isinstance(encoded, str):
        return ""
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _public_words(application: Manifest) -> Iterator[str]:
    """Commits, paths, options and names of an Application: what stands in Git outside of its Secrets."""
    metadata, status = mapping(application.get("metadata")), mapping(application.get("status"))
    yield from (str(metadata.get(name) or "") for name in ("name", "namespace"))
    yield from _option_texts(application.get("spec"))
    state = mapping(status.get("operationState"))
    for place in (status.get("sync"), state.get("syncResult"), *mappings(status.get("history"))):
        for name in REVISION_FIELDS:
            yield from _option_texts(mapping(place).get(name))
    for row in mappings(status.get("resources")):
        yield from (str(row.get(name) or "") for name in ("kind", "namespace", "name"))


def _option_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if "@" not in value or "://" not in value:  # an address may have a password in it
            yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if name not in VALUE_FIELDS:
                yield str(name)
                yield from _option_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _option_texts(inner)
