"""Informer cache: lookups by key, kind, namespace, labels, owner and custom index; updates and removal."""

from __future__ import annotations

from typing import Any

from argosy.kube.controller.cache import InformerCache
from argosy.kube.objects import key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP


def config(name: str, namespace: str = "n", *, owners: tuple[str, ...] = (), **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "ownerReferences": [{"uid": uid} for uid in owners],
        },
    }


def test_object_is_found_by_key_kind_namespace_labels_and_owner() -> None:
    cache = InformerCache()
    a, b, c = config("a", owners=("u1", "u2")), config("b", colour="red"), config("a", "m", owners=("u1",))
    for manifest in (a, b, c):
        cache.put(manifest)
    assert cache.get(key_of(a)) is a
    assert cache.get(ResourceKey("", "Secret", "n", "a")) is None
    assert cache.list(CONFIG_MAP) == [a, b, c]
    assert cache.list(CONFIG_MAP, namespace="n") == [a, b]
    assert cache.list(CONFIG_MAP, namespace="n", labels={"colour": "red"}) == [b]
    assert cache.list(CONFIG_MAP, namespace="none") == cache.list(GroupKind("", "Secret")) == []
    assert (cache.list_owned("u1"), cache.list_owned("u2"), cache.list_owned("u3")) == ([a, c], [a], [])


def test_update_moves_an_object_between_indexes_and_drop_removes_it() -> None:
    cache = InformerCache()
    cache.put(config("a", owners=("u1",)))
    adopted = config("a", owners=("u2",))
    assert cache.put(adopted) == config("a", owners=("u1",))
    assert (cache.list_owned("u1"), cache.list_owned("u2")) == ([], [adopted])
    assert cache.drop(key_of(adopted)) is adopted
    assert cache.drop(key_of(adopted)) is None
    assert cache.list_owned("u2") == cache.list(CONFIG_MAP, namespace="n") == []


def test_new_index_covers_existing_objects() -> None:
    cache = InformerCache()
    red = config("a", colour="red")
    cache.put(red)
    cache.add_index("colour", lambda manifest: [manifest["metadata"]["labels"].get("colour", "")])
    blue = config("b", colour="blue")
    cache.put(blue)
    assert (cache.find("colour", "red"), cache.find("colour", "blue")) == ([red], [blue])
