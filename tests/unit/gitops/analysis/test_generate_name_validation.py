"""Schema validation of manifests with `generateName` instead of a name, such as hooks."""

from __future__ import annotations

from argosy.gitops.analysis.schema_validation import MISSING, WRONG, SchemaValidator
from argosy.kube.objects import Manifest


def job(**metadata: str) -> Manifest:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:1"}]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": pod}}}


def faults(manifest: Manifest) -> list[tuple[str, str]]:
    return [(fault.category, ".".join(map(str, fault.path))) for fault in SchemaValidator().validate(manifest)]


def test_generate_name_replaces_the_required_name() -> None:
    assert faults(job(generateName="upgrade-sql-schema-")) == []
    assert faults(job()) == [(MISSING, "metadata.name")]


def test_invalid_generate_name_is_reported() -> None:
    assert (WRONG, "metadata.generateName") in faults(job(generateName="Upgrade_"))
