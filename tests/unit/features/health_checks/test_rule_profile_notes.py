"""`argosy health test` without --profile names the profile it used and the result of profile strict."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.main import main

SERVICE = """\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: NAME, namespace: llmops-dev}
spec: {predictor: {model: {modelFormat: {name: sklearn}}}}
status:
  conditions:
  - {type: PredictorReady, status: "READY", message: no GPU}
  - {type: Ready, status: "READY", message: no GPU}
"""
JOB = (
    "apiVersion: mlops.mlops.dev/v1alpha1\nkind: NotebookValidationJob\nmetadata: {name: a}\nstatus: {phase: Failed}\n"
)
CLAIM = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nstatus: {phase: Bound}\n"
SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata:\n  %s\n"


def service(name: str, ready: str) -> str:
    return SERVICE.replace("NAME", name).replace("READY", ready)


def notes(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, *more: str) -> list[str]:
    (tmp_path / "objects.yaml").write_text(text)
    assert main(["health", "test", str(tmp_path / "objects.yaml"), *more]) == 0
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]


def test_note_names_the_default_profile_and_the_strict_result(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    printed_notes = notes(capsys, tmp_path, service("web", "False") + "---\n" + service("ok", "True"))
    assert printed_notes == [
        "note: InferenceService uses profile argocd, the default; with profile strict, web is Degraded (no GPU),"
        " ok is Healthy (InferenceService is ready); --profile strict selects it"
    ]


def test_note_states_when_strict_has_the_same_result(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plain = "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {name: new}\n"
    [line] = notes(capsys, tmp_path, plain + 'status: {conditions: [{type: Stopped, status: "True"}]}\n')
    assert line == (
        "note: InferenceService uses profile argocd, the default; profile strict has the same result for this object;"
        " argosy health diff InferenceService --profile strict shows where they differ"
    )


def test_note_lists_other_profiles_of_a_kind_without_strict(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert notes(capsys, tmp_path, JOB) == [
        "note: NotebookValidationJob uses profile basic, the default; --profile selects another one: cells"
    ]


@pytest.mark.parametrize("more", [("--profile", "strict"), ("--profile", "argocd")])
def test_explicit_profile_prints_no_note(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, more: tuple[str, ...]
) -> None:
    assert notes(capsys, tmp_path, service("web", "False"), *more) == []


def test_kind_with_a_single_rule_prints_no_note(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert notes(capsys, tmp_path, CLAIM) == []


def test_profile_from_settings_is_not_called_the_default(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    chosen = SETTINGS % ("argosy-cm", "health.profile.serving.kserve.io_InferenceService: lenient")
    [line] = notes(capsys, tmp_path, chosen + "---\n" + service("web", "False"))
    assert line.startswith("note: InferenceService uses profile lenient; with profile strict, web is Degraded")
