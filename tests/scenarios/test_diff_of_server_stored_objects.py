"""Diff on the embedded cluster: defaults and rewrites by the API server are no drift, a later edit is."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy.errors import ClusterError, ManifestError
from argosy.gitops.application.step_results import AppComparison
from argosy.gitops.diff import CrdShapes, DiffOptions, compare_manifests, list_differences
from argosy.kube.objects import Manifest, key_of, read_manifests
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema.bundled_crds import load_definitions
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

ROOT = Path(__file__).parents[2]
US = "argocd-controller"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MACHINE: Manifest = {
    "apiVersion": "example.com/v1",
    "kind": "Machine",
    "metadata": {"name": "one"},
    "spec": {"disks": [{"name": "b"}, {"name": "a", "mode": "ro"}], "anything": {"x": [1, {"y": None}]}},
}


def written() -> list[Manifest]:
    """Return every manifest of the examples, and one of each commonly delivered kind."""
    documents = read_manifests((ROOT / "tests/data/comparing/kinds.yaml").read_text())
    for folder in ("llmops-via-argocd", "examples"):
        for file in sorted((ROOT / folder).rglob("*.yaml")):
            if file.name == "kustomization.yaml":
                continue
            try:
                documents += read_manifests(file.read_text())
            except ManifestError:
                continue  # not manifests: pipeline expectations, a workflow
    return [*(document for document in documents if document["metadata"].get("name")), MACHINE]


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster.open() as opened_cluster:
        for definition in load_definitions():
            await opened_cluster.create(definition)
        yield opened_cluster


def applied(manifest: Manifest) -> Manifest:
    """Add the last-applied annotation, as `kubectl apply` does."""
    metadata = manifest["metadata"]
    annotations = {**(metadata.get("annotations") or {}), LAST_APPLIED: json.dumps(manifest)}
    return manifest | {"metadata": metadata | {"annotations": annotations}}


async def prepare_manifests(cluster: EmbeddedCluster, manifests: list[Manifest]) -> list[Manifest]:
    """Put namespaced manifests into namespace default, keep each key once, and sort CRDs first."""
    kinds = await cluster.kinds()
    manifests_by_key: dict[Any, Manifest] = {}
    for document in manifests:
        kind = key_of(document).group_kind
        if kind in kinds and not kinds[kind].namespaced:
            manifests_by_key.setdefault(key_of(document), document)
        else:
            here = document | {"metadata": document["metadata"] | {"namespace": "default"}}
            manifests_by_key.setdefault(key_of(here), here)
    return sorted(manifests_by_key.values(), key=lambda manifest: manifest["kind"] != "CustomResourceDefinition")


async def shapes_of(cluster: EmbeddedCluster) -> CrdShapes:
    definitions = (await cluster.list(GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"))).items
    return CrdShapes(lambda: definitions)


def drift(comparison: AppComparison) -> dict[str, list[str]]:
    assert not comparison.faults
    return {
        str(pair.key): [difference.pointer for difference in list_differences(pair)]
        for pair in comparison.pairs
        if pair.differs
    }


@pytest.mark.anyio
async def test_client_side_applied_manifests_show_no_drift(cluster: EmbeddedCluster) -> None:
    desired = await prepare_manifests(cluster, written())
    live = {key_of(manifest): await cluster.create(applied(manifest)) for manifest in desired}
    assert len(live) > 50
    assert drift(compare_manifests(desired, live, DiffOptions())) == {}
    bare = {key: _without_last_applied(manifest) for key, manifest in live.items()}
    assert drift(compare_manifests(desired, bare, DiffOptions())) == {}
    touch = {"metadata": {"annotations": {"touched": "by hand"}, "labels": {"touched": "by-hand"}}}
    touched = {key: await cluster.patch(key, touch) for key in live}
    assert drift(compare_manifests(desired, touched, DiffOptions())) == {}


@pytest.mark.anyio
@pytest.mark.tier("all")
async def test_server_side_applied_manifests_show_no_drift_in_any_diff_mode(
    cluster: EmbeddedCluster,
) -> None:
    desired = await prepare_manifests(cluster, written())
    live = {key_of(manifest): await cluster.apply(_bare(manifest), manager=US) for manifest in desired}
    shape_of = await shapes_of(cluster)
    for rules in (DiffOptions(), DiffOptions(server_side_apply=True)):
        assert drift(compare_manifests(desired, live, rules, find_shape=shape_of)) == {}
    live = {key: await cluster.get(key) or {} for key in live}  # CRDs were established in the meantime
    again = {key_of(manifest): await cluster.apply(_bare(manifest), manager=US, dry_run=True) for manifest in desired}
    for keeps in (False, True):
        rules = DiffOptions(server_side=True, include_mutations=keeps)
        assert drift(compare_manifests(desired, live, rules, predicted=again, find_shape=shape_of)) == {}


def _bare(manifest: Manifest) -> Manifest:
    metadata = {name: value for name, value in manifest["metadata"].items() if value is not None}
    return manifest | {"metadata": metadata}


def _without_last_applied(live: Manifest) -> Manifest:
    annotations = {name: value for name, value in live["metadata"]["annotations"].items() if name != LAST_APPLIED}
    return live | {"metadata": live["metadata"] | {"annotations": annotations}}


@pytest.mark.anyio
async def test_one_edit_gives_one_difference_with_its_field_manager(cluster: EmbeddedCluster) -> None:
    desired = [
        manifest for manifest in await prepare_manifests(cluster, written()) if manifest["kind"] == "Deployment"
    ][:1]
    (key,) = map(key_of, desired)
    await cluster.apply(desired[0], manager=US)
    edited = await cluster.patch(key, {"spec": {"replicas": 7}})
    (pair,) = compare_manifests(desired, {key: edited}, DiffOptions()).pairs
    (one,) = list_differences(pair)
    assert (one.pointer, one.desired, one.live) == ("/spec/replicas", 2, 7)
    assert one.manager not in ("", US)
    assert one.since


# -- generated manifests -------------------------------------------------------------------------------------------

names = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8)
amounts = st.sampled_from(["1", "1500m", "0.5", "1.50", "2000m", "1e3", "0"])
sizes = st.sampled_from(["1Gi", "1024Mi", "1048576Ki", "1e9", "1000M", "123456789", "0.5Gi"])
keys = st.from_regex(r"[A-Za-z0-9_.-]{1,8}", fullmatch=True)
labels = st.dictionaries(names, names, max_size=2)


@st.composite
def containers(draw: Any) -> list[Any]:
    def container(name: str) -> dict[str, Any]:
        limits = draw(st.fixed_dictionaries({}, optional={"cpu": amounts, "memory": sizes}))
        optional = {
            "args": st.lists(texts, max_size=2),
            "stdin": st.booleans(),
            "workingDir": st.sampled_from(["", "/work"]),
            "imagePullPolicy": st.sampled_from(["Always", "IfNotPresent", "Never"]),
            "resources": st.just({"limits": limits}),
            "env": st.lists(names, unique=True, max_size=2).map(
                lambda variable_names: [{"name": variable} for variable in variable_names]
            ),
            "ports": st.lists(st.integers(1, 65535), unique=True, max_size=2).map(
                lambda ports: [{"containerPort": port} for port in ports]
            ),
        }
        image = draw(st.sampled_from(["web", "web:1", "web:latest", "r.io:5000/web"]))
        return {"name": name, "image": image} | draw(st.fixed_dictionaries({}, optional=optional))

    return [container(name) for name in draw(st.lists(names, min_size=1, max_size=3, unique=True))]


@st.composite
def manifests(draw: Any) -> Manifest:
    kind = draw(st.sampled_from(["ConfigMap", "Secret", "Service", "Deployment", "Machine"]))
    metadata = {"name": draw(names), "namespace": "default"} | draw(
        st.fixed_dictionaries({}, optional={"labels": labels, "annotations": labels, "creationTimestamp": st.none()})
    )
    head = {"kind": kind, "metadata": metadata}
    match kind:
        case "ConfigMap":
            return {"apiVersion": "v1", **head, "data": draw(st.dictionaries(keys, texts, max_size=3))}
        case "Secret":
            return {"apiVersion": "v1", **head, "stringData": draw(st.dictionaries(keys, texts, max_size=3))}
        case "Service":
            ports = draw(st.lists(st.integers(1, 65535), min_size=1, max_size=3, unique=True))
            named = [{"name": f"p{port}", "port": port} for port in ports]
            return {"apiVersion": "v1", **head, "spec": {"ports": named, "selector": draw(labels)}}
        case "Machine":
            disks = [{"name": name} for name in draw(st.lists(names, max_size=3, unique=True))]
            spec = {"disks": disks, "size": draw(names), "anything": draw(st.dictionaries(names, texts, max_size=2))}
            return {"apiVersion": "example.com/v1", **head, "spec": spec}
    spec = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": draw(containers())}},
    } | draw(st.fixed_dictionaries({}, optional={"replicas": st.integers(0, 3), "paused": st.booleans()}))
    return {"apiVersion": "apps/v1", **head, "spec": spec}


class Standing:
    """A cluster that all Hypothesis examples share."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._stack = AsyncExitStack()
        self.cluster = self.run(self._stack.enter_async_context(EmbeddedCluster.open()))
        documents = read_manifests((ROOT / "tests/data/comparing/kinds.yaml").read_text())
        self.run(
            self.cluster.create(
                next(document for document in documents if document["kind"] == "CustomResourceDefinition")
            )
        )
        self.shape_of = self.run(shapes_of(self.cluster))

    def run(self, waited: Any) -> Any:
        return self.loop.run_until_complete(waited)

    def stored(self, manifest: Manifest, apply: Callable[[Manifest], Any]) -> Manifest:
        stored_manifest: Manifest = self.run(apply(manifest))
        self.run(self.cluster.delete(key_of(manifest)))
        return stored_manifest

    def close(self) -> None:
        self.run(self._stack.aclose())
        self.loop.close()


@pytest.fixture(scope="module")
def standing() -> Iterator[Standing]:
    standing_cluster = Standing()
    yield standing_cluster
    standing_cluster.close()


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(manifests())
@pytest.mark.tier("all")
def test_generated_manifest_shows_no_drift_from_the_stored_object(standing: Standing, manifest: Manifest) -> None:
    before = copy.deepcopy(manifest)
    key = key_of(manifest)
    try:
        plain = standing.stored(manifest, standing.cluster.create)
    except ClusterError:
        return  # the server rejects it
    client_applied = standing.stored(manifest, lambda new_manifest: standing.cluster.create(applied(new_manifest)))
    owned = standing.stored(_bare(manifest), lambda new_manifest: standing.cluster.apply(new_manifest, manager=US))
    for live in (plain, client_applied, owned):
        assert drift(compare_manifests([manifest], {key: live}, DiffOptions())) == {}
    rules = DiffOptions(server_side_apply=True)
    assert drift(compare_manifests([manifest], {key: owned}, rules, find_shape=standing.shape_of)) == {}
    assert manifest == before
