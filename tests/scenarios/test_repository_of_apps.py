"""A repository of many Applications: a commit renders only those that it touches. The benchmark measures the time."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path

import pytest

from argosy.gitops.render import render
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.isolation import ProcessPool
from argosy.kube.objects import key_of

BENCH = Path(__file__).parents[2] / "bench" / "repository_of_apps.py"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("repository_of_apps", BENCH)
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


def test_commit_renders_only_the_applications_that_it_touches(bench, tmp_path: Path) -> None:
    rows = asyncio.run(bench.measure(tmp_path, 60))
    assert [(description, rendered_count) for description, _, rendered_count, _, _ in rows] == [
        ("the first time", 60),
        ("a commit that touches one", 1),
        ("one that touches a base of 10", 10),
        ("one that touches none", 0),
        ("after a new start", 0),
    ]
    assert all(expected == rendered_count for _, expected, rendered_count, _, _ in rows)


def test_new_override_file_and_changed_bases_rerender_affected_applications(bench, tmp_path: Path) -> None:
    async def scene() -> list[list[str]]:
        served = bench.Served(tmp_path / "served.git")
        files = bench.files_of(20)
        served.commit(files, is_first=True)
        repositories = Repositories(tmp_path / "mirrors", SourceSettings(local_roots=(tmp_path,)))
        desk = bench.Desk(bench.applications(20, str(served.path)))
        rendered_names = []
        for change in (
            {},
            {"apps/app-0003/overlays/production/.argocd-source.yaml": "kustomize: {nameSuffix: -x}\n"},
            {"apps/app-0004/base/kustomization.yaml": "resources: [deployment.yaml]\n"},
            {"shared/group-000/config.yaml": bench.CONFIG.format(generation=3)},
            {"apps/app-0005/notes.md": "nobody reads this\n"},
        ):
            if change:
                served.commit(change)
            checkout = await repositories.checkout(str(served.path), "main")
            stale = desk.stale(checkout)
            desk.render(stale, checkout)
            rendered_names.append([app.name for app in stale])
        repositories.close()
        return rendered_names

    first, override, rebased, shared, none = asyncio.run(scene())
    assert len(first) == 20
    assert override == ["app-0003"]
    assert rebased == ["app-0004"]
    assert shared == [f"app-{number:04}" for number in range(10) if number != 4]
    assert none == []


@pytest.mark.tier("all")
def test_process_pool_renders_a_mirror_like_this_process(bench, tmp_path: Path) -> None:
    async def scene() -> None:
        served = bench.Served(tmp_path / "served.git")
        served.commit(bench.files_of(6), is_first=True)
        repositories = Repositories(tmp_path / "mirrors", SourceSettings(local_roots=(tmp_path,)))
        checkout = await repositories.checkout(str(served.path), "main")
        crew = ProcessPool(workers=2)
        try:
            apps = bench.applications(6, str(served.path))
            crew_results = await asyncio.gather(
                *(crew.run(render, checkout, app, app.sources[0], bench.SETTINGS) for app in apps)
            )
            for app, rendered in zip(apps, crew_results, strict=True):
                ours = render(checkout, app, app.sources[0], bench.SETTINGS)
                assert rendered.manifests == ours.manifests and rendered.inputs == ours.inputs
                assert [manifest["metadata"]["name"] for manifest in rendered.manifests] == [
                    "production-shared", f"production-{app.name}"
                ]  # fmt: skip
                key = key_of(rendered.manifests[1])
                for pointer in ("/spec/replicas", "/spec/template", "/metadata/name"):
                    assert rendered.origins.find(key, pointer) == ours.origins.find(key, pointer)
        finally:
            await crew.close()
            repositories.close()

    asyncio.run(scene())
