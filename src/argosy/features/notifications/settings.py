"""Parser of the notification settings: services, triggers, templates and subscriptions.

In: argocd-notifications-cm and argocd-notifications-secret. Out: settings, with a message for each invalid entry.
Never: raises for an invalid entry, because the others still count; puts a secret into a message.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.notifications import constants
from argosy.features.notifications.default_templates import load_bundled_entries
from argosy.http_client.allowed_hosts import ALLOW_ALL_HOSTS, HostRules
from argosy.kube.objects import Manifest, read_yaml
from argosy.kube.objects.short_text_result_cache import cache_short_texts
from argosy.kube.schema.selectors import parse_label_selector as label_texts
from argosy.languages.expr import CompiledExpression, compile_expression
from argosy.observability.redaction.text_redaction import EIGHT_ASTERISKS, ValueRedactor, list_lines

_SECRET_REFERENCE_PATTERN: Final = re.compile(r"\$[\w-]+")
MIN_MASKED_CHARACTERS: Final = 4  # characters; shorter values would mask ordinary words


@dataclass(frozen=True)
class TriggerCondition:
    when: str
    once_per: str = ""
    send: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True)
class DefaultSubscription:
    recipients: tuple[str, ...]
    triggers: tuple[str, ...] = ()
    selector: str = ""


@dataclass(frozen=True)
class ServiceSettings:
    kind: str
    options: Mapping[str, Any] = field(repr=False)  # secrets are filled in


@dataclass(frozen=True)
class NotificationSettings:
    services: Mapping[str, ServiceSettings] = field(default_factory=dict)
    triggers: Mapping[str, tuple[TriggerCondition, ...]] = field(default_factory=dict)
    templates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    subscriptions: tuple[DefaultSubscription, ...] = ()
    default_triggers: tuple[str, ...] = ()
    service_triggers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    context: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    hosts: HostRules = ALLOW_ALL_HOSTS
    problems: tuple[str, ...] = ()

    def mask_secrets(self, text: str) -> str:
        """Replace every value of the Secret in a text with the mask."""
        return self.redactor.redact_text(text)

    @cached_property
    def redactor(self) -> ValueRedactor:
        values = {value for value in self.secrets.values() if len(value) >= MIN_MASKED_CHARACTERS}
        values |= {line for value in values for line in list_lines(value, MIN_MASKED_CHARACTERS)}
        return ValueRedactor(values, EIGHT_ASTERISKS)


def read_settings(
    config_map: Manifest | None, secret: Manifest | None, argosy_cm: Manifest | None = None
) -> NotificationSettings:
    """Read the settings and add the bundled triggers and templates that they do not override."""
    secrets = _decode_secret(secret)
    data = {**load_bundled_entries(), **_read_data(config_map)}
    reader = _SettingsReader(secrets)
    for key in sorted(data):
        reader.read_entry(key, data[key])
    hosts = _read_data(argosy_cm).get(constants.HOSTS_SETTING, "").strip()
    allowed = tuple(host.strip() for host in hosts.split(",") if host.strip())
    if hosts and not allowed:
        allowed = (hosts,)  # the setting contains no host, so no host is allowed
    return NotificationSettings(
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


def _read_data(manifest: Manifest | None) -> dict[str, str]:
    data = (manifest or {}).get("data")
    return {key: str(value) for key, value in data.items()} if isinstance(data, dict) else {}


def _decode_secret(secret: Manifest | None) -> dict[str, str]:
    string_data = (secret or {}).get("stringData")  # only in files: a cluster stores encoded data
    values = {str(key): str(value) for key, value in string_data.items()} if isinstance(string_data, dict) else {}
    for key, value in _read_data(secret).items():
        try:
            values[key] = base64.b64decode(value).decode("utf-8", "replace")
        except ValueError:
            continue
    return values


class _SettingsReader:
    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = secrets
        self.services: dict[str, ServiceSettings] = {}
        self.triggers: dict[str, tuple[TriggerCondition, ...]] = {}
        self.templates: dict[str, Mapping[str, Any]] = {}
        self.subscriptions: list[DefaultSubscription] = []
        self.default_triggers: list[str] = []
        self.service_triggers: dict[str, tuple[str, ...]] = {}
        self.context: dict[str, str] = {}
        self.problems: list[str] = []

    def read_entry(self, key: str, text: str) -> None:
        kind, _, name = key.partition(".")
        parse = {"service": self._read_service, "trigger": self._read_trigger, "template": self._read_template,
                 "subscriptions": self._read_subscriptions, "defaultTriggers": self._read_default_triggers,
                 "context": self._read_context}.get(kind)  # fmt: skip
        if parse is None:
            return
        try:
            parse(name, read_yaml(text))
        except UserError as error:
            self.problems.append(f"{constants.SETTINGS_CONFIG_MAP}: {key}: {error}")
        except (TypeError, AttributeError, KeyError, ValueError):
            self.problems.append(
                f"{constants.SETTINGS_CONFIG_MAP}: {key}: invalid structure; see docs/reference/notifications.md"
            )

    def _read_service(self, name: str, options: Any) -> None:
        kind, _, own_name = name.partition(".")
        if not kind or "." in own_name:
            raise UserError("invalid key for a service; use service.<type> or service.<type>.<name>")
        missing: set[str] = set()
        resolved_options = self._resolve_secrets(options or {}, missing)
        if missing:
            missing_keys = ", ".join(sorted(missing))
            self.problems.append(
                f"{constants.SETTINGS_CONFIG_MAP}: service.{name}: {missing_keys} is not in "
                f"{constants.SETTINGS_SECRET}; add it there"
            )
        self.services[own_name or kind] = ServiceSettings(kind, dict(resolved_options))

    def _resolve_secrets(self, value: Any, missing: set[str]) -> Any:
        """Replace secret references. argo: `$key` anywhere in a text is the Secret's value, if it has one."""
        if isinstance(value, dict):
            return {name: self._resolve_secrets(item, missing) for name, item in value.items()}
        if isinstance(value, list):
            return [self._resolve_secrets(item, missing) for item in value]
        if not isinstance(value, str):
            return value

        def resolve_reference(match: re.Match[str]) -> str:
            if match[0][1:] not in self._secrets:
                missing.add(match[0])
            return self._secrets.get(match[0][1:], match[0])

        return _SECRET_REFERENCE_PATTERN.sub(resolve_reference, value)

    def _read_trigger(self, name: str, conditions: Any) -> None:
        if not isinstance(conditions, list):
            raise UserError("a trigger must be a list of conditions, each with when and send")
        parsed_conditions = tuple(
            TriggerCondition(
                _render_expression(condition.get("when")) or "false",
                _render_expression(condition.get("oncePer")),
                _as_text_tuple(condition.get("send")),
                str(condition.get("description") or ""),
            )
            for condition in conditions
        )
        for condition in parsed_conditions:
            for text in filter(None, (condition.when, condition.once_per)):
                compile_expression(text)
        self.triggers[name] = parsed_conditions

    def _read_template(self, name: str, template: Any) -> None:
        if not isinstance(template, dict):
            raise UserError("a template must be a map with message or the fields of a service")
        self.templates[name] = template

    def _read_subscriptions(self, name: str, subscriptions: Any) -> None:
        for entry in subscriptions or ():
            triggers = entry.get("triggers") or entry.get("trigger")
            selector = str(entry.get("selector") or "")
            label_texts(selector)
            self.subscriptions.append(
                DefaultSubscription(_as_text_tuple(entry.get("recipients")), _as_text_tuple(triggers), selector)
            )

    def _read_default_triggers(self, name: str, triggers: Any) -> None:
        if name:
            self.service_triggers[name] = _as_text_tuple(triggers)
        else:
            self.default_triggers += _as_text_tuple(triggers)

    def _read_context(self, name: str, context: Any) -> None:
        self.context |= {str(key): str(value) for key, value in (context or {}).items()}


def _as_text_tuple(value: Any) -> tuple[str, ...]:
    """Read a list of strings; a single value becomes a list of one."""
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),) if value else ()


def _render_expression(value: Any) -> str:
    """Return the expression as text, because YAML parses `when: true` as a bool."""
    return "true" if value is True else "" if value is None or value is False else str(value)


def uses_notebook_jobs(conditions: Sequence[TriggerCondition]) -> bool:
    """Return True if a trigger is about NotebookValidationJobs, because its conditions use `job`."""
    return any("job" in _compile_cached(condition.when).names for condition in conditions)


def list_used_variables(conditions: Sequence[TriggerCondition]) -> frozenset[str]:
    texts = [text for condition in conditions for text in (condition.when, condition.once_per) if text]
    return frozenset().union(*(_compile_cached(text).names for text in texts)) if texts else frozenset()


@cache_short_texts(1024)
def _compile_cached(text: str) -> CompiledExpression:
    return compile_expression(text)
