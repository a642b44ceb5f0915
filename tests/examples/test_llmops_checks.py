"""The pre-merge checks pass on the example and find injected mistakes; Tekton and GitHub run the same checks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.deadlines import HANG_SECONDS
from support.tiers import IN_TEST_ALL

FOLDER = Path(__file__).parents[2] / "llmops-via-argocd"
TEKTON = FOLDER / "pipelines/tekton"
WORKFLOW = FOLDER / "pipelines/github/validate.yaml"
KUBECTL = Path(sys.executable).parent / "kubectl"
DEV, STAGING, PRODUCTION = (
    f"deploy_model/overlays/{environment}/kustomization.yaml" for environment in ("dev", "staging", "production")
)
SERVICE, RUNTIME, SECRET = (
    f"deploy_model/base/{name}.yaml" for name in ("inferenceservice", "servingruntime", "oci-data-connection")
)


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    """An environment with kubectl, a python3 that has PyYAML and installs nothing, and a curl that records requests."""
    if not KUBECTL.exists():
        pytest.skip("no kubectl in .venv/bin: make install")
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "kubectl").symlink_to(KUBECTL)
    write_program(folder / "python3", f'[ "$1 $2" = "-m pip" ] || exec "{sys.executable}" "$@"')
    write_program(folder / "curl", f'cat > "{tmp_path}/asked"; printf "%s\\n" "$@" >> "{tmp_path}/asked"')
    git = {"GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"), "GIT_CONFIG_NOSYSTEM": "1"}
    path_variables = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    return path_variables | git | {"LC_ALL": "C.UTF-8"}


def write_program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__", ".*_cache")
    return Path(shutil.copytree(FOLDER, tmp_path / "repository/llmops-via-argocd", ignore=ignored))


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text, f"{file.name} has no {old!r}"
    file.write_text(text.replace(old, new, 1))


def run(command: list[Path | str], env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=env,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )


def check_all(copy: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return run([copy / "pipelines/scripts/check-all.sh"], env, copy)


def test_checks_pass_on_the_example_and_print_what_the_readme_shows(copy: Path, programs: dict[str, str]) -> None:
    done = check_all(copy, programs)
    assert done.returncode == 0, done.stdout
    page_outputs = re.findall(
        r"^```\n(== .*?)```", (FOLDER / "pipelines/README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert [re.sub(r"\d+", "N", text) for text in (done.stdout, *page_outputs)] == [
        re.sub(r"\d+", "N", done.stdout)
    ] * 2


BROKEN = [
    # mistake, file, old text, new text, expected message
    ("a value one level off", STAGING, '  value: "8000"', 'value: "8000"', "patch 2: line 6: .*indented"),
    ("a value at the wrong key", STAGING, '        value: "8000"', '        valeu: "8000"', "args/4: there is no"),
    ("a patch without its text", DEV, "    patch: |-", "    notes: |-", "patch 1: neither patch nor path"),
    ("an unknown runtime", DEV, "value: dev-qwen", "value: qwen", "the runtime qwen25-05b-instruct does not exist"),
    ("the runtime of another environment", PRODUCTION, "value: prod-q", "value: dev-q", "the runtime dev-qwen25"),
    ("a position out of bounds", STAGING, "args/4", "args/9", "args/9: base has 5 arguments"),
    ("a position without a test", STAGING, "- op: test", "- op: replace", "args/4: put a test of args/3 before it"),
    ("a position that moved", RUNTIME, "        - --port=8080\n", "", "✗ staging does not build"),
    ("a value that lost its flag", RUNTIME, "--max-model-len", "--trust-remote-code=1", "32768 follows --trust"),
    ("a Secret with a value", SECRET, 'AWS_S3_BUCKET: ""', "AWS_S3_BUCKET: models", "AWS_S3_BUCKET has a value"),
    ("one replica in production", PRODUCTION, "value: 2\n", "value: 1\n", "replicas 1 to 3 are not within 2 to 3"),
    ("more replicas than may be", DEV, "value: 1\n", "value: 4\n", "replicas 4 to 1 are not within 1 to 1"),
    ("a number as text", DEV, "value: 1\n", 'value: "1"\n', "minReplicas '1' and maxReplicas 1 must be numbers"),
    ("a limit beyond what is expected", DEV, "value: 6Gi", "value: 60Gi", "the limit 60Gi is more than the 8Gi"),
    ("a request above its limit", STAGING, 'value: "1"\n', 'value: "3500m"\n', "3500m is more than the limit 3"),
    ("a quantity that is none", DEV, "value: 6Gi", "value: 6Gb", "limit 6Gb is not a quantity"),
    ("a model before its runtime", SERVICE, 'sync-wave: "1"', 'sync-wave: "0"', "wave 0 is not before"),
    ("another namespace", DEV, "namespace: llmops-dev", "namespace: llmops-prod", "llmops-prod, not llmops-dev"),
    ("another prefix", DEV, "namePrefix: dev-", "namePrefix: test-", "the name does not begin with dev-"),
    ("a duplicate key", DEV, "namePrefix: dev-", "namePrefix: dev-\nnamePrefix: dev-", "duplicate key namePrefix"),
    ("a tab", DEV, "  - ../../base", "\t- ../../base", "a tab in the indentation"),
    ("spaces at an end", DEV, "../../base", "../../base  ", "line 7: spaces at the end"),
    ("a base that is not there", DEV, "../../base", "../../bass", "✗ dev does not build"),
    ("an image that moves", RUNTIME, "rhel9@sha256:", "rhel9:latest #", "is not pinned"),
    ("root", RUNTIME, "      ports:", "      securityContext: {privileged: true}\n      ports:", "privileged is on"),
    ("a folder of the node", RUNTIME, "emptyDir:", "hostPath: {path: /}\n      emptyDir:", "is a folder of the node"),
    ("a token in a variable", RUNTIME, "- name: HF_HOME", "- name: HF_TOKEN", "HF_TOKEN has a value"),
    ("an automatic production", "argocd-apps/production-application.yaml", "    syncOptions:",
     "    automated: {}\n    syncOptions:", "llmops-production: the sync is not manual"),
    ("a branch", "argocd-apps/staging-application.yaml", "sion: main", "sion: fix", "targetRevision is fix, not main"),
    ("the wrong overlay", "argocd-apps/staging-application.yaml", "overlays/staging", "overlays/dev", "is not the o"),
    ("another repository", "argocd-apps/dev-application.yaml", "your-org", "their-org", "from different repositories"),
    ("an access key", "QUICK-START.md", "# Quick", f"AKIA{'A' * 16}\n# Quick", "line 1: looks like an AWS access key"),
    ("a private key", "README.md", "# A", "-----BEGIN RSA PRIVATE KEY-----\n# A", "looks like a private key"),
    ("a token of GitHub", "README.md", "# A", f"ghp_{'a' * 36}\n# A", "looks like a GitHub token"),
]  # fmt: skip


# These hide other mistakes: no manifests of an environment, or a file or field that cannot be read.
ALONE = {
    "a value one level off",
    "a value at the wrong key",
    "a patch without its text",
    "a position out of bounds",
    "a position that moved",
    "a number as text",
    "another namespace",
    "a key that stands twice",
    "a tab",
    "a base that is not there",
}
CASES = [pytest.param(*rest, id=mistake, marks=IN_TEST_ALL) for mistake, *rest in BROKEN]


def test_mistakes_in_many_files_are_all_reported_in_one_run(copy: Path, programs: dict[str, str]) -> None:
    together: list[str] = []
    for mistake, file, old, new, message in BROKEN:
        if mistake not in ALONE and old in (copy / file).read_text():  # else another mistake is there already
            change(copy / file, old, new)
            together.append(message)
    assert len(together) > 20
    done = check_all(copy, programs)
    assert done.returncode == 1, done.stdout
    assert [pattern for pattern in together if not re.search(pattern, done.stdout)] == [], done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.parametrize("file, old, new, said", CASES)
def test_each_mistake_is_reported_and_the_check_fails(
    file: str, old: str, new: str, said: str, copy: Path, programs: dict[str, str]
) -> None:
    change(copy / file, old, new)
    done = check_all(copy, programs)
    assert done.returncode == 1, done.stdout
    assert re.search(said, done.stdout), done.stdout
    assert "Traceback" not in done.stdout
    assert done.stdout.endswith("✗ not ready to merge\n")


@pytest.mark.tier("all")
def test_found_credential_is_not_printed(copy: Path, programs: dict[str, str]) -> None:
    (copy / "notes.txt").write_text(f"sha256~{'s' * 43}\n")
    done = check_all(copy, programs)
    assert "notes.txt: line 1: looks like an OpenShift token" in done.stdout
    assert "sss" not in done.stdout


@pytest.mark.tier("all")
def test_password_in_git_remote_url_is_not_reported(copy: Path, programs: dict[str, str]) -> None:
    (copy / ".git").mkdir()
    (copy / ".git" / "config").write_text('[remote "origin"]\n\turl = https://ci-token:abcdef@git.example/a/b.git\n')
    done = check_all(copy, programs)
    assert "looks like a password in an address" not in done.stdout


@pytest.mark.tier("all")
def test_sealed_secret_with_placeholders_fails_and_a_filled_one_passes(copy: Path, programs: dict[str, str]) -> None:
    change(copy / DEV, "patches:", "components:\n  - ../../secret-examples/sealed-secret\npatches:")
    assert "SealedSecret/dev-qwen25-05b-instruct: still has replace-me values" in check_all(copy, programs).stdout
    sealed = copy / "deploy_model/secret-examples/sealed-secret/sealedsecret.yaml"
    sealed.write_text(sealed.read_text().replace("replace-me", "AgB4x"))
    assert check_all(copy, programs).returncode == 0


@pytest.mark.tier("all")
def test_unexpected_environment_is_reported(copy: Path, programs: dict[str, str]) -> None:
    shutil.copytree(copy / "deploy_model/overlays/dev", copy / "deploy_model/overlays/test")
    assert "✗ test: is in only one of" in check_all(copy, programs).stdout


def test_checks_fail_without_kustomize_and_kubectl(copy: Path, programs: dict[str, str], tmp_path: Path) -> None:
    few = tmp_path / "few"
    few.mkdir()
    for name in ("bash", "dirname", "mktemp", "rm", "env", "sh"):
        (few / name).symlink_to(shutil.which(name) or name)
    done = check_all(copy, programs | {"PATH": str(few), "PYTHON": sys.executable})
    assert done.returncode == 1
    assert "Error: neither kustomize nor kubectl was found" in done.stdout


# -- the same checks at GitHub and in Tekton -----------------------------------------------------------------------


def run_workflow(copy: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the workflow's step commands with bash, as GitHub's runner does."""
    steps = yaml.safe_load(WORKFLOW.read_text())["jobs"]["validate"]["steps"]
    commands = "\n".join(step["run"] for step in steps if "run" in step)
    return run(["bash", "-eo", "pipefail", "-c", commands], env, copy.parent)


class Tekton:
    """Simulates the Pipeline: tasks in order, variables substituted, each step run by a real shell in a workspace."""

    def __init__(self, repository: Path, env: dict[str, str], workspace: Path) -> None:
        documents = [document for path in TEKTON.glob("*.yaml") for document in yaml.safe_load_all(path.read_text())]
        self.tasks = {
            document["metadata"]["name"]: document["spec"] for document in documents if document["kind"] == "Task"
        }
        (self.pipeline,) = [document["spec"] for document in documents if document["kind"] == "Pipeline"]
        self.params = {"url": str(repository), "repository": "your-org/llmops-demo", "revision": "main"}
        self.params["folder"] = "llmops-via-argocd"
        self.env, self.workspace = env, workspace
        workspace.mkdir()

    def fill(self, text: str, params: dict[str, Any], status: str = "") -> str:
        text = text.replace("$(workspaces.source.path)", str(self.workspace)).replace("$(tasks.status)", status)
        return re.sub(r"\$\(params\.([\w-]+)\)", lambda match: str(params[match[1]]), text)

    def run(self) -> tuple[str, dict[str, int]]:
        ended: dict[str, int] = {}
        for task in self.pipeline["tasks"]:  # listed in an order that `runAfter` allows
            assert set(task.get("runAfter", [])) <= {other_task["name"] for other_task in self.pipeline["tasks"]}
            if all(ended.get(before) == 0 for before in task.get("runAfter", [])):
                ended[task["name"]] = self.run_task(task, "")
        whole = len(ended) == len(self.pipeline["tasks"]) and not any(ended.values())
        status = "Succeeded" if whole else "Failed"
        (report,) = self.pipeline["finally"]
        assert self.run_task(report, status) == 0
        return status, ended

    def run_task(self, task: dict[str, Any], status: str) -> int:
        spec = self.tasks[task["taskRef"]["name"]]
        params = {param["name"]: param["default"] for param in spec["params"] if "default" in param}
        for param in task["params"]:
            assert param["name"] in {declared["name"] for declared in spec["params"]}, param
            value = param["value"]
            filled = [self.fill(text, self.params, status) for text in (value if isinstance(value, list) else [value])]
            params[param["name"]] = filled if isinstance(value, list) else filled[0]
        (step,) = spec["steps"]
        env = {variable["name"]: self.fill(variable.get("value", "secret-token"), params) for variable in step["env"]}
        arguments: list[str] = []
        for argument in step.get("args", []):
            listed = re.fullmatch(r"\$\(params\.([\w-]+)\[\*\]\)", argument)
            arguments += params[listed[1]] if listed else [self.fill(argument, params)]
        folder = Path(self.fill(step.get("workingDir", str(self.workspace)), params))
        done = run(["sh", "-c", self.fill(step["script"], params), "script", *arguments], self.env | env, folder)
        print(done.stdout)
        return done.returncode


def commit(copy: Path, env: dict[str, str]) -> None:
    script = "git init -q -b main . && git add . && git -c user.name=a -c user.email=a@b commit -qm first"
    done = run(["sh", "-c", script], env, copy.parent)
    assert done.returncode == 0, done.stdout


@pytest.mark.tier("all")
def test_github_workflow_passes_and_fails_for_a_broken_overlay(copy: Path, programs: dict[str, str]) -> None:
    assert run_workflow(copy, programs).returncode == 0
    change(copy / DEV, "value: dev-qwen", "value: qwen")
    assert run_workflow(copy, programs).returncode == 1


@pytest.mark.tier("all")
def test_tekton_pipeline_reports_success_to_github(copy: Path, programs: dict[str, str], tmp_path: Path) -> None:
    commit(copy, programs)
    assert Tekton(copy.parent, programs, tmp_path / "workspace").run() == (
        "Succeeded",
        dict.fromkeys(["clone", "kustomize-build", "yaml-lint", "security-scan", "custom-tests"], 0),
    )
    requests = (tmp_path / "asked").read_text()
    assert "https://api.github.com/repos/your-org/llmops-demo/statuses/main" in requests
    assert '"state": "success", "context": "llmops/validate"' in requests
    assert 'header = "Authorization: Bearer secret-token"' in requests.splitlines()[0], "not among the arguments"


@pytest.mark.parametrize(
    "file, old, new, failed",
    [
        (DEV, "../../base", "../../bass", "kustomize-build"),
        pytest.param(DEV, "value: dev-qwen", "value: qwen", "custom-tests", marks=IN_TEST_ALL),
        pytest.param(DEV, "../../base", "../../base  ", "yaml-lint", marks=IN_TEST_ALL),
        pytest.param(SECRET, 'AWS_S3_BUCKET: ""', "AWS_S3_BUCKET: models", "security-scan", marks=IN_TEST_ALL),
    ],
)
def test_tekton_pipeline_fails_for_a_broken_overlay_and_reports_failure_to_github(
    file: str, old: str, new: str, failed: str, copy: Path, programs: dict[str, str], tmp_path: Path
) -> None:
    change(copy / file, old, new)
    commit(copy, programs)
    status, ended = Tekton(copy.parent, programs, tmp_path / "workspace").run()
    assert (status, [name for name, code in ended.items() if code]) == ("Failed", [failed])
    assert '"state": "failure"' in (tmp_path / "asked").read_text()


def test_tekton_trigger_passes_the_parameters_that_the_pipeline_requires() -> None:
    documents = list(yaml.safe_load_all((TEKTON / "trigger.yaml").read_text()))
    documents += [yaml.safe_load((TEKTON / name).read_text()) for name in ("pipeline.yaml", "run.yaml")]
    kinds = {document["kind"]: document for document in documents}
    needed = {param["name"] for param in kinds["Pipeline"]["spec"]["params"] if "default" not in param}
    for started in (*kinds["TriggerTemplate"]["spec"]["resourcetemplates"], kinds["PipelineRun"]):
        assert started["spec"]["pipelineRef"]["name"] == kinds["Pipeline"]["metadata"]["name"]
        assert {param["name"] for param in started["spec"]["params"]} == needed
    bound = {param["name"] for param in kinds["TriggerBinding"]["spec"]["params"]}
    assert bound == {param["name"] for param in kinds["TriggerTemplate"]["spec"]["params"]} == needed
    (trigger,) = kinds["EventListener"]["spec"]["triggers"]
    assert trigger["template"]["ref"] == kinds["TriggerTemplate"]["metadata"]["name"]
    assert trigger["bindings"] == [{"ref": kinds["TriggerBinding"]["metadata"]["name"]}]


def test_branch_protection_requires_the_reported_check() -> None:
    protection = yaml.safe_load((FOLDER / "pipelines/github/branch-protection.json").read_text())
    assert protection["required_status_checks"]["contexts"] == ["llmops/validate"]
    assert yaml.safe_load(WORKFLOW.read_text())["jobs"]["validate"]["name"] == "llmops/validate"


def test_every_codeowners_path_exists() -> None:
    lines = [line.split() for line in (FOLDER / "CODEOWNERS").read_text().splitlines()]
    owned = [words[0] for words in lines if words and not words[0].startswith("#")]
    assert [path for path in owned if path != "/.github/" and not (FOLDER.parent / path.strip("/")).is_dir()] == []
    assert os.path.commonpath([path for path in owned if path != "/.github/"]) == "/llmops-via-argocd"
