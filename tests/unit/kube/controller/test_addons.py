"""Add-ons: loaded by name, prepared before their controllers run, and failures reported."""

from __future__ import annotations

import asyncio
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.kube.client import PatchKind
from argosy.kube.controller import AddOn, ControllerContext, Watch, addon_loader, itself
from argosy.kube.controller.addon_loader import load_addons, run_addons
from argosy.kube.objects import key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.anyio
THING: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.io"},
    "spec": {
        "group": "example.io",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1", "served": True, "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}  # fmt: skip
NAME = {"name": "a", "namespace": "default"}
FIRST: dict[str, Any] = {"apiVersion": "example.io/v1", "kind": "Thing", "metadata": NAME}


class Marker:
    """Controller that marks every Thing as seen."""

    name = "marker"
    watches = (Watch(GroupKind("example.io", "Thing"), itself),)

    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> None:
        live = await context.cluster.get(key)
        if live and "seen" not in live:
            await context.cluster.replace({**live, "seen": True})


def make(variant: str) -> AddOn:
    if variant not in ("", "plain"):
        raise UserError(f"no variant {variant}")
    return AddOn(f"things {variant}".strip(), controllers=[Marker()], definitions=[THING], initial_manifests=[FIRST])


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("things", f"{__name__}:make", addon_loader.ENTRY_POINT_GROUP),
        EntryPoint("broken", "no.such.module:make", addon_loader.ENTRY_POINT_GROUP),
    ]
    monkeypatch.setattr(addon_loader, "entry_points", lambda group: points)
    monkeypatch.setattr(EntryPoint, "load", lambda self: make if self.name == "things" else _missing())


def _missing() -> Any:
    raise ImportError("no module named no")


@pytest.mark.parametrize("chosen", ["", " ", ","])
async def test_no_add_on_is_loaded_without_a_name(chosen: str) -> None:
    assert load_addons(chosen) == []


async def test_add_on_variant_follows_the_name() -> None:
    assert [addon.name for addon in load_addons("things=plain")] == ["things plain"]


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("thing", "add-on thing not found; did you mean things?"),
        ("x", "add-on x not found; choose among: broken, things"),
        ("things,things", "add-on things is listed twice"),
        ("things=odd", "no variant odd"),
        ("broken", "add-on broken cannot be loaded"),
    ],
)
async def test_wrong_add_on_name_is_an_error_with_a_hint(chosen: str, said: str) -> None:
    with pytest.raises(UserError, match=said.replace("?", r"\?")):
        load_addons(chosen)


async def test_crds_and_initial_objects_exist_before_controllers_run() -> None:
    async with EmbeddedCluster.open() as cluster, run_addons(load_addons("things"), cluster, on_failure=lambda: None):
        async with asyncio.timeout(HANG_SECONDS):
            while "seen" not in (await cluster.get(key_of(FIRST)) or {}):
                await asyncio.sleep(0.01)


async def test_second_start_keeps_existing_initial_objects() -> None:
    async with EmbeddedCluster.open() as cluster:
        for _ in range(2):
            async with run_addons(load_addons("things"), cluster, on_failure=lambda: None):
                live = await cluster.get(key_of(FIRST))
                assert live is not None
                await cluster.patch(key_of(FIRST), {"mine": True}, kind_of_patch=PatchKind.MERGE)
        assert (await cluster.get(key_of(FIRST)) or {}).get("mine") is True


async def test_failed_controllers_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("the machine stopped")

    monkeypatch.setattr(addon_loader, "run", fails)
    noticed = asyncio.Event()
    async with EmbeddedCluster.open() as cluster:
        with pytest.raises(RuntimeError, match="the machine stopped"):
            async with run_addons(load_addons("things"), cluster, on_failure=noticed.set):
                await asyncio.wait_for(noticed.wait(), HANG_SECONDS)
