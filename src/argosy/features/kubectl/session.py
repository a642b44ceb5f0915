"""Session of the built-in kubectl: cluster, namespace, parsed flags; and its output helpers.

In: flags. Out: KubectlSession. Never: opens a connection.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from argosy.errors import ClusterError, UserError
from argosy.kube.client.resource_arguments import NamedResources, parse_resource_arguments
from argosy.kube.objects import Manifest

if TYPE_CHECKING:
    from argosy.kube.client.cluster_client import KubeCluster


class KubectlError(UserError):
    """An error that is printed as kubectl does: `error: …`."""


@dataclass(frozen=True)
class KubectlSession:
    cluster: KubeCluster
    namespace: str  # from -n, else of the context
    args: argparse.Namespace
    context: str = ""
    server: str = ""

    async def resolve_resources(self, arguments: Sequence[str] | None = None) -> list[NamedResources]:
        return parse_resource_arguments(self.args.words if arguments is None else arguments, await self.cluster.kinds())

    def get_request_namespace(self, resource: NamedResources) -> str:
        """Namespace of a request; empty for all namespaces or a cluster-scoped kind."""
        return self.namespace if resource.info.namespaced and not self.args.all_namespaces else ""

    async def get_object(self, resource: NamedResources, name: str) -> Manifest:
        manifest = await self.cluster.get(resource.build_key(name, self.namespace))
        if manifest is None:
            raise build_not_found_error(resource, name)
        return manifest

    async def iterate_objects(
        self, resources: Sequence[NamedResources]
    ) -> AsyncIterator[tuple[NamedResources, Manifest]]:
        """Yield the objects selected by names, a selector or `--all`. Raises ClusterError for a missing name."""
        for resource in resources:
            for name in resource.names:
                yield resource, await self.get_object(resource, name)
            if not resource.names:
                listing = await self.cluster.list(
                    resource.kind,
                    namespace=self.get_request_namespace(resource),
                    labels=self.args.selector,
                    fields=self.args.field_selector,
                )
                for manifest in listing.items:
                    yield resource, manifest


def build_not_found_error(resource: NamedResources, name: str) -> ClusterError:
    details = {"name": name, "kind": resource.info.plural}
    return ClusterError(f'{resource.qualified_plural} "{name}" not found', code=404, reason="NotFound", details=details)


def print_lines(*lines: str) -> None:
    for line in lines:
        print(line, flush=True)


def get_field(manifest: Any, *names: str) -> Any:
    for name in names:
        manifest = (manifest or {}).get(name)
    return manifest
