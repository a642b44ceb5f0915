"""`argosy check` of malformed and unusual files completes without an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.features.check.service import check_paths

ODD = {
    "a namespace that is no text": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: {b: 1}}\n",
    "annotations that are a list": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, annotations: [1]}\nspec: []\n",
    "an Application without a spec": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\n",
    "an Application whose source is a list": (
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec: {source: [1]}\n"
    ),
    "a template": "{{ if .Values.on }}\nkind: ConfigMap\n{{ end }}\n",
    "nothing": "",
    "a list of nothing": "apiVersion: v1\nkind: List\nitems: [null, 1, []]\n",
    "a model without a model": (
        "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {name: a}\nspec: {predictor: []}\n"
    ),
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_malformed_files_do_not_stop_the_check(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("odd.yaml").write_text(text)
    assert check_paths(["."], log=lambda message: None).applications in (0, 1)


@pytest.mark.parametrize("resources", ["7", "true", "a", "[null, {a: 1}]", "{a: 1}"])
def test_check_accepts_bad_kustomizations(resources: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kustomization.yaml").write_text(f"resources: {resources}\n")
    report = check_paths(["."], log=lambda message: None)
    assert {finding.rule.id for finding in report.findings} <= {"AGY102"}


def test_broken_symlink_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gone.yaml").symlink_to("nowhere.yaml")
    assert check_paths(["."], log=lambda message: None).findings == []
