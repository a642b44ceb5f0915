"""Formats single cells: ages, shortened lists, selectors, access modes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from argosy.errors import ManifestError
from argosy.kube.schema.quantity import canonicalize
from argosy.kube.schema.selectors import label_selector_from_wire

ManifestPart = dict[str, Any]
NONE, UNSET, UNKNOWN = "<none>", "<unset>", "<unknown>"


def human_duration(seconds: float) -> str:
    """Format seconds like kubectl: `22s`, `5m30s`, `3d4h`; short durations have two units."""
    whole = int(seconds)
    if whole < 0:
        return "<invalid>" if whole < -1 else "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 10:
        return _format_two_units(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _format_two_units(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 192:
        return _format_two_units(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    return _format_two_units(days // 365, "y", days % 365, "d") if days < 2920 else f"{days // 365}y"


def _format_two_units(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first}{unit}{second}{smaller}" if second else f"{first}{unit}"


def parse_timestamp(text: object) -> datetime | None:
    """Parse a timestamp of a manifest; None if it is missing or invalid."""
    if not isinstance(text, str) or not text:
        return None
    try:
        timestamp = datetime.fromisoformat(text)
    except ValueError:
        return None
    return timestamp if timestamp.tzinfo else None


def format_time_since(text: object, now: datetime) -> str:
    timestamp = parse_timestamp(text)
    return UNKNOWN if timestamp is None else human_duration((now - timestamp).total_seconds())


def format_age(manifest: ManifestPart, now: datetime) -> str:
    return format_time_since(manifest["metadata"].get("creationTimestamp"), now)


def get_name(manifest: ManifestPart) -> str:
    return str(manifest["metadata"].get("name") or "")


def get_spec(manifest: ManifestPart) -> ManifestPart:
    return manifest.get("spec") or {}


def get_status(manifest: ManifestPart) -> ManifestPart:
    return manifest.get("status") or {}


def format_labels(labels: ManifestPart | None) -> str:
    """Format as `a=b,c=d`."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def format_selector(label_selector: ManifestPart | None) -> str:
    try:
        return str(label_selector_from_wire(label_selector)) or NONE
    except ManifestError:
        return "<error>"


def format_names_and_images(template: ManifestPart | None) -> tuple[str, str]:
    """Return the names and the images of a template's containers."""
    template_containers = ((template or {}).get("spec") or {}).get("containers") or ()
    return ",".join(container.get("name") or "" for container in template_containers), ",".join(
        container.get("image") or "" for container in template_containers
    )


def format_first_values(values: Sequence[str], total: int | None = None, *, limit: int = 3) -> str:
    """Format the first `limit` values and the number of remaining ones."""
    text = ",".join(values[:limit])
    count = len(values) if total is None else total
    return f"{text} + {count - limit} more..." if len(values) > limit else text


def format_access_modes(modes: Iterable[str] | None) -> str:
    short_names = (
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    )
    mode_set = set(modes or ())
    return ",".join(short for mode, short in short_names if mode in mode_set)


def format_quantity(value: object) -> str:
    try:
        return canonicalize(str(value)) if value is not None else "0"
    except ManifestError:
        return str(value)


def find_condition(manifest: ManifestPart, condition_type: str) -> ManifestPart | None:
    for entry in get_status(manifest).get("conditions") or ():
        if entry.get("type") == condition_type:
            matching: ManifestPart = entry
            return matching
    return None


def is_condition_true(manifest: ManifestPart, condition_type: str) -> bool:
    matching = find_condition(manifest, condition_type)
    return matching is not None and matching.get("status") == "True"


def format_load_balancer_addresses(load_balancer: ManifestPart | None) -> str:
    unique_addresses = {
        entry.get("ip") or entry.get("hostname") or "" for entry in (load_balancer or {}).get("ingress") or ()
    }
    return ",".join(sorted(unique_addresses - {""}))
