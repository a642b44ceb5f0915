"""Parser of the notification settings: services, triggers, templates and subscriptions.

In: argocd-notifications-cm and argocd-notifications-secret. Out: settings, with a message for each invalid entry.
Never: raises for an invalid entry, because the others still count; puts a secret into a message.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.notifications import names
from argosy.features.notifications.default_templates import shipped
from argosy.http_client.allowed_hosts import ANYWHERE, HostRules
from argosy.kube.objects import Manifest, load
from argosy.kube.objects.text_cache import remembered
from argosy.kube.schema.selectors import labels as label_texts
from argosy.languages.expr import Expression, compile_expression

_SECRET: Final = re.compile(r"\$[\w-]+")
MASK: Final = "********"
SHORTEST_SECRET: Final = 4  # characters; shorter values would mask ordinary words


@dataclass(frozen=True)
class Condition:
    when: str
    once_per: str = ""
    send: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True)
class Subscription:
    recipients: tuple[str, ...]
    triggers: tuple[str, ...] = ()
    selector: str = ""


@dataclass(frozen=True)
class ServiceSettings:
    kind: str
    options: Mapping[str, Any] = field(repr=False)  # secrets are filled in


@dataclass(frozen=True)
class Settings:
    services: Mapping[str, ServiceSettings] = field(default_factory=dict)
    triggers: Mapping[str, tuple[Condition, ...]] = field(default_factory=dict)
    templates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    subscriptions: tuple[Subscription, ...] = ()
    default_triggers: tuple[str, ...] = ()
    service_triggers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    context: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    hosts: HostRules = ANYWHERE
    problems: tuple[str, ...] = ()

    def masked(self, text: str) -> str:
        """Replace every value of the Secret in a text with the mask."""
        for value in sorted(self.secrets.values(), key=len, reverse=True):
            for each in {value, value.strip(), *value.splitlines()}:
                if len(each) >= SHORTEST_SECRET:
                    text = text.replace(each, MASK)
        return text


def read_settings(config_map: Manifest | None, secret: Manifest | None, own: Manifest | None = None) -> Settings:
    """Read the settings and add the bundled triggers and templates that they do not override."""
    secrets = _decoded(secret)
    data = {**shipped(), **_texts(config_map)}
    reader = _Reader(secrets)
    for key in sorted(data):
        reader.read(key, data[key])
    hosts = _texts(own).get(names.HOSTS, "").strip()
    allowed = tuple(each.strip() for each in hosts.split(",") if each.strip())
    if hosts and not allowed:
        allowed = (hosts,)  # the setting contains no host, so no host is allowed
    return Settings(
        reader.services,
        reader.triggers,
        reader.templates,
        tuple(reader.subscriptions),
        tuple(reader.default_triggers),
        reader.service_triggers,
        reader.context,
        secrets,
        HostRules(allowed),
        tuple(reader.problems),
    )


def _texts(manifest: Manifest | None) -> dict[str, str]:
    data = (manifest or {}).get("data")
    return {key: str(value) for key, value in data.items()} if isinstance(data, dict) else {}


def _decoded(secret: Manifest | None) -> dict[str, str]:
    plain = (secret or {}).get("stringData")  # only in files: a cluster stores encoded data
    found = {str(key): str(value) for key, value in plain.items()} if isinstance(plain, dict) else {}
    for key, value in _texts(secret).items():
        try:
            found[key] = base64.b64decode(value).decode("utf-8", "replace")
        except ValueError:
            continue
    return found


class _Reader:
    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = secrets
        self.services: dict[str, ServiceSettings] = {}
        self.triggers: dict[str, tuple[Condition, ...]] = {}
        self.templates: dict[str, Mapping[str, Any]] = {}
        self.subscriptions: list[Subscription] = []
        self.default_triggers: list[str] = []
        self.service_triggers: dict[str, tuple[str, ...]] = {}
        self.context: dict[str, str] = {}
        self.problems: list[str] = []

    def read(self, key: str, text: str) -> None:
        kind, _, name = key.partition(".")
        parse = {"service": self._service, "trigger": self._trigger, "template": self._template,
                 "subscriptions": self._subscription, "defaultTriggers": self._defaults,
                 "context": self._context}.get(kind)  # fmt: skip
        if parse is None:
            return
        try:
            parse(name, load(text))
        except UserError as error:
            self.problems.append(f"{names.SETTINGS}: {key}: {error}")
        except (TypeError, AttributeError, KeyError, ValueError):
            self.problems.append(f"{names.SETTINGS}: {key}: invalid structure; see docs/reference/notifications.md")

    def _service(self, name: str, options: Any) -> None:
        kind, _, own = name.partition(".")
        if not kind or "." in own:
            raise UserError("invalid key for a service; use service.<type> or service.<type>.<name>")
        missing: set[str] = set()
        filled = self._filled(options or {}, missing)
        if missing:
            which = ", ".join(sorted(missing))
            self.problems.append(f"{names.SETTINGS}: service.{name}: {which} is not in {names.SECRETS}; add it there")
        self.services[own or kind] = ServiceSettings(kind, dict(filled))

    def _filled(self, value: Any, missing: set[str]) -> Any:
        """Replace secret references. argo: `$key` anywhere in a text is the Secret's value, if it has one."""
        if isinstance(value, dict):
            return {name: self._filled(each, missing) for name, each in value.items()}
        if isinstance(value, list):
            return [self._filled(each, missing) for each in value]
        if not isinstance(value, str):
            return value

        def fill(found: re.Match[str]) -> str:
            if found[0][1:] not in self._secrets:
                missing.add(found[0])
            return self._secrets.get(found[0][1:], found[0])

        return _SECRET.sub(fill, value)

    def _trigger(self, name: str, conditions: Any) -> None:
        if not isinstance(conditions, list):
            raise UserError("a trigger must be a list of conditions, each with when and send")
        found = tuple(
            Condition(
                _expression_text(each.get("when")) or "false",
                _expression_text(each.get("oncePer")),
                _several(each.get("send")),
                str(each.get("description") or ""),
            )
            for each in conditions
        )
        for each in found:
            for text in filter(None, (each.when, each.once_per)):
                compile_expression(text)
        self.triggers[name] = found

    def _template(self, name: str, template: Any) -> None:
        if not isinstance(template, dict):
            raise UserError("a template must be a map with message or the fields of a service")
        self.templates[name] = template

    def _subscription(self, name: str, subscriptions: Any) -> None:
        for each in subscriptions or ():
            triggers = each.get("triggers") or each.get("trigger")
            selector = str(each.get("selector") or "")
            label_texts(selector)
            self.subscriptions.append(Subscription(_several(each.get("recipients")), _several(triggers), selector))

    def _defaults(self, name: str, triggers: Any) -> None:
        if name:
            self.service_triggers[name] = _several(triggers)
        else:
            self.default_triggers += _several(triggers)

    def _context(self, name: str, context: Any) -> None:
        self.context |= {str(key): str(value) for key, value in (context or {}).items()}


def _several(value: Any) -> tuple[str, ...]:
    """Read a list of strings; a single value becomes a list of one."""
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),) if value else ()


def _expression_text(value: Any) -> str:
    """Return the expression as text, because YAML parses `when: true` as a bool."""
    return "true" if value is True else "" if value is None or value is False else str(value)


def asks_of_jobs(conditions: Sequence[Condition]) -> bool:
    """Return True if a trigger is about NotebookValidationJobs, because its conditions use `job`."""
    return any("job" in _expression(each.when).names for each in conditions)


def names_used(conditions: Sequence[Condition]) -> frozenset[str]:
    texts = [text for each in conditions for text in (each.when, each.once_per) if text]
    return frozenset().union(*(_expression(text).names for text in texts)) if texts else frozenset()


@remembered(1024)
def _expression(text: str) -> Expression:
    return compile_expression(text)
