"""Session of the built-in kubectl: cluster, namespace, parsed flags; and its output helpers.

In: flags. Out: KubectlSession. Never: opens a connection.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from argosy.errors import ClusterError, UserError
from argosy.kube.client.resource_names import Named, read_names
from argosy.kube.objects import Manifest

if TYPE_CHECKING:
    from argosy.kube.client.http import KubeCluster


class Refused(UserError):
    """An error that is printed as kubectl does: `error: …`."""


@dataclass(frozen=True)
class Talk:
    cluster: KubeCluster
    namespace: str  # from -n, else of the context
    asked: argparse.Namespace
    context: str = ""
    server: str = ""

    async def named(self, words: Sequence[str] | None = None) -> list[Named]:
        return read_names(self.asked.words if words is None else words, await self.cluster.kinds())

    def where(self, named: Named) -> str:
        """Namespace of a request; empty for all namespaces or a cluster-scoped kind."""
        return self.namespace if named.info.namespaced and not self.asked.all_namespaces else ""

    async def get(self, named: Named, name: str) -> Manifest:
        found = await self.cluster.get(named.key(name, self.namespace))
        if found is None:
            raise not_found(named, name)
        return found

    async def chosen(self, named: Sequence[Named]) -> AsyncIterator[tuple[Named, Manifest]]:
        """Yield the objects selected by names, a selector or `--all`. Raises ClusterError for a missing name."""
        for each in named:
            for name in each.names:
                yield each, await self.get(each, name)
            if not each.names:
                listing = await self.cluster.list(
                    each.kind, namespace=self.where(each), labels=self.asked.selector, fields=self.asked.field_selector
                )
                for manifest in listing.items:
                    yield each, manifest


def not_found(named: Named, name: str) -> ClusterError:
    details = {"name": name, "kind": named.info.plural}
    return ClusterError(f'{named.plural} "{name}" not found', code=404, reason="NotFound", details=details)


def say(*lines: str) -> None:
    for line in lines:
        print(line, flush=True)


def field_of(manifest: Any, *names: str) -> Any:
    for name in names:
        manifest = (manifest or {}).get(name)
    return manifest
