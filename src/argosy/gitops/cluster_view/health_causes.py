"""Explains an Application's health with the message of the object that it names as the cause.

In: an Application's health message, live objects. Out: a more specific sentence, or the message as it was. Never:
assesses anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from argosy.gitops.application_client.health_reasons import reason
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

Get = Callable[[ResourceKey], Manifest | None]
NAMED: Final = re.compile(
    r"Caused by (?:(?P<group>[^/:,\s]+)/)?(?P<kind>\w+):(?:(?P<namespace>[^/:,\s]+)/)?(?P<name>[^/:,\s]+)"
)


def told(live: Get, why: str) -> str:
    """argo: the message only names the object; the object itself has the details."""
    found = NAMED.match(why)
    if found is None:
        return why
    key = ResourceKey(found["group"] or "", found["kind"], found["namespace"] or "", found["name"])
    said = _said(live(key) or {})
    return f"{key.kind}/{key.name}: {said}" if said else why


def _said(manifest: Manifest) -> str:
    if manifest and (known := reason(manifest, "")):
        return known
    conditions = mappings(mapping(manifest.get("status")).get("conditions"))
    unmet = (each for each in conditions if each.get("status") == "False" and each.get("message"))
    return next((str(each["message"]).replace("\n", " ") for each in unmet), "")
