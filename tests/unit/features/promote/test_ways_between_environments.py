"""Environments in their order: from argosy.yaml, or by the words that people use."""

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


def test_environments_stand_in_the_order_of_their_after_whatever_the_order_in_the_file() -> None:
    pipeline = way(*LINES)
    assert [environment.name for environment in pipeline.environments] == ["dev", "staging", "production"]
    assert [environment.path for environment in pipeline.environments] == ["d", "s", "p"]


def test_a_release_comes_from_the_environment_before() -> None:
    pipeline = way(*LINES)
    assert pipeline.find_source(pipeline.find("production")).name == "staging"


def test_a_skipped_environment_is_passed_by_and_must_be_the_one_before() -> None:
    pipeline = way(*LINES)
    assert pipeline.find_source(pipeline.find("production"), ["staging"]).name == "dev"
    with pytest.raises(UserError, match="staging is before production, not dev"):
        pipeline.find_source(pipeline.find("production"), ["dev"])
    with pytest.raises(UserError, match="no environment is before dev"):
        pipeline.find_source(pipeline.find("production"), ["staging", "dev"])


def test_the_first_environment_gets_nothing_by_a_promotion() -> None:
    pipeline = way(*LINES)
    with pytest.raises(UserError, match="dev is the first environment"):
        pipeline.find_source(pipeline.find("dev"))


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean staging"):
        way(*LINES).find("stagin")


def test_a_circle_of_environments_is_refused_when_the_file_is_read() -> None:
    with pytest.raises(UserError, match="it comes after itself"):
        way("a: {application: a, path: a, after: b}", "b: {application: b, path: b, after: a}")


@pytest.mark.parametrize(
    ("path", "tree"), [("", ""), (".", ""), ("./", ""), ("a/b/", "a/b"), ("./a", "a"), ("a//b", "a/b"), (".a", ".a")]
)
def test_folders_are_named_as_trees_name_them(path: str, tree: str) -> None:
    assert normalize_folder(path) == tree


def test_applications_of_known_words_make_a_way_with_gates() -> None:
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


def test_where_two_applications_are_of_one_environment_nothing_is_guessed() -> None:
    apps = [app("a", "a/overlays/dev"), app("b", "b/overlays/dev"), app("c", "b/overlays/prod")]
    assert infer_pipeline(apps) is None  # type: ignore[arg-type]
    assert infer_pipeline([app("a", "a/overlays/dev")]) is None  # type: ignore[list-item]
