"""`argosy render`: the installed command with real repositories and a separate home folder."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from support.clusters import ARGOSY
from support.render_commands import ADDRESS, APPLICATION, Desk, names
from support.tiers import run_first

KUBECTL = Path(sys.executable).parents[1] / "kubectl-1.32" / "kubectl"
FILES = {
    "base/kustomization.yaml": "resources: [deployment.yaml]\n",
    "base/deployment.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: model}
spec:
  replicas: 1
  selector: {matchLabels: {app: model}}
  template:
    metadata: {labels: {app: model}}
    spec: {containers: [{name: server, image: "model:v1"}]}
""",
    "overlays/dev/kustomization.yaml": """\
resources: [../../base]
namePrefix: dev-
patches:
  - patch: |
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: model}
      spec: {template: {spec: {containers: [{name: server, env: [{name: A, value: "1"}]}]}}}
""",
    "overlays/prod/kustomization.yaml": "resources: [../../base]\nnamePrefix: prod-\n",
    "overlays/broken/kustomization.yaml": "resources:\n  - ../../base\n  - missing.yaml\n",
    "plain/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n",
    "plain/deep/more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n",
}


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    desk = Desk(tmp_path_factory.mktemp("begun"))
    folder = desk.repository("models", FILES)
    desk.git(folder, "remote", "add", "origin", ADDRESS)
    (folder / "application.yaml").write_text(APPLICATION)
    return folder


@pytest.fixture
def models(begun: Path, desk: Desk) -> Path:
    """A copy that the test may change."""
    return shutil.copytree(begun, desk.home / "models")


def image(done: subprocess.CompletedProcess[str]) -> str:
    (manifest,) = yaml.safe_load_all(done.stdout)
    return str(manifest["spec"]["template"]["spec"]["containers"][0]["image"])


def test_output_equals_kubectl_kustomize(desk: Desk, models: Path) -> None:
    if not KUBECTL.exists():
        pytest.skip(f"kubectl 1.32: there is none at {KUBECTL} (make install)")
    done = desk.render(models, "overlays/dev")
    kubectl_result = subprocess.run(
        [KUBECTL, "kustomize", "overlays/dev"], cwd=models, capture_output=True, text=True, check=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == kubectl_result.stdout


@pytest.mark.tier("all")
def test_folder_can_be_relative_absolute_or_a_symlink(desk: Desk, models: Path) -> None:
    assert names(desk.render(models / "overlays" / "dev", ".")) == ["dev-model"]
    assert names(desk.render(desk.home, models / "overlays" / "dev")) == ["dev-model"]
    link = desk.home / "link"
    link.symlink_to(models / "overlays" / "dev")
    assert names(desk.render(desk.home, "link")) == ["dev-model"]


def test_folder_outside_a_git_repository_is_rendered(desk: Desk, models: Path) -> None:
    shutil.rmtree(models / ".git")
    assert names(desk.render(models, "overlays/dev")) == ["dev-model"]
    assert names(desk.render(models / "overlays", "dev")) == ["dev-model"]  # its base is in a parent folder
    patch = models / "overlays" / "dev" / "kustomization.yaml"
    patch.write_text(patch.read_text() + "configMapGenerator: [{name: a, files: [../../application.yaml]}]\n")
    outside = desk.render(models / "overlays" / "dev", ".")
    assert outside.returncode == 2
    assert "is outside the kustomization's folder" in outside.stderr


@pytest.mark.tier("all")
def test_several_folders_are_rendered_in_order_into_one_stream(desk: Desk, models: Path) -> None:
    done = desk.render(models, "overlays/prod", "plain", "overlays/dev")
    assert names(done) == ["prod-model", "settings", "dev-model"]
    listed = json.loads(desk.render(models, "overlays/prod", "plain", "-o", "json").stdout)
    assert listed["kind"] == "List"
    assert [manifest["metadata"]["name"] for manifest in listed["items"]] == ["prod-model", "settings"]
    assert desk.render(models, "overlays/prod", "-o", "name", "plain").stdout == (
        "deployment.apps/prod-model\nconfigmap/settings\n"
    )


def test_failing_folder_is_reported_and_the_others_are_rendered(desk: Desk, models: Path) -> None:
    done = desk.render(models, "overlays/prod", "overlays/broken", "overlays/dev")
    assert done.returncode == 2
    assert names(done) == ["prod-model", "dev-model"]
    assert "overlays/broken/kustomization.yaml" in done.stderr and "missing.yaml" in done.stderr
    assert "Traceback" not in done.stderr


def test_jsonl_output_has_one_line_per_folder(desk: Desk, models: Path) -> None:
    done = desk.render(models, "overlays/prod", "overlays/broken", "nowhere", "overlays/dev", "-o", "jsonl")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 2
    assert [set(line) for line in lines] == [{"path", "ok", "error", "ms", "manifests"}] * 4
    assert [(line["path"], line["ok"], len(line["manifests"])) for line in lines] == [
        ("overlays/prod", True, 1),
        ("overlays/broken", False, 0),
        ("nowhere", False, 0),
        ("overlays/dev", True, 1),
    ]
    assert lines[0]["error"] is None
    assert lines[1]["error"]["file"] == "overlays/broken/kustomization.yaml"
    assert set(lines[1]["error"]) == {"file", "line", "message"}
    assert lines[2]["error"]["message"].startswith("no such folder")


def test_application_is_rendered_from_the_working_tree(desk: Desk, models: Path) -> None:
    (models / "base" / "deployment.yaml").write_text(
        FILES["base/deployment.yaml"].replace("replicas: 1", "replicas: 5")
    )
    done = desk.render(models, "-f", "application.yaml")
    assert done.returncode == 0, done.stderr
    assert image(done) == "model:v7"
    assert "replicas: 5" in done.stdout
    assert done.stderr == f"{ADDRESS} is read from the working tree in {models}\n"
    piped = desk.render(models, "-f", "-", "-o", "name", stdin=APPLICATION)
    assert piped.stdout == "deployment.apps/dev-model\n"


@pytest.mark.tier("all")
def test_ssh_remote_matches_the_https_repo_url(desk: Desk, models: Path) -> None:
    desk.git(models, "remote", "set-url", "origin", "git@git.example:acme/models.git")
    assert desk.render(models, "-f", "application.yaml").returncode == 0


@pytest.mark.tier("all")
def test_path_and_flags_override_the_application(desk: Desk, models: Path) -> None:
    done = desk.render(
        models, "overlays/prod", "-f", "application.yaml", "--namesuffix=-x", "--kustomize-image=model:v9"
    )
    assert names(done) == ["prod-model-x"]
    assert image(done) == "model:v9"


@pytest.fixture
def revised(desk: Desk, models: Path) -> Path:
    """A repository with a tag, a commit after it, and an uncommitted change."""
    desk.git(models, "tag", "v1.0.0")
    path = models / "overlays" / "prod" / "kustomization.yaml"
    path.write_text("resources: [../../base]\nnamePrefix: second-\n")
    desk.git(models, "commit", "-q", "-a", "-m", "second")
    path.write_text("resources: [../../base]\nnamePrefix: third-\n")
    return models


@pytest.mark.parametrize(
    ("revision", "name"),
    run_first(
        2,
        [
            ("HEAD", "second-model"),
            ("v1.*", "prod-model"),
            ("main", "second-model"),
            ("HEAD~1", "prod-model"),
            ("v1.0.0", "prod-model"),
        ],
    ),
)
def test_revision_flag_renders_that_revision(desk: Desk, revised: Path, revision: str, name: str) -> None:
    assert names(desk.render(revised, "overlays/prod", "--revision", revision)) == [name]
    assert (desk.home / ".cache" / "argosy" / "mirrors").is_dir()


def test_working_tree_is_rendered_without_the_revision_flag(desk: Desk, revised: Path) -> None:
    assert names(desk.render(revised, "overlays/prod")) == ["third-model"]


@pytest.mark.tier("all")
def test_revision_can_be_a_commit_hash(desk: Desk, revised: Path) -> None:
    commit = desk.git(revised, "rev-parse", "v1.0.0")
    assert names(desk.render(revised, "overlays/prod", "--revision", commit)) == ["prod-model"]


def test_unknown_revision_exits_2_and_is_named(desk: Desk, revised: Path) -> None:
    unknown = desk.render(revised, "overlays/prod", "--revision", "nowhere")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "nowhere" in unknown.stderr


@pytest.mark.tier("all")
def test_head_of_a_linked_worktree_is_its_own(desk: Desk, models: Path) -> None:
    desk.git(models, "worktree", "add", "-q", "-b", "other", "../other")
    other = desk.home / "other"
    (other / "overlays" / "prod" / "kustomization.yaml").write_text("resources: [../../base]\nnamePrefix: other-\n")
    desk.git(other, "commit", "-q", "-a", "-m", "other")
    assert names(desk.render(other, "overlays/prod", "--revision", "HEAD")) == ["other-model"]
    assert names(desk.render(models, "overlays/prod", "--revision", "HEAD")) == ["prod-model"]


@pytest.mark.tier("all")
def test_repo_flag_takes_a_path_a_file_url_or_a_bare_repository(desk: Desk, models: Path) -> None:
    assert names(desk.render(desk.home, "overlays/prod", "--repo", models)) == ["prod-model"]
    assert names(desk.render(desk.home, "overlays/prod", "--repo", f"file://{models}")) == ["prod-model"]
    desk.git(desk.home, "clone", "-q", "--bare", "models", "bare.git")
    assert names(desk.render(desk.home, "overlays/prod", "--repo", "bare.git", "--revision", "main")) == ["prod-model"]
    for words in (["x", "--repo", "."], ["x", "--repo", "https://a:b@host/c"], [".", "--revision", "main"]):
        done = desk.render(desk.home, *words)
        assert (done.returncode, done.stdout) == (2, ""), words


@pytest.mark.tier("all")
def test_local_repository_of_an_application_needs_the_root_flag(desk: Desk, models: Path) -> None:
    file = desk.home / "elsewhere.yaml"
    file.write_text(APPLICATION.replace(ADDRESS, f"file://{models}"))
    refused = desk.render(desk.home, "-f", file)
    assert (refused.returncode, refused.stdout) == (5, "")
    assert "--root" in refused.stderr
    allowed = desk.render(desk.home, "-f", file, "--root", desk.home)
    assert names(allowed) == ["dev-model"], allowed.stderr


@pytest.mark.tier("all")
def test_source_mirrors_setting_replaces_the_host(desk: Desk, models: Path) -> None:
    desk.git(models, "remote", "remove", "origin")
    settings = desk.home / "argosy-cm.yaml"
    mirrors = {"source.mirrors": f"https://git.example/acme {desk.home}"}
    settings.write_text(
        yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argosy-cm"}, "data": mirrors})
    )
    done = desk.render(models, "-f", "application.yaml", "--settings", settings)
    assert names(done) == ["dev-model"], done.stderr


@pytest.mark.tier("all")
def test_multiple_sources_are_rendered_in_order(desk: Desk, models: Path) -> None:
    other = desk.repository("other", {"here/config.yaml": FILES["plain/config.yaml"]})
    application = yaml.safe_load(APPLICATION)
    source = application["spec"].pop("source")
    application["spec"]["sources"] = [
        {"repoURL": str(other), "path": "here", "ref": "values"},
        {"repoURL": ADDRESS, "ref": "names-only"},
        source,
    ]
    (models / "application.yaml").write_text(yaml.safe_dump(application))
    done = desk.render(models, "-f", "application.yaml", "--root", other)
    assert names(done) == ["settings", "dev-model"], done.stderr


def test_unreachable_host_exits_3(desk: Desk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    done = desk.render(desk.home, "overlays/dev", "--repo", f"https://127.0.0.1:{port}/acme/models.git")
    assert (done.returncode, done.stdout) == (3, "")
    assert str(port) in done.stderr and "next: " in done.stderr
    address = f"https://127.0.0.1:{port}/acme/models.git"
    lines = desk.render(desk.home, "a", "b", "--repo", address, "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line)["ok"] for line in lines] == [False, False]


@pytest.mark.parametrize(
    ("words", "said"),
    run_first(
        2,
        [
            ([], "nothing to render"),
            (["application.yaml"], "-f application.yaml"),
            (["base/kustomization.yaml"], "pass its folder: base"),
            (["overlays/dev", "--helm-set", "x"], "--helm-set"),
            (["-f", "base/deployment.yaml"], "contains no Application"),
            (["-f", "application.yaml", "--repo", ADDRESS], "omit --repo"),
            (["overlays/dev", "-o", "table"], "invalid choice"),
        ],
    ),
)
def test_invalid_arguments_exit_2_with_a_next_step(desk: Desk, models: Path, words: list[str], said: str) -> None:
    done = desk.render(models, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and "next: " in done.stderr


@pytest.mark.tier("all")
def test_directory_flags_select_plain_files(desk: Desk, models: Path) -> None:
    assert names(desk.render(models, "plain")) == ["settings"]
    assert names(desk.render(models, "plain", "--directory-recurse")) == ["settings", "more"]
    assert names(desk.render(models, "plain", "--directory-recurse", "--directory-exclude", "config.yaml")) == ["more"]


@pytest.mark.tier("all")
def test_closed_output_pipe_is_not_an_error(desk: Desk, models: Path) -> None:
    command = f"{ARGOSY} render {'overlays/prod ' * 300} -o jsonl | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=models,
        env=desk.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["ok"]


def test_helm_chart_takes_values_and_release_name_from_flags(desk: Desk) -> None:
    chart = {
        "chart/Chart.yaml": "apiVersion: v2\nname: model\nversion: 1.0.0\n",
        "chart/values.yaml": "replicas: 1\n",
        "chart/templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\n"
        "data: {replicas: '{{ .Values.replicas }}'}\n",
    }
    folder = desk.repository("charts", chart)
    done = desk.render(folder, "chart", "--helm-set", "replicas=3", "--release-name", "churn")
    if done.returncode and "helm" in done.stderr.lower() and "install" in done.stderr:
        pytest.skip("Helm: neither the program nor the package is here")
    assert done.returncode == 0, done.stderr
    (manifest,) = yaml.safe_load_all(done.stdout)
    assert (manifest["metadata"]["name"], manifest["data"]) == ("churn", {"replicas": "3"})


def test_jsonnet_takes_external_variables_from_flags(desk: Desk) -> None:
    text = "{apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: std.extVar('name')}}"
    folder = desk.repository("jsonnet", {"app/main.jsonnet": text})
    done = desk.render(folder, "app", "--jsonnet-ext-var-str", "name=churn")
    if done.returncode and "install" in done.stderr:
        pytest.skip("Jsonnet: the package is not here")
    assert done.returncode == 0, done.stderr
    assert names(done) == ["churn"]
