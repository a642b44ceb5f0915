"""The llmops-via-argocd example: its files, rendered overlays, Applications, and references in its guides."""

from __future__ import annotations

import base64
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.deadlines import HANG_SECONDS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "llmops-via-argocd"
KUBECTL = Path(sys.executable).parent / "kubectl"
PAGES = sorted(FOLDER.rglob("*.md"))
MODEL = "qwen25-05b-instruct"

DRAWN = """\
argocd-apps/dev-application.yaml
argocd-apps/staging-application.yaml
argocd-apps/production-application.yaml
deploy_model/base/inferenceservice.yaml
deploy_model/base/servingruntime.yaml
deploy_model/base/oci-data-connection.yaml
deploy_model/base/kustomization.yaml
deploy_model/overlays/dev/kustomization.yaml
deploy_model/overlays/staging/kustomization.yaml
deploy_model/overlays/production/kustomization.yaml
setup_scripts/setup-argocd.sh
setup_scripts/apply-argocd-apps.sh
README.md
step-by-step-guide.md
QUICK-START.md
COMPARISON.md
IMPLEMENTATION-SUMMARY.md
""".splitlines()
BESIDE = """\
argocd-custom-healthcheck/README.md
argocd-custom-healthcheck/apply-health-check-via-cr.sh
argocd-custom-healthcheck/verify-health-check.sh
deploy_model/secret-examples/README.md
deploy_model/secret-examples/external-secret/externalsecret.yaml
deploy_model/secret-examples/external-secret/kustomization.yaml
deploy_model/secret-examples/sealed-secret/kustomization.yaml
deploy_model/secret-examples/sealed-secret/sealedsecret.yaml
CODEOWNERS
""".splitlines()


def files_in(folder: Path) -> set[str]:
    """The files that belong to the project, without caches."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(file) for file in files if not any(part.endswith(("_cache", "__pycache__")) for part in file.parts)}


def test_folder_contains_exactly_the_expected_files() -> None:
    files = {file for file in files_in(FOLDER) if not file.startswith("pipelines/")}
    assert files == {*DRAWN, *BESIDE}


def test_readme_tree_names_every_expected_file() -> None:
    drawing = (FOLDER / "README.md").read_text()
    for file in DRAWN:
        *_, folder, name = ["", *Path(file).parts]
        assert name in drawing or f"{folder}/{name}" in drawing, file


def test_every_script_is_executable() -> None:
    scripts = [*FOLDER.rglob("*.sh"), *(path for path in FOLDER.rglob("*.py") if path.read_text().startswith("#!"))]
    assert len(scripts) >= 9
    assert [path for path in scripts if not path.stat().st_mode & 0o111] == []


# -- rendered overlays ---------------------------------------------------------------------------------------------


@cache
def render(folder: Path) -> dict[str, dict[str, Any]]:
    """The manifests of an overlay by kind, as built by `kubectl kustomize`."""
    if not KUBECTL.exists():
        pytest.skip("no kubectl in .venv/bin: make install")
    done = subprocess.run(
        [KUBECTL, "kustomize", folder], capture_output=True, text=True, timeout=HANG_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return {manifest["kind"]: manifest for manifest in yaml.safe_load_all(done.stdout)}


def overlay(environment: str) -> dict[str, dict[str, Any]]:
    return render(FOLDER / "deploy_model/overlays" / environment)


ENVIRONMENTS = {
    # environment: prefix, namespace, min and max replicas, limits, requests, maximum model length
    "dev": ("dev-", "llmops-dev", (1, 1), ("2", "6Gi"), ("500m", "4Gi"), "32768"),
    "staging": ("staging-", "llmops-staging", (1, 2), ("3", "8Gi"), ("1", "6Gi"), "8000"),
    "production": ("prod-", "llmops-prod", (2, 3), ("4", "12Gi"), ("2", "8Gi"), "32768"),
}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_overlay_sets_names_namespace_replicas_and_resources(environment: str) -> None:
    prefix, namespace, replicas, limits, requests, _ = ENVIRONMENTS[environment]
    manifests = overlay(environment)
    assert manifests.keys() == {"Secret", "ServingRuntime", "InferenceService"}
    for manifest in manifests.values():
        assert (manifest["metadata"]["name"], manifest["metadata"]["namespace"]) == (prefix + MODEL, namespace)
    service = manifests["InferenceService"]
    predictor = service["spec"]["predictor"]
    assert (predictor["minReplicas"], predictor["maxReplicas"]) == replicas
    assert predictor["model"]["resources"] == {
        "limits": {"cpu": limits[0], "memory": limits[1], "nvidia.com/gpu": "1"},
        "requests": {"cpu": requests[0], "memory": requests[1], "nvidia.com/gpu": "1"},
    }
    assert service["metadata"]["annotations"]["openshift.io/display-name"] == f"qwen2.5-0.5b-{environment}"


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_inference_service_is_the_same_in_every_environment(environment: str) -> None:
    service = overlay(environment)["InferenceService"]
    assert service["apiVersion"] == "serving.kserve.io/v1beta1"
    assert service["metadata"]["labels"] == {
        "opendatahub.io/dashboard": "true",
        "networking.kserve.io/visibility": "exposed",
        "opendatahub.io/genai-asset": "true",
    }
    assert service["metadata"]["annotations"] == {
        "argocd.argoproj.io/sync-wave": "1",
        "opendatahub.io/model-type": "generative",
        "openshift.io/display-name": f"qwen2.5-0.5b-{environment}",
        "serving.knative.dev/revision-history-limit": "3",
        "serving.kserve.io/deploymentMode": "RawDeployment",
    }
    predictor = service["spec"]["predictor"]
    assert (predictor["containerConcurrency"], predictor["canaryTrafficPercent"]) == (1, 100)
    assert predictor["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert predictor["model"]["modelFormat"] == {"name": "vLLM"}
    catalog = "oci://quay.io/redhat-ai-services/modelcar-catalog"
    assert predictor["model"]["storageUri"] == f"{catalog}:qwen2.5-0.5b-instruct"


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_inference_service_names_the_runtime_of_its_overlay(environment: str) -> None:
    manifests = overlay(environment)
    named = manifests["InferenceService"]["spec"]["predictor"]["model"]["runtime"]
    assert named == manifests["ServingRuntime"]["metadata"]["name"] == ENVIRONMENTS[environment][0] + MODEL


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_serving_runtime_runs_vllm_with_the_context_length_of_its_environment(environment: str) -> None:
    runtime = overlay(environment)["ServingRuntime"]
    assert runtime["apiVersion"] == "serving.kserve.io/v1alpha1"
    assert runtime["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] == "0"
    spec = runtime["spec"]
    assert spec["annotations"] == {"prometheus.io/path": "/metrics", "prometheus.io/port": "8080"}
    assert spec["supportedModelFormats"] == [{"name": "vLLM", "autoSelect": True}]
    assert spec["volumes"] == [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}}]
    (container,) = spec["containers"]
    assert container["command"] == ["python", "-m", "vllm.entrypoints.openai.api_server"]
    assert container["args"] == [
        "--port=8080",
        "--model=/mnt/models",
        "--served-model-name={{.Name}}",
        "--max-model-len",
        ENVIRONMENTS[environment][5],
    ]
    assert container["env"] == [{"name": "HF_HOME", "value": "/tmp/hf_home"}]
    assert container["ports"] == [{"containerPort": 8080, "protocol": "TCP"}]
    assert container["volumeMounts"] == [{"name": "shm", "mountPath": "/dev/shm"}]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_data_connection_secret_has_five_empty_keys(environment: str) -> None:
    secret = overlay(environment)["Secret"]
    keys = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "DEFAULT_REGION", "S3_BUCKET", "S3_ENDPOINT")
    assert secret["stringData"] == {f"AWS_{key}": "" for key in keys}
    assert "data" not in secret
    assert secret["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] == "0"


@pytest.mark.parametrize(
    "example, kind",
    [
        ("external-secret", "ExternalSecret"),
        pytest.param("sealed-secret", "SealedSecret", marks=pytest.mark.tier("all")),
    ],
)
@pytest.mark.parametrize(
    "environment",
    [
        pytest.param(environment_name, marks=pytest.mark.tier("all") if number else ())
        for number, environment_name in enumerate(ENVIRONMENTS)
    ],
)
def test_secret_example_component_replaces_the_empty_secret(
    environment: str, example: str, kind: str, tmp_path: Path
) -> None:
    shutil.copytree(FOLDER / "deploy_model", tmp_path / "deploy_model")
    file = tmp_path / "deploy_model/overlays" / environment / "kustomization.yaml"
    file.write_text(file.read_text() + f"components:\n  - ../../secret-examples/{example}\n")
    manifests = render(file.parent)
    assert manifests.keys() == {kind, "ServingRuntime", "InferenceService"}
    assert manifests[kind]["metadata"]["name"] == overlay(environment)["Secret"]["metadata"]["name"]
    assert "name" not in manifests[kind]["spec"].get("target", {}), "the Secret is called like the object that makes it"


# -- Applications --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_application_manifest_deploys_its_overlay_with_the_documented_sync_policy(environment: str) -> None:
    application = yaml.safe_load((FOLDER / f"argocd-apps/{environment}-application.yaml").read_text())
    assert (application["apiVersion"], application["kind"]) == ("argoproj.io/v1alpha1", "Application")
    assert application["metadata"] == {
        "name": f"llmops-{environment}",
        "namespace": "openshift-gitops",
        "labels": {"app": "llmops", "environment": environment},
    }
    spec = application["spec"]
    automated = {"automated": {"prune": True, "selfHeal": True, "allowEmpty": False}} if environment == "dev" else {}
    assert spec == {
        "project": "default",
        "source": {
            "repoURL": "https://github.com/your-org/llmops-demo.git",
            "targetRevision": "main",
            "path": f"llmops-via-argocd/deploy_model/overlays/{environment}",
        },
        "destination": {"server": "https://kubernetes.default.svc", "namespace": ENVIRONMENTS[environment][1]},
        "syncPolicy": {
            **automated,
            "syncOptions": ["CreateNamespace=true", "PruneLast=true"],
            "retry": {"limit": 5, "backoff": {"duration": "5s", "factor": 2, "maxDuration": "3m"}},
        },
        "ignoreDifferences": [
            {"group": "serving.kserve.io", "kind": "InferenceService", "jsonPointers": ["/status"]},
        ],
    }
    assert (ROOT / spec["source"]["path"] / "kustomization.yaml").is_file()


def test_no_manifest_mentions_argosy() -> None:
    assert [path for path in FOLDER.rglob("*.yaml") if "argosy" in path.read_text()] == []


# -- the guides ----------------------------------------------------------------------------------------------------

SHELL = re.compile(r"^ *```bash\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
HEREDOC = re.compile(r"<<'(\w+)'.*?^\1$", re.MULTILINE | re.DOTALL)
OWN = re.compile(r"(\./|argocd-apps|deploy_model|setup_scripts|argocd-custom|pipelines/|CODEOWNERS)")


def named_files(page: Path) -> Iterator[tuple[str, Path]]:
    """Yield every file of the folder that a page's command names, with the reader's working directory at that point."""
    folder = FOLDER  # the working directory carries over from one block to the next
    for block in SHELL.findall(page.read_text()):
        for line in HEREDOC.sub("", block).replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True) if line.count("'") % 2 == 0 else line.split()
            if words[:1] == ["cd"]:
                folder = FOLDER / words[1].rpartition("llmops-via-argocd")[2].strip("/")
                continue
            yield from ((word, folder) for word in words if OWN.match(word) and "=" not in word)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(FOLDER)))
def test_every_file_named_in_a_guide_command_exists(page: Path) -> None:
    assert [word for word, folder in named_files(page) if not list(folder.glob(word))] == []


def test_named_file_search_finds_files_and_detects_a_missing_one(tmp_path: Path) -> None:
    names = [word for page in PAGES for word, _ in named_files(page)]
    assert len(names) >= 25
    page = tmp_path / "page.md"
    page.write_text("```bash\n./setup_scripts/missing.sh\n```\n")
    assert [folder.joinpath(word).exists() for word, folder in named_files(page)] == [False]


def anchors(page: Path) -> set[str]:
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(FOLDER)))
def test_every_link_and_anchor_of_a_guide_resolves(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        path, _, anchor = link.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not link.startswith("https:") and (not file.exists() or (anchor and anchor not in anchors(file))):
            broken.append(link)
    assert broken == []


def test_guide_has_ten_steps_that_end_with_a_check_except_step_nine() -> None:
    steps = re.split(r"^## Step ", (FOLDER / "step-by-step-guide.md").read_text(), flags=re.MULTILINE)[1:]
    assert [int(step.partition(":")[0]) for step in steps] == list(range(1, 11))
    without = [number for number, step in enumerate(steps, 1) if "> **Check**" not in step]
    assert without == [9], "work has no end"


def test_guide_lists_the_duration_of_each_step() -> None:
    opening = (FOLDER / "step-by-step-guide.md").read_text().partition("\n## ")[0]
    rows = {int(number): time for number, time in re.findall(r"^\| \[(\d+)\. [^|]+\| ?([^|]*?) ?\|$", opening, re.M)}
    assert rows == {
        1: "5 minutes",
        2: "5–10 minutes",
        3: "2 minutes",
        4: "1 minute",
        5: "5 minutes",
        6: "2 minutes",
        7: "2 minutes",
        8: "3–5 minutes for each environment",
        9: "",
        10: "",
    }
    assert "Twenty to thirty minutes in all" in opening


def test_guide_describes_the_webhook_as_faster_than_polling() -> None:
    text = (FOLDER / "step-by-step-guide.md").read_text().partition("### Faster than polling")[2].partition("\n#")[0]
    for named in ("every two minutes", "`/api/webhook`", "`application/json`", "push", "`webhook.github.secret`"):
        assert named in " ".join(text.split()), named


def test_no_guide_passes_a_secret_as_a_command_argument() -> None:
    argument = re.compile(r"(--from-literal=(?:password|token|webhook|sshPrivateKey)\b|--(?:password|token)[= ])")
    assert [
        (page.name, secret_argument) for page in PAGES for secret_argument in argument.findall(page.read_text())
    ] == []


@pytest.mark.parametrize("key, page", [("password", "step-by-step-guide.md"), ("token", "pipelines/README.md")])
def test_secret_created_by_a_guide_command_has_no_trailing_newline(key: str, page: str) -> None:
    if not KUBECTL.exists():
        pytest.skip("no kubectl in .venv/bin: make install")
    blocks = (block for block in SHELL.findall((FOLDER / page).read_text()) if "oc create secret generic" in block)
    command = re.search(r"^oc (create secret generic .*?[^\\])$", next(blocks), re.MULTILINE | re.DOTALL)
    assert command, page
    line = f"{shlex.quote(str(KUBECTL))} {command[1]} --dry-run=client -o json"
    env = {"PATH": "/usr/bin:/bin", "GITHUB_TOKEN": "hunter2", "HOME": "/nonexistent"}
    done = subprocess.run(
        ["bash", "-c", line], env=env, capture_output=True, text=True, timeout=HANG_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    assert base64.b64decode(yaml.safe_load(done.stdout)["data"][key]) == b"hunter2"


def test_sed_edits_of_the_guides_change_the_documented_values(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "copy")
    edits = {line for page in PAGES for line in page.read_text().splitlines() if line.startswith("sed -i ")}
    assert len(edits) == 3
    for edit in sorted(edits):
        subprocess.run(["bash", "-c", edit], cwd=tmp_path / "copy", check=True, timeout=HANG_SECONDS)
    applications = [yaml.safe_load(path.read_text()) for path in (tmp_path / "copy/argocd-apps").iterdir()]
    assert {application["spec"]["source"]["repoURL"] for application in applications} == {
        "https://github.com/ME/MINE.git"
    }
    predictor = render(tmp_path / "copy/deploy_model/overlays/dev")["InferenceService"]["spec"]["predictor"]
    assert predictor["model"]["resources"]["limits"]["cpu"] == "3"
    assert predictor["model"]["resources"]["requests"]["cpu"] == "500m"
    assert predictor["model"]["runtime"] == MODEL, "the way to see a check fail"
