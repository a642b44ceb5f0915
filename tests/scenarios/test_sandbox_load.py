"""`argosy sandbox load`: applies files to the running sandbox, or none of them if one is invalid."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.clusters import Sandbox, argosy
from support.tiers import run_first

DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Ship, plural: ships}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
CONFIGMAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: '%s'}\n"


def load(running: Sandbox, *sources: object) -> tuple[int, list[str], str]:
    flags = [word for source in sources for word in ("-f", source)]
    done = argosy("sandbox", "load", "--data-dir", running.folder, *flags, home=running.folder.parent)
    assert "Traceback" not in done.err, done.err
    return done.code, done.out.splitlines(), done.err


def test_folder_is_loaded_in_dependency_order(shared: Sandbox, tmp_path: Path) -> None:
    """The files list an object before its namespace and its CRD, and it is created all the same."""
    (tmp_path / "1-ship.yaml").write_text(
        "apiVersion: example.com/v1\nkind: Ship\nmetadata: {name: argo, namespace: sea}\nspec: {oars: 50}\n"
    )
    (tmp_path / "2-map.json").write_text('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"chart"}}')
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/definition.yml").write_text(DEFINITION + "---\n" + "# nothing here\n---\n")
    (tmp_path / "deep/namespace.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: sea}\n")
    (tmp_path / "README.md").write_text("no manifest")
    code, lines, err = load(shared, tmp_path)
    assert code == 0, err
    assert lines == [
        "namespace/sea created",
        "customresourcedefinition.apiextensions.k8s.io/ships.example.com created",
        "ship.example.com/argo created",
        "configmap/chart created",
    ]
    assert shared.request("GET", "/apis/example.com/v1/namespaces/sea/ships/argo").json()["spec"] == {"oars": 50}
    assert shared.request("GET", "/api/v1/namespaces/default/configmaps/chart").code == 200


def test_second_load_reports_unchanged_and_configured(shared: Sandbox, tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text(CONFIGMAP % ("steady", 1))
    two.write_text(CONFIGMAP % ("moving", 1))
    assert load(shared, one, two)[1] == ["configmap/steady created", "configmap/moving created"]
    two.write_text(CONFIGMAP % ("moving", 2))
    assert load(shared, one, two)[1] == ["configmap/steady unchanged", "configmap/moving configured"]


@pytest.mark.parametrize(
    ("text", "words"),
    run_first(
        2,
        [
            ("a: [1, 2\nb: 3\n", ("bad.yaml:2: ",)),
            ("apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: x\n", ("bad.yaml:4: ",)),
            ("apiVersion: v1\nmetadata: {name: x}\n", ("bad.yaml:1: ", "kind")),
            ("apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: x-}\n", ("bad.yaml", "name")),
            ("just text\n", ("bad.yaml",)),
            ("\x00\x01\x02", ("bad.yaml",)),
        ],
    ),
)
def test_invalid_file_is_named_and_nothing_is_applied(
    shared: Sandbox, tmp_path: Path, text: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "a-good.yaml").write_text(CONFIGMAP % ("never", 1))
    (tmp_path / "bad.yaml").write_text(text)
    code, lines, err = load(shared, tmp_path)
    assert code == 2 and lines == []
    for word in words:
        assert word in err
    assert shared.request("GET", "/api/v1/namespaces/default/configmaps/never").code == 404


@pytest.mark.tier("all")
def test_file_that_is_not_utf8_is_refused(shared: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_bytes(b"apiVersion: v1\nkind: \xff\xfe\n")
    code, lines, err = load(shared, tmp_path)
    assert code == 2 and lines == [] and "bad.yaml" in err


@pytest.mark.tier("all")
def test_missing_file_is_named(shared: Sandbox, tmp_path: Path) -> None:
    code, _, err = load(shared, tmp_path / "nowhere.yaml")
    assert code == 2 and "nowhere.yaml" in err and "does not exist" in err


@pytest.mark.tier("all")
def test_folder_without_manifests_is_refused(shared: Sandbox, tmp_path: Path) -> None:
    code, _, err = load(shared, tmp_path)
    assert code == 2 and str(tmp_path) in err


def test_object_rejected_by_the_server_is_named(shared: Sandbox, tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_Name}\n")
    code, lines, err = load(shared, file)
    assert code == 2 and lines == [] and "Bad_Name" in err and "Invalid value" in err


@pytest.mark.tier("all")
def test_unknown_kind_is_refused(shared: Sandbox, tmp_path: Path) -> None:
    file = tmp_path / "unknown.yaml"
    file.write_text("apiVersion: nowhere.example/v1\nkind: Nothing\nmetadata: {name: x}\n")
    code, _, err = load(shared, file)
    assert code == 2 and "Nothing" in err


def test_load_needs_a_running_sandbox(tmp_path: Path) -> None:
    done = argosy("sandbox", "load", "-f", tmp_path, home=tmp_path)
    assert done.code == 2 and "argosy sandbox start" in done.err
