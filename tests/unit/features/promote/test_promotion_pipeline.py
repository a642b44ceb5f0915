"""Promotion pipeline: order of environments from argosy.yaml, or inferred from well-known names."""

from __future__ import annotations

import pytest

from argosy.errors import UserError
from argosy.features.promote.promotion_pipeline import (
    PromotionPipeline,
    build_declared_pipeline,
    infer_pipeline,
    normalize_folder,
)
from argosy.gitops.application import read_application
from argosy.gitops.delivery_file.reader import read_delivery_file

HEAD = "apiVersion: argosy.dev/v1\nkind: Delivery\nrepository: {url: https://example.com/a.git}\nenvironments:\n"


def way(*lines: str) -> PromotionPipeline:
    return build_declared_pipeline(read_delivery_file(HEAD + "\n".join(f"  {line}" for line in lines)), "argosy.yaml")


LINES = (
    "production: {application: a-production, path: p/, after: staging, gates: [{approval: leads}]}",
    "staging: {application: a-staging, path: ./s, after: dev}",
    "dev: {application: a-dev, path: d}",
)


def app(name: str, path: str, labels: dict[str, str] | None = None, *, is_automated: bool = False) -> object:
    policy = {"automated": {}} if is_automated else {}
    return read_application({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"source": {"repoURL": "https://example.com/a.git", "path": path}, "syncPolicy": policy,
                 "destination": {"namespace": name}},
    })  # fmt: skip


def test_environments_are_sorted_by_after_regardless_of_file_order() -> None:
    pipeline = way(*LINES)
    assert [environment.name for environment in pipeline.environments] == ["dev", "staging", "production"]
    assert [environment.path for environment in pipeline.environments] == ["d", "s", "p"]


def test_release_comes_from_the_previous_environment() -> None:
    pipeline = way(*LINES)
    assert pipeline.find_source(pipeline.find("production")).name == "staging"


def test_only_the_previous_environment_can_be_skipped() -> None:
    pipeline = way(*LINES)
    assert pipeline.find_source(pipeline.find("production"), ["staging"]).name == "dev"
    with pytest.raises(UserError, match="staging is before production, not dev"):
        pipeline.find_source(pipeline.find("production"), ["dev"])
    with pytest.raises(UserError, match="no environment is before dev"):
        pipeline.find_source(pipeline.find("production"), ["staging", "dev"])


def test_first_environment_has_no_promotion_source() -> None:
    pipeline = way(*LINES)
    with pytest.raises(UserError, match="dev is the first environment"):
        pipeline.find_source(pipeline.find("dev"))


def test_unknown_environment_name_suggests_the_nearest_one() -> None:
    with pytest.raises(UserError, match="did you mean staging"):
        way(*LINES).find("stagin")


def test_cycle_of_environments_is_rejected() -> None:
    with pytest.raises(UserError, match="it comes after itself"):
        way("a: {application: a, path: a, after: b}", "b: {application: b, path: b, after: a}")


@pytest.mark.parametrize(
    ("path", "tree"), [("", ""), (".", ""), ("./", ""), ("a/b/", "a/b"), ("./a", "a"), ("a//b", "a/b"), (".a", ".a")]
)
def test_normalize_folder_returns_git_tree_paths(path: str, tree: str) -> None:
    assert normalize_folder(path) == tree


def test_pipeline_with_gates_is_inferred_from_well_known_names() -> None:
    apps = [
        app("x-prod", "deploy/overlays/production"),
        app("x-dev", "deploy/overlays/dev", is_automated=True),
        app("x-stage", "some/where", {"environment": "staging"}),
        app("other", "tools/grafana"),
    ]
    pipeline = infer_pipeline(apps)  # type: ignore[arg-type]
    assert pipeline is not None
    assert [(environment.name, environment.after, str(environment.sync)) for environment in pipeline.environments] == [
        ("dev", "", "auto"),
        ("staging", "dev", "manual"),
        ("production", "staging", "manual"),
    ]
    assert [gate.kind for gate in pipeline.environments[2].gates] == ["check", "healthy", "approval"]


def test_no_pipeline_is_inferred_from_ambiguous_or_single_environments() -> None:
    apps = [app("a", "a/overlays/dev"), app("b", "b/overlays/dev"), app("c", "b/overlays/prod")]
    assert infer_pipeline(apps) is None  # type: ignore[arg-type]
    assert infer_pipeline([app("a", "a/overlays/dev")]) is None  # type: ignore[list-item]
