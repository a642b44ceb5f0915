"""Checks of manifests whose name is generated: a hook with only a `generateName`."""

from __future__ import annotations

from argosy.gitops.analysis.schema_validation import MISSING, WRONG, SchemaValidator
from argosy.kube.objects import Manifest


def job(**metadata: str) -> Manifest:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:1"}]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": pod}}}


def faults(manifest: Manifest) -> list[tuple[str, str]]:
    return [(fault.category, ".".join(map(str, fault.path))) for fault in SchemaValidator().validate(manifest)]


def test_a_generate_name_stands_for_the_name_that_is_needed() -> None:
    assert faults(job(generateName="upgrade-sql-schema-")) == []
    assert faults(job()) == [(MISSING, "metadata.name")]


def test_a_generate_name_that_no_name_can_begin_with_is_wrong() -> None:
    assert (WRONG, "metadata.generateName") in faults(job(generateName="Upgrade_"))
