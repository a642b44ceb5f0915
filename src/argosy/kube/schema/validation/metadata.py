"""Validates `metadata`, for all kinds.

In: metadata, and the syntax check of the kind's names. Out: errors in the server's order.
Never: checks what needs the store, such as whether a name is in use.
"""

from __future__ import annotations

from argosy.kube.schema import name_label_address_syntax
from argosy.kube.schema.field_error import forbidden, format_go_value, invalid, required
from argosy.kube.schema.validation import go_struct_format
from argosy.kube.schema.validation.shared_field_checks import (
    FieldErrors,
    ManifestPart,
    check_annotations,
    check_immutable,
    check_labels,
    check_syntax,
)

# k8s: the API server itself sets the last one, on CustomResourceDefinitions
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion", "customresourcecleanup.apiextensions.k8s.io")


def validate_metadata_create(
    metadata: ManifestPart,
    *,
    namespaced: bool,
    name_check: name_label_address_syntax.SyntaxCheck,
    is_custom: bool = False,
) -> FieldErrors:
    """`is_custom`: finalizers of custom kinds need no domain."""
    errors: FieldErrors = []
    prefix = metadata.get("generateName")
    if prefix:
        messages = name_label_address_syntax.check_generate_name(name_check, prefix)
        errors.extend(invalid("metadata.generateName", format_go_value(prefix), message) for message in messages)
    name = metadata.get("name")
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    else:
        check_syntax(errors, "metadata.name", name, name_check)
    namespace = metadata.get("namespace")
    if namespaced:
        if not namespace:
            errors.append(required("metadata.namespace"))
        else:
            check_syntax(errors, "metadata.namespace", namespace, name_label_address_syntax.check_dns_label)
    elif namespace:
        errors.append(forbidden("metadata.namespace", "not allowed on this type"))
    if (metadata.get("generation") or 0) < 0:
        errors.append(invalid("metadata.generation", str(metadata["generation"]), "must be greater than or equal to 0"))
    _check_labels_annotations_owners(errors, metadata)
    _check_finalizer_syntax(errors, metadata)
    if not is_custom:
        _check_standard_finalizers(errors, metadata)
    return errors


def validate_metadata_update(
    metadata: ManifestPart, old: ManifestPart, *, needs_resource_version: bool, is_builtin: bool = False
) -> FieldErrors:
    """`is_builtin`: also run the additional checks of built-in kinds."""
    errors: FieldErrors = []
    if old.get("deletionTimestamp"):
        added_finalizers = set(metadata.get("finalizers") or ()) - set(old.get("finalizers") or ())
        if added_finalizers:
            value_text = go_struct_format.format_string_list(sorted(added_finalizers))
            detail = "no new finalizers can be added if the object is being deleted, found new finalizers"
            errors.append(forbidden("metadata.finalizers", f"{detail} {value_text}"))
    if needs_resource_version and not metadata.get("resourceVersion"):
        errors.append(invalid("metadata.resourceVersion", '""', "must be specified for an update"))
    for name in ("name", "namespace"):
        check_immutable(errors, f"metadata.{name}", metadata.get(name) or "", old.get(name) or "")
    if metadata.get("uid"):
        check_immutable(errors, "metadata.uid", metadata["uid"], old.get("uid"))
    if metadata.get("deletionTimestamp") and not old.get("deletionTimestamp"):
        check_immutable(errors, "metadata.deletionTimestamp", metadata["deletionTimestamp"], None)
    if metadata.get("deletionGracePeriodSeconds") is not None:
        old_seconds = old.get("deletionGracePeriodSeconds")
        check_immutable(
            errors, "metadata.deletionGracePeriodSeconds", metadata["deletionGracePeriodSeconds"], old_seconds
        )
    _check_labels_annotations_owners(errors, metadata)
    if is_builtin:
        _check_standard_finalizers(errors, metadata)
    return errors


def _check_labels_annotations_owners(errors: FieldErrors, metadata: ManifestPart) -> None:
    if metadata.get("labels"):
        check_labels(errors, "metadata.labels", metadata["labels"])
    if metadata.get("annotations"):
        check_annotations(errors, "metadata.annotations", metadata["annotations"])
    if metadata.get("ownerReferences"):
        _check_owner_references(errors, metadata["ownerReferences"])


def _check_owner_references(errors: FieldErrors, references: list[ManifestPart]) -> None:
    field, controller = "metadata.ownerReferences", ""
    for reference in references:
        version = str(reference.get("apiVersion") or "").rpartition("/")[2]
        for name, detail, value in (
            ("apiVersion", "version", version),
            ("kind", "kind", reference.get("kind")),
            ("name", "name", reference.get("name")),
            ("uid", "uid", reference.get("uid")),
        ):
            if not value:
                errors.append(
                    invalid(
                        f"{field}.{name}", format_go_value(reference.get(name) or ""), f"{detail} must not be empty"
                    )
                )
        if reference.get("apiVersion") == "v1" and reference.get("kind") == "Event":
            value_text = (
                go_struct_format.format_owner_references([reference])
                .removeprefix("[]v1.OwnerReference{")
                .removesuffix("}")
            )
            errors.append(invalid(field, value_text, "/v1, Kind=Event is disallowed from being an owner"))
        if reference.get("controller"):
            owner_name = f"{reference.get('kind') or ''}/{reference.get('name') or ''}"
            if controller:
                detail = 'Only one reference can have Controller set to true. Found "true" in references for'
                value_text = go_struct_format.format_owner_references(references)
                errors.append(invalid(field, value_text, f"{detail} {controller} and {owner_name}"))
            else:
                controller = owner_name


def _check_finalizer_syntax(errors: FieldErrors, metadata: ManifestPart) -> None:
    finalizers = metadata.get("finalizers") or ()
    for finalizer in finalizers:
        check_syntax(errors, "metadata.finalizers", finalizer, name_label_address_syntax.check_qualified_name)
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid("metadata.finalizers", go_struct_format.format_string_list(finalizers), detail))


def _check_standard_finalizers(errors: FieldErrors, metadata: ManifestPart) -> None:
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(invalid(f"metadata.finalizers[{index}]", format_go_value(finalizer), detail))
