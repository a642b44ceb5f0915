"""Confinement of Helm charts: files, environment and hosts outside the chart, and resource limits."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from argosy.errors import LimitError, RenderError, UserError
from argosy.gitops.application import HelmFileParameter, HelmOptions
from argosy.gitops.render import helm
from argosy.gitops.render.helm.engine_choice import find_helm_program
from argosy.gitops.render.helm.engine_interface import HelmEngine, HelmFailure, HelmRelease
from argosy.gitops.render.helm.helm_binary_engine import HelmProgram
from argosy.gitops.render.helm.helm_library_engine import HelmLibrary
from argosy.gitops.source.folder_tree import FolderTree
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.kube.objects import dump_yaml_documents
from support.file_trees import TextTree
from support.helm_engines import APP, CHART, SHOWN, a_chart, both_engines, needs_one, program_first, render, the_engine

SECRET = "canary-5f2d91"
LOOP = "{{ range until 9999 }}{{ range until 9999 }}{{ end }}{{ end }}"
TOP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"


def limited(engine: str, limits: ProgramLimits) -> HelmEngine:
    return HelmProgram(find_helm_program(), limits) if engine == "program" else HelmLibrary(limits)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder with a chart, and next to it a canary file that no chart may read."""
    (tmp_path / "canary.yaml").write_text(f"a: {SECRET}\n")
    chart = tmp_path / "repository" / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(CHART)
    (chart / "templates" / "a.yaml").write_text(SHOWN)
    return tmp_path / "repository"


@both_engines
@pytest.mark.parametrize(
    "place", ["values.yaml", "Chart.yaml", "templates/x.yaml", "crds/x.yaml", "values.schema.json", "charts", "files/x"]
)
@pytest.mark.parametrize("target", ["../../canary.yaml", "absolute", "../../../../canary.yaml"])
def test_symlink_out_of_repository_is_rejected(repository: Path, engine: str, place: str, target: str) -> None:
    link = repository / "chart" / place
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    up = "../" * place.count("/")
    link.symlink_to(repository.parent / "canary.yaml" if target == "absolute" else up + target)
    with pytest.raises(UserError) as refused:
        helm.template(FolderTree(repository), "chart", app=APP, engine=the_engine(engine))
    assert place.partition("/")[0] in str(refused.value)
    assert SECRET not in str(refused.value)


@program_first
@pytest.mark.parametrize("path", ["../../canary.yaml", "/../canary.yaml", "x/../../../canary.yaml", "{canary}"])
def test_value_file_and_file_parameter_paths_outside_are_rejected(repository: Path, engine: str, path: str) -> None:
    path = path.replace("{canary}", str(repository.parent / "canary.yaml"))
    for options in (
        HelmOptions(value_files=(path,)),
        HelmOptions(file_parameters=(HelmFileParameter("a", path),)),
        HelmOptions(value_files=(path.replace("canary", "cana*"),)),
    ):
        with pytest.raises(RenderError) as refused:
            helm.template(FolderTree(repository), "chart", app=APP, options=options, engine=the_engine(engine))
        assert SECRET not in str(refused.value)


@both_engines
def test_helm_process_cannot_read_outside_its_working_copy(repository: Path, tmp_path: Path, engine: str) -> None:
    """Bypasses our symlink check: the engine gets a folder that still has the link."""
    chart = repository / "chart"
    (chart / "templates" / "x.yaml").symlink_to(repository.parent / "canary.yaml")
    for folder in (tmp_path, *repository.parents, repository, chart, chart / "templates"):
        if folder.is_relative_to(tmp_path):
            folder.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    try:
        output = the_engine(engine).run(chart, work, HelmRelease("web"))
    except HelmFailure as error:
        assert SECRET not in str(error)
        assert "x.yaml" in str(error) or "canary.yaml" in str(error)
    else:
        assert SECRET not in str(output)


@program_first
def test_chart_cannot_read_files_outside_its_folder(repository: Path, engine: str) -> None:
    (repository / "other.txt").write_text(SECRET)
    text = TOP + 'data:\n  a: {{ .Files.Get "../other.txt" | quote }}\n  b: {{ .Files.Get "/etc/hostname" | quote }}\n'
    text += '  c: {{ (.Files.Glob "../**").AsConfig | quote }}\n'
    (repository / "chart" / "templates" / "a.yaml").write_text(text)
    rendered_chart = helm.template(FolderTree(repository), "chart", app=APP, engine=the_engine(engine))
    assert SECRET not in dump_yaml_documents(rendered_chart.manifests)
    assert {*rendered_chart.manifests[0]["data"].values()} == {"", "{}"}


@program_first
def test_values_schema_ref_cannot_read_files_or_connect_to_hosts(repository: Path, engine: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        host = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        for address in (f"file://{repository.parent}/canary.yaml", "file:///etc/passwd", host):
            (repository / "chart" / "values.schema.json").write_text(f'{{"$ref": "{address}"}}')
            with pytest.raises(RenderError, match="the schema cannot be used") as refused:
                helm.template(FolderTree(repository), "chart", app=APP, engine=the_engine(engine))
            assert SECRET not in str(refused.value)
            assert "root:" not in str(refused.value)
        with pytest.raises(BlockingIOError):
            server.accept()


@program_first
@pytest.mark.parametrize("function", ["env", "expandenv"])
def test_environment_functions_are_not_defined_in_templates(engine: str, function: str) -> None:
    with pytest.raises(RenderError, match=f'function "{function}" not defined'):
        render(engine, a_chart({"templates/a.yaml": TOP + f'x: {{{{ {function} "HOME" }}}}\n'}))


@program_first
@pytest.mark.parametrize(
    ("template", "limits"),
    [
        pytest.param(LOOP, ProgramLimits(wall=2.0), marks=pytest.mark.tier("all")),
        pytest.param(LOOP, ProgramLimits(cpu=1.0), marks=pytest.mark.tier("all")),
        ('{{ repeat 2000000000 "x" }}', ProgramLimits(memory=256 << 20)),
        ('data: {x: {{ repeat 3000000 "x" }}}', ProgramLimits(output=1 << 20)),
    ],
    ids=["time", "cpu", "memory", "output"],
)
def test_resource_bomb_template_raises_limit_error(engine: str, template: str, limits: ProgramLimits) -> None:
    tree = a_chart({"templates/a.yaml": TOP + template + "\n"})
    with pytest.raises(LimitError, match=r"charts/shop: rendering the chart .*limit"):
        helm.template(tree, "charts/shop", app=APP, engine=limited(engine, limits))


@program_first
def test_symlink_cycles_are_rejected(engine: str) -> None:
    for links in ({"files/again": ".."}, {"a": "b", "b": "a"}, {"files/x": "../files"}):
        with pytest.raises(RenderError, match=r"a folder that contains it|too many links"):
            render(engine, a_chart({"templates/a.yaml": TOP, "files/y": ""}, links))


def test_dangling_symlink_error_names_the_link() -> None:
    with pytest.raises(RenderError, match=r"charts/shop/x: is a link to a path that is not in the repository"):
        render(None, a_chart({"templates/a.yaml": TOP}, {"x": "nothing"}))


@needs_one
def test_rendering_reads_only_the_chart_and_its_value_files() -> None:
    read_paths: set[str] = set()

    class Noting(TextTree):
        def read_file(self, path: str) -> bytes:
            read_paths.add(path)
            return super().read_file(path)

    texts = a_chart({"templates/a.yaml": TOP, "/other/x.yaml": "a: 1", "/charts/shopping/Chart.yaml": CHART}).files
    tree = Noting(texts)
    render(
        "program" if find_helm_program() else "library",
        tree,
        HelmOptions(value_files=("/other/x.yaml",), values="a: 1"),
    )
    assert read_paths == {"charts/shop/Chart.yaml", "charts/shop/templates/a.yaml", "other/x.yaml"}
