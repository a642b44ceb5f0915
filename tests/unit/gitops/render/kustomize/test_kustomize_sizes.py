"""Kustomizations ten times larger than those in use."""

from __future__ import annotations

import pytest

from argosy.gitops.render.kustomize import build
from support.file_trees import TextTree


def config_map(number: int) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{number}}}\ndata: {{x: 'y'}}\n"


def listed(count: int, lead: str) -> str:
    return "".join(f"- {lead}{number}.yaml\n" for number in range(count))


SIZES = {
    "10,000 resources of a file": (10_000, {
        "kustomization.yaml": "resources: [a.yaml, b.yaml]\nnamePrefix: p-\nnamespace: one\ncommonLabels: {a: b}\n",
        "a.yaml": "---\n".join(map(config_map, range(5_000))),
        "b.yaml": "---\n".join(map(config_map, range(5_000, 10_000)))}),
    "5,000 files": (5_000, {
        "kustomization.yaml": f"resources:\n{listed(5_000, 'r')}",
        **{f"r{number}.yaml": config_map(number) for number in range(5_000)}}),
    "2,000 patches": (2_000, {
        "kustomization.yaml": f"resources: [a.yaml]\npatchesStrategicMerge:\n{listed(2_000, 'p')}",
        "a.yaml": "---\n".join(map(config_map, range(2_000))),
        **{f"p{number}.yaml": config_map(number) for number in range(2_000)}}),
    "2,000 generators": (2_000, {"kustomization.yaml": "configMapGenerator:\n" + "".join(
        f"- {{name: g{number}, literals: [a=b]}}\n" for number in range(2_000))}),
}  # fmt: skip


@pytest.mark.parametrize(
    "size", [pytest.param(size, marks=() if "files" in size else pytest.mark.tier("all")) for size in SIZES]
)
def test_large_kustomization_is_built_completely(size: str) -> None:
    count, files = SIZES[size]
    assert len(build(TextTree(files), "")) == count
