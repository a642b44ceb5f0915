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
from argosy.gitops.application.url_credential_detection import has_credentials
from argosy.gitops.delivery_file.delivery_value_types import (
    API_VERSION,
    FIELDS,
    FILE_NAME,
    KIND,
    ArgoCDReference,
    CheckOptions,
    CheckSuppression,
    DeliveryEnvironment,
    DeliveryFile,
    DeliveryRbac,
    DeliveryRepository,
    DeliveryRole,
    HealthOptions,
    PromotionGate,
    RepositoryCredentials,
    SecretSource,
    SyncMode,
)
from argosy.gitops.health.bundled_rules import DEFAULT_INSTALL_PROFILE
from argosy.kube.objects import read_yaml
from argosy.kube.schema.name_label_address_syntax import SyntaxCheck, check_dns_label, check_dns_subdomain

_DURATION: Final = re.compile(r"(?:\d+(?:s|m|h|d))+")
_POLICY_WORD: Final = re.compile(r"[^\s,#]+")  # a field of an RBAC policy line


@dataclass(frozen=True)
class FileSection:
    """A section of the file, its path, and the fields that it may have."""

    value: Mapping[str, Any]
    path: str  # environments.dev
    path_pattern: str  # environments.*
    file_name: str

    def __post_init__(self) -> None:
        known_names = _list_fields(self.path_pattern)
        for name in self.value:
            if name not in known_names and "*" not in known_names:
                close_names = difflib.get_close_matches(str(name), known_names, n=1, cutoff=0.5)
                advice = (
                    f"did you mean {close_names[0]}?" if close_names else f"it may be one of: {', '.join(known_names)}"
                )
                raise self.build_error(str(name), f"is not known; {advice}")

    def build_error(self, name: str, problem: str) -> UserError:
        return UserError(problem, where=f"{self.file_name}: {_join_path(self.path, name)}")

    def _format_value(self, value: Any) -> str:
        """Hide values of credentials: a user may have written a secret there."""
        return "a value" if self.path.startswith("repository.credentials") else repr(value)

    def has_value(self, name: str) -> bool:
        return self.value.get(name) is not None

    def read_text(self, name: str, default: str | None = None) -> str:
        """Return a string; required if there is no default."""
        value = self.value.get(name)
        if value is None and default is not None:
            return default
        if value is None:
            raise self.build_error(name, "is missing; add it")
        if not isinstance(value, str) or not value.strip() or "\n" in value:
            raise self.build_error(name, f"is {self._format_value(value)}; it must be a string on one line")
        return value

    def read_word(self, name: str, default: str | None = None) -> str:
        text = self.read_text(name, default)
        return self._check_word(name, text)

    def read_words(self, name: str) -> tuple[str, ...]:
        values = self.value.get(name)
        if values is None:
            return ()
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise self.build_error(name, f"is {values!r}; it must be a list of strings")
        return tuple(self._check_word(name, value) for value in values)

    def _check_word(self, name: str, word: str) -> str:
        if word and not _POLICY_WORD.fullmatch(word):
            raise self.build_error(name, f"contains {word!r}; a name has no spaces, no commas and no #")
        return word

    def find_section(self, name: str) -> FileSection | None:
        return self._build_section(name, self.value[name], name) if self.has_value(name) else None

    def list_sections(self, name: str) -> Iterator[tuple[str, FileSection]]:
        """Yield the entries of a map or list, each with its name or index."""
        entries_value = self.value.get(name)
        if isinstance(entries_value, Mapping):
            entries = [(str(key), value) for key, value in entries_value.items()]
        elif isinstance(entries_value, list):
            entries = [(str(index), value) for index, value in enumerate(entries_value)]
        elif entries_value is None:
            entries = []
        else:
            raise self.build_error(name, f"is {entries_value!r}; it must be a map or a list")
        for key, value in entries:
            yield key, self._build_section(f"{name}.{key}", value, f"{name}.*")

    def _build_section(self, name: str, value: Any, path_pattern: str) -> FileSection:
        if not isinstance(value, Mapping):
            fields = ", ".join(_list_fields(_join_path(self.path_pattern, path_pattern)))
            raise self.build_error(name, f"is {self._format_value(value)}; it must be a map with the fields: {fields}")
        return FileSection(
            value, _join_path(self.path, name), _join_path(self.path_pattern, path_pattern), self.file_name
        )


def read_delivery_file(text: str | bytes, where: str = FILE_NAME) -> DeliveryFile:
    value = read_yaml(text, where=where, strict=True)
    if not isinstance(value, Mapping):
        raise UserError(f"is not a {KIND}; start it with apiVersion: {API_VERSION} and kind: {KIND}", where=where)
    top = FileSection(value, "", "", where)
    for name, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
        if (actual := top.read_text(name)) != expected:
            raise top.build_error(name, f"is {actual!r}; it must be {expected}")
    health, rbac, check = (top.find_section(name) for name in ("health", "rbac", "check"))
    return DeliveryFile(
        repository=_read_repository(top),
        environments=_read_environments(top),
        argocd=_read_argocd(top),
        health=_read_health(health) if health else None,
        rbac=_read_rbac(rbac) if rbac else None,
        check=_read_check(check) if check else None,
    )


def _read_repository(top: FileSection) -> DeliveryRepository:
    section = top.find_section("repository")
    if section is None:
        raise top.build_error("repository", "is missing; add its url")
    url = section.read_text("url")
    if has_credentials(url):
        raise section.build_error(
            "url", "contains a user or a password, and would be committed; put them under credentials"
        )
    credentials = section.find_section("credentials")
    return DeliveryRepository(
        url, section.read_word("ref", "main"), _read_credentials(credentials) if credentials else None
    )


def _read_credentials(section: FileSection) -> RepositoryCredentials:
    password, key = _read_secret(section, "passwordFrom"), _read_secret(section, "sshKeyFrom")
    if (password is None) == (key is None):
        raise section.build_error("", "needs either passwordFrom or sshKeyFrom; add one of them")
    if key and section.has_value("username"):
        raise section.build_error("username", "cannot be used with a key; put it into the url, or remove it")
    return RepositoryCredentials("" if key else section.read_text("username"), password, key)


def _read_secret(section: FileSection, name: str) -> SecretSource | None:
    secret_section = section.find_section(name)
    if secret_section is None:
        return None
    if secret_section.has_value("env") == secret_section.has_value("file"):
        raise section.build_error(name, "needs either env or file; add one of them")
    return SecretSource(secret_section.read_word("env", ""), secret_section.read_text("file", ""))


def _read_argocd(top: FileSection) -> ArgoCDReference:
    section = top.find_section("argocd")
    if section is None:
        return ArgoCDReference()
    return ArgoCDReference(
        _read_name(section, "namespace", check_dns_label, ""), _read_name(section, "name", check_dns_subdomain, "")
    )


def _read_environments(top: FileSection) -> tuple[DeliveryEnvironment, ...]:
    environments = tuple(_read_environment(name, section) for name, section in top.list_sections("environments"))
    if not environments:
        raise top.build_error("environments", "is empty; add one, such as dev")
    names = [environment.name for environment in environments]
    applications = [environment.application for environment in environments]
    for environment in environments:
        path = f"environments.{environment.name}"
        if applications.count(environment.application) > 1:
            raise top.build_error(
                f"{path}.application", f"{environment.application} is used by two environments; rename one"
            )
        if environment.after and environment.after not in names:
            close_names = difflib.get_close_matches(environment.after, names, n=1)
            advice = f"did you mean {close_names[0]}?" if close_names else f"choose one of {', '.join(names)}"
            raise top.build_error(f"{path}.after", f"there is no environment {environment.after}; {advice}")
        if environment.name in _list_predecessors(environment, {other.name: other for other in environments}):
            raise top.build_error(f"{path}.after", "it comes after itself; remove one `after`")
    return environments


def _list_predecessors(environment: DeliveryEnvironment, by_name: Mapping[str, DeliveryEnvironment]) -> set[str]:
    predecessors: set[str] = set()
    after = environment.after
    while after in by_name and after not in predecessors:
        predecessors.add(after)
        after = by_name[after].after
    return predecessors


def _read_environment(name: str, section: FileSection) -> DeliveryEnvironment:
    if complaints := check_dns_label(name):
        raise section.build_error("", f"is not a valid environment name: {complaints[0]}; rename it")
    application = _read_name(section, "application", check_dns_label)
    sync = section.read_text("sync", SyncMode.MANUAL)
    if sync not in (SyncMode.AUTO, SyncMode.MANUAL):
        raise section.build_error("sync", f"is {sync!r}; choose {SyncMode.AUTO} or {SyncMode.MANUAL}")
    return DeliveryEnvironment(
        name=name,
        application=application,
        namespace=_read_name(section, "namespace", check_dns_label, application),
        path=_read_path(section),
        sync=SyncMode(sync),
        after=section.read_text("after", ""),
        gates=tuple(_read_gate(gate_section) for _, gate_section in section.list_sections("gates")),
    )


def _read_path(section: FileSection) -> str:
    path = section.read_text("path")
    if path.startswith("/") or ".." in path.split("/"):
        raise section.build_error("path", f"is {path!r}; write it relative to the root of the repository, without ..")
    return path


def _read_gate(section: FileSection) -> PromotionGate:
    if len(section.value) != 1:
        raise section.build_error(
            "", f"must have exactly one field; write one of {', '.join(_list_fields(section.path_pattern))}"
        )
    ((kind, value),) = section.value.items()
    if kind == "check":
        if value is not True:
            raise section.build_error(kind, f"is {value!r}; write true, or remove the gate")
        return PromotionGate(kind)
    text = section.read_word(kind)
    if kind in ("healthy", "soak") and not _DURATION.fullmatch(text):
        raise section.build_error(kind, f"is {text!r}; give a duration such as 10m or 1h30m")
    return PromotionGate(kind, text)


def _read_health(section: FileSection) -> HealthOptions:
    return HealthOptions(section.read_word("profile", DEFAULT_INSTALL_PROFILE), section.read_words("kinds"))


def _read_rbac(section: FileSection) -> DeliveryRbac:
    roles = tuple(_read_role(name, role_section) for name, role_section in section.list_sections("roles"))
    default = section.read_word("default") if section.has_value("default") else None
    scopes = section.read_text("scopes") if section.has_value("scopes") else None
    return DeliveryRbac(default, scopes, section.read_words("admins"), roles)


def _read_role(name: str, section: FileSection) -> DeliveryRole:
    if not _POLICY_WORD.fullmatch(name) or name.startswith("role:"):
        raise section.build_error("", "is not a valid role name; use letters and dashes, without role:")
    may = section.read_words("may")
    if not may:
        raise section.build_error("may", "is missing; list what the role allows, such as [get, sync]")
    return DeliveryRole(name, section.read_words("groups"), may, section.read_word("applications", "*/*"))


def _read_check(section: FileSection) -> CheckOptions:
    entries = (entry for _, entry in section.list_sections("suppress"))
    suppress = tuple(
        CheckSuppression(entry.read_word("rule"), entry.read_text("path", ""), entry.read_text("reason"))
        for entry in entries
    )
    return CheckOptions(section.read_text("baseline", ""), suppress)


def _read_name(section: FileSection, name: str, grammar: SyntaxCheck, default: str | None = None) -> str:
    text = section.read_text(name, default)
    if text and (complaints := grammar(text)):
        raise section.build_error(name, f"{text!r} is not a valid Kubernetes name: {complaints[0]}; rename it")
    return text


def _list_fields(path_pattern: str) -> list[str]:
    prefix = f"{path_pattern}." if path_pattern else ""
    names = (field.removeprefix(prefix) for field in FIELDS if field.startswith(prefix))
    return [name for name in names if "." not in name]


def _join_path(path: str, name: str) -> str:
    return ".".join(part for part in (path, name) if part)
