"""`argosy check` finds the bug of the documented wait-for-image Helm helper, pasted unchanged into a chart.

The documents are next to the checkout, not in it; without them these tests are skipped.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from argosy.cli.exit_codes import EXIT_NEGATIVE
from argosy.gitops.render.helm.engine_choice import find_helm_program, has_helm_library
from argosy.main import main

DOCUMENTS = Path(__file__).parents[3] / "shared" / "seeds"
HELPER = re.compile(r'^```yaml\n(\{\{- define "wait-for-image" -\}\}.*?)^```', re.MULTILINE | re.DOTALL)
FOUND = [helper for document in sorted(DOCUMENTS.glob("*.txt")) for helper in HELPER.findall(document.read_text())]
pytestmark = [
    pytest.mark.skipif(not FOUND, reason="the document with the helper is not here"),
    pytest.mark.skipif(not (find_helm_program() or has_helm_library()), reason="there is no Helm (make install)"),
]
CALL = """\
{{ include "wait-for-image" (dict "name" "notebooks" "syncWave" "-3" "serviceAccount" "builder"
  "imageTag" "notebooks:1" "namespace" "fraud" "timeout" 600) }}
"""


def test_check_reports_the_broken_wait_loop_until_it_is_fixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "chart" / "templates").mkdir(parents=True)
    (tmp_path / "chart" / "Chart.yaml").write_text("apiVersion: v2\nname: fraud\nversion: 1.0.0\n")
    (tmp_path / "chart" / "templates" / "_helpers.tpl").write_text(FOUND[0])
    (tmp_path / "chart" / "templates" / "wait.yaml").write_text(CALL)
    monkeypatch.chdir(tmp_path)
    assert main(["check", "chart"]) == EXIT_NEGATIVE
    assert "AGY138 error: Job/wait-for-notebooks-image compares $ELAPSED in a wait loop" in capsys.readouterr().out
    mended = FOUND[0].replace("TIMEOUT=", "ELAPSED=0\n          TIMEOUT=")
    (tmp_path / "chart" / "templates" / "_helpers.tpl").write_text(mended)
    main(["check", "chart"])
    assert "AGY138" not in capsys.readouterr().out
