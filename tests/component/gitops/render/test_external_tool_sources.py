"""Jsonnet, config management plug-ins and a configured kustomize binary, rendered with `render`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from argosy.errors import RenderError
from argosy.gitops.application import Application, Destination, read_source
from argosy.gitops.application.step_results import Checkout, RenderInput
from argosy.gitops.render import BuildSettings, are_inputs_unchanged, read_build_settings, render
from support.file_trees import TextTree

APP = Application(name="demo", destination=Destination(namespace="space"))
DECLARED = "generate: [sh, -c, 'cat in.yaml; echo \"  app: $ARGOCD_APP_NAME\"']\nfiles: [in.yaml]\n"
PLUGIN = {"render.plugin.mine": DECLARED}
IN = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: made\ndata:\n"


def rendered(tree: TextTree, settings: BuildSettings | None = None, **source):
    return render(Checkout(tree, "abc"), APP, read_source({"path": "app", **source}), settings or BuildSettings())


@pytest.mark.skipif(find_spec("_gojsonnet") is None, reason="gojsonnet is not installed")
def test_jsonnet_renders_with_plain_files_and_imports_are_inputs():
    fields = "metadata: {name: import '../lib/name'}, data: {e: std.extVar('e')}"
    manifest = f"{{apiVersion: 'v1', kind: 'ConfigMap', {fields}}}"
    tree = TextTree({"app/a.jsonnet": manifest, "app/b.yaml": IN + "  k: v\n", "lib/name": "'imported'"})
    directory = {"jsonnet": {"extVars": [{"name": "e", "value": "$ARGOCD_APP_NAME"}]}}
    result = rendered(tree, directory=directory)
    assert [document["metadata"]["name"] for document in result.manifests] == ["imported", "made"]
    assert result.manifests[0]["data"] == {"e": "demo"}
    assert RenderInput("", "lib/name") in result.inputs
    changed = TextTree({**tree.files, "lib/name": "'other'"})
    assert are_inputs_unchanged(result.inputs, {"": tree}, {"ARGOCD_APP_NAME": "demo"})
    assert not are_inputs_unchanged(result.inputs, {"": changed}, {"ARGOCD_APP_NAME": "demo"})


@pytest.mark.parametrize("source", [{}, {"plugin": {"name": "mine"}}])
def test_plugin_renders_source_by_name_or_by_matching_files(source):
    result = rendered(TextTree({"app/in.yaml": IN}), read_build_settings({}, PLUGIN), **source)
    assert result.tool == "Plugin"
    assert result.manifests[0]["data"] == {"app": "demo"}


def test_undeclared_plugin_is_rejected():
    with pytest.raises(RenderError, match=r"render\.plugin\.mine"):
        rendered(TextTree({"app/in.yaml": IN}), plugin={"name": "mine"})


def test_configured_kustomize_binary_builds_sources_of_its_version(tmp_path: Path):
    program = tmp_path / "kustomize"
    program.write_text('#!/bin/sh\nfor last; do :; done\nsed s/made/theirs/ "$last/in.yaml"\n')
    program.chmod(0o755)
    tree = TextTree({"app/kustomization.yaml": "resources: [in.yaml]\n", "app/in.yaml": IN + "  k: v\n"})
    settings = read_build_settings({}, {"kustomize.binary.v4": str(program)})
    assert rendered(tree, settings).manifests[0]["metadata"]["name"] == "made"
    result = rendered(tree, settings, kustomize={"version": "v4"})
    assert (result.tool, result.manifests[0]["metadata"]["name"]) == ("Kustomize", "theirs")
    with pytest.raises(RenderError, match=r"kustomize\.binary\.v3"):
        rendered(tree, settings, kustomize={"version": "v3"})
