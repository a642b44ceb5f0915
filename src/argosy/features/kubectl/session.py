"""What a small kubectl knows while it answers: the cluster, the namespace, what was asked, and where to print.

In: flags. Out: Talk. Never: opens anything.
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
    """Told as kubectl tells it: `error: …`."""


@dataclass(frozen=True)
class Talk:
    cluster: KubeCluster
    namespace: str  # of the context, or as asked for
    asked: argparse.Namespace
    context: str = ""
    server: str = ""

    async def named(self, words: Sequence[str] | None = None) -> list[Named]:
        return read_names(self.asked.words if words is None else words, await self.cluster.kinds())

    def where(self, named: Named) -> str:
        """The namespace of a request; empty: all of them, or a kind that is in none."""
        return self.namespace if named.info.namespaced and not self.asked.all_namespaces else ""

    async def get(self, named: Named, name: str) -> Manifest:
        found = await self.cluster.get(named.key(name, self.namespace))
        if found is None:
            raise not_found(named, name)
        return found

    async def chosen(self, named: Sequence[Named]) -> AsyncIterator[tuple[Named, Manifest]]:
        """Those that names, a selector or `--all` choose. Raises ClusterError for a name that is not there."""
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
