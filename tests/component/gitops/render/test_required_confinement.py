"""If confinement is required but unavailable, Jsonnet is rejected and plain manifests still render."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from argosy.isolation import landlock, seccomp
from argosy.isolation.confinement_requirement import VARIABLE
from support import weaker_kernel
from support.deadlines import HANG_SECONDS

pytestmark = [
    pytest.mark.skipif(
        not seccomp.is_supported() or landlock.find_abi_version() < 4, reason="needs Landlock and the filter"
    ),
    pytest.mark.skipif(find_spec("_gojsonnet") is None, reason="gojsonnet is not installed"),
]
PLAIN = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}}'


def render(folder: Path, mode: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*weaker_kernel.command("seccomp"), sys.executable, "-m", "argosy", "render", str(folder)],
        capture_output=True, text=True, timeout=HANG_SECONDS, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), VARIABLE: mode},
    )  # fmt: skip


def test_jsonnet_error_names_missing_protection_and_setting(tmp_path):
    (tmp_path / "plain.jsonnet").write_text(PLAIN)
    refused = render(tmp_path, "required")
    assert refused.returncode != 0 and "plain" not in refused.stdout
    assert "system calls (no seccomp filter)" in refused.stderr and "ARGOSY_CONFINE=best-effort" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert "name: plain" in render(tmp_path, "best-effort").stdout


def test_plain_manifests_render_without_confinement(tmp_path):
    (tmp_path / "plain.json").write_text(PLAIN)
    assert "name: plain" in render(tmp_path, "required").stdout
