"""Validates that the replica counts in a workload's status are consistent."""

from __future__ import annotations

from argosy.kube.schema.field_error import invalid
from argosy.kube.schema.validation.shared_field_checks import FieldErrors, ManifestPart, check_non_negative

_REPLICAS_ERROR = "cannot be greater than status.replicas"


def _validate_counts(
    manifest: ManifestPart,
    non_negative_fields: tuple[str, ...],
    fields_within_replicas: tuple[str, ...],
    available_error: str,
) -> FieldErrors:
    errors: FieldErrors = []
    status = manifest.get("status") or {}
    check_non_negative(errors, "status", status, *non_negative_fields)
    total = status.get("replicas") or 0
    for name in fields_within_replicas:
        count = status.get(name) or 0
        if count > total:
            errors.append(invalid(f"status.{name}", str(count), _REPLICAS_ERROR))
    available = status.get("availableReplicas") or 0
    if available > (status.get("readyReplicas") or 0):
        errors.append(invalid("status.availableReplicas", str(available), available_error))
    return errors


def validate_deployment_status(manifest: ManifestPart) -> FieldErrors:
    non_negative_fields = (
        "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
        "unavailableReplicas", "collisionCount",
    )  # fmt: skip
    fields_within_replicas = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return _validate_counts(
        manifest, non_negative_fields, fields_within_replicas, "cannot be greater than readyReplicas"
    )


def validate_replica_set_status(manifest: ManifestPart) -> FieldErrors:
    fields_within_replicas = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    non_negative_fields = ("replicas", *fields_within_replicas, "observedGeneration")
    return _validate_counts(
        manifest, non_negative_fields, fields_within_replicas, "cannot be greater than readyReplicas"
    )


def validate_stateful_set_status(manifest: ManifestPart) -> FieldErrors:
    fields_within_replicas = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    non_negative_fields = ("replicas", *fields_within_replicas, "observedGeneration", "collisionCount")
    return _validate_counts(
        manifest, non_negative_fields, fields_within_replicas, "cannot be greater than status.readyReplicas"
    )


def validate_daemon_set_status(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    non_negative_fields = (
        "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
        "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
    )  # fmt: skip
    check_non_negative(errors, "status", manifest.get("status") or {}, *non_negative_fields)
    return errors
