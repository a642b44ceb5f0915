"""Restrictions of a kustomize build: files outside the folder, plug-ins, validators and target patterns."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from argosy.errors import RenderError
from argosy.gitops.render.kustomize import build
from argosy.gitops.render.kustomize.build_restrictions_and_cluster_versions import FixedKustomizeSettings
from argosy.kube.objects import YamlDialect, read_yaml_documents
from support.file_trees import TextTree
from support.paths import VENV

KUBECTL = VENV / "kubectl-1.32" / "kubectl"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1'}\n"
ANYWHERE = FixedKustomizeSettings(can_read_outside_folder=True)
FILES = {
    "app/kustomization.yaml": (
        "resources: [../a.yaml]\npatches: [{path: ../p.yaml}]\n"
        "configMapGenerator: [{name: made, files: [../a.yaml], envs: [../e.env]}]\n"
        "configurations: [../c.yaml]\nreplacements: [{path: ../r.yaml}]\n"
    ),
    "a.yaml": CONFIG_MAP,
    "p.yaml": CONFIG_MAP.replace("x: '1'", "y: '2'"),
    "e.env": "K=v\n",
    "c.yaml": "namePrefix: []\n",
    "r.yaml": "source: {kind: ConfigMap, name: a, fieldPath: data.x}\n"
    "targets: [{select: {kind: ConfigMap, name: made}, fieldPaths: [data.K]}]\n",
}


def refusal(files: dict[str, str], settings: FixedKustomizeSettings = ANYWHERE) -> str:
    with pytest.raises(RenderError) as caught:
        build(TextTree(files), "app", settings=settings)
    return str(caught.value)


def test_files_outside_the_folder_are_read_only_if_settings_allow(tmp_path: Path) -> None:
    assert "outside the kustomization's folder" in refusal(FILES, FixedKustomizeSettings())
    manifests = build(TextTree(FILES), "app", settings=ANYWHERE)
    assert manifests[0]["data"] == {"x": "1", "y": "2"}
    if not KUBECTL.is_file():
        pytest.skip("kubectl 1.32 is not here: make install")
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    words = [KUBECTL, "kustomize", "--load-restrictor", "LoadRestrictionsNone", tmp_path / "app"]
    done = subprocess.run(words, capture_output=True, check=True)
    assert manifests == read_yaml_documents(done.stdout, dialect=YamlDialect.KUSTOMIZE)


@pytest.mark.parametrize("path", ["../../a.yaml", "/etc/passwd", "../link.yaml"])
def test_paths_out_of_the_repository_are_always_rejected(path: str) -> None:
    tree = TextTree({"app/kustomization.yaml": f"resources: ['{path}']\n"}, {"link.yaml": "../../etc/passwd"})
    with pytest.raises(RenderError, match=r"out of the repository|absolute path"):
        build(tree, "app", settings=ANYWHERE)


def test_remote_base_never_reads_files_outside_its_folder() -> None:
    remote = TextTree({"b/kustomization.yaml": "resources: [../a.yaml]\n", "a.yaml": CONFIG_MAP})
    tree = TextTree({"kustomization.yaml": "resources: ['https://github.com/org/repo//b']\n"})
    with pytest.raises(RenderError, match="outside the kustomization's folder"):
        build(tree, "", settings=ANYWHERE, fetch=lambda url, ref: remote)


EXEC = """
apiVersion: example.com/v1
kind: Thing
metadata:
  name: run
  annotations:
    config.kubernetes.io/function: |
      %s
"""


@pytest.mark.parametrize("field", ["generators", "transformers"])
@pytest.mark.parametrize(
    "plugin",
    [
        EXEC % "exec: {path: ./evil.sh}",
        EXEC % "container: {image: example.com/evil}",
        "apiVersion: someteam.example.com/v1\nkind: ChartInflator\nmetadata: {name: x}\n",
        "apiVersion: viaduct.ai/v1\nkind: ksops\nmetadata: {name: x}\n",
    ],
)
def test_plugins_that_run_a_program_are_rejected_by_file_name(field: str, plugin: str) -> None:
    files = {"app/kustomization.yaml": f"{field}: [plugin.yaml]\nresources: []\n", "app/plugin.yaml": plugin}
    message = refusal(files)
    assert message.startswith("app/plugin.yaml")
    assert "would run a program, which is not allowed" in message


def test_validators_are_rejected_by_file_name() -> None:
    message = refusal({"app/kustomization.yaml": "resources: []\nvalidators: [v.yaml]\n"})
    assert message.startswith("app/kustomization.yaml")
    assert "validators run programs, which is not allowed: remove them" in message


def renamed(target: str) -> list[str]:
    patch = '[{"op": "add", "path": "/data", "value": {"k": "v"}}]'
    kustomization = f"resources: [a.yaml]\npatches: [{{target: {{name: '{target}'}}, patch: '{patch}'}}]\n"
    a, b = CONFIG_MAP.replace("name: a", "name: web-1"), CONFIG_MAP.replace("name: a", "name: db")
    manifests = build(TextTree({"kustomization.yaml": kustomization, "a.yaml": f"{a}---\n{b}"}), "")
    return [manifest["metadata"]["name"] for manifest in manifests if manifest["data"] == {"k": "v"}]


@pytest.mark.parametrize("target", ["web-[[:digit:]]", "[^[:space:]]+-1", "(?i)WEB-1", "(?P<a>web)-1", "x|web.1"])
def test_target_patterns_use_go_regexp_syntax(target: str) -> None:
    assert renamed(target) == ["web-1"]


@pytest.mark.parametrize("target", ["web(?=-1).*", "(?<!x)web-1", r"(w)eb\1-1", "web.*+", "(?(1)a|b)", "*web", "(web"])
def test_target_patterns_invalid_in_go_are_rejected(target: str) -> None:
    with pytest.raises(RenderError):
        renamed(target)
