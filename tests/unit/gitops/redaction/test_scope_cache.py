"""Scopes and masked objects are rebuilt when their inputs change, and not before."""

from __future__ import annotations

import base64
import logging
from typing import Any

import pytest

from argosy.gitops.engine.logging_setup import QuotableSecrets
from argosy.gitops.redaction import (
    application_secret_scope,
    application_secret_scope_cache,
    per_application_secret_masks,
)
from argosy.gitops.redaction.application_secret_scope_cache import ScopeCache
from argosy.gitops.redaction.cluster_secret_mask_builder import build_mask
from argosy.gitops.redaction.per_application_secret_masks import ApplicationMasks
from argosy.kube.controller.log_context import with_log_fields
from argosy.kube.objects import key_of
from argosy.kube.resource_key import ResourceKey
from argosy.observability.redaction.secret_mask import LogMaskFilter
from support.page_site import CONTROL, StillLookout
from support.scope_manifests import HERE, application, project, secret


def app(name: str = "shop", namespace: str = "web", message: str = "", project: str = "ml") -> dict[str, Any]:
    conditions = [{"type": "SyncError", "message": message}]
    return application(name, namespace=namespace, project=project, status={"conditions": conditions})


def run(message: str, namespace: str = "web") -> dict[str, Any]:
    metadata = {"name": "train", "namespace": namespace}
    kind = {"apiVersion": "mlops.mlops.dev/v1", "kind": "NotebookValidationJob"}
    return {**kind, "metadata": metadata, "status": {"message": message}}


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the Applications whose scopes were built."""
    names: list[str] = []
    build = application_secret_scope.build_scope

    def count(application: dict[str, Any], *arguments: Any, **options: Any) -> Any:
        names.append(application["metadata"]["name"])
        return build(application, *arguments, **options)

    monkeypatch.setattr(application_secret_scope, "build_scope", count)
    return names


def masks_of(lookout: StillLookout) -> ApplicationMasks:
    return ApplicationMasks(build_mask(lookout, CONTROL), lookout.cache, CONTROL)


def test_scope_is_built_once_per_version_of_application_and_project(built: list[str]) -> None:
    lookout = StillLookout([project("web"), app()])
    masks = masks_of(lookout)
    for _ in range(100):
        masks.get_mask_for_path(f"/apps/{CONTROL}/shop/events")
        masks.get_mask_for_application("shop")
    assert built == ["shop"]
    assert masks.get_scope(CONTROL, "shop").namespaces == {"web"}
    lookout.put(app(namespace="jobs"))
    lookout.put(project("jobs"))
    assert masks.get_scope(CONTROL, "shop").namespaces == {"jobs"}
    lookout.put(project("jobs", "web"))
    assert masks.get_scope(CONTROL, "shop").namespaces == {"jobs"}
    assert built == ["shop"] * 3


def test_application_that_changes_its_project_gets_another_scope() -> None:
    lookout = StillLookout([project("web"), app()])
    masks = masks_of(lookout)
    assert masks.get_scope(CONTROL, "shop").project == "ml"
    lookout.put(app(project="other"))
    assert masks.get_scope(CONTROL, "shop").project == "other"


def test_deleted_project_no_longer_affects_the_scope() -> None:
    lookout = StillLookout([project("web"), app()])
    masks = masks_of(lookout)
    before = masks.get_scope(CONTROL, "shop")
    lookout.cache.drop(ResourceKey("argoproj.io", "AppProject", CONTROL, "ml"))
    after = masks.get_scope(CONTROL, "shop")
    assert after is not before and after == application_secret_scope.build_scope(app(), None)


def test_scope_that_depends_on_live_objects_expires(built: list[str]) -> None:
    now, namespaces = 0.0, set[str]()
    cache, application, rules = ScopeCache(clock=lambda: now), app(namespace="foreign"), project("web")
    assert cache.get_or_build(application, rules, namespaces.__contains__).namespaces == frozenset()
    namespaces.add("foreign")
    assert cache.get_or_build(application, rules, namespaces.__contains__).namespaces == frozenset()
    assert built == ["shop"]
    now += application_secret_scope_cache.OBJECTS_TTL_SECONDS
    assert cache.get_or_build(application, rules, namespaces.__contains__).namespaces == {"foreign"}


def test_scope_cache_evicts_the_least_recently_used_scope(monkeypatch: pytest.MonkeyPatch, built: list[str]) -> None:
    monkeypatch.setattr(application_secret_scope_cache, "MAX_SCOPES", 3)
    cache, applications = ScopeCache(), {name: app(name) for name in "abcd"}
    for name in "abcad":
        cache.get_or_build(applications[name], None)
    assert len(cache) == 3 and built == ["a", "b", "c", "d"]
    cache.get_or_build(applications["a"], None)
    cache.get_or_build(applications["b"], None)
    assert built == ["a", "b", "c", "d", "b"]


def test_log_lines_about_one_application_share_a_scope(built: list[str]) -> None:
    lookout = StillLookout([project("web"), app(), secret("web", "of-web-0f5d4c")])
    mask = build_mask(lookout, CONTROL)
    mask.find_line_scope = ApplicationMasks(mask, lookout.cache, CONTROL).find_log_scope
    engine = QuotableSecrets(CONTROL, lambda manifest: True, lookout.cache.get)
    engine.on_change(None, secret("web", "of-web-0f5d4c"))
    for secret_mask in (mask, engine.mask):
        built.clear()
        with with_log_fields(application=f"{CONTROL}/shop"):
            for _ in range(20):
                record = logging.LogRecord("argosy", logging.INFO, "", 0, "with of-web-0f5d4c", (), None)
                LogMaskFilter(secret_mask).filter(record)
                assert "of-web" not in record.getMessage()
        assert built == ["shop"]


def cluster_secret(**values: str) -> dict[str, Any]:
    data = {name: base64.b64encode(text.encode()).decode() for name, text in values.items()}
    labels = {"argocd.argoproj.io/secret-type": "cluster"}
    metadata = {"name": "here", "namespace": CONTROL, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


@pytest.mark.parametrize(
    ("values", "is_masked"),
    [({"project": "ml"}, True), ({"project": "other"}, False), ({"project": "ml", "namespaces": "jobs"}, False)],
)
def test_scope_has_the_namespaces_of_project_scoped_clusters(values: dict[str, str], is_masked: bool) -> None:
    cluster = cluster_secret(server=HERE, **values)
    lookout = StillLookout([project(), app(), cluster, secret("web", "of-web-0f5d4c")])
    assert masks_of(lookout).get_scope(CONTROL, "shop").namespaces == ({"web"} if is_masked else set())
    engine = QuotableSecrets(CONTROL, lambda manifest: True, lookout.cache.get)
    for item in (cluster, secret("web", "of-web-0f5d4c")):
        engine.on_change(None, item)
    record = logging.LogRecord("argosy", logging.INFO, "", 0, "with of-web-0f5d4c", (), None)
    with with_log_fields(application=f"{CONTROL}/shop"):
        LogMaskFilter(engine.mask).filter(record)
    assert ("of-web" not in record.getMessage()) is is_masked


def count_scans(masks: ApplicationMasks, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Texts that were searched for secret values."""
    scanned: list[bytes] = []
    near = masks._mask.search.find_needles

    def count(data: bytes, words: set[int] | None = None) -> list[bytes]:
        scanned.append(data)
        return near(data, words)

    monkeypatch.setattr(masks._mask.search, "find_needles", count)
    return scanned


def test_unchanged_object_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, job = app(), run("with of-web-0f5d4c")
    lookout = StillLookout([project("web"), owner, secret("web", "of-web-0f5d4c"), job])
    masks = masks_of(lookout)
    scanned = count_scans(masks, monkeypatch)
    masked = masks.mask_object(job, owner)
    assert masked["status"]["message"] == "with ++++++++"
    scanned.clear()
    assert all(masks.mask_object(job, owner) is masked for _ in range(10)) and scanned == []
    assert masks.mask_object(run("told"), owner)["status"]["message"] == "told"


def test_changed_secret_is_searched_only_where_it_may_be_quoted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    web, jobs = app("a", "web", "said of-web-0f5d4c"), app("b", "jobs", "said of-web-0f5d4c")
    lookout = StillLookout([project("web", "jobs"), web, jobs, secret("jobs", "of-jobs-0f5d4c")])
    masks = masks_of(lookout)
    job, other = run("said of-web-0f5d4c"), run("said of-web-0f5d4c", "jobs")
    masked = [
        masks.mask_application(web),
        masks.mask_application(jobs),
        masks.mask_object(job, None),
        masks.mask_object(other, None),
    ]
    assert "++++++++" not in str(masked)
    scanned = count_scans(masks, monkeypatch)
    lookout.put(secret("web", "of-web-0f5d4c"))
    assert "++++++++" in str(masks.mask_application(web)) and "++++++++" in str(masks.mask_object(job, None))
    scanned.clear()
    assert masks.mask_application(jobs) is masked[1] and masks.mask_object(other, None) is masked[3]
    assert scanned == [], "no Secret that they may quote has changed"


def test_project_that_permits_more_namespaces_masks_more_in_lists() -> None:
    owner, job = app(message="said of-web-0f5d4c"), run("said of-web-0f5d4c", "jobs")
    lookout = StillLookout([project("jobs"), owner, secret("web", "of-web-0f5d4c"), job])
    masks = masks_of(lookout)
    before = [masks.mask_application(owner), masks.mask_object(job, owner)]
    lookout.put(project("web", "jobs"))
    after = [masks.mask_application(owner), masks.mask_object(job, owner)]
    assert "++++++++" not in str(before)
    assert str(after).count("++++++++") == 2


def test_changed_installation_secret_is_masked_in_every_application() -> None:
    value = "ghp-Zx81kQpLm03vBn7RtYw"
    lookout = StillLookout([project("web"), app(message=f"said {value}")])
    masks = masks_of(lookout)
    shop = lookout.cache.get(ResourceKey("argoproj.io", "Application", CONTROL, "shop"))
    assert shop and value in str(masks.mask_application(shop))
    lookout.put(secret(CONTROL, value))
    assert value not in str(masks.mask_application(shop))
    lookout.put(secret(CONTROL, "another-value-17-Qx", 2))
    assert value in str(masks.mask_application(shop))


def test_cache_of_masked_objects_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(per_application_secret_masks, "MAX_CACHED_OBJECTS", 3)
    masks = masks_of(StillLookout())
    for number in range(10):
        masks.mask_object(run("told", f"n{number}"), None)
    assert len(masks._manifests) == 3


def test_log_masks_drop_the_scope_of_the_previous_version() -> None:
    """It holds the whole manifest: without this, each Application was in memory twice."""
    manifests = {key_of(app()): app()}
    engine = QuotableSecrets(CONTROL, lambda manifest: True, manifests.get)
    engine.on_change(None, secret("web", "of-web-0f5d4c"))
    with with_log_fields(application=f"{CONTROL}/shop"):
        LogMaskFilter(engine.mask).filter(logging.LogRecord("argosy", logging.INFO, "", 0, "of-web-0f5d4c", (), None))
    assert len(engine._scopes) == 1
    engine.on_change(app(), app(message="second"))
    assert len(engine._scopes) == 0


def test_page_masks_drop_the_scope_of_the_previous_version() -> None:
    lookout = StillLookout([project("web"), app()])
    masks = per_application_secret_masks.build_masks(lookout, CONTROL, build_mask(lookout, CONTROL))
    masks.get_scope(CONTROL, "shop")
    assert len(masks._scopes) == 1
    lookout.put(app(message="second"))
    assert len(masks._scopes) == 0
