"""Tracks who owns which fields of a written object, in its managedFields.

In: the live object, the requested one and the call. Out: the object with its managedFields. Never: reads or writes the
store.
"""

from __future__ import annotations

from argosy.errors import PatchError
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.patch import server_side_apply
from argosy.kube.patch.field_sets import FieldSet
from argosy.kube.patch.managed_fields import record_update
from argosy.sandbox.apiserver import metadata as meta
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind, drop_status
from argosy.sandbox.apiserver.metadata import Clock
from argosy.sandbox.apiserver.off_loop_work import LARGE_BYTES
from argosy.sandbox.apiserver.storage_encoding_and_size_check import check_managed_fields_size
from argosy.sandbox.apiserver.write_call_and_result_types import RegistryCall

STATUS_FIELDS = FieldSet.from_paths(["f:status"])  # k8s: has no owner through the main path of a kind that has /status


def record_creator(
    served: ApiKind, sent_manifest: Manifest, new: Manifest, call: RegistryCall, clock: Clock
) -> Manifest:
    """k8s: a creator owns the fields it sent and their defaults, not fields set by the server, nor a status."""
    owned_manifest = drop_status(sent_manifest) if served.resource.find_subresource("status") else sent_manifest
    tracked_manifest = _record_update(served, None, owned_manifest, call, clock)
    metadata = {**new["metadata"], "managedFields": tracked_manifest["metadata"].get("managedFields")}
    return {**new, "metadata": meta.order_metadata(metadata)}


def record_owner(
    served: ApiKind, old: Manifest | None, new: Manifest, call: RegistryCall, clock: Clock, subresource: str = ""
) -> Manifest:
    """Record that the caller owns the fields that the update changes."""
    tracked_manifest = _record_update(served, old, new, call, clock, subresource)
    return {**tracked_manifest, "metadata": meta.order_metadata(tracked_manifest["metadata"])}


def _record_update(
    served: ApiKind, old: Manifest | None, new: Manifest, call: RegistryCall, clock: Clock, subresource: str = ""
) -> Manifest:
    return record_update(
        old,
        new,
        empty_object=served.zero_value,
        manager=call.field_manager,
        api_version=served.resource.api_version,
        subresource=subresource,
        now=format_timestamp(clock()),
        shape=served.shape,
    )


def merge_applied(
    served: ApiKind, old: Manifest | None, config: Manifest, call: RegistryCall, clock: Clock, subresource: str = ""
) -> Manifest:
    """Merge a server-side apply configuration with the live object and its field owners."""
    resource = served.resource
    if call.body_bytes >= LARGE_BYTES:
        check_managed_fields_size(served, config, old)
    try:
        return server_side_apply.apply(
            old,
            config,
            manager=call.field_manager,
            force=call.force,
            api_version=resource.api_version,
            now=format_timestamp(clock()),
            shape=served.shape,
            subresource=subresource,
            empty_object=served.zero_value,
            ignored_fields=STATUS_FIELDS if resource.find_subresource("status") and not subresource else None,
        )
    except PatchError as error:
        namespace, name = (config["metadata"].get(field, "") for field in ("namespace", "name"))
        group = f"{resource.group}/{resource.version}, Kind={resource.kind}"
        object_text = f"{namespace}/{name}; {group}"
        raise status_errors.internal_error(
            f"failed to create typed patch object ({object_text}): {error.message}"
        ) from error
