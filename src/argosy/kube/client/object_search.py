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
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest


@dataclass(frozen=True)
class Noun:
    kind: GroupKind
    word: str  # singular noun for users
    listing: str  # the command that lists them
    install: str  # advice if the cluster does not serve the kind


async def all_of(noun: Noun, cluster: Cluster, namespace: str = "") -> list[Manifest]:
    try:
        found = await cluster.list(noun.kind, namespace=namespace)
    except ClusterError as error:
        if error.code == 404:
            raise UserError(f"this cluster does not serve {noun.kind.kind}s; {noun.install}") from error
        raise
    return sorted(found.items, key=lambda each: (each["metadata"]["namespace"], each["metadata"]["name"]))


def typed_name(typed: str, namespace: str = "") -> tuple[str, str]:
    """Split `NAMESPACE/NAME`, or `NAME` with the default namespace."""
    before, _, name = typed.rpartition("/")
    return before or namespace, name


def the_one(noun: Noun, name: str, among: Sequence[Manifest]) -> Manifest | None:
    found = [each for each in among if each["metadata"]["name"] == name]
    if len(found) > 1:
        places = " or ".join(f"{each['metadata']['namespace']}/{name}" for each in found)
        raise UserError(f"{noun.word} {name} is ambiguous; choose one: {places}")
    return found[0] if found else None


def nobody(noun: Noun, namespace: str, name: str, among: Sequence[Manifest]) -> UserError:
    near = difflib.get_close_matches(name, [str(each["metadata"]["name"]) for each in among], n=1)
    hint = f"did you mean {near[0]}?" if near else f"list them: {noun.listing}"
    where = f" in namespace {namespace}" if namespace else ""
    return UserError(f"{noun.word} {name} not found{where}; {hint}")
