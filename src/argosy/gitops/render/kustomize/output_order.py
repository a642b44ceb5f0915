"""Sorts the built resources. In: resources, sortOptions. Out: the same resources, sorted. Never: changes a resource."""

from __future__ import annotations

from typing import Any

from argosy.errors import RenderError
from argosy.gitops.render.kustomize.gvk import FIRST, LAST
from argosy.gitops.render.kustomize.resource import Resource


def in_order(resources: list[Resource], options: dict[str, Any], where: str) -> list[Resource]:
    order = options.get("order") or ""
    legacy = options.get("legacySortOptions")
    if order == "fifo":
        if legacy is not None:
            message = "sortOptions.legacySortOptions has no effect with order: fifo; remove it, or set order: legacy"
            raise RenderError(message, where=where)
        return resources
    if order != "legacy":
        raise RenderError(f"sortOptions.order is {order!r}: it must be legacy or fifo", where=where)
    first, last = (legacy.get("orderFirst") or [], legacy.get("orderLast") or []) if legacy else (FIRST, LAST)
    places = {kind: place - len(first) for place, kind in enumerate(first)}
    places |= {kind: place + 1 for place, kind in enumerate(last)}

    def key(resource: Resource) -> tuple[int, str, str]:
        gvk = resource.gvk
        group, version, kind = gvk.group or "~G", gvk.version or "~V", gvk.kind or "~K"
        # k8s: equal kinds are sorted by the text of the whole id.
        space, name = resource.namespace or "~X", resource.name or "~N"
        text = ".".join(part for part in (gvk.kind, gvk.version, gvk.group) if part)
        return places.get(gvk.kind, 0), f"{group}_{version}_{kind}", f"{text}|{space}|{name}"

    return sorted(resources, key=key)
