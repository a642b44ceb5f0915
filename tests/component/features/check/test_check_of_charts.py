"""`argosy check CHART` renders the folder of a Helm chart with its own values and checks the result."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.cli.exit_codes import EXIT_NEGATIVE, EXIT_OK
from argosy.gitops.render.helm.engine_choice import find_helm_program, has_helm_library
from argosy.main import main

pytestmark = pytest.mark.skipif(
    not (find_helm_program() or has_helm_library()), reason="there is no Helm (make install)"
)

CHART = "apiVersion: v2\nname: fraud\nversion: 1.0.0\n"
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-wait
  annotations:
    argocd.argoproj.io/hook: {{ .Values.hook }}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: wait
          image: registry.example.com/cli:1.2.0
          command: [/bin/sh, -c]
          args: ["until oc get configmap settings; do sleep 5; done"]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
"""


@pytest.fixture
def chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "charts" / "Fraud_Detection"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text(CHART)
    (folder / "values.yaml").write_text("hook: Sync\n")
    (folder / "templates" / "job.yaml").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_chart_is_rendered_and_checked(chart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "charts/Fraud_Detection"])
    captured = capsys.readouterr()
    assert "Job/fraud-detection-wait waits in a loop without a limit" in captured.out
    assert "0 Applications, 2 objects" in captured.err


def test_values_yaml_of_the_chart_is_used(chart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (chart / "values.yaml").write_text("hook: PreSync\n")
    assert main(["check", "charts/Fraud_Detection"]) == EXIT_NEGATIVE
    assert "AGY139 warning: Job/fraud-detection-wait runs in PreSync and waits for ConfigMap/settings" in (
        capsys.readouterr().out
    )


def test_current_folder_is_checked_as_a_chart(
    chart: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(chart)
    main(["check"])
    assert "0 Applications, 2 objects" in capsys.readouterr().err


def test_a_chart_that_does_not_render_is_a_finding(chart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (chart / "templates" / "job.yaml").write_text('name: {{ required "git.repoURL is required" .Values.url }}\n')
    assert main(["check", "charts/Fraud_Detection"]) == EXIT_NEGATIVE
    captured = capsys.readouterr()
    assert "AGY102 error" in captured.out and "git.repoURL is required" in captured.out
    assert "no Application here uses this chart" not in captured.err


def test_unused_chart_below_the_path_is_named_in_a_note(chart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check"]) == EXIT_OK
    output = capsys.readouterr().err
    assert "no Application here uses this chart, so it was not rendered" in output
    assert "argosy check charts/Fraud_Detection" in output


def test_library_chart_is_reported_to_create_no_objects(chart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (chart / "Chart.yaml").write_text(f"{CHART}type: library\n")
    assert main(["check", "charts/Fraud_Detection"]) == EXIT_OK
    assert "a library chart creates no objects" in capsys.readouterr().err
