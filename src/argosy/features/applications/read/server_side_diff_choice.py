"""Objects that a client of the server-side diff asks for, as the argocd CLI sends them.

In: query parameters, diffs of an Application. Out: the diffs of the chosen objects. Never: a manifest that is not the
Application's own: desired state comes from Git only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from argosy.errors import UserError
from argosy.kube.objects import read_json
from argosy.web.request import QueryParameters

KEY_FIELDS: Final = ("group", "kind", "namespace", "name")
NO_STATE: Final = ("", "null")  # argo: of an object that does not exist
ObjectName = tuple[str, ...]


@dataclass(frozen=True)
class ServerSideDiffChoice:
    names: frozenset[ObjectName]  # empty: all
    targets: tuple[bytes, ...]  # manifests in canonical JSON

    def select(self, items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the chosen diffs. argo: their states are the normalized live and the predicted one."""
        own_targets = {_to_canonical_json(item["targetState"]) for item in items}
        if any(target not in own_targets for target in self.targets):
            message = "only manifests from Git are compared; send those of managed-resources, or none"
            raise UserError(message, where="targetManifests")
        return [
            {
                **item,
                "liveState": item["normalizedLiveState"],
                "targetState": item["predictedLiveState"],
            }
            for item in items
            if not self.names or _get_name(item) in self.names
        ]


def read_server_side_diff_choice(query: QueryParameters) -> ServerSideDiffChoice | None:
    """Read the objects that a client sent; None if it sent none."""
    targets, resources = query.get_all("targetManifests"), query.get_all("liveResources")
    if not targets and not resources:
        return None
    return ServerSideDiffChoice(
        frozenset(_read_name(text) for text in resources),
        tuple(_to_canonical_json(text) for text in targets if text not in NO_STATE),
    )


def _read_name(text: str) -> ObjectName:
    document = read_json(text.encode(), where="liveResources").value
    if not isinstance(document, dict):
        raise UserError("is not a JSON object; send group, kind, namespace and name", where="liveResources")
    return _get_name(document)


def _get_name(fields: Mapping[str, Any]) -> ObjectName:
    return tuple(str(fields.get(name) or "") for name in KEY_FIELDS)


def _to_canonical_json(text: str) -> bytes:
    return orjson.dumps(read_json(text.encode(), where="targetManifests").value, option=orjson.OPT_SORT_KEYS)
