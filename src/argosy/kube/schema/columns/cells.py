"""Formats single cells: ages, shortened lists, selectors, access modes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from argosy.errors import ManifestError
from argosy.kube.schema.quantity import canonical
from argosy.kube.schema.selectors import from_label_selector

Part = dict[str, Any]
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
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    return _two(days // 365, "y", days % 365, "d") if days < 2920 else f"{days // 365}y"


def _two(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first}{unit}{second}{smaller}" if second else f"{first}{unit}"


def moment(text: object) -> datetime | None:
    """Parse a timestamp of a manifest; None if it is missing or invalid."""
    if not isinstance(text, str) or not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else None


def since(text: object, now: datetime) -> str:
    then = moment(text)
    return UNKNOWN if then is None else human_duration((now - then).total_seconds())


def age(manifest: Part, now: datetime) -> str:
    return since(manifest["metadata"].get("creationTimestamp"), now)


def name(manifest: Part) -> str:
    return str(manifest["metadata"].get("name") or "")


def spec(manifest: Part) -> Part:
    return manifest.get("spec") or {}


def status(manifest: Part) -> Part:
    return manifest.get("status") or {}


def pairs(labels: Part | None) -> str:
    """Format as `a=b,c=d`."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def selector(given: Part | None) -> str:
    try:
        return str(from_label_selector(given)) or NONE
    except ManifestError:
        return "<error>"


def containers(template: Part | None) -> tuple[str, str]:
    """Return the names and the images of a template's containers."""
    found = ((template or {}).get("spec") or {}).get("containers") or ()
    return ",".join(each.get("name") or "" for each in found), ",".join(each.get("image") or "" for each in found)


def some(values: Sequence[str], total: int | None = None, *, most: int = 3) -> str:
    """Format the first `limit` values and the number of remaining ones."""
    shown = ",".join(values[:most])
    count = len(values) if total is None else total
    return f"{shown} + {count - most} more..." if len(values) > most else shown


def access_modes(modes: Iterable[str] | None) -> str:
    known = (("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP"))
    given = set(modes or ())
    return ",".join(short for mode, short in known if mode in given)


def amount(value: object) -> str:
    try:
        return canonical(str(value)) if value is not None else "0"
    except ManifestError:
        return str(value)


def condition(manifest: Part, kind: str) -> Part | None:
    for each in status(manifest).get("conditions") or ():
        if each.get("type") == kind:
            found: Part = each
            return found
    return None


def holds(manifest: Part, kind: str) -> bool:
    found = condition(manifest, kind)
    return found is not None and found.get("status") == "True"


def addresses(given: Part | None) -> str:
    found = {each.get("ip") or each.get("hostname") or "" for each in (given or {}).get("ingress") or ()}
    return ",".join(sorted(found - {""}))
