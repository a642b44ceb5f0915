"""A kustomize binary from the settings: chosen by version, run confined, with the Application's options."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from argosy.errors import RenderError
from argosy.gitops.application import KustomizeOptions
from argosy.gitops.render import kustomize
from argosy.gitops.render.kustomize.external_binary_build import build_with_binary, choose_binary
from support.file_trees import TextTree

KUBECTL = next(
    (binary for name in (Path(sys.prefix) / "kubectl-1.32/kubectl", "kubectl") if (binary := shutil.which(name))), None
)
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl here")
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  k: v\n"
TREE = TextTree(
    {
        "base/kustomization.yaml": "resources: [a.yaml]\n",
        "base/a.yaml": MAP % "a",
        "dev/kustomization.yaml": "resources: [../base]\nnamePrefix: dev-\n",
    }
)


FAKE = """#!/bin/sh
[ "$1" = build ] || exit 9
shift
for last; do :; done
[ "$1" = --enable-helm ] && echo "kind: Helm\napiVersion: v1\n---"
cat "$last/../base/a.yaml" || exit 1
echo "---"
echo "kind: Said\napiVersion: v1\nit: |"
sed 's/^/  /' "$last/kustomization.yaml"
"""


@pytest.fixture
def fake(tmp_path: Path) -> str:
    """A fake kustomize script that prints a base and the kustomization that it received."""
    program = tmp_path / "kustomize"
    program.write_text(FAKE)
    program.chmod(0o755)
    return str(program)


def test_choose_binary_looks_up_version_and_default_in_settings():
    binaries = {"v4.5.7": "/opt/kustomize-4", "default": "/opt/kustomize"}
    assert choose_binary("v4.5.7", binaries) == "/opt/kustomize-4"
    assert choose_binary("", binaries) == "/opt/kustomize"
    assert choose_binary("", {"v4.5.7": "/opt/kustomize-4"}) == ""


def test_unknown_version_error_names_the_missing_setting():
    with pytest.raises(RenderError, match=r"source\.kustomize\.version: .*set kustomize\.binary\.v9 in argosy-cm"):
        choose_binary("v9", {})


def test_binary_builds_the_path_within_the_whole_repository(fake):
    first, echoed_manifest = build_with_binary(fake, TREE, "dev")
    assert first["metadata"]["name"] == "a"
    assert echoed_manifest["it"] == "resources: [../base]\nnamePrefix: dev-\n"  # without options, it is unchanged


def test_build_options_come_before_the_path_argument(fake):
    assert build_with_binary(fake, TREE, "dev", arguments=("--enable-helm",))[0]["kind"] == "Helm"


def test_application_options_are_written_to_the_kustomization(fake):
    options = KustomizeOptions(name_prefix="app-", images=("x=y:$TAG",))
    kustomization = build_with_binary(fake, TREE, "dev", options=options, environment={"TAG": "v2"})[-1]["it"]
    assert "namePrefix: app-" in kustomization and "newTag: v2" in kustomization


def test_failing_binary_error_has_file_line_and_stderr(tmp_path):
    program = tmp_path / "kustomize"
    program.write_text("#!/bin/sh\necho 'Error: kustomization.yaml:2 is bad' >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(RenderError, match=r"^dev/kustomization\.yaml:2: kustomize failed with code 1: Error"):
        build_with_binary(str(program), TREE, "dev")


def test_missing_binary_error_names_its_path():
    with pytest.raises(RenderError, match=r"kustomize-9 cannot run: /opt/kustomize-9: program not found"):
        build_with_binary("/opt/kustomize-9", TREE, "dev")


@pytest.mark.parametrize("setting", ["", "'open"])
def test_invalid_binary_setting_is_rejected(setting):
    with pytest.raises(RenderError, match=r"kustomize\.binary"):
        build_with_binary(setting, TREE, "dev")


@needs_kubectl
@pytest.mark.parametrize("options", [None, KustomizeOptions(name_suffix="-x", common_labels={"a": "b"}, namespace="n")])
def test_kubectl_kustomize_output_matches_built_in_kustomize(options):
    command = f"{KUBECTL} kustomize"
    assert build_with_binary(command, TREE, "dev", options=options) == kustomize.build(TREE, "dev", options=options)


@needs_kubectl
def test_kubectl_kustomize_cannot_fetch_remote_base():
    tree = TextTree({"kustomization.yaml": "resources: [https://example.com/org/repo//base?ref=v1]\n"})
    with pytest.raises(RenderError, match="kubectl failed with code"):
        build_with_binary(f"{KUBECTL} kustomize", tree, "")
