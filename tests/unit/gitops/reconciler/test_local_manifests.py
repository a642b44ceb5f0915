"""Manifests that an operation carries: when they are compared, and what is refused."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest

from argosy.gitops.application import Source, read_application
from argosy.gitops.application.project_spec import IntegrityPolicy, Project
from argosy.gitops.reconciler.local_manifests import (
    MAX_LOCAL_MANIFESTS_BYTES,
    LocalManifestsError,
    check_integrity_not_enforced,
    find_compared_manifests,
    find_size_problem,
    render_local_manifests,
)

KEY = "4AEE18F83AFDEB23"
TEXT = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})


def compared(automated: dict[str, Any] | None = None, **sync: Any) -> tuple[str, ...]:
    spec = {"syncPolicy": {"automated": automated}} if automated is not None else {}
    state = {"phase": "Succeeded", "operation": {"sync": sync}}
    return find_compared_manifests(read_application({"spec": spec, "status": {"operationState": state}}))


def test_local_manifests_are_compared_after_a_sync_of_them() -> None:
    assert compared(manifests=[TEXT]) == (TEXT,)
    assert compared() == ()
    assert find_compared_manifests(read_application({})) == ()


def test_git_is_compared_after_a_dry_run_and_with_automated_sync() -> None:
    assert compared(manifests=[TEXT], dryRun=True) == ()
    assert compared({}, manifests=[TEXT]) == ()
    assert compared({"enabled": False}, manifests=[TEXT]) == (TEXT,)


def test_lists_are_flattened_and_empty_texts_are_ignored() -> None:
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": [json.loads(TEXT)]})
    assert list(render_local_manifests([items, "", "null", TEXT]).manifests) == [json.loads(TEXT)] * 2


@pytest.mark.parametrize(
    "text",
    ["x", "[]", "7", "{}", '{"kind": "A"}', '{"a":' * 101 + "1" + "}" * 101, '{"kind": "A", "apiVersion": "v1"}'],
)
def test_error_names_the_index_and_no_value(text: str) -> None:
    with pytest.raises(LocalManifestsError, match=r"^Failed to load local manifests: manifests\[1\] ") as raised:
        render_local_manifests([TEXT, text])
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("text", ['{"data": "hidden"', '{"kind": "Secret", "data": {"a": "hidden"}}', "hidden"])
def test_error_repeats_no_value(text: str) -> None:
    with pytest.raises(LocalManifestsError) as raised:
        render_local_manifests([text])
    assert "hidden" not in str(raised.value)


def test_size_counts_the_escapes_of_json() -> None:
    assert find_size_problem(["x" * (MAX_LOCAL_MANIFESTS_BYTES - 4)]) == ""
    assert "push them to Git" in find_size_problem(['"' * (MAX_LOCAL_MANIFESTS_BYTES // 2)])
    assert "push them to Git" in find_size_problem(["x"] * MAX_LOCAL_MANIFESTS_BYTES)


@pytest.mark.parametrize(
    ("integrity", "is_permitted"),
    [
        ((), True),
        ((IntegrityPolicy(("*",), "none"),), True),
        ((IntegrityPolicy(("*",), "head", (KEY,)),), False),
        ((IntegrityPolicy(("https://git.example.com/other",), "head", (KEY,)),), True),
    ],
)
def test_repository_whose_revisions_must_be_signed_permits_no_local_manifests(
    integrity: tuple[IntegrityPolicy, ...], is_permitted: bool
) -> None:
    source = Source("https://git.example.com/team/app")
    with nullcontext() if is_permitted else pytest.raises(LocalManifestsError, match="source integrity is enforced"):
        check_integrity_not_enforced(Project(integrity=integrity), [source])
    with pytest.raises(LocalManifestsError, match="source integrity is enforced"):
        check_integrity_not_enforced(Project(signature_keys=(KEY,)), [source])
