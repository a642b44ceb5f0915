"""Subscriptions of an object: from its annotations and from the settings.

In: a manifest, settings. Out: destinations by trigger. Never: lists a destination twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from argosy.annotations import SUBSCRIBE_PREFIX
from argosy.errors import UserError
from argosy.features.notifications.settings import Settings
from argosy.kube.objects import Manifest, load
from argosy.kube.schema.selectors import labels as label_texts

YAML: Final = f"{SUBSCRIBE_PREFIX}_yaml"  # argo: all subscriptions in one YAML document


class Destination(NamedTuple):
    service: str
    recipient: str


def destinations(manifest: Manifest, settings: Settings) -> dict[str, list[Destination]]:
    found: dict[str, dict[Destination, None]] = {}
    for trigger, destination in (*_global(manifest, settings), *_own(manifest, settings)):
        found.setdefault(trigger, {})[destination] = None
    return {trigger: list(those) for trigger, those in sorted(found.items())}


def _global(manifest: Manifest, settings: Settings) -> Iterator[tuple[str, Destination]]:
    labels = manifest["metadata"].get("labels") or {}
    for each in settings.subscriptions:
        if each.selector and not label_texts(each.selector).matches(labels):
            continue
        for trigger in each.triggers or settings.default_triggers:
            for recipient in each.recipients:
                service, _, rest = recipient.partition(":")
                yield trigger, Destination(service, rest)


def _own(manifest: Manifest, settings: Settings) -> Iterator[tuple[str, Destination]]:
    for name, value in sorted((manifest["metadata"].get("annotations") or {}).items()):
        if name.startswith(f"{SUBSCRIBE_PREFIX}."):
            parts = name[len(SUBSCRIBE_PREFIX) + 1 :].split(".")
            trigger, service = ("", parts[0]) if len(parts) == 1 else (".".join(parts[:-1]), parts[-1])
            yield from _wanted(trigger, service, _recipients(value), settings)
        elif name == YAML:
            yield from _from_yaml(value, settings)


def _recipients(value: str) -> list[str]:
    """Split the recipients. argo: separated by semicolons; a webhook needs none."""
    return [each.strip() for each in value.split(";") if each.strip()] if value else [""]


def _wanted(
    trigger: str, service: str, recipients: Sequence[str], settings: Settings
) -> Iterator[tuple[str, Destination]]:
    usual = settings.service_triggers.get(service, settings.default_triggers)
    for each in [trigger] if trigger else usual:
        for recipient in recipients:
            yield each, Destination(service, recipient)


def _from_yaml(text: str, settings: Settings) -> Iterator[tuple[str, Destination]]:
    try:
        entries: Any = load(text)
    except UserError:
        return
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        triggers = entry.get("trigger") or entry.get("triggers") or [""]
        for trigger in triggers if isinstance(triggers, list) else [triggers]:
            wanted = entry.get("destinations")
            for each in wanted if isinstance(wanted, list) else ():
                if isinstance(each, dict):
                    named = each.get("recipients") or [""]
                    recipients = [str(one) for one in (named if isinstance(named, list) else [named])]
                    yield from _wanted(str(trigger), str(each.get("service") or ""), recipients, settings)
