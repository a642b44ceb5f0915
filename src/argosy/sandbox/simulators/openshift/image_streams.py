"""Simulates the image registry: tags that are imported, followed or pushed by builds, and an ImageStreamTag for each.

In: the key of an ImageStream. Out: its status, and its ImageStreamTags. Never: stores an image: digests are hashes of
names.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from argosy.annotations import SIMULATED
from argosy.errors import UserError
from argosy.kube.client import AdmissionHandler, Cluster
from argosy.kube.controller import ControllerContext, Watch
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.simulators.conditional_writes import (
    create_if_absent,
    patch_object,
    requeue_on_conflict,
    update_status_if_changed,
)
from argosy.sandbox.simulators.openshift.openshift_kind_and_component_names import (
    IMAGE_STREAM,
    IMAGE_STREAM_TAG,
    REGISTRY_HOST,
    SERVER_FIELD_MANAGER,
)
from argosy.sandbox.simulators.owner_references_and_marks import (
    SIMULATED_NOTE,
    append_simulated_note,
    build_key,
    build_owner_reference,
    enqueue_if_unmarked,
    is_being_deleted,
    is_simulated_by_other_addon,
)
from argosy.sandbox.simulators.simulation_annotations import (
    InjectedFault,
    read_simulation_annotations,
    read_simulation_settings,
)

MAX_TAG_ITEMS: Final = 10
TagFields = dict[str, Any]


def hash_to_digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def apply_defaults(stream: Manifest, old: Manifest | None) -> Manifest:
    """Set the fields that the server stores: each tag has a generation that counts changes of its source."""
    if is_simulated_by_other_addon(stream):
        return stream
    spec = stream.get("spec") or {}
    old_tags = {old_tag["name"]: old_tag for old_tag in ((old or {}).get("spec") or {}).get("tags") or ()}
    tags = [_set_generation(tag, old_tags.get(tag["name"])) for tag in spec.get("tags") or ()]
    new_spec = {"lookupPolicy": {"local": False}, **spec}
    return {**stream, "spec": {**new_spec, "tags": tags} if tags else new_spec}


def _set_generation(tag: TagFields, old_tag: TagFields | None) -> TagFields:
    generation = 1
    if old_tag is not None:
        generation = int(old_tag.get("generation") or 1) + (old_tag.get("from") != tag.get("from"))
    policies = {"importPolicy": {"importMode": "Legacy"}, "referencePolicy": {"type": "Source"}}
    return {**policies, **tag, "generation": generation}


ADMISSION_HANDLER: Final = AdmissionHandler(
    IMAGE_STREAM, "imagestream.openshift.io", SERVER_FIELD_MANAGER, apply_defaults
)


class ImageStreamController:
    name = "simulated-imagestreams"
    watches = (Watch(IMAGE_STREAM, enqueue_if_unmarked),)

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> None:
        stream = context.cache.get(key)
        if stream is None or is_being_deleted(stream) or is_simulated_by_other_addon(stream):
            return
        tags = compute_tags(stream, format_timestamp(context.clock.now()))
        await update_status_if_changed(
            stream, {"dockerImageRepository": build_repository(stream), "tags": tags}, context.cluster
        )
        for tag in tags:
            await _write_image_stream_tag(stream, tag, context.cluster)


def build_repository(stream: Manifest) -> str:
    return f"{REGISTRY_HOST}/{stream['metadata']['namespace']}/{stream['metadata']['name']}"


def compute_tags(stream: Manifest, now: str) -> list[TagFields]:
    """Compute status.tags: pushed tags stay; a tag with a source is imported once per generation."""
    tags_by_name = {item["tag"]: item for item in (stream.get("status") or {}).get("tags") or ()}
    problem = _find_injected_problem(stream)
    for tag in (stream.get("spec") or {}).get("tags") or ():
        source = tag.get("from") or {}
        current = tags_by_name.get(tag["name"], {"tag": tag["name"], "items": []})
        if source.get("kind") == "DockerImage" and not tag.get("reference"):
            tags_by_name[tag["name"]] = _import_tag(
                current, source["name"], int(tag.get("generation") or 1), problem, now
            )
        elif source.get("kind") == "ImageStreamTag":
            followed = tags_by_name.get(source["name"].rpartition(":")[2])
            if followed and followed.get("items"):
                tags_by_name[tag["name"]] = {"tag": tag["name"], "items": followed["items"][:1]}
    return [tags_by_name[name] for name in sorted(tags_by_name)]


def _import_tag(current: TagFields, image: str, generation: int, problem: str, now: str) -> TagFields:
    last_generation = max((int(tag_item.get("generation") or 0) for tag_item in current.get("items") or ()), default=0)
    if problem:
        message = append_simulated_note(f'dockerimage.image.openshift.io "{image}" not found: {problem}')
        previous: TagFields = next(iter(current.get("conditions") or ()), {})
        transitioned_at = previous.get("lastTransitionTime") or now
        failed = {"type": "ImportSuccess", "status": "False", "reason": "NotFound", "message": message}
        return {**current, "conditions": [{**failed, "generation": generation, "lastTransitionTime": transitioned_at}]}
    if last_generation >= generation:
        return {name: value for name, value in current.items() if name != "conditions"}
    digest = hash_to_digest(image)
    reference = f"{_remove_tag(image)}@{digest}"
    item = {"created": now, "dockerImageReference": reference, "image": digest, "generation": generation}
    return {"tag": current["tag"], "items": [item, *(current.get("items") or ())][:MAX_TAG_ITEMS]}


def _remove_tag(image: str) -> str:
    registry_path, slash, last_part = image.partition("@")[0].rpartition("/")
    return f"{registry_path}{slash}{last_part.partition(':')[0]}"


def _find_injected_problem(stream: Manifest) -> str:
    try:
        settings = read_simulation_settings([read_simulation_annotations(stream)])
    except UserError as error:
        return str(error)
    return "requested by annotation" if settings.fault is InjectedFault.IMAGE_PULL else ""


def add_pushed_image(stream: Manifest, tag: str, digest: str, now: str) -> list[TagFields]:
    """Return the tags after a build pushed this image; pushing it twice has no further effect."""
    tags = [dict(entry) for entry in (stream.get("status") or {}).get("tags") or ()]
    current = next((entry for entry in tags if entry["tag"] == tag), None)
    items = list((current or {}).get("items") or ())
    if items and items[0].get("image") == digest:
        return tags
    reference = f"{build_repository(stream)}@{digest}"
    item = {"created": now, "dockerImageReference": reference, "image": digest, "generation": 1}
    other_tags = [entry for entry in tags if entry["tag"] != tag]
    return sorted(
        [*other_tags, {"tag": tag, "items": [item, *items][:MAX_TAG_ITEMS]}], key=lambda entry: str(entry["tag"])
    )


async def _write_image_stream_tag(stream: Manifest, tag: TagFields, cluster: Cluster) -> None:
    """Create or update the ImageStreamTag of a tag."""
    metadata = stream["metadata"]
    name = f"{metadata['name']}:{tag['tag']}"
    if not tag.get("items"):
        return
    item = tag["items"][0]
    image = {
        "metadata": {"name": item["image"], "creationTimestamp": item["created"]},
        "dockerImageReference": item["dockerImageReference"],
        "dockerImageManifestMediaType": "application/vnd.oci.image.manifest.v1+json",
    }
    live_tag = await cluster.get(build_key(IMAGE_STREAM_TAG, metadata["namespace"], name))
    if live_tag is None:
        await create_if_absent(
            {
                "apiVersion": "image.openshift.io/v1",
                "kind": "ImageStreamTag",
                "metadata": {
                    "name": name,
                    "namespace": metadata["namespace"],
                    "annotations": {SIMULATED: SIMULATED_NOTE},
                    "ownerReferences": [build_owner_reference(stream)],
                },
                "generation": item.get("generation") or 1,
                "lookupPolicy": (stream.get("spec") or {}).get("lookupPolicy") or {"local": False},
                "image": image,
            },
            cluster,
        )
    elif (live_tag.get("image") or {}).get("metadata", {}).get("name") != item["image"]:
        await patch_object(live_tag, {"image": image, "generation": item.get("generation") or 1}, cluster)
