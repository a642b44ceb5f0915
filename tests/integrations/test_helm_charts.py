"""The Helm charts: URL and ref precedence, sync waves, rejected values, packaging and README."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.helm_charts import (
    CHARTS,
    GLOBAL,
    LIBRARY,
    NAMESPACE,
    NOTEBOOKS,
    PLATFORM,
    URL,
    helm,
    needs_helm,
    of_kind,
    refusal,
    rendered,
    the,
    wave_of,
)
from support.tiers import IN_TEST_ALL

pytestmark = needs_helm

IMAGE = "image-registry.openshift-image-registry.svc:5000/self-healing-platform/notebook-validator:latest"
SPECIFIC, LOCAL, SHARED = (f"https://git.example.com/{name}.git" for name in ("specific", "local", "shared"))
EVERYWHERE = {"git": {"repoURL": SHARED}}
NOTEBOOK = {"name": "train", "path": "train.ipynb"}
BUILT = {"repoURL": URL}
MODEL = {"name": "m", "modelFormat": "onnx"}


def with_notebooks(*jobs: dict[str, Any], **values: Any) -> dict[str, Any]:
    return {"git": {"repoURL": URL}, "notebooks": {"validation": {"jobs": list(jobs)}}, **values}


def few(*rows: Any) -> list[Any]:
    """The first and last row in every run, the others only in `make test-all`: each row starts Helm."""
    return [rows[0], *(pytest.param(*_columns(row), marks=IN_TEST_ALL) for row in rows[1:-1]), rows[-1]]


def _columns(row: Any) -> tuple[Any, ...]:
    return row if isinstance(row, tuple) else (row,)


@functools.cache
def full() -> list[dict[str, Any]]:
    return rendered({"global": {"git": {"repoURL": URL}}}, GLOBAL, NOTEBOOKS)


@pytest.mark.parametrize(
    ("values", "url"),
    few(
        ({"imageBuilds": {"gitRepository": SPECIFIC}, "git": {"repoURL": LOCAL}, "global": EVERYWHERE}, SPECIFIC),
        ({"git": {"repoURL": LOCAL}, "global": EVERYWHERE}, LOCAL),
        ({"global": EVERYWHERE}, SHARED),
        ({"git": {"repoURL": ""}, "global": EVERYWHERE}, SHARED),
        ({"imageBuilds": {"gitRepository": None}, "git": None, "global": EVERYWHERE}, SHARED),
        ({"imageBuilds": {"gitRepository": SPECIFIC}}, SPECIFIC),
        ({"git": {"repoURL": LOCAL}, "global": None}, LOCAL),
        ({"git": {"repoURL": LOCAL}, "global": {"git": None}}, LOCAL),
        ({"git": {"repoURL": LOCAL}, "global": {"git": "none"}}, LOCAL),
    ),
)
def test_most_specific_nonempty_git_url_wins(values: dict[str, Any], url: str) -> None:
    assert the(rendered(values), "BuildConfig")["spec"]["source"]["git"]["uri"] == url


@pytest.mark.parametrize(
    ("values", "ref"),
    few(
        ({"imageBuilds": {"gitRef": "a"}, "git": {"revision": "b"}, "global": {"git": {"revision": "c"}}}, "a"),
        ({"git": {"revision": "b"}, "global": {"git": {"revision": "c"}}}, "b"),
        ({"global": {"git": {"revision": "c"}}}, "c"),
        ({"global": {}}, "main"),
        ({"git": None}, "main"),
        ({"global": {"git": {"revision": 7}}}, "7"),
    ),
)
def test_most_specific_git_ref_wins_and_main_is_the_default(values: dict[str, Any], ref: str) -> None:
    build = {**values.get("imageBuilds", {}), "gitRepository": URL}
    assert the(rendered({**values, "imageBuilds": build}), "BuildConfig")["spec"]["source"]["git"]["ref"] == ref


@pytest.mark.parametrize(
    "values",
    few(
        {}, {"global": {}}, {"git": None}, {"git": {"repoURL": " "}}, {"git": BUILT, "imageBuilds": {"enabled": False}}
    ),
)
def test_missing_git_url_renders_no_build_and_no_wait_job(values: dict[str, Any]) -> None:
    kinds = {manifest["kind"] for manifest in rendered(values)}
    assert kinds & {"BuildConfig", "Job", "Role"} == set()
    assert "PersistentVolumeClaim" in kinds


def test_without_build_waits_for_an_image_pushed_elsewhere() -> None:
    manifests = rendered({"waitForImage": {"withoutBuild": True}})
    assert not of_kind(manifests, "BuildConfig")
    assert the(manifests, "Job") and the(manifests, "Role")


@pytest.mark.parametrize("values", few({}, {"git": None}, {"global": None}, {"global": {"git": None}}))
def test_notebook_without_git_url_is_rejected_naming_the_value(values: dict[str, Any]) -> None:
    assert "git.repoURL is required" in refusal({"notebooks": {"validation": {"jobs": [NOTEBOOK]}}, **values})


@pytest.mark.parametrize(
    ("own", "of_all", "url", "ref"),
    few(
        ({"url": SPECIFIC, "ref": "a"}, {"url": LOCAL, "ref": "b"}, SPECIFIC, "a"),
        ({}, {"url": LOCAL, "ref": "b"}, LOCAL, "b"),
        ({}, {}, URL, "main"),
        ({"ref": "a"}, None, URL, "a"),
    ),
)
def test_notebook_git_source_overrides_the_shared_one(own: dict[str, str], of_all: Any, url: str, ref: str) -> None:
    values = with_notebooks({**NOTEBOOK, "git": own})
    values["notebooks"]["validation"]["git"] = of_all
    assert the(rendered(values), "NotebookValidationJob")["spec"]["notebook"]["git"] == {"url": url, "ref": ref}


def test_each_kind_is_rendered_in_its_sync_wave() -> None:
    waves: dict[str, set[int]] = {}
    for manifest in full():
        waves.setdefault(manifest["kind"], set()).add(wave_of(manifest))
    assert waves == {
        "ServiceAccount": {-6}, "Role": {-6}, "RoleBinding": {-6}, "PersistentVolumeClaim": {-6}, "ImageStream": {-5},
        "BuildConfig": {-4}, "Job": {-3}, "NotebookValidationJob": {0, 1}, "InferenceService": {2},
    }  # fmt: skip


def test_image_users_are_in_later_waves_than_the_wait_job_and_the_build() -> None:
    manifests = full()
    users = [manifest for manifest in manifests if manifest["kind"] in ("NotebookValidationJob", "InferenceService")]
    assert users
    assert min(map(wave_of, users)) > wave_of(the(manifests, "Job")) > wave_of(the(manifests, "BuildConfig"))


@pytest.mark.parametrize(
    ("values", "sentence"),
    few(
        (with_notebooks({**NOTEBOOK, "wave": -4}), "notebook train: wave -4 is before 0"),
        ({"inferenceServices": [{**MODEL, "wave": -1}]}, "inference service m: wave -1 is before 0"),
        (with_notebooks({**NOTEBOOK, "wave": "soon"}), 'sync wave "soon" must be a whole number'),
        (with_notebooks({**NOTEBOOK, "tier": "tier9"}), "there is no tier tier9; notebooks.validation.tiers has"),
        (with_notebooks({"name": "train"}), "notebook train: path is required"),
        (with_notebooks({"path": "a.ipynb"}), "notebooks.validation.jobs: name is required"),
        ({"inferenceServices": [{"name": "m"}]}, "inference service m: modelFormat is required"),
        ({"storage": {"enabled": False}, "inferenceServices": [MODEL]}, "storageUri is required"),
        ({"git": BUILT, "waitForImage": {"timeout": "1h"}}, 'timeout is "1h"; it must be a whole number of seconds'),
        ({"git": BUILT, "waitForImage": {"timeout": 604801}}, "at most 604800"),
        ({"git": BUILT, "waitForImage": {"timeout": 10**20}}, "at most 604800"),
        ({"git": BUILT, "imageBuilds": {"name": "n" * 60}}, "is longer than 63 characters"),
    ),
)
def test_invalid_value_is_rejected_with_the_reason(values: dict[str, Any], sentence: str) -> None:
    assert sentence in refusal(values)


def test_wave_0_is_not_treated_as_unset() -> None:
    manifests = rendered({"inferenceServices": [{**MODEL, "wave": 0}]})
    assert wave_of(the(manifests, "InferenceService")) == 0


@pytest.mark.parametrize(
    ("tier", "requests", "limits", "timeout"),
    few(
        ("tier1", {"memory": "512Mi", "cpu": "500m"}, {"memory": "1Gi", "cpu": "1"}, "5m"),
        (None, {"memory": "2Gi", "cpu": "1"}, {"memory": "4Gi", "cpu": "2"}, "15m"),
        ("tier2", {"memory": "2Gi", "cpu": "1"}, {"memory": "4Gi", "cpu": "2"}, "15m"),
        ("tier3", {"memory": "4Gi", "cpu": "2"}, {"memory": "8Gi", "cpu": "4", "nvidia.com/gpu": "1"}, "45m"),
    ),
)
def test_tier_sets_notebook_resources_and_timeout(
    tier: str | None, requests: dict[str, str], limits: dict[str, str], timeout: str
) -> None:
    spec = the(rendered(with_notebooks({**NOTEBOOK, "tier": tier})), "NotebookValidationJob")["spec"]
    assert spec["podConfig"]["resources"] == {"requests": requests, "limits": limits}
    assert spec["timeout"] == timeout


def test_all_tiers_use_the_same_image() -> None:
    assert yaml.safe_load(NOTEBOOKS.read_text())["images"] == {"tier1": IMAGE, "tier2": IMAGE, "tier3": IMAGE}
    jobs = of_kind(full(), "NotebookValidationJob")
    assert len(jobs) == 3
    assert {job["spec"]["podConfig"]["containerImage"] for job in jobs} == {IMAGE}


def test_notebook_without_image_uses_the_image_built_in_its_namespace() -> None:
    image = the(rendered(with_notebooks(NOTEBOOK)), "NotebookValidationJob")["spec"]["podConfig"]["containerImage"]
    assert image == IMAGE.replace("self-healing-platform", NAMESPACE)


def test_build_pushes_the_tag_that_the_job_waits_for() -> None:
    manifests = rendered({"git": {"repoURL": URL}, "imageBuilds": {"name": "trainer", "tag": "v2"}})
    output = the(manifests, "BuildConfig")["spec"]["output"]["to"]
    (container,) = the(manifests, "Job")["spec"]["template"]["spec"]["containers"]
    assert output == {"kind": "ImageStreamTag", "name": "trainer:v2"}
    assert {"name": "IMAGE_TAG", "value": "trainer:v2"} in container["env"]
    assert the(manifests, "ImageStream")["metadata"]["name"] == "trainer"


def test_required_values_are_marked_in_the_values_files() -> None:
    text = (PLATFORM / "values.yaml").read_text()
    assert re.search(r"repoURL: \"\" # REQUIRED: .*values-global\.yaml", text)
    assert 'repoURL: "" # REQUIRED' in GLOBAL.read_text()
    assert len(re.findall("REQUIRED", text)) >= 5


def test_default_service_account_is_used_but_not_rendered() -> None:
    default = {"serviceAccount": "default"}
    manifests = rendered({"git": BUILT, "waitForImage": default, "notebooks": {"validation": default}})
    assert not of_kind(manifests, "ServiceAccount")
    assert the(manifests, "RoleBinding")["subjects"][0]["name"] == "default"
    assert the(manifests, "Job")["spec"]["template"]["spec"]["serviceAccountName"] == "default"


def test_every_object_is_in_the_release_namespace() -> None:
    assert {manifest["metadata"]["namespace"] for manifest in full()} == {NAMESPACE}


@pytest.mark.parametrize(("url", "files"), few(("", []), (URL, []), (URL, [GLOBAL]), (URL, [GLOBAL, NOTEBOOKS])))
def test_helm_lint_strict_passes(url: str, files: list[Path]) -> None:
    named = [word for file in files for word in ("-f", file)]
    done = helm("lint", "--strict", PLATFORM, *named, "--set", f"git.repoURL={url}")
    assert done.returncode == 0, done.stdout
    assert "0 chart(s) failed" in done.stdout


def test_packaged_chart_includes_the_library_and_renders(tmp_path: Path) -> None:
    assert helm("package", PLATFORM, "--destination", tmp_path).returncode == 0
    (package,) = tmp_path.glob("llmops-platform-*.tgz")
    assert the(rendered({"git": {"repoURL": URL}}, chart=package), "Job")


def test_another_chart_can_depend_on_the_library_by_path(tmp_path: Path) -> None:
    chart = tmp_path / "other"
    (chart / "templates").mkdir(parents=True)
    needed = {"name": "llmops-library", "version": "0.1.0", "repository": f"file://{LIBRARY}"}
    named = {"apiVersion": "v2", "name": "other", "version": "1.0.0", "dependencies": [needed]}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(named))
    (chart / "templates" / "url.yaml").write_text(
        'kind: Asked\nurl: {{ include "llmops-library.git.requiredURL" (dict "values" .Values) }}\n'
    )
    done = helm("dependency", "build", chart)
    assert done.returncode == 0, done.stderr
    assert the(rendered({"global": {"git": {"repoURL": SHARED}}}, chart=chart), "Asked")["url"] == SHARED
    assert "git.repoURL is required" in refusal({}, chart=chart)


def test_readme_lists_the_rendered_waves() -> None:
    text = (CHARTS / "README.md").read_text()
    drawn = {int(wave.replace("−", "-")) for wave in re.findall(r"^\| (−?\d)(?: and later)? \|", text, re.MULTILINE)}
    assert drawn == {wave_of(manifest) for manifest in full()} - {1}


def test_readme_describes_the_cost_and_benefit_of_waiting() -> None:
    order = (CHARTS / "README.md").read_text().partition("## The order")[2].partition("\n## ")[0]
    assert "first deployment longer" in order and "`ErrImagePull`" in order
