"""Sorts the built resources. In: resources, sortOptions. Out: the same resources, sorted. Never: changes a resource."""

from __future__ import annotations

from typing import Any

from argosy.errors import RenderError
from argosy.gitops.render.kustomize.gvk import FIRST_KINDS, LAST_KINDS
from argosy.gitops.render.kustomize.resource import KustomizeResource


def sort_resources(resources: list[KustomizeResource], options: dict[str, Any], where: str) -> list[KustomizeResource]:
    order = options.get("order") or ""
    legacy = options.get("legacySortOptions")
    if order == "fifo":
        if legacy is not None:
            message = "sortOptions.legacySortOptions has no effect with order: fifo; remove it, or set order: legacy"
            raise RenderError(message, where=where)
        return resources
    if order != "legacy":
        raise RenderError(f"sortOptions.order is {order!r}: it must be legacy or fifo", where=where)
    first_kinds, last_kinds = (
        (legacy.get("orderFirst") or [], legacy.get("orderLast") or []) if legacy else (FIRST_KINDS, LAST_KINDS)
    )
    kind_order = {kind: index - len(first_kinds) for index, kind in enumerate(first_kinds)}
    kind_order |= {kind: index + 1 for index, kind in enumerate(last_kinds)}

    def key(resource: KustomizeResource) -> tuple[int, str, str]:
        gvk = resource.gvk
        group, version, kind = gvk.group or "~G", gvk.version or "~V", gvk.kind or "~K"
        # k8s: equal kinds are sorted by the text of the whole id.
        namespace, name = resource.namespace or "~X", resource.name or "~N"
        text = ".".join(part for part in (gvk.kind, gvk.version, gvk.group) if part)
        return kind_order.get(gvk.kind, 0), f"{group}_{version}_{kind}", f"{text}|{namespace}|{name}"

    return sorted(resources, key=key)
