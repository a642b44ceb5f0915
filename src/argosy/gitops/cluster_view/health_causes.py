"""What the object says that an Application names as the cause of its health.

In: an Application's message, what lives. Out: a sentence that helps, or the message as it was. Never: judges anything.
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
    """argo: it only names the object; that one knows more."""
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
