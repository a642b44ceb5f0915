"""Content negotiation: JSON, YAML or protobuf; the object itself, a Table, or only metadata."""

from __future__ import annotations

from typing import Literal, NamedTuple

from argosy.kube.objects.text_cache import remembered
from argosy.sandbox.apiserver import status_errors

Encoding = Literal["json", "yaml", "protobuf"]
Projection = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]

PROTOBUF = "application/vnd.kubernetes.protobuf"
ENCODINGS: dict[str, Encoding] = {
    "application/json": "json",
    "*/*": "json",
    "application/*": "json",
    "application/yaml": "yaml",
    PROTOBUF: "protobuf",
}
PROJECTIONS: dict[str, Projection] = {
    "Table": "Table",
    "PartialObjectMetadata": "PartialObjectMetadata",
    "PartialObjectMetadataList": "PartialObjectMetadataList",
}
MEDIA_TYPES: dict[Encoding, str] = {"json": "application/json", "yaml": "application/yaml", "protobuf": PROTOBUF}
AVAILABLE = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


class Form(NamedTuple):
    encoding: Encoding
    projection: Projection = ""
    table_version: str = "v1"


JSON = Form("json")


class MediaRange(NamedTuple):
    media: str
    parameters: dict[str, str]


@remembered(512)
def media_ranges(header: str) -> tuple[MediaRange, ...]:
    ranges = []
    for part in header.split(","):
        media, *rest = (piece.strip() for piece in part.split(";"))
        pairs = (piece.partition("=") for piece in rest)
        ranges.append(MediaRange(media.lower(), {name.strip(): value.strip() for name, _, value in pairs}))
    return tuple(sorted(ranges, key=_liking, reverse=True))


def _liking(found: MediaRange) -> float:
    """The q value of a media range. Sorting is stable, so equal values keep the client's order."""
    try:
        return float(found.parameters.get("q", "1"))
    except ValueError:
        return 1.0


@remembered(512)
def form_for(accept: str) -> Form:
    """The first format in the client's list that this server supports.

    JSON is preferred over protobuf if the client accepts both, because objects are stored as JSON.
    """
    if not accept:
        return JSON
    fallback: Form | None = None
    for media, parameters in media_ranges(accept):
        encoding = ENCODINGS.get(media)
        if encoding is None:
            continue
        projection: Projection = ""
        if asked := parameters.get("as"):
            if asked not in PROJECTIONS or parameters.get("g") != "meta.k8s.io":
                continue
            if parameters.get("v") not in ("v1", "v1beta1"):
                continue
            projection = PROJECTIONS[asked]
            if encoding == "protobuf" and projection == "Table":
                continue  # k8s: a Table has no protobuf encoding
        form = Form(encoding, projection, parameters.get("v", "v1"))
        if encoding != "protobuf":
            return form
        fallback = fallback or form
    if fallback is None:
        message = f"406: Not Acceptable\n\nAvailable representations: {AVAILABLE}"
        raise status_errors.not_acceptable(message, details={})
    return fallback
