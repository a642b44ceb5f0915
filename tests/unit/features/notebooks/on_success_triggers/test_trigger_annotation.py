"""Parsing of the on-success-trigger annotation: valid entries are kept, each invalid one is a fault."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from argosy.features.notebooks.on_success_triggers.trigger_annotation_parser import read_entries
from argosy.kube.objects import dump_yaml
from support.examples import examples

GOOD = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "action": "restart"}
SERVICE = {**GOOD, "apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService"}
APPLICATION = {**GOOD, "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "action": "sync"}


FIELDS = ("apiVersion", "kind", "name", "action", "namespace", "waitFor", "timeout", "strategy", "probe", "port")
NAMES = some.sampled_from(FIELDS)


def test_documented_example_is_parsed() -> None:
    text = """
- apiVersion: serving.kserve.io/v1beta1
  kind: InferenceService
  name: fraud-detection-model
  namespace: ml-platform
  action: restart
- apiVersion: argoproj.io/v1alpha1
  kind: Application
  name: model-serving
  action: sync
"""
    entries, faults = read_entries(text)
    assert [(entry.kind, entry.name, entry.namespace, entry.action) for entry in entries] == [
        ("InferenceService", "fraud-detection-model", "ml-platform", "restart"),
        ("Application", "model-serving", "", "sync"),
    ]
    assert faults == []


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({**GOOD, "apiVersion": ""}, "trigger[1]: apiVersion is required"),
        ({name: value for name, value in GOOD.items() if name != "kind"}, "trigger[1]: kind is required"),
        ({**GOOD, "name": None}, "trigger[1]: name is required"),
        ({name: value for name, value in GOOD.items() if name != "action"}, "trigger[1]: action is required"),
        ({**GOOD, "action": "delete"}, "trigger[1]: invalid action 'delete' (must be restart, sync, or refresh)"),
        ({**GOOD, "name": 5}, "trigger[1]: name must be a string"),
        ({**GOOD, "waitfor": "Ready"}, "trigger[1]: unknown field 'waitfor' (known:"),
        ({**GOOD, "waitFor": "Done"}, "trigger[1]: invalid waitFor 'Done' (must be Ready)"),
        ({**GOOD, "timeout": "soon"}, "trigger[1]: timeout: invalid duration 'soon'"),
        ({**GOOD, "strategy": "fast"}, "trigger[1]: invalid strategy 'fast' (must be rolling or evict)"),
        ({**GOOD, "strategy": "evict"}, "trigger[1]: strategy 'evict' is not for a Deployment"),
        ({**GOOD, "probe": "/v1/models"}, "trigger[1]: probe is for an InferenceService"),
        ({**SERVICE, "probe": "v1/models"}, "trigger[1]: probe.path must start with a slash"),
        ({**SERVICE, "probe": {"port": "http"}}, "trigger[1]: probe.port must be a port number"),
        ({**SERVICE, "probe": {"where": "/"}}, "trigger[1]: probe must be a path, or a map of"),
        ({**GOOD, "action": "sync"}, "trigger[1]: action 'sync' is for an Application"),
        ({**APPLICATION, "action": "restart"}, "trigger[1]: action 'restart' is for kinds with Pods"),
        ("restart", "trigger[1]: is not a map"),
    ],
)
def test_invalid_entry_is_reported_and_valid_ones_are_kept(entry: object, said: str) -> None:
    entries, faults = read_entries(dump_yaml([GOOD, entry, APPLICATION]))
    assert [trigger_entry.index for trigger_entry in entries] == [0, 2]
    (fault,) = faults
    assert fault.message.startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{kind: Deployment}", "is not a list"),
        ("just words", "is not a list"),
        ("- {", "is not YAML"),
        ("- a: &x [1]\n" * 21, "has 21 entries"),
    ],
)
def test_malformed_annotation_is_one_fault(text: str, said: str) -> None:
    entries, faults = read_entries(text)
    assert entries == []
    assert [fault.message.partition(": ")[2].startswith(said) for fault in faults] == [True]


def test_empty_annotation_has_no_entries() -> None:
    assert read_entries("") == ([], [])


def test_identical_entries_are_merged_and_different_ones_are_kept() -> None:
    again = {**GOOD, "timeout": "1m"}
    entries, _ = read_entries(dump_yaml([GOOD, GOOD, again]))
    assert [entry.timeout for entry in entries] == [600.0, 60.0]
    assert len({entry.digest for entry in entries}) == 2


VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=10)
    | some.sampled_from(["restart", "sync", "Ready", "10s", "apps/v1", "argoproj.io/v1alpha1", "Application"]),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(NAMES | some.text(max_size=5), inner, max_size=9),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=examples())
@given(VALUES | some.text())
def test_arbitrary_annotation_yields_valid_entries_and_faults(written: object) -> None:
    text = written if isinstance(written, str) else json.dumps(written)
    entries, faults = read_entries(text)
    assert all(entry.action in ("restart", "sync", "refresh") and entry.name for entry in entries)
    assert all(fault.message and fault.digest for fault in faults)
