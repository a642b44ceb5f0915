"""The render cache renders nothing twice that would give the same result."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from argosy.errors import PolicyError, RenderError
from argosy.gitops.application import Application, read_application
from argosy.gitops.application.step_results import Checkout, RenderResult
from argosy.gitops.reconciler.app_memo import AppMemos
from argosy.gitops.reconciler.render_cache import FAILED_RENDER_RETRY_SECONDS, RenderCache, RenderRequest
from argosy.gitops.render import BuildSettings, ChartRequest
from argosy.gitops.render.field_origins import NoOrigins
from support.file_trees import TextTree

pytestmark = pytest.mark.anyio
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: one}\n"
FILES = {
    "dev/kustomization.yaml": "resources: [settings.yaml]\nnamePrefix: dev-\n",
    "dev/settings.yaml": CONFIG_MAP,
    "other/x.yaml": CONFIG_MAP,
}


class Here:
    """Replaces the process pool: the same calls, in this process."""

    async def run(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)


async def nothing_remote(url: str, ref: str) -> Checkout:
    raise AssertionError(f"{url} was fetched")


def app(**metadata: Any) -> Application:
    source = {"repoURL": "https://git.example/x", "path": "dev"}
    return read_application({"metadata": {"name": "models", **metadata}, "spec": {"source": source}})


def build_render_request(
    files: dict[str, str], revision: str = "1" * 40, application: Application | None = None
) -> RenderRequest:
    chosen_app = application or app()
    return RenderRequest(chosen_app, chosen_app.sources[0], Checkout(TextTree(files), revision), BuildSettings())


@contextmanager
def rendering(renders: RenderCache, times: int) -> Iterator[None]:
    before = renders.render_count
    yield
    assert renders.render_count - before == times


async def test_commit_that_changes_no_input_is_not_rendered() -> None:
    renders = RenderCache(Here(), AppMemos())
    with rendering(renders, 1):
        first = await renders.render(build_render_request(FILES), 0, nothing_remote)
    changed = {**FILES, "other/x.yaml": "changed: true\n"}
    with rendering(renders, 0):
        assert await renders.render(build_render_request(changed, "2" * 40), 0, nothing_remote) is first


async def test_commit_that_changes_an_input_is_rendered_once() -> None:
    renders = RenderCache(Here(), AppMemos())
    await renders.render(build_render_request(FILES), 0, nothing_remote)
    changed = {**FILES, "dev/settings.yaml": CONFIG_MAP.replace("one", "two")}
    with rendering(renders, 1):
        again = await renders.render(build_render_request(changed, "2" * 40), 0, nothing_remote)
        assert await renders.render(build_render_request(changed, "3" * 40), 0, nothing_remote) is again
    assert again.manifests[0]["data"] == {"a": "two"}


async def test_changed_setting_renders_again_and_a_refresh_does_not() -> None:
    renders = RenderCache(Here(), AppMemos())
    await renders.render(build_render_request(FILES), 0, nothing_remote)
    with rendering(renders, 0):
        refreshed = app(annotations={"argocd.argoproj.io/refresh": "normal"})
        await renders.render(build_render_request(FILES, application=refreshed), 0, nothing_remote)
    with rendering(renders, 1):
        other = dataclasses.replace(build_render_request(FILES), settings=BuildSettings(kube_version="1.30"))
        await renders.render(other, 0, nothing_remote)


async def test_ignoring_the_cache_renders_again() -> None:
    renders = RenderCache(Here(), AppMemos())
    await renders.render(build_render_request(FILES), 0, nothing_remote)
    with rendering(renders, 1):
        await renders.render(build_render_request(FILES), 0, nothing_remote, ignores_cache=True)


async def test_failed_render_is_not_retried_before_an_input_changes() -> None:
    renders = RenderCache(Here(), AppMemos())
    broken = {**FILES, "dev/settings.yaml": "a: [\n"}
    with rendering(renders, 1):
        for _ in range(3):
            with pytest.raises(RenderError):
                await renders.render(build_render_request(broken), 0, nothing_remote)
    with rendering(renders, 1):
        await renders.render(build_render_request(FILES, "2" * 40), 0, nothing_remote)


async def test_failed_render_is_retried_after_its_retry_time() -> None:
    now = 1000.0
    renders, broken = RenderCache(Here(), AppMemos(), lambda: now), {**FILES, "dev/settings.yaml": "a: [\n"}
    for later, times in ((0.0, 1), (FAILED_RENDER_RETRY_SECONDS - 1, 0), (1.0, 1), (1.0, 0)):
        now += later
        with rendering(renders, times), pytest.raises(RenderError):
            await renders.render(build_render_request(broken), 0, nothing_remote)


async def test_repeated_cached_error_does_not_grow_its_traceback() -> None:
    renders, broken, depths = RenderCache(Here(), AppMemos()), {**FILES, "dev/settings.yaml": "a: [\n"}, []
    for _ in range(4):
        with pytest.raises(RenderError) as error_info:
            await renders.render(build_render_request(broken), 0, nothing_remote)
        depths.append((str(error_info.value), len(error_info.traceback)))
    assert len(set(depths[1:])) == 1 and depths[1][0] == depths[0][0]


async def test_remote_bases_are_fetched_on_demand_and_checked_again() -> None:
    url = "https://git.example/base"
    files = {"dev/kustomization.yaml": f"resources: ['{url}//all?ref=v1']\nnamePrefix: dev-\n"}
    base = {"all/kustomization.yaml": "resources: [x.yaml]\n", "all/x.yaml": CONFIG_MAP}
    fetched: list[tuple[str, str]] = []

    async def fetch(address: str, ref: str) -> Checkout:
        fetched.append((address, ref))
        return Checkout(TextTree(base), "9" * 40)

    renders = RenderCache(Here(), AppMemos())
    first = await renders.render(build_render_request(files), 0, fetch)
    assert [manifest["metadata"]["name"] for manifest in first.manifests] == ["dev-settings"]
    assert fetched == [(url, "v1")]
    with rendering(renders, 0):
        assert await renders.render(build_render_request(files), 0, fetch) is first
    base["all/x.yaml"] = CONFIG_MAP.replace("one", "two")
    again = await renders.render(build_render_request(files), 0, fetch)
    assert again.manifests[0]["data"] == {"a": "two"}


class WithDependency:
    """Replaces a worker that renders a chart with a dependency: its manifest names the dependency."""

    async def run(self, function: Any, *_: Any) -> RenderResult:
        (tree,) = function.keywords["fetch_charts"]([ChartRequest("https://charts.example", "shop", "^1.0")])
        manifest = {"kind": "ConfigMap", "data": {"size": tree.read_file("size").decode()}}
        return RenderResult([manifest], NoOrigins(), {}, "Helm")


async def test_dependencies_of_a_chart_are_checked_before_a_render_is_reused() -> None:
    """The project may not permit their repository any more, and another archive may have replaced one."""
    archives = {size: TextTree({"size": size}) for size in ("small", "big")}
    size, requested_versions = "small", list[str]()

    async def fetch(requests: Sequence[ChartRequest]) -> list[Checkout]:
        requested_versions.extend(request.version for request in requests)
        if not size:
            raise PolicyError("not permitted")
        return [Checkout(archives[size], "1.2.0")]

    renders, request = RenderCache(WithDependency(), AppMemos()), build_render_request(FILES)
    first = await renders.render(request, 0, nothing_remote, fetch)
    assert first.manifests[0]["data"] == {"size": "small"}
    assert await renders.render(request, 0, nothing_remote, fetch) is first
    assert requested_versions == ["^1.0", "1.2.0"]  # the range is not resolved again
    size = "big"
    assert (await renders.render(request, 0, nothing_remote, fetch)).manifests[0]["data"] == {"size": "big"}
    size = ""
    with pytest.raises(PolicyError):
        await renders.render(request, 0, nothing_remote, fetch)


async def test_unchanged_revisions_of_a_render_are_known_until_an_input_changes() -> None:
    renders, key = RenderCache(Here(), AppMemos()), app().key
    one, two, three = ("1" * 40, "2" * 40, "3" * 40)
    await renders.render(build_render_request(FILES, one), 0, nothing_remote)
    assert renders.is_unchanged_since(key, 0, one) and not renders.is_unchanged_since(key, 0, two)
    await renders.render(build_render_request({**FILES, "other/x.yaml": "changed: true\n"}, two), 0, nothing_remote)
    assert renders.is_unchanged_since(key, 0, one) and renders.is_unchanged_since(key, 0, two)
    changed = {**FILES, "dev/settings.yaml": CONFIG_MAP.replace("one", "two")}
    await renders.render(build_render_request(changed, three), 0, nothing_remote)
    assert renders.is_unchanged_since(key, 0, three) and not renders.is_unchanged_since(key, 0, one)


async def test_renders_of_two_applications_share_equal_texts() -> None:
    """Each worker returns new texts; the configuration file of one name is in many Applications."""
    names = []
    for name in ("models", "reports"):
        renders = RenderCache(Here(), AppMemos())
        rendered = await renders.render(build_render_request(FILES, application=app(name=name)), 0, nothing_remote)
        names.append(rendered.manifests[0]["metadata"]["name"])
    assert names[0] == "dev-settings" and names[0] is names[1]
