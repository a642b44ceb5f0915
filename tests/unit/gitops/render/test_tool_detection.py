"""Which tool renders a source, and which folder it reads."""

from __future__ import annotations

import pytest

from argosy.errors import RenderError
from argosy.gitops.application import DirectoryOptions, HelmOptions, KustomizeOptions, Source
from argosy.gitops.render.kustomize import build
from argosy.gitops.render.settings import BuildSettings, PluginCommand
from argosy.gitops.render.tool_detection import detect_tool, resolve_source_folder
from support.file_trees import TextTree

PLAIN = BuildSettings()


@pytest.mark.parametrize(
    ("files", "tool"),
    [
        (["a.yaml"], "Directory"),
        (["Chart.yaml", "a.yaml"], "Helm"),
        (["kustomization.yaml"], "Kustomize"),
        (["kustomization.yml"], "Kustomize"),
        (["Kustomization"], "Kustomize"),
        (["kustomization.yaml", "Chart.yaml"], "Kustomize"),
        (["charts/Chart.yaml", "overlay/kustomization.yaml"], "Directory"),
        (["Kustomization.yaml"], "Directory"),
        (["Chart.yaml/x", "kustomization.yaml/x"], "Directory"),
    ],
)
def test_files_determine_the_tool(files: list[str], tool: str) -> None:
    tree = TextTree({f"app/{name}": "" for name in files})
    assert detect_tool(tree, "app", Source(path="app"), PLAIN) == tool
    assert detect_tool(TextTree(dict.fromkeys(files, "")), "", Source(path="."), PLAIN) == tool


def test_symlink_to_a_chart_file_counts() -> None:
    tree = TextTree({"shared/Chart.yaml": ""}, {"app/Chart.yaml": "../shared/Chart.yaml"})
    assert detect_tool(tree, "app", Source(path="app"), PLAIN) == "Helm"


def test_tool_block_of_the_source_wins_over_files() -> None:
    tree = TextTree({"kustomization.yaml": "", "Chart.yaml": ""})
    assert detect_tool(tree, "", Source(directory=DirectoryOptions()), PLAIN) == "Directory"
    assert detect_tool(tree, "", Source(helm=HelmOptions()), PLAIN) == "Helm"


def test_blocks_of_two_tools_are_refused() -> None:
    source = Source(path="app", helm=HelmOptions(), kustomize=KustomizeOptions())
    with pytest.raises(RenderError, match="app: the source has settings for Helm and Kustomize: keep those of one"):
        detect_tool(TextTree({}), "app", source, PLAIN)


@pytest.mark.parametrize(
    ("files", "source", "tool", "reading"),
    [
        (("kustomization.yaml",), Source(path="app"), "Directory", "as they are"),
        (("kustomization.yaml", "Chart.yaml"), Source(path="app"), "Helm", "by Helm"),
        (("a.yaml",), Source(path="app", kustomize=KustomizeOptions()), "Directory", "as they are"),
    ],
)
def test_files_of_a_disabled_tool_are_read_as_they_are_with_a_note(
    files: tuple[str, ...], source: Source, tool: str, reading: str
) -> None:
    tree = TextTree({f"app/{name}": "" for name in files})
    settings = BuildSettings(disabled_tools=frozenset({"Kustomize"}))
    notes: list[str] = []
    assert detect_tool(tree, "app", source, settings, notes) == tool
    assert notes == [
        "app: this needs Kustomize, but kustomize.enable in argocd-cm disables it: the files are read "
        f"{reading}; enable it, or set directory in the source"
    ]
    notes.clear()
    assert detect_tool(tree, "app", Source(path="app", directory=DirectoryOptions()), settings, notes) == "Directory"
    assert not notes


def test_plugin_is_detected_by_its_file_globs() -> None:
    settings = BuildSettings(plugins={"cue": PluginCommand(("cue", "export"), file_globs=("*.cue",))})
    assert detect_tool(TextTree({"app/a.cue": ""}), "app", Source(), settings) == "Plugin"
    assert detect_tool(TextTree({"app/a.yaml": ""}), "app", Source(), settings) == "Directory"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("missing", "app path does not exist"),
        ("app/a.yaml", "is a file"),
        ("/app", "absolute"),
        ("../app", "leads out of the repository"),
        ("app/../..", "leads out of the repository"),
        ("out", "leads out of the repository"),
        ("rooted", "absolute"),
        ("loop", "too many links"),
    ],
)
def test_path_that_is_not_a_folder_of_the_repository_is_refused(path: str, said: str) -> None:
    tree = TextTree({"app/a.yaml": ""}, {"out": "../etc", "rooted": "/etc", "loop": "loop"})
    with pytest.raises(RenderError, match=said) as caught:
        resolve_source_folder(tree, path)
    assert path in str(caught.value)


@pytest.mark.parametrize(
    ("path", "folder"),
    [("", ""), (".", ""), ("./app/", "app"), ("app/../app", "app"), ("in", "app"), ("in/sub", "app/sub")],
)
def test_source_path_is_normalized(path: str, folder: str) -> None:
    assert resolve_source_folder(TextTree({"app/sub/a.yaml": ""}, {"in": "app"}), path) == folder


MODULES = '[submodule "lib"]\n\tpath = vendor/lib\n\turl = https://example.com/lib\n'


@pytest.mark.parametrize("path", ["vendor/lib", "vendor/lib/deploy"])
def test_path_in_a_submodule_is_refused_as_unsupported(path: str) -> None:
    """Git lists a submodule as a folder; its files are in another repository."""
    tree = TextTree({".gitmodules": MODULES, "vendor/other.yaml": ""})
    with pytest.raises(RenderError, match="vendor/lib is a Git submodule whose files are not fetched"):
        resolve_source_folder(tree, path)


def test_folder_with_files_is_not_treated_as_a_submodule() -> None:
    tree = TextTree({".gitmodules": MODULES, "vendor/lib/a.yaml": "", "vendor/library/a.yaml": ""})
    assert resolve_source_folder(tree, "vendor/lib") == "vendor/lib"
    assert resolve_source_folder(tree, "vendor/library") == "vendor/library"
    for absent, files in (("vendor/library", {}), ("vendor/lib/typo", {"vendor/lib/a.yaml": ""})):
        with pytest.raises(RenderError, match="app path does not exist"):
            resolve_source_folder(TextTree({".gitmodules": MODULES, **files}), absent)


@pytest.mark.parametrize("field", ["resources", "components", "configurations"])
def test_kustomization_that_refers_to_a_submodule_is_an_error(field: str) -> None:
    tree = TextTree({".gitmodules": MODULES, "app/kustomization.yaml": f"{field}: [../vendor/lib/deploy]\n"})
    with pytest.raises(RenderError, match=r"app/kustomization\.yaml.*: vendor/lib is a Git submodule"):
        build(tree, "app")
