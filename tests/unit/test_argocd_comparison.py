"""The comparison with Argo CD finds what differs, and nothing that differs in any two runs; reasons are documented."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.argocd.cli import Answer, align_lines, read_output
from support.argocd.comparison import Difference, compare_objects, find_differences, normalize_status
from support.argocd.deliver_with_both import load_manifests
from support.argocd.known_differences import KnownDifference, find_unexplained, load_known_differences
from support.argocd.pair import CONTROL
from support.paths import ROOT

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"


def build_application(time: str = NOW, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "models"}, "status": {"reconciledAt": time, "health": {"status": "Healthy"}, **status}}


def compare(argocd: dict[str, Any], argosy: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    differences = find_differences("models", normalize_status(argocd), normalize_status(argosy))
    return [(difference.path, difference.argocd, difference.argosy) for difference in differences]


def test_times_are_not_compared() -> None:
    assert compare(build_application(NOW), build_application(LATER)) == []


@pytest.mark.parametrize(
    ("argocd", "argosy", "expected"),
    [
        ({"health": {"status": "Missing"}}, {}, ("status.health.status", "Missing", "Healthy")),
        ({"sourceType": "Helm"}, {}, ("status.sourceType", "Helm", None)),
        ({"retryCount": 1}, {"retryCount": True}, ("status.retryCount", 1, True)),
    ],
)
def test_each_other_value_is_compared(
    argocd: dict[str, Any], argosy: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    assert compare(build_application(**argocd), build_application(**argosy)) == [expected]


def test_resources_are_compared_by_kind_and_name_in_any_order() -> None:
    one = {"kind": "Secret", "version": "v1", "name": "a", "status": "Synced"}
    other = {"kind": "Secret", "version": "v1", "name": "b", "status": "Synced"}
    assert compare(build_application(resources=[one, other]), build_application(resources=[other, one])) == []
    [(path, argocd, argosy)] = compare(
        build_application(resources=[one]), build_application(resources=[{**one, "status": "OutOfSync"}])
    )
    assert (path, argocd, argosy) == ("status.resources[/Secret/a/].status", "Synced", "OutOfSync")


def test_object_that_only_one_side_has_is_a_difference() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "a", "uid": "1"}}
    [difference] = compare_objects({"Secret a": secret}, {})
    assert (difference.argocd, difference.argosy) == ("exists", None)
    assert list(compare_objects({"Secret a": secret}, {"Secret a": {**secret, "metadata": {"name": "a"}}})) == []


def test_only_known_differences_are_explained() -> None:
    differences = list(
        find_differences(
            "models",
            {"status": {"health": {}, "sync": {"status": "Synced"}}},
            {"status": {"health": {"message": "Caused by Pod:ml/a"}, "sync": {"status": "OutOfSync"}}},
        )
    )
    assert [difference.path for difference in find_unexplained("any", differences)] == ["status.sync.status"]


def test_difference_of_an_older_version_is_explained_for_that_version_only() -> None:
    entry = KnownDifference("old", r"2\.14\..*", ".*", "status", ".*", ".*", "a reason")
    difference = Difference("models", "status", None, "Synced")
    assert entry.explains("any", difference, "v2.14.21")
    assert not entry.explains("any", difference, "v3.5.6")


def test_every_known_difference_is_documented() -> None:
    page = " ".join((ROOT / "docs/reference/argocd.md").read_text().split())
    assert [entry.name for entry in load_known_differences() if entry.reason not in page] == []


def test_entry_that_accepts_every_path_names_its_stories() -> None:
    wide = [entry for entry in load_known_differences() if re.fullmatch(entry.paths, "any.path")]
    assert [entry.name for entry in wide if re.fullmatch(entry.stories, "any-story")] == []


def test_additional_line_of_an_output_is_one_difference() -> None:
    argocd, argosy = align_lines(["NAME", "web"], ["NAME", "cache", "web"])
    assert list(find_differences("argocd app list", argocd, argosy)) == [
        Difference("argocd app list", "[1]", None, "cache")
    ]


def test_code_of_an_error_is_compared_apart_from_its_message() -> None:
    line = '{"level":"fatal","msg":"rpc error: code = NotFound desc = no such key","time":"2026-01-01T00:00:00Z"}'
    code_and_message = {"code": "NotFound", "message": "no such key"}
    assert read_output(Answer(20, "", line), is_structured=False) == {"stdout": [], "stderr": code_and_message}


def test_secrets_of_repositories_move_to_the_control_namespace(tmp_path: Path) -> None:
    application = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "models"}}
    labels = {"argocd.argoproj.io/secret-type": "repository"}
    repository = {"kind": "Secret", "metadata": {"name": "git", "namespace": "openshift-gitops", "labels": labels}}
    token = {"kind": "Secret", "metadata": {"name": "token", "namespace": "models"}}
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([application, repository, token]))
    assert [manifest["metadata"].get("namespace") for manifest in load_manifests([tmp_path])] == [
        CONTROL, CONTROL, "models",
    ]  # fmt: skip
