"""Severity, message and fix of `argosy check` findings for the mistakes that the documents describe."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from argosy.features.check.service import DEFAULT_OPTIONS, CheckRunOptions, check_paths

FIXTURES = Path(__file__).parents[1] / "data" / "rules"


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Said:
    return Said(tmp_path, monkeypatch)


class Said:
    """Runs `argosy check` on the fixture of a rule: returns severity, message and fix of each finding."""

    def __init__(self, folder: Path, patched: pytest.MonkeyPatch) -> None:
        self._folder = folder / "repository"
        self._patched = patched

    def of(
        self, rule: str, manner: CheckRunOptions = DEFAULT_OPTIONS, change: dict[str, tuple[str, str]] | None = None
    ) -> list[str]:
        shutil.copytree(FIXTURES / rule / "bad", self._folder)
        for file, (old, new) in (change or {}).items():
            path = self._folder / file
            assert old in path.read_text()
            path.write_text(path.read_text().replace(old, new))
        self._patched.chdir(self._folder)
        findings = check_paths(["."], options=manner, log=lambda text: None).findings
        return [
            f"{finding.severity}: {finding.violation.message}; {finding.violation.fix}"
            for finding in findings
            if finding.rule.id == rule
        ]


def test_pipeline_run_in_git_gives_a_warning_with_alternatives(said: Said) -> None:
    first = said.of("AGY141")[0]
    assert first.startswith("warning: PipelineRun/build: OpenShift GitOps excludes this kind")
    assert "start runs with a trigger, or build with a BuildConfig" in first


def test_job_that_only_starts_a_build_gives_a_warning(said: Said) -> None:
    assert said.of("AGY136")[0].startswith(
        "warning: Job/build starts a build and ends at once: Job/train in a later wave does not wait for it"
    )


def test_job_with_ttl_that_is_not_a_hook_is_reported(said: Said) -> None:
    assert "then missing and OutOfSync: it is not a hook; make it a hook" in said.of("AGY135")[0]


def test_job_without_the_permissions_it_needs_gives_an_error_with_the_missing_verbs(said: Said) -> None:
    messages = said.of("AGY137")
    assert messages[0].startswith("error: Job/wait needs get on inferenceservice, which its ServiceAccount waiter may")
    assert any("add the verb create on buildconfig/instantiate to a Role of waiter" in message for message in messages)


def test_notebooks_with_different_images_are_reported(said: Said) -> None:
    assert "a different image than the other notebooks of fraud-dev; use one tested image" in said.of("AGY308")[0]


def test_ignore_differences_in_an_argocd_resource_are_reported(said: Said) -> None:
    assert "move it to spec.resourceIgnoreDifferences here" in said.of("AGY115")[0]


def test_runtime_renamed_by_a_name_prefix_gives_an_error(said: Said) -> None:
    assert said.of("AGY203")[0].startswith(
        "error: InferenceService/dev-fraud needs the runtime scikit, but the rendered name is dev-scikit"
    )


def test_json_patch_by_list_index_is_reported_inline_and_in_a_file(said: Said) -> None:
    messages = said.of("AGY209")
    assert len(messages) == 2
    assert all("op: test, path: /spec/containers/0/args/0" in message for message in messages)


def test_production_application_on_a_feature_branch_is_reported(said: Said) -> None:
    assert any("fraud-production is a production Application, but follows branch feature/quick" in message
               for message in said.of("AGY105"))  # fmt: skip


def test_secret_with_a_value_is_reported_without_printing_the_value(said: Said) -> None:
    output = "\n".join(said.of("AGY601"))
    text = (FIXTURES / "AGY601/bad/manifests/object.yaml").read_text()
    value = text.partition("AWS_SECRET_ACCESS_KEY: ")[2].split()[0]
    assert "Secret/bucket: stringData.AWS_SECRET_ACCESS_KEY has a value" in output
    assert value not in output


def test_kubeconfig_with_a_token_in_git_gives_an_error(said: Said) -> None:
    assert said.of("AGY603")[0].startswith("error: this file is a kubeconfig with token: anyone who can read ")


def test_notebook_job_volumes_under_spec_are_reported_with_the_right_field(said: Said) -> None:
    assert said.of("AGY307")[0].endswith("move it to spec.podConfig.volumes")


def test_data_bearing_checklist_is_skipped_without_the_profile_annotation(said: Said) -> None:
    without = {"application.yaml": ("  annotations:\n    argosy.dev/profile: data-bearing\n", "")}
    assert said.of("AGY117", change=without) == []


def test_data_bearing_checklist_reports_every_item(said: Said) -> None:
    output = "\n".join(said.of("AGY117"))
    for item in (
        "follows try/other instead of main or a release",
        "has no sync option RespectIgnoreDifferences=true",
        "has no sync option ApplyOutOfSyncOnly=true",
        "deletes objects automatically when they are removed from Git; set prune: false",
        "reverts changes in the cluster automatically, including a restore; set selfHeal: false",
        "does not retry a failed sync",
        "does not name an owner; add an entry to spec.info",
    ):
        assert item in output


def test_profile_option_applies_the_data_bearing_checklist(said: Said) -> None:
    without = {"application.yaml": ("  annotations:\n    argosy.dev/profile: data-bearing\n", "")}
    assert len(said.of("AGY117", CheckRunOptions(profile="data-bearing"), without)) == 7


def test_notebook_that_does_not_wait_for_its_image_build_is_reported(said: Said) -> None:
    assert "and nothing waits for the build; add a Job that waits in a wave between them" in said.of("AGY302")[0]


def test_model_after_a_notebook_job_without_health_check_is_reported(said: Said) -> None:
    assert said.of("AGY122")[0].startswith(
        "info: InferenceService/fraud in a later wave does not wait for NotebookValidationJob/train"
    )


def test_requests_over_the_resource_quota_are_reported_for_gpu_and_cpu(said: Said) -> None:
    output = "\n".join(said.of("AGY204"))
    assert "Job/tune requests 2 nvidia.com/gpu, but ResourceQuota/team allows 1: it never starts" in output
    assert "InferenceService/fraud requests 2 × 4 cpu, but ResourceQuota/team allows 6" in output


@pytest.mark.tier("all")
def test_path_missing_at_the_target_revision_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from argosy.features.demo.stages_example_repository import add_later_commits, create_stages_repository

    origin = create_stages_repository(tmp_path / "origin")
    add_later_commits(origin)
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(tmp_path / "origin"), str(clone)], check=True)
    monkeypatch.chdir(clone)
    findings = check_paths(["."], options=DEFAULT_OPTIONS, log=lambda text: None).findings
    (behind,) = (finding for finding in findings if finding.rule.id == "AGY101")
    assert behind.location.file == "gitops/argocd/applications/stage01/app-stage01-model-serving.yaml"
    assert "at stage1-complete (as fetched in this clone)" in behind.violation.message
    assert "serving/vllm/pvc-mistral-24b.yaml does not exist" in behind.violation.message
