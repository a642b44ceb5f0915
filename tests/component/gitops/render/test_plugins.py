"""Config management plug-ins: selection, environment, confinement, limits and error messages."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from argosy.errors import LimitError, RenderError
from argosy.gitops.application import PluginOptions, ToolVariable
from argosy.gitops.render.config_management_plugin import PLUGIN_LIMITS, build_plugin_environment, generate_manifests
from argosy.gitops.render.settings import PluginCommand
from support.file_trees import TextTree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines programs")
TREE = TextTree({"app/in.txt": "hello", "app/tool.sh": "#!/bin/sh\necho kind: Made\n", "other/x": "beside"})
NAMED = PluginOptions(name="mine")


def shell(script: str, **fields) -> dict[str, PluginCommand]:
    return {"mine": PluginCommand(("sh", "-c", script), **fields)}


def run_plugin(script: str, options: PluginOptions | None = NAMED, environment=None, **fields):
    return generate_manifests(TREE, "app", options, shell(script, **fields), environment or {})


def test_plugin_output_is_parsed_as_manifests():
    script = (
        "printf 'apiVersion: v1\\nkind: A\\n---\\n---\\n{apiVersion: v1, kind: B, metadata: {name: %s}}' $(cat in.txt)"
    )
    assert run_plugin(script) == [
        {"apiVersion": "v1", "kind": "A"},
        {"apiVersion": "v1", "kind": "B", "metadata": {"name": "hello"}},
    ]


def test_plugin_runs_in_source_folder_and_reads_the_whole_repository():
    (manifest,) = run_plugin("echo kind: A; echo apiVersion: v1; echo it: $(cat ../other/x) from $(basename $PWD)")
    assert manifest["it"] == "beside from app"


def test_init_can_create_files_for_generate():
    (manifest,) = run_plugin(
        "echo kind: A; echo apiVersion: v1; echo it: $(cat made.txt)", init=("sh", "-c", "echo ready >made.txt")
    )
    assert manifest["it"] == "ready"


def test_plugin_can_run_a_script_of_the_repository():
    assert run_plugin("./tool.sh; echo apiVersion: v1")[0]["kind"] == "Made"


def test_empty_plugin_output_yields_no_manifests():
    assert run_plugin("true") == []


def test_first_plugin_with_matching_file_globs_is_used():
    plugins = {
        "no": PluginCommand(("false",), file_globs=("*.json",)),
        "yes": PluginCommand(("printf", "kind: A\napiVersion: v1"), file_globs=("x", "in.*")),
    }
    assert generate_manifests(TREE, "app", None, plugins, {}) == [{"kind": "A", "apiVersion": "v1"}]
    with pytest.raises(RenderError, match="no plug-in matches the files here"):
        generate_manifests(TREE, "other", None, {"no": plugins["no"]}, {})


def test_unknown_plugin_error_names_the_setting():
    with pytest.raises(RenderError, match=r"^app: unknown plug-in 'mine' .*render\.plugin\.mine in argosy-cm"):
        generate_manifests(TREE, "app", NAMED, {}, {})


def test_plugin_environment_has_build_variables_env_and_parameters():
    options = PluginOptions(
        env=(ToolVariable("NAME", "it is $ARGOCD_APP_NAME"), ToolVariable("PATH", "/evil")),
        parameters=(
            {"name": "one", "string": "1"},
            {"name": "values-files", "array": ["a", "b"]},
            {"name": "helm.set", "map": {"image.tag": "v1"}},
        ),
    )
    assert build_plugin_environment(options, {"ARGOCD_APP_NAME": "demo", "PARAM_ONE": "wins"}) == {
        "ARGOCD_APP_NAME": "demo",
        "ARGOCD_ENV_NAME": "it is demo",
        "ARGOCD_ENV_PATH": "/evil",
        "ARGOCD_APP_PARAMETERS": (
            '[{"name":"one","string":"1"},{"name":"values-files","array":["a","b"]},'
            '{"name":"helm.set","map":{"image.tag":"v1"}}]'
        ),
        "PARAM_ONE": "wins",
        "PARAM_VALUES_FILES_0": "a",
        "PARAM_VALUES_FILES_1": "b",
        "PARAM_HELM_SET_IMAGE_TAG": "v1",
    }
    assert build_plugin_environment(PluginOptions(), {}) == {"ARGOCD_APP_PARAMETERS": "null"}


def test_plugin_process_receives_the_environment_variables():
    options = PluginOptions("mine", (ToolVariable("X", "y"),), ({"name": "p", "string": "q"},))
    script = "echo kind: A; echo apiVersion: v1; echo it: $ARGOCD_ENV_X $PARAM_P $ARGOCD_APP_NAME"
    assert run_plugin(script, options, {"ARGOCD_APP_NAME": "demo"})[0]["it"] == "y q demo"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "echo first >&2; echo 'bad \x1b[1mthing' >&2; exit 3",
            r"^app: plug-in mine failed with code 3: first \| bad  \[1mthing$",
        ),
        ("echo error in in.txt:7: no good >&2; exit 1", r"^app/in\.txt:7: plug-in mine failed with code 1: error in"),
        ("echo ../other/x.y ../../etc/passwd.d /etc/ld.so.cache:1 >&2; exit 1", r"^app: plug-in mine failed"),
        ("kill -SEGV $$", r"^app: plug-in mine failed with signal 11: no output"),
        ("echo 'a: ['", r"^app: plug-in mine did not print manifests: .*line \d"),
        ("echo 'just text'", r"^app: plug-in mine did not print manifests"),
    ],
)
def test_plugin_error_has_last_output_lines_and_file(script, said):
    with pytest.raises(RenderError, match=said):
        run_plugin(script)


def test_failing_init_raises_render_error():
    with pytest.raises(RenderError, match="init of plug-in mine failed with code 1: no init"):
        run_plugin("true", init=("sh", "-c", "echo no init >&2; exit 1"))


def test_missing_plugin_program_error_names_it():
    with pytest.raises(RenderError, match="plug-in mine cannot run: no-such-tool: program not found"):
        generate_manifests(TREE, "app", NAMED, {"mine": PluginCommand(("no-such-tool",))}, {})


def test_plugin_is_stopped_after_its_timeout():
    with pytest.raises(LimitError, match=r"^app: plug-in mine: took longer than 0\.5 s"):
        run_plugin("sleep 60", timeout_seconds=0.5)


def test_plugin_output_over_the_limit_raises_limit_error():
    with pytest.raises(LimitError, match=r"^app: plug-in mine: its output is larger"):
        generate_manifests(TREE, "app", NAMED, shell("yes"), {}, limits=replace(PLUGIN_LIMITS, output=1 << 20))


def test_plugin_cannot_read_files_outside_the_repository(tmp_path):
    canary = tmp_path / "canary"
    canary.write_text("kind: Canary")
    with pytest.raises(RenderError, match="failed with code"):
        run_plugin(f"cat {canary}")
