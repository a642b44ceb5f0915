"""Renders the charts in integrations/helm with the real Helm.

In: values as plain data. Out: the rendered manifests, or Helm's error. Never: uses the network.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.deadlines import HANG_SECONDS
from support.paths import ROOT

CHARTS = ROOT / "integrations" / "helm"
PLATFORM = CHARTS / "charts" / "llmops-platform"
LIBRARY = PLATFORM / "charts" / "llmops-library"
SCRIPT = LIBRARY / "templates" / "_wait-for-image.sh.tpl"
GLOBAL = PLATFORM / "values-global.yaml"
NOTEBOOKS = PLATFORM / "values-notebooks-validation.yaml"

_INSTALLED = Path(sys.executable).parent.parent / "helm" / "helm"
HELM = str(_INSTALLED) if _INSTALLED.exists() else shutil.which("helm") or ""
needs_helm = pytest.mark.skipif(not HELM, reason=f"helm: there is none at {_INSTALLED} (make install)")

NAMESPACE = "ml-team"
URL = "https://git.example.com/team/platform.git"
WAVE = "argocd.argoproj.io/sync-wave"

Values = Mapping[str, Any]


def helm(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [HELM, *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)


def template(values: Values, *files: Path, chart: Path = PLATFORM) -> subprocess.CompletedProcess[str]:
    """Run `helm template`. Files come first, then values; as in Helm, later ones win."""
    file_flags = [word for file in files for word in ("-f", file)]
    return helm("template", "demo", chart, "-n", NAMESPACE, *file_flags, "-f", "-", stdin=yaml.safe_dump(dict(values)))


def rendered(values: Values, *files: Path, chart: Path = PLATFORM) -> list[dict[str, Any]]:
    done = template(values, *files, chart=chart)
    assert done.returncode == 0, done.stderr
    return [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]


def of_kind(manifests: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [manifest for manifest in manifests if manifest["kind"] == kind]


def the(manifests: Sequence[dict[str, Any]], kind: str) -> dict[str, Any]:
    (manifest,) = of_kind(manifests, kind)
    return manifest


def refusal(values: Values, *files: Path, chart: Path = PLATFORM) -> str:
    done = template(values, *files, chart=chart)
    assert done.returncode != 0, "it was rendered"
    return done.stderr


def wave_of(manifest: Mapping[str, Any]) -> int:
    return int(manifest["metadata"]["annotations"][WAVE])
