"""Garbage collection: which dependents are deleted with an owner, and in which order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from argosy.sandbox.apiserver.control_plane import ControlPlane, ControlPlaneFiles
from support.api_client import (
    CONFIGS,
    DEFINITIONS,
    TOKEN,
    WIDGETS,
    Api,
    config,
    definition,
    eventually,
    named,
    owned_by,
    widget,
)
from support.loop_clock import until_still

pytestmark = pytest.mark.anyio
SECRETS = "/api/v1/namespaces/default/secrets"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
QUIET = 0.05  # seconds for a controller to do something it should not do


async def names(api: Api, path: str = CONFIGS) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in (await api.get(path)).json["items"]]


async def quiet(api: Api) -> None:
    """Wait until nothing has been written for a while."""
    await until_still(lambda: api.plane.store.revision, QUIET)


async def family(api: Api, *children: str, **flags: bool) -> dict[str, Any]:
    owner: dict[str, Any] = await api.made(CONFIGS, config("owner"))
    for child in children:
        await api.made(CONFIGS, config(child, ownerReferences=owned_by(owner, **flags)))
    return owner


async def test_dependents_are_deleted_in_background_with_their_last_owner(api: Api) -> None:
    await family(api, "a", "b")
    assert (await api.delete(f"{CONFIGS}/owner")).json["status"] == "Success"
    await eventually(lambda: is_empty(api))


async def is_empty(api: Api, path: str = CONFIGS) -> bool:
    return not await names(api, path)


async def are_left(api: Api, *left: str) -> bool:
    return await names(api) == list(left)


async def test_dependent_with_another_owner_loses_only_the_dead_reference(api: Api) -> None:
    first, second = [await api.made(CONFIGS, config(name)) for name in ("first", "second")]
    await api.made(CONFIGS, config("child", ownerReferences=[*owned_by(first), *owned_by(second)]))
    await api.delete(f"{CONFIGS}/first")

    async def is_seconds() -> bool:
        child = (await api.get(f"{CONFIGS}/child")).json
        return [reference["name"] for reference in child["metadata"]["ownerReferences"]] == ["second"]

    await eventually(is_seconds)
    await quiet(api)
    assert await is_seconds()


async def test_dependent_of_owner_in_another_namespace_is_deleted(api: Api) -> None:
    await api.made("/api/v1/namespaces", named("v1", "Namespace", "other"))
    owner = await api.made("/api/v1/namespaces/other/configmaps", config("owner"))
    await api.made(CONFIGS, config("child", ownerReferences=owned_by(owner)))
    await eventually(lambda: is_empty(api))
    assert (await api.get("/api/v1/namespaces/other/configmaps/owner")).code == 200


async def test_dependent_of_cluster_scoped_owner_is_deleted_only_with_it(api: Api) -> None:
    owner = await api.made(CLASSES, {**named("storage.k8s.io/v1", "StorageClass", "sc"), "provisioner": "a.b/c"})
    await api.made(CONFIGS, config("child", ownerReferences=owned_by(owner)))
    await quiet(api)
    assert await names(api) == ["child"]
    await api.delete(f"{CLASSES}/sc")
    await eventually(lambda: is_empty(api))


async def test_dependent_of_old_uid_is_deleted_though_owner_was_recreated(api: Api) -> None:
    owner = await api.made(CONFIGS, config("owner"))
    await api.delete(f"{CONFIGS}/owner")
    await api.made(CONFIGS, config("owner"))
    await api.made(CONFIGS, config("child", ownerReferences=owned_by(owner)))
    await eventually(lambda: are_left(api, "owner"))


async def test_dependent_of_owner_of_unserved_kind_is_kept(api: Api) -> None:
    unknown = {"apiVersion": "nobody.dev/v1", "kind": "Thing", "metadata": {"name": "x", "uid": "u"}}
    await api.made(CONFIGS, config("child", ownerReferences=owned_by(unknown)))
    await quiet(api)
    assert await names(api) == ["child"]


async def test_cluster_scoped_dependent_of_namespaced_owner_is_kept(api: Api) -> None:
    owner = await api.made(CONFIGS, config("owner"))
    sent = named("storage.k8s.io/v1", "StorageClass", "sc") | {"provisioner": "a.b/c"}
    sent["metadata"]["ownerReferences"] = owned_by(owner)
    await api.made(CLASSES, sent)
    await quiet(api)
    assert await names(api, CLASSES) == ["sc"]


async def test_owner_with_deletion_fields_only_in_its_data_is_alive(api: Api) -> None:
    data = {"deletionTimestamp": "now", "finalizers": "foregroundDeletion"}
    owner = await api.made(CONFIGS, config("owner", data))
    await api.made(CONFIGS, config("child", ownerReferences=owned_by(owner)))
    await quiet(api)
    assert await names(api) == ["child", "owner"]


async def test_dependents_of_custom_objects_are_deleted_with_the_crd(api: Api) -> None:
    await api.made(DEFINITIONS, definition())
    owner = await api.made(WIDGETS, widget("w"))
    await api.made(CONFIGS, config("child", ownerReferences=owned_by(owner)))
    await quiet(api)
    await api.delete(f"{DEFINITIONS}/widgets.argosy.dev")
    await eventually(lambda: is_empty(api))


async def test_orphaned_dependents_stay_without_owner_references(api: Api) -> None:
    await family(api, "a", "b")
    await api.delete(f"{CONFIGS}/owner", {"propagationPolicy": "Orphan"})

    async def freed() -> bool:
        return await names(api) == ["a", "b"]

    await eventually(freed)
    items = (await api.get(CONFIGS)).json["items"]
    assert all("ownerReferences" not in manifest["metadata"] for manifest in items)


async def test_foreground_deletion_deletes_dependents_before_their_owners(api: Api) -> None:
    top = await api.made(CONFIGS, config("c-top"))
    middle = await api.made(CONFIGS, config("b-middle", ownerReferences=owned_by(top, blockOwnerDeletion=True)))
    await api.made(CONFIGS, config("a-last", ownerReferences=owned_by(middle, blockOwnerDeletion=True)))
    async with api.watch(f"{CONFIGS}?resourceVersion={api.plane.store.revision}") as watching:
        await api.delete(f"{CONFIGS}/c-top", {"propagationPolicy": "Foreground"})
        await watching.until(lambda: ("DELETED", "c-top") in watching.told)
        gone = [name for kind, name in watching.told if kind == "DELETED"]
    assert gone == ["a-last", "b-middle", "c-top"]


async def test_foreground_deletion_waits_only_for_blocking_dependents(api: Api) -> None:
    owner = await api.made(CONFIGS, config("owner"))
    held = {"finalizers": ["a.b/c"]}
    await api.made(CONFIGS, config("free", ownerReferences=owned_by(owner), **held))
    await api.made(CONFIGS, config("block", ownerReferences=owned_by(owner, blockOwnerDeletion=True), **held))
    await api.delete(f"{CONFIGS}/owner", {"propagationPolicy": "Foreground"})
    await quiet(api)
    assert await names(api) == ["block", "free", "owner"]
    await api.patch(f"{CONFIGS}/block", {"metadata": {"ownerReferences": owned_by(owner, blockOwnerDeletion=False)}})
    await eventually(lambda: are_left(api, "block", "free"))


async def test_foreground_deletion_of_an_owner_cycle_completes(api: Api) -> None:
    first = await api.made(CONFIGS, config("first"))
    second = await api.made(CONFIGS, config("second", ownerReferences=owned_by(first, blockOwnerDeletion=True)))
    await api.patch(f"{CONFIGS}/first", {"metadata": {"ownerReferences": owned_by(second, blockOwnerDeletion=True)}})
    await api.delete(f"{CONFIGS}/first", {"propagationPolicy": "Foreground"})
    await eventually(lambda: is_empty(api))


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.tier("all"))])
async def test_many_dependents_are_deleted_with_their_owner(api: Api, count: int) -> None:
    owner = await api.made(CONFIGS, config("owner"))
    references = owned_by(owner)
    await asyncio.gather(
        *(api.made(SECRETS, {"metadata": {"name": f"s{n}", "ownerReferences": references}}) for n in range(count))
    )
    await api.delete(f"{CONFIGS}/owner")
    await eventually(lambda: is_empty(api, SECRETS))


async def test_deletions_in_progress_continue_after_a_restart(tmp_path: Path) -> None:
    folder = ControlPlaneFiles(tmp_path / "argosy.db", tmp_path / "secret.key", tmp_path / "account.key")
    async with ControlPlane.open(folder, admin_token=TOKEN) as plane:
        api = Api(plane)
        owner = await family(api, "child", blockOwnerDeletion=True)
        await api.patch(f"{CONFIGS}/child", {"metadata": {"finalizers": ["a.b/c"]}})
        await api.delete(f"{CONFIGS}/owner", {"propagationPolicy": "Foreground"})
        await api.made(DEFINITIONS, definition())
        await api.made(WIDGETS, {**widget("w"), "metadata": {"name": "w", "finalizers": ["a.b/c"]}})
        await api.delete(f"{DEFINITIONS}/widgets.argosy.dev")
        await api.made("/api/v1/namespaces", named("v1", "Namespace", "going"))
        await api.made("/api/v1/namespaces/going/configmaps", config("held", finalizers=["a.b/c"]))
        await api.delete("/api/v1/namespaces/going")
        await quiet(api)
    async with ControlPlane.open(folder, admin_token=TOKEN) as plane:
        api = Api(plane)
        assert (await api.get(f"{CONFIGS}/owner")).json["metadata"]["uid"] == owner["metadata"]["uid"]
        free = {"metadata": {"finalizers": None}}
        for path in (f"{CONFIGS}/child", f"{WIDGETS}/w", "/api/v1/namespaces/going/configmaps/held"):
            assert (await api.patch(path, free)).code == 200
        for path in (f"{CONFIGS}/owner", f"{DEFINITIONS}/widgets.argosy.dev", "/api/v1/namespaces/going"):

            async def gone(path: str = path) -> bool:
                return (await api.get(path)).code == 404

            await eventually(gone)
