"""Finds objects of one kind by the name that a user typed.

In: a cluster, the noun for the kind, a name. Out: manifests, or an error that says what to type instead. Never: guesses
between two objects of one name.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from argosy.errors import ClusterError, UserError
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind


@dataclass(frozen=True)
class KindNoun:
    kind: GroupKind
    singular: str  # singular noun for users
    list_command: str  # the command that lists them
    install_advice: str  # advice if the cluster does not serve the kind


async def list_objects(noun: KindNoun, cluster: Cluster, namespace: str = "") -> list[Manifest]:
    try:
        listing = await cluster.list(noun.kind, namespace=namespace)
    except ClusterError as error:
        if error.code == 404:
            raise UserError(f"this cluster does not serve {noun.kind.kind}s; {noun.install_advice}") from error
        raise
    return sorted(listing.items, key=lambda manifest: (manifest["metadata"]["namespace"], manifest["metadata"]["name"]))


def read_typed_name(typed: str, namespace: str = "") -> tuple[str, str]:
    """Split `NAMESPACE/NAME`, or `NAME` with the default namespace."""
    typed_namespace, _, name = typed.rpartition("/")
    return typed_namespace or namespace, name


def find_unique(noun: KindNoun, name: str, manifests: Sequence[Manifest]) -> Manifest | None:
    matches = [manifest for manifest in manifests if manifest["metadata"]["name"] == name]
    if len(matches) > 1:
        choices = " or ".join(f"{manifest['metadata']['namespace']}/{name}" for manifest in matches)
        raise UserError(f"{noun.singular} {name} is ambiguous; choose one: {choices}")
    return matches[0] if matches else None


def build_not_found_error(noun: KindNoun, namespace: str, name: str, manifests: Sequence[Manifest]) -> UserError:
    close_matches = difflib.get_close_matches(name, [str(manifest["metadata"]["name"]) for manifest in manifests], n=1)
    hint = f"did you mean {close_matches[0]}?" if close_matches else f"list them: {noun.list_command}"
    where = f" in namespace {namespace}" if namespace else ""
    return UserError(f"{noun.singular} {name} not found{where}; {hint}")
