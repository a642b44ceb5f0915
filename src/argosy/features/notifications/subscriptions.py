"""Subscriptions of an object: from its annotations and from the settings.

In: a manifest, settings. Out: destinations by trigger. Never: lists a destination twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from argosy.annotations import SUBSCRIBE_PREFIX, SUBSCRIPTIONS
from argosy.errors import UserError
from argosy.features.notifications.settings import NotificationSettings
from argosy.kube.objects import Manifest, read_yaml
from argosy.kube.schema.selectors import parse_label_selector as label_texts


class NotificationDestination(NamedTuple):
    service: str
    recipient: str


def list_destinations(manifest: Manifest, settings: NotificationSettings) -> dict[str, list[NotificationDestination]]:
    destinations_by_trigger: dict[str, dict[NotificationDestination, None]] = {}
    for trigger, destination in (
        *_list_default_subscriptions(manifest, settings),
        *_list_annotation_subscriptions(manifest, settings),
    ):
        destinations_by_trigger.setdefault(trigger, {})[destination] = None
    return {
        trigger: list(trigger_destinations) for trigger, trigger_destinations in sorted(destinations_by_trigger.items())
    }


def _list_default_subscriptions(
    manifest: Manifest, settings: NotificationSettings
) -> Iterator[tuple[str, NotificationDestination]]:
    labels = manifest["metadata"].get("labels") or {}
    for subscription in settings.subscriptions:
        if subscription.selector and not label_texts(subscription.selector).matches(labels):
            continue
        for trigger in subscription.triggers or settings.default_triggers:
            for recipient in subscription.recipients:
                service, _, address = recipient.partition(":")
                yield trigger, NotificationDestination(service, address)


def _list_annotation_subscriptions(
    manifest: Manifest, settings: NotificationSettings
) -> Iterator[tuple[str, NotificationDestination]]:
    for name, value in sorted((manifest["metadata"].get("annotations") or {}).items()):
        if name.startswith(f"{SUBSCRIBE_PREFIX}."):
            parts = name[len(SUBSCRIBE_PREFIX) + 1 :].split(".")
            trigger, service = ("", parts[0]) if len(parts) == 1 else (parts[0], parts[1])
            yield from _list_trigger_destinations(trigger, service, _split_recipients(value), settings)
        elif name.startswith(SUBSCRIPTIONS):
            yield from _read_yaml_subscriptions(value, settings)


def _split_recipients(value: str) -> list[str]:
    """Split the recipients. argo: separated by semicolons; a webhook needs none."""
    return [recipient.strip() for recipient in value.split(";") if recipient.strip()] if value else [""]


def _list_trigger_destinations(
    trigger: str, service: str, recipients: Sequence[str], settings: NotificationSettings
) -> Iterator[tuple[str, NotificationDestination]]:
    default_triggers = settings.service_triggers.get(service, settings.default_triggers)
    for trigger_name in [trigger] if trigger else default_triggers:
        for recipient in recipients:
            yield trigger_name, NotificationDestination(service, recipient)


def _read_yaml_subscriptions(
    text: str, settings: NotificationSettings
) -> Iterator[tuple[str, NotificationDestination]]:
    """Read subscriptions as a YAML document. argo: a destination without recipients gets nothing, also a webhook."""
    try:
        entries: Any = read_yaml(text)
    except UserError:
        return
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        triggers = entry.get("trigger") or entry.get("triggers") or [""]
        for trigger in triggers if isinstance(triggers, list) else [triggers]:
            destination_entries = entry.get("destinations")
            for destination_entry in destination_entries if isinstance(destination_entries, list) else ():
                if isinstance(destination_entry, dict):
                    recipient_names = destination_entry.get("recipients")
                    recipients = [str(name) for name in recipient_names] if isinstance(recipient_names, list) else []
                    yield from _list_trigger_destinations(
                        str(trigger), str(destination_entry.get("service") or ""), recipients, settings
                    )
