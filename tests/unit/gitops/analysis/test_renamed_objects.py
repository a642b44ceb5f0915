"""What a prefix made of a name, and what is only another name."""

from __future__ import annotations

import pytest

from argosy.gitops.analysis.name_prefixes import renamed
from argosy.gitops.analysis.repository import Item
from argosy.gitops.analysis.rules.notebooks import _misspelt
from argosy.gitops.analysis.script_commands import Call, calls
from argosy.gitops.analysis.violation import Place
from argosy.kube.names import ResourceKey


def named(name: str) -> Item:
    return Item({}, ResourceKey("serving.kserve.io", "InferenceService", "", name), lambda pointer: Place("a.yaml"))


@pytest.mark.parametrize(
    ("own", "name", "known", "found"),
    [
        ("dev-fraud", "scikit", ["dev-scikit"], "dev-scikit"),
        ("fraud-v2", "scikit", ["scikit-v2"], "scikit-v2"),
        ("staging-fraud", "dev-scikit", ["staging-scikit"], "staging-scikit"),
        ("staging-fraud", "shared-scikit", ["staging-scikit"], ""),
        ("fraud", "dev-scikit", ["staging-scikit"], ""),
        ("fraud", "scikit", ["dev-scikit"], ""),
        ("fraud", "scikit", ["scikit-old"], ""),
        ("dev-fraud", "scikit", ["dev-scikit", "scikit"], ""),
        ("dev-fraud", "", ["dev-"], ""),
    ],
)
def test_a_name_is_renamed_only_as_the_object_itself_was(own: str, name: str, known: list[str], found: str) -> None:
    assert renamed(named(own), name, known) == found


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("fruad-model", ["fraud-model"], "fraud-model"),
        ("fraud-eu", ["fraud-us"], ""),
        ("fraud-v1", ["fraud-v2"], ""),
        ("fraud-a", ["fraud-b"], ""),
        ("fraud-dev", ["fraud-prod"], ""),
        ("fraud", ["fraud-model"], ""),
    ],
)
def test_a_slip_is_one_and_another_object_is_none(name: str, known: list[str], found: str) -> None:
    assert _misspelt(name, known) == found


@pytest.mark.parametrize(
    ("script", "call"),
    [
        ("oc rollout status deployment/front -n ml", Call("wait", "deployment", "front", "ml")),
        ("kubectl rollout  restart deploy front", Call("patch", "deployment", "front", "")),
        ("kubectl annotate isvc fraud a=b", Call("patch", "inferenceservice", "fraud", "")),
        ("oc logs -f job/train", Call("get", "pod", "?", "", part="log")),
        ("oc -n ml start-build trainer --wait", Call("create", "buildconfig", "trainer", "ml", part="instantiate")),
        ("kubectl get pods", Call("get", "pod", "", "")),
    ],
)
def test_a_command_is_read_as_what_it_asks_the_server_for(script: str, call: Call) -> None:
    assert list(calls(script)) == [call]
