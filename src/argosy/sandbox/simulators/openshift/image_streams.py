"""Simulates the image registry: tags that are imported, followed or pushed by builds, and an ImageStreamTag for each.

In: the key of an ImageStream. Out: its status, and its ImageStreamTags. Never: stores an image: digests are hashes of
names.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from argosy.annotations import SIMULATED
from argosy.errors import UserError
from argosy.kube.client import Admitter, Cluster
from argosy.kube.controller import Context, Watch
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import BY, is_dying, is_played_by_others, own_key, reference_to, told, unmarked
from argosy.sandbox.simulators.fault_injection import Fault, asked, read_wishes
from argosy.sandbox.simulators.openshift.constants import IMAGE_STREAM, IMAGE_STREAM_TAG, REGISTRY, SERVER
from argosy.sandbox.simulators.timestamps import stamp
from argosy.sandbox.simulators.writes import change, create_once, keep_status, patient

MOST_ITEMS: Final = 10
Tag = dict[str, Any]


def digest_of(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def completed(stream: Manifest, old: Manifest | None) -> Manifest:
    """Set the fields that the server stores: each tag has a generation that counts changes of its source."""
    if is_played_by_others(stream):
        return stream
    spec = stream.get("spec") or {}
    before = {each["name"]: each for each in ((old or {}).get("spec") or {}).get("tags") or ()}
    tags = [_counted(tag, before.get(tag["name"])) for tag in spec.get("tags") or ()]
    whole = {"lookupPolicy": {"local": False}, **spec}
    return {**stream, "spec": {**whole, "tags": tags} if tags else whole}


def _counted(tag: Tag, before: Tag | None) -> Tag:
    generation = 1
    if before is not None:
        generation = int(before.get("generation") or 1) + (before.get("from") != tag.get("from"))
    policies = {"importPolicy": {"importMode": "Legacy"}, "referencePolicy": {"type": "Source"}}
    return {**policies, **tag, "generation": generation}


ADMITTER: Final = Admitter(IMAGE_STREAM, "imagestream.openshift.io", SERVER, completed)


class ImageStreams:
    name = "simulated-imagestreams"
    watches = (Watch(IMAGE_STREAM, unmarked),)

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> None:
        live = context.cache.get(key)
        if live is None or is_dying(live) or is_played_by_others(live):
            return
        tags = tags_of(live, stamp(context.clock.now()))
        await keep_status(live, {"dockerImageRepository": repository_of(live), "tags": tags}, context.cluster)
        for tag in tags:
            await _show(live, tag, context.cluster)


def repository_of(stream: Manifest) -> str:
    return f"{REGISTRY}/{stream['metadata']['namespace']}/{stream['metadata']['name']}"


def tags_of(stream: Manifest, now: str) -> list[Tag]:
    """Compute status.tags: pushed tags stay; a tag with a source is imported once per generation."""
    known = {each["tag"]: each for each in (stream.get("status") or {}).get("tags") or ()}
    problem = _problem(stream)
    for tag in (stream.get("spec") or {}).get("tags") or ():
        source = tag.get("from") or {}
        found = known.get(tag["name"], {"tag": tag["name"], "items": []})
        if source.get("kind") == "DockerImage" and not tag.get("reference"):
            known[tag["name"]] = _imported(found, source["name"], int(tag.get("generation") or 1), problem, now)
        elif source.get("kind") == "ImageStreamTag":
            followed = known.get(source["name"].rpartition(":")[2])
            if followed and followed.get("items"):
                known[tag["name"]] = {"tag": tag["name"], "items": followed["items"][:1]}
    return [known[name] for name in sorted(known)]


def _imported(known: Tag, image: str, generation: int, problem: str, now: str) -> Tag:
    seen = max((int(each.get("generation") or 0) for each in known.get("items") or ()), default=0)
    if problem:
        why = told(f'dockerimage.image.openshift.io "{image}" not found: {problem}')
        before: Tag = next(iter(known.get("conditions") or ()), {})
        since = before.get("lastTransitionTime") or now
        failed = {"type": "ImportSuccess", "status": "False", "reason": "NotFound", "message": why}
        return {**known, "conditions": [{**failed, "generation": generation, "lastTransitionTime": since}]}
    if seen >= generation:
        return {name: value for name, value in known.items() if name != "conditions"}
    digest = digest_of(image)
    reference = f"{_without_tag(image)}@{digest}"
    item = {"created": now, "dockerImageReference": reference, "image": digest, "generation": generation}
    return {"tag": known["tag"], "items": [item, *(known.get("items") or ())][:MOST_ITEMS]}


def _without_tag(image: str) -> str:
    place, slash, last = image.partition("@")[0].rpartition("/")
    return f"{place}{slash}{last.partition(':')[0]}"


def _problem(stream: Manifest) -> str:
    try:
        wishes = read_wishes([asked(stream)])
    except UserError as error:
        return str(error)
    return "requested by annotation" if wishes.fail is Fault.IMAGE_PULL else ""


def pushed(stream: Manifest, tag: str, digest: str, now: str) -> list[Tag]:
    """Return the tags after a build pushed this image; pushing it twice has no further effect."""
    tags = [dict(each) for each in (stream.get("status") or {}).get("tags") or ()]
    found = next((each for each in tags if each["tag"] == tag), None)
    items = list((found or {}).get("items") or ())
    if items and items[0].get("image") == digest:
        return tags
    reference = f"{repository_of(stream)}@{digest}"
    item = {"created": now, "dockerImageReference": reference, "image": digest, "generation": 1}
    others = [each for each in tags if each["tag"] != tag]
    return sorted([*others, {"tag": tag, "items": [item, *items][:MOST_ITEMS]}], key=lambda each: str(each["tag"]))


async def _show(stream: Manifest, tag: Tag, cluster: Cluster) -> None:
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
    live = await cluster.get(own_key(IMAGE_STREAM_TAG, metadata["namespace"], name))
    if live is None:
        await create_once(
            {
                "apiVersion": "image.openshift.io/v1",
                "kind": "ImageStreamTag",
                "metadata": {
                    "name": name,
                    "namespace": metadata["namespace"],
                    "annotations": {SIMULATED: BY},
                    "ownerReferences": [reference_to(stream)],
                },
                "generation": item.get("generation") or 1,
                "lookupPolicy": (stream.get("spec") or {}).get("lookupPolicy") or {"local": False},
                "image": image,
            },
            cluster,
        )
    elif (live.get("image") or {}).get("metadata", {}).get("name") != item["image"]:
        await change(live, {"image": image, "generation": item.get("generation") or 1}, cluster)
