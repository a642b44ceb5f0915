"""Notes of a comparison of two revisions about Applications that it cannot render."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.features.preview.comparison import RepositoryComparison, compare_sides
from argosy.features.preview.revision_range_trees import PreviewRepository, open_sides
from support.preview_repository import Repo, application, config

CHART = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: cache, namespace: argocd}
spec:
  project: default
  source: {repoURL: https://charts.example.com, chart: redis, targetRevision: 1.0.0}
  destination: {server: https://kubernetes.default.svc, namespace: cache}
"""


def compare_with_head(folder: Path) -> RepositoryComparison:
    repository = PreviewRepository(str(folder))
    try:
        return compare_sides(repository, open_sides(repository, "HEAD"), log=lambda text: None)
    finally:
        repository.close()


def test_changed_application_of_a_chart_repository_is_noted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = Repo(tmp_path / "models", capsys)
    repo.begin({"apps/web.yaml": application("web", "web"), "web/a.yaml": config(), "apps/cache.yaml": CHART})
    repo.write({"apps/cache.yaml": CHART.replace("1.0.0", "1.1.0"), "web/a.yaml": config("2")})
    comparison = compare_with_head(repo.root)
    assert comparison.notes == ["cache: not compared: chart redis of https://charts.example.com"]
    assert [touched.name for touched in comparison.touched] == ["web"]
