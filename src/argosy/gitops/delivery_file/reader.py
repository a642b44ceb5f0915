"""Reads argosy.yaml.

In: its text, and its name for messages. Out: a Delivery. Never: accepts an unknown field, or a value that cannot work
in a cluster.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.application.url_credentials import address_with_secret
from argosy.gitops.delivery_file.values import (
    API_VERSION,
    FIELDS,
    FILE,
    KIND,
    ArgoCD,
    Checking,
    Credentials,
    Delivery,
    Environment,
    Gate,
    Health,
    Rbac,
    Repository,
    Role,
    Secret,
    Suppression,
    Sync,
)
from argosy.gitops.health.bundled import USUAL_PROFILE
from argosy.kube.objects import load
from argosy.kube.schema.name_syntax import Grammar, dns_label, dns_subdomain

_DURATION: Final = re.compile(r"(?:\d+(?:s|m|h|d))+")
_WORD: Final = re.compile(r"[^\s,#]+")  # a field of an RBAC policy line


@dataclass(frozen=True)
class Section:
    """A section of the file, its path, and the fields that it may have."""

    value: Mapping[str, Any]
    place: str  # environments.dev
    shape: str  # environments.*
    where: str

    def __post_init__(self) -> None:
        known = _children(self.shape)
        for name in self.value:
            if name not in known and "*" not in known:
                near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
                meant = f"did you mean {near[0]}?" if near else f"it may be one of: {', '.join(known)}"
                raise self.error(str(name), f"is not known; {meant}")

    def error(self, name: str, what: str) -> UserError:
        return UserError(what, where=f"{self.where}: {_joined(self.place, name)}")

    def _shown(self, value: Any) -> str:
        """Hide values of credentials: a user may have written a secret there."""
        return "a value" if self.place.startswith("repository.credentials") else repr(value)

    def has(self, name: str) -> bool:
        return self.value.get(name) is not None

    def text(self, name: str, usual: str | None = None) -> str:
        """Return a string; required if there is no default."""
        found = self.value.get(name)
        if found is None and usual is not None:
            return usual
        if found is None:
            raise self.error(name, "is missing; add it")
        if not isinstance(found, str) or not found.strip() or "\n" in found:
            raise self.error(name, f"is {self._shown(found)}; it must be a string on one line")
        return found

    def word(self, name: str, usual: str | None = None) -> str:
        found = self.text(name, usual)
        return self._checked(name, found)

    def words(self, name: str) -> tuple[str, ...]:
        found = self.value.get(name)
        if found is None:
            return ()
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise self.error(name, f"is {found!r}; it must be a list of strings")
        return tuple(self._checked(name, each) for each in found)

    def _checked(self, name: str, found: str) -> str:
        if found and not _WORD.fullmatch(found):
            raise self.error(name, f"contains {found!r}; a name has no spaces, no commas and no #")
        return found

    def section(self, name: str) -> Section | None:
        return self._section(name, self.value[name], name) if self.has(name) else None

    def sections(self, name: str) -> Iterator[tuple[str, Section]]:
        """Yield the entries of a map or list, each with its name or index."""
        found = self.value.get(name)
        if isinstance(found, Mapping):
            entries = [(str(key), value) for key, value in found.items()]
        elif isinstance(found, list):
            entries = [(str(number), value) for number, value in enumerate(found)]
        elif found is None:
            entries = []
        else:
            raise self.error(name, f"is {found!r}; it must be a map or a list")
        for key, value in entries:
            yield key, self._section(f"{name}.{key}", value, f"{name}.*")

    def _section(self, name: str, value: Any, shape: str) -> Section:
        if not isinstance(value, Mapping):
            fields = ", ".join(_children(_joined(self.shape, shape)))
            raise self.error(name, f"is {self._shown(value)}; it must be a map with the fields: {fields}")
        return Section(value, _joined(self.place, name), _joined(self.shape, shape), self.where)


def read_delivery(text: str | bytes, where: str = FILE) -> Delivery:
    value = load(text, where=where, strict=True)
    if not isinstance(value, Mapping):
        raise UserError(f"is not a {KIND}; start it with apiVersion: {API_VERSION} and kind: {KIND}", where=where)
    top = Section(value, "", "", where)
    for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if (found := top.text(name)) != wanted:
            raise top.error(name, f"is {found!r}; it must be {wanted}")
    health, rbac, check = (top.section(name) for name in ("health", "rbac", "check"))
    return Delivery(
        repository=_repository(top),
        environments=_environments(top),
        argocd=_argocd(top),
        health=_health(health) if health else None,
        rbac=_rbac(rbac) if rbac else None,
        check=_checking(check) if check else None,
    )


def _repository(top: Section) -> Repository:
    section = top.section("repository")
    if section is None:
        raise top.error("repository", "is missing; add its url")
    url = section.text("url")
    if address_with_secret(url):
        raise section.error("url", "contains a user or a password, and would be committed; put them under credentials")
    credentials = section.section("credentials")
    return Repository(url, section.word("ref", "main"), _credentials(credentials) if credentials else None)


def _credentials(section: Section) -> Credentials:
    password, key = _secret(section, "passwordFrom"), _secret(section, "sshKeyFrom")
    if (password is None) == (key is None):
        raise section.error("", "needs either passwordFrom or sshKeyFrom; add one of them")
    if key and section.has("username"):
        raise section.error("username", "cannot be used with a key; put it into the url, or remove it")
    return Credentials("" if key else section.text("username"), password, key)


def _secret(section: Section, name: str) -> Secret | None:
    found = section.section(name)
    if found is None:
        return None
    if found.has("env") == found.has("file"):
        raise section.error(name, "needs either env or file; add one of them")
    return Secret(found.word("env", ""), found.text("file", ""))


def _argocd(top: Section) -> ArgoCD:
    section = top.section("argocd")
    if section is None:
        return ArgoCD()
    return ArgoCD(_named(section, "namespace", dns_label, ""), _named(section, "name", dns_subdomain, ""))


def _environments(top: Section) -> tuple[Environment, ...]:
    found = tuple(_environment(name, section) for name, section in top.sections("environments"))
    if not found:
        raise top.error("environments", "is empty; add one, such as dev")
    names = [each.name for each in found]
    applications = [each.application for each in found]
    for each in found:
        place = f"environments.{each.name}"
        if applications.count(each.application) > 1:
            raise top.error(f"{place}.application", f"{each.application} is used by two environments; rename one")
        if each.after and each.after not in names:
            near = difflib.get_close_matches(each.after, names, n=1)
            meant = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(names)}"
            raise top.error(f"{place}.after", f"there is no environment {each.after}; {meant}")
        if each.name in _before(each, {one.name: one for one in found}):
            raise top.error(f"{place}.after", "it comes after itself; remove one `after`")
    return found


def _before(environment: Environment, by_name: Mapping[str, Environment]) -> set[str]:
    seen: set[str] = set()
    after = environment.after
    while after in by_name and after not in seen:
        seen.add(after)
        after = by_name[after].after
    return seen


def _environment(name: str, section: Section) -> Environment:
    if complaints := dns_label(name):
        raise section.error("", f"is not a valid environment name: {complaints[0]}; rename it")
    application = _named(section, "application", dns_label)
    sync = section.text("sync", Sync.MANUAL)
    if sync not in (Sync.AUTO, Sync.MANUAL):
        raise section.error("sync", f"is {sync!r}; choose {Sync.AUTO} or {Sync.MANUAL}")
    return Environment(
        name=name,
        application=application,
        namespace=_named(section, "namespace", dns_label, application),
        path=_path(section),
        sync=Sync(sync),
        after=section.text("after", ""),
        gates=tuple(_gate(each) for _, each in section.sections("gates")),
    )


def _path(section: Section) -> str:
    path = section.text("path")
    if path.startswith("/") or ".." in path.split("/"):
        raise section.error("path", f"is {path!r}; write it relative to the root of the repository, without ..")
    return path


def _gate(section: Section) -> Gate:
    if len(section.value) != 1:
        raise section.error("", f"must have exactly one field; write one of {', '.join(_children(section.shape))}")
    ((kind, value),) = section.value.items()
    if kind == "check":
        if value is not True:
            raise section.error(kind, f"is {value!r}; write true, or remove the gate")
        return Gate(kind)
    text = section.word(kind)
    if kind in ("healthy", "soak") and not _DURATION.fullmatch(text):
        raise section.error(kind, f"is {text!r}; give a duration such as 10m or 1h30m")
    return Gate(kind, text)


def _health(section: Section) -> Health:
    return Health(section.word("profile", USUAL_PROFILE), section.words("kinds"))


def _rbac(section: Section) -> Rbac:
    roles = tuple(_role(name, each) for name, each in section.sections("roles"))
    default = section.word("default") if section.has("default") else None
    scopes = section.text("scopes") if section.has("scopes") else None
    return Rbac(default, scopes, section.words("admins"), roles)


def _role(name: str, section: Section) -> Role:
    if not _WORD.fullmatch(name) or name.startswith("role:"):
        raise section.error("", "is not a valid role name; use letters and dashes, without role:")
    may = section.words("may")
    if not may:
        raise section.error("may", "is missing; list what the role allows, such as [get, sync]")
    return Role(name, section.words("groups"), may, section.word("applications", "*/*"))


def _checking(section: Section) -> Checking:
    suppressed = (each for _, each in section.sections("suppress"))
    suppress = tuple(Suppression(each.word("rule"), each.text("path", ""), each.text("reason")) for each in suppressed)
    return Checking(section.text("baseline", ""), suppress)


def _named(section: Section, name: str, grammar: Grammar, usual: str | None = None) -> str:
    found = section.text(name, usual)
    if found and (complaints := grammar(found)):
        raise section.error(name, f"{found!r} is not a valid Kubernetes name: {complaints[0]}; rename it")
    return found


def _children(shape: str) -> list[str]:
    prefix = f"{shape}." if shape else ""
    names = (field.removeprefix(prefix) for field in FIELDS if field.startswith(prefix))
    return [name for name in names if "." not in name]


def _joined(place: str, name: str) -> str:
    return ".".join(part for part in (place, name) if part)
