"""Validates `metadata`, for all kinds.

In: metadata, and the syntax check of the kind's names. Out: errors in the server's order.
Never: checks what needs the store, such as whether a name is in use.
"""

from __future__ import annotations

from argosy.kube.schema import name_syntax
from argosy.kube.schema.field_error import forbidden, go_value, invalid, required
from argosy.kube.schema.validation import go_format
from argosy.kube.schema.validation.checks import Faults, Part, annotation_map, immutable, labels, matches

# k8s: the API server itself sets the last one, on CustomResourceDefinitions
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion", "customresourcecleanup.apiextensions.k8s.io")


def on_create(metadata: Part, *, namespaced: bool, grammar: name_syntax.Grammar, custom: bool = False) -> Faults:
    """`is_custom`: finalizers of custom kinds need no domain."""
    faults: Faults = []
    prefix = metadata.get("generateName")
    if prefix:
        complaints = name_syntax.for_prefix(grammar, prefix)
        faults.extend(invalid("metadata.generateName", go_value(prefix), complaint) for complaint in complaints)
    name = metadata.get("name")
    if not name:
        faults.append(required("metadata.name", "name or generateName is required"))
    else:
        matches(faults, "metadata.name", name, grammar)
    namespace = metadata.get("namespace")
    if namespaced:
        if not namespace:
            faults.append(required("metadata.namespace"))
        else:
            matches(faults, "metadata.namespace", namespace, name_syntax.dns_label)
    elif namespace:
        faults.append(forbidden("metadata.namespace", "not allowed on this type"))
    if (metadata.get("generation") or 0) < 0:
        faults.append(invalid("metadata.generation", str(metadata["generation"]), "must be greater than or equal to 0"))
    _lists(faults, metadata)
    _finalizers(faults, metadata)
    if not custom:
        _standard_finalizers(faults, metadata)
    return faults


def on_update(metadata: Part, old: Part, *, conditional: bool, builtin: bool = False) -> Faults:
    """`is_builtin`: also run the additional checks of built-in kinds."""
    faults: Faults = []
    if old.get("deletionTimestamp"):
        added = set(metadata.get("finalizers") or ()) - set(old.get("finalizers") or ())
        if added:
            shown = go_format.string_list(sorted(added))
            words = "no new finalizers can be added if the object is being deleted, found new finalizers"
            faults.append(forbidden("metadata.finalizers", f"{words} {shown}"))
    if conditional and not metadata.get("resourceVersion"):
        faults.append(invalid("metadata.resourceVersion", '""', "must be specified for an update"))
    for name in ("name", "namespace"):
        immutable(faults, f"metadata.{name}", metadata.get(name) or "", old.get(name) or "")
    if metadata.get("uid"):
        immutable(faults, "metadata.uid", metadata["uid"], old.get("uid"))
    if metadata.get("deletionTimestamp") and not old.get("deletionTimestamp"):
        immutable(faults, "metadata.deletionTimestamp", metadata["deletionTimestamp"], None)
    if metadata.get("deletionGracePeriodSeconds") is not None:
        before = old.get("deletionGracePeriodSeconds")
        immutable(faults, "metadata.deletionGracePeriodSeconds", metadata["deletionGracePeriodSeconds"], before)
    _lists(faults, metadata)
    if builtin:
        _standard_finalizers(faults, metadata)
    return faults


def _lists(faults: Faults, metadata: Part) -> None:
    if metadata.get("labels"):
        labels(faults, "metadata.labels", metadata["labels"])
    if metadata.get("annotations"):
        annotation_map(faults, "metadata.annotations", metadata["annotations"])
    if metadata.get("ownerReferences"):
        _owners(faults, metadata["ownerReferences"])


def _owners(faults: Faults, references: list[Part]) -> None:
    field, controller = "metadata.ownerReferences", ""
    for each in references:
        version = str(each.get("apiVersion") or "").rpartition("/")[2]
        for name, words, value in (
            ("apiVersion", "version", version),
            ("kind", "kind", each.get("kind")),
            ("name", "name", each.get("name")),
            ("uid", "uid", each.get("uid")),
        ):
            if not value:
                faults.append(invalid(f"{field}.{name}", go_value(each.get(name) or ""), f"{words} must not be empty"))
        if each.get("apiVersion") == "v1" and each.get("kind") == "Event":
            shown = go_format.owner_references([each]).removeprefix("[]v1.OwnerReference{").removesuffix("}")
            faults.append(invalid(field, shown, "/v1, Kind=Event is disallowed from being an owner"))
        if each.get("controller"):
            this = f"{each.get('kind') or ''}/{each.get('name') or ''}"
            if controller:
                words = 'Only one reference can have Controller set to true. Found "true" in references for'
                shown = go_format.owner_references(references)
                faults.append(invalid(field, shown, f"{words} {controller} and {this}"))
            else:
                controller = this


def _finalizers(faults: Faults, metadata: Part) -> None:
    finalizers = metadata.get("finalizers") or ()
    for finalizer in finalizers:
        matches(faults, "metadata.finalizers", finalizer, name_syntax.qualified_name)
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        words = "finalizer orphan and foregroundDeletion cannot be both set"
        faults.append(invalid("metadata.finalizers", go_format.string_list(finalizers), words))


def _standard_finalizers(faults: Faults, metadata: Part) -> None:
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            words = "name is neither a standard finalizer name nor is it fully qualified"
            faults.append(invalid(f"metadata.finalizers[{index}]", go_value(finalizer), words))
