"""The digest of a Chart.lock that the real Helm writes is the one that we compute."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.gitops.render.helm.chart_lock import compute_lock_digest, list_locked_versions
from support.chart_server import chart_server
from support.helm_charts import HELM, needs_helm


@needs_helm
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"condition": "a.enabled,b.enabled", "tags": ["front", "é<&>"], "alias": "store"},
        {"import-values": [{"parent": "x", "child": "a"}, "data"]},
    ],
)
def test_digest_is_that_of_helm(tmp_path: Path, more: dict[str, Any]) -> None:
    with chart_server() as host:
        for version in ("1.0.0", "1.2.0", "2.0.0"):
            host.publish("shop", version)
        declared = [{"name": "shop", "version": ">=1.0.0 <2.0.0", "repository": host.url, **more}]
        chart = {"apiVersion": "v2", "name": "app", "version": "0.1.0", "dependencies": declared}
        (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(chart))
        command = [HELM, "dependency", "update", "--repository-cache", str(tmp_path / "cache"), str(tmp_path)]
        subprocess.run(command, check=True, capture_output=True)
    lock = yaml.safe_load((tmp_path / "Chart.lock").read_text())
    assert compute_lock_digest(declared, lock["dependencies"]) == lock["digest"]
    assert list_locked_versions(lock, declared, "Chart.lock", "Chart.yaml") == ["1.2.0"]
