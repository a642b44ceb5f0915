"""Common user mistakes with `argosy render`, and the messages for them."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest
import yaml

from support.render_commands import ADDRESS, APPLICATION, Desk, names
from support.tiers import run_first

CHART = {
    "chart/Chart.yaml": "apiVersion: v2\nname: model\nversion: 1.0.0\n",
    "chart/templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: {{ .Values.a }}}\n",
    "x.yaml": "a: own\n",
}


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {
        "base/kustomization.yaml": "resources: [config.yaml]\n",
        "base/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: model}\n",
        "overlays/dev/kustomization.yaml": "resources: [../../base]\nnamePrefix: dev-\n",
        "overlays/prod/kustomization.yaml": "resources: [../../base]\nnamePrefix: prod-\n",
        "overlays/broken/kustomization.yaml": "resources:\n  - ../../base\n  - missing.yaml\n",
        "slips/one.yaml": "apiVersion: v1\nknd: ConfigMap\nmetadata: {name: a}\n",
        "slips/two.yaml": "apiVersion: v1\nKind: ConfigMap\nmetadata: {name: b}\n",
        "tabs/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: a\n",
        "remote/kustomization.yaml": "resources: [file:///nowhere/base.git]\n",
        "charts/kustomization.yaml": "helmCharts: [{name: chart}]\n",
        "slips/values.yaml": "replicas: 1\nmetadata: {}\n",
        **CHART,
    }
    desk = Desk(tmp_path_factory.mktemp("begun"))
    folder = desk.repository("models", files)
    desk.git(folder, "remote", "add", "origin", ADDRESS)
    return folder


@pytest.fixture
def models(begun: Path, desk: Desk) -> Path:
    """A copy that the test may change."""
    return shutil.copytree(begun, desk.home / "models")


def application(name: str = "fraud-dev", **source: object) -> str:
    whole = yaml.safe_load(APPLICATION)
    whole["metadata"]["name"] = name
    whole["spec"]["source"] = {"repoURL": ADDRESS, "targetRevision": "main", **source}
    return yaml.safe_dump(whole)


@pytest.mark.tier("all")
def test_value_file_with_an_unknown_source_ref_is_an_error(desk: Desk, models: Path) -> None:
    whole = yaml.safe_load(APPLICATION)
    del whole["spec"]["source"]
    whole["spec"]["sources"] = [
        {"repoURL": ADDRESS, "path": "chart", "helm": {"valueFiles": ["$vals/x.yaml"]}},
        {"repoURL": ADDRESS, "ref": "values"},
    ]
    (models / "app.yaml").write_text(yaml.safe_dump(whole))
    done = desk.render(models, "-f", "app.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "$vals is not the ref of a source (known refs: $values)" in done.stderr
    assert "argosy: fraud-dev (app.yaml): " in done.stderr


def test_misspelled_field_is_a_warning_and_the_rest_is_rendered(desk: Desk, models: Path) -> None:
    text = application(path="overlays/dev", kustomize={"nameprefix": "x-", "image": ["a:b"]})
    (models / "app.yaml").write_text(text)
    done = desk.render(models, "-f", "app.yaml")
    line = text.splitlines().index("      nameprefix: x-") + 1
    assert done.returncode == 0 and names(done) == ["dev-model"]
    warning = (
        f"warning: app.yaml:{line}: spec.source.kustomize.nameprefix is not a known field and is ignored; did you mean"
    )
    assert f"{warning} namePrefix?" in done.stderr
    assert "did you mean images?" in done.stderr
    (models / "overlays/dev/.argocd-source.yaml").write_text("path: other\nkustomize: {nameSufix: -y}\n")
    beside = desk.render(models, "overlays/dev")
    assert names(beside) == ["dev-model"]
    assert "overlays/dev/.argocd-source.yaml:1: path cannot be overridden in this file" in beside.stderr
    assert "yaml:2: kustomize.nameSufix is not a known field and is ignored; did you mean nameSuffix?" in beside.stderr


@pytest.mark.parametrize(
    ("source", "said"),
    run_first(
        1,
        [
            ({"pth": "overlays/dev"}, "app.yaml:11: fraud-dev: spec.source has none of path, chart and ref"),
            ({"path": "a", "repoURL": ""}, "app.yaml:13: fraud-dev: spec.source.repoURL is empty"),
            ({"path": 1}, "app.yaml:12: spec.source.path must be a string, not a number"),
        ],
    ),
)
def test_incomplete_or_invalid_source_is_an_error(
    desk: Desk, models: Path, source: dict[str, object], said: str
) -> None:
    (models / "app.yaml").write_text(application(**source))
    done = desk.render(models, "-f", "app.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and "next: " in done.stderr


@pytest.mark.tier("all")
def test_app_revision_variable_is_the_checked_out_commit(desk: Desk, models: Path) -> None:
    (models / "overlays/dev/.argocd-source.yaml").write_text(
        "kustomize: {commonAnnotationsEnvsubst: true, commonAnnotations: {rev: $ARGOCD_APP_REVISION}}\n"
    )
    commit = desk.git(models, "rev-parse", "HEAD")
    assert commit in desk.render(models, "overlays/dev").stdout
    desk.git(models, "pack-refs", "--all")
    assert commit in desk.render(models, "overlays/dev").stdout
    desk.git(models, "worktree", "add", "-q", "--detach", "../other")
    (desk.home / "other/overlays/dev/.argocd-source.yaml").write_text(
        (models / "overlays/dev/.argocd-source.yaml").read_text()
    )
    assert commit in desk.render(desk.home / "other", "overlays/dev").stdout


@pytest.mark.tier("all")
def test_working_tree_rendered_instead_of_target_revision_is_noted(desk: Desk, models: Path) -> None:
    desk.git(models, "tag", "v1.0.0")
    for ref, is_told in (("v1.0.0", False), ("v0.9", True), ("main", False), ("HEAD", False), ("other", True)):
        (models / "app.yaml").write_text(application(path="overlays/dev", targetRevision=ref))
        stderr = desk.render(models, "-f", "app.yaml").stderr
        assert (f"instead of {ref}; for that: --revision {ref}" in stderr) is is_told, (ref, stderr)
    empty = desk.render(models, "overlays/dev", "--revision", "")
    assert empty.returncode == 2 and "--revision: is empty" in empty.stderr


@pytest.mark.tier("all")
def test_folder_without_manifests_prints_a_note(desk: Desk, models: Path) -> None:
    done = desk.render(models, "overlays")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        "note: no manifests in overlays; overlays/broken, overlays/dev and overlays/prod have a kustomization\n"
    )
    slips = desk.render(models, "slips")
    assert "slips/one.yaml:1: is ignored because it is not a manifest: it has knd for kind" in slips.stderr
    assert "slips/two.yaml:1: is ignored because it is not a manifest: it has Kind for kind" in slips.stderr
    assert "values.yaml" not in slips.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    run_first(
        4,
        [
            (["chart", "--set", "a=b"], "did you mean --helm-set?"),
            (["chart", "--set-string=a=b"], "did you mean --helm-set-string?"),
            (["overlays/dev", "--rev", "main"], "did you mean --revision?"),
            (["chart", "-f", "x.yaml"], "--values x.yaml"),
            (["chart", "--values", "x.yaml"], "next: it is relative to the chart: use --values ../x.yaml"),
            (["overlays/dev", "--helm-set", "a=b"], "(--helm-set is for Helm)"),
            (["overlays", "--nameprefix", "a-"], "(--nameprefix is for Kustomize)"),
            (["tabs"], "tabs/a.yaml:4: YAML is indented with spaces, but this line starts with a tab"),
            (["chart/templates"], "chart/templates/config.yaml:4: this is a template ({{ }}), not YAML"),
            (["overlays/dev", "--kustomize-version", "v4.0.0"], "a file given with --settings"),
            (["overlays/dev", "--repo", "https://ada:secret@host.example/a.git"], "name the clone with --repo"),
            (["remote"], "name it, or a folder above it, with --root"),
            (["charts"], "in argocd-cm (a ConfigMap in a file given with --settings)"),
            (["-f", "chart/Chart.yaml"], "pass its folder, without -f: chart"),
            (["overlays/dev", "--settings", "none.yaml"], "--settings none.yaml: no such file"),
            (["-f", "overlays"], "overlays: is a folder"),
            (["-f", "none.yaml"], "none.yaml: no such file"),
            (["-f", "set.yaml"], "contains an ApplicationSet"),
            (["-f", "app.yaml"], "http://127.0.0.1:1/charts: protocol http is not allowed"),
            (["overlays/dev", "--repo", "../nowhere"], "--repo ../nowhere: no such folder"),
        ],
    ),
)
def test_common_mistake_is_refused_with_a_specific_hint(desk: Desk, models: Path, words: list[str], said: str) -> None:
    (models / "set.yaml").write_text("apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: a}\n")
    chart = "{repoURL: 'http://127.0.0.1:1/charts', chart: nginx, targetRevision: 1.2.3}"
    (models / "app.yaml").write_text(
        f"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: a}}\nspec: {{source: {chart}}}\n"
    )
    done = desk.render(models, *words)
    assert (done.returncode in (2, 5), done.stdout) == (True, "")
    assert said in done.stderr and "next: " in done.stderr


def test_flag_overridden_by_argocd_source_yaml_is_noted(desk: Desk, models: Path) -> None:
    (models / "overlays/dev/.argocd-source.yaml").write_text("kustomize: {namePrefix: file-}\n")
    done = desk.render(models, "overlays/dev", "--nameprefix", "flag-", "--namesuffix=-x")
    assert names(done) == ["file-model-x"]
    note = "--nameprefix is overridden by .argocd-source.yaml in overlays/dev, which is applied last"
    assert done.stderr == f"note: {note}\n"


@pytest.mark.tier("all")
def test_errors_and_jsonl_lines_name_application_and_file(desk: Desk, models: Path) -> None:
    (models / "apps").mkdir()
    (models / "apps/dev.yaml").write_text(application("dev", path="overlays/dev"))
    (models / "apps/broken.yaml").write_text(application("broken", path="overlays/broken"))
    done = desk.render(models, "-f", "apps/broken.yaml", "-f", "none.yaml", "-f", "apps/dev.yaml", "-o", "jsonl")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["application"], line["file"], line["path"], line["ok"]) for line in lines] == [
        ("broken", "apps/broken.yaml", "overlays/broken", False),
        (None, "none.yaml", "none.yaml", False),
        ("dev", "apps/dev.yaml", "overlays/dev", True),
    ]
    assert lines[0]["error"]["file"] == "overlays/broken/kustomization.yaml"
    stderr = desk.render(models / "apps", "-f", "broken.yaml").stderr
    assert "argosy: broken (broken.yaml): ../overlays/broken/kustomization.yaml:3: " in stderr


def test_errors_name_files_relative_to_the_current_folder(desk: Desk, models: Path) -> None:
    done = desk.render(models / "overlays", "broken")
    assert done.stderr.startswith("argosy: broken/kustomization.yaml:3: ")
    line = json.loads(desk.render(models / "overlays", "broken", "-o", "jsonl").stdout)
    assert line["error"]["file"] == "overlays/broken/kustomization.yaml"


@pytest.mark.tier("all")
def test_all_helm_schema_violations_are_reported_at_once(desk: Desk, models: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    (models / "chart/values.schema.json").write_text(json.dumps(schema))
    (models / "chart/values.yaml").write_text("a: 1\nb: x\n")
    done = desk.render(models, "chart")
    if "install" in done.stderr:
        pytest.skip("Helm: neither the program nor the package is here")
    first, second = done.stderr.splitlines()
    assert "a" in first and "b" in first and first.count("nvalid type") + first.count("got ") >= 2
    assert second == "next: correct the values, or the schema"


@pytest.mark.tier("all")
def test_missing_jsonnet_argument_suggests_its_flag(desk: Desk) -> None:
    text = "function(namespace) {apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: std.extVar('app')}}"
    folder = desk.repository("jsonnet", {"team/app.jsonnet": text})
    done = desk.render(folder, "team")
    if "install" in done.stderr:
        pytest.skip("Jsonnet: the package is not here")
    assert "Missing argument: namespace\nnext: add it with --jsonnet-tla-str" in done.stderr
    done = desk.render(folder, "team", "--jsonnet-tla-str", "namespace=a")
    assert "Undefined external variable: app\nnext: add it with --jsonnet-ext-var-str" in done.stderr


@pytest.mark.tier("all")
def test_unreachable_repository_suggests_adding_a_remote_to_the_clone(desk: Desk, models: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"https://127.0.0.1:{listening.getsockname()[1]}/acme/models.git"
    (models / "app.yaml").write_text(application(path="overlays/dev", repoURL=address))
    done = desk.render(models, "-f", "app.yaml")
    assert done.returncode == 3
    assert f"or if it is the one in {models}: git remote add upstream {address}" in done.stderr
    assert "argosy will retry" not in done.stderr
    desk.git(models, "remote", "add", "upstream", address)
    assert names(desk.render(models, "-f", "app.yaml")) == ["dev-model"]
