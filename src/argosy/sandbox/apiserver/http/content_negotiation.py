"""Content negotiation: JSON, YAML or protobuf; the object itself, a Table, or only metadata."""

from __future__ import annotations

from typing import Literal, NamedTuple

from argosy.kube.objects.short_text_result_cache import cache_short_texts
from argosy.sandbox.apiserver import status_errors

Encoding = Literal["json", "yaml", "protobuf"]
Projection = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]

PROTOBUF_MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
ENCODINGS: dict[str, Encoding] = {
    "application/json": "json",
    "*/*": "json",
    "application/*": "json",
    "application/yaml": "yaml",
    PROTOBUF_MEDIA_TYPE: "protobuf",
}
PROJECTIONS: dict[str, Projection] = {
    "Table": "Table",
    "PartialObjectMetadata": "PartialObjectMetadata",
    "PartialObjectMetadataList": "PartialObjectMetadataList",
}
MEDIA_TYPES: dict[Encoding, str] = {
    "json": "application/json",
    "yaml": "application/yaml",
    "protobuf": PROTOBUF_MEDIA_TYPE,
}
AVAILABLE_MEDIA_TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


class ResponseFormat(NamedTuple):
    encoding: Encoding
    projection: Projection = ""
    table_version: str = "v1"


JSON_FORMAT = ResponseFormat("json")


class MediaRange(NamedTuple):
    media: str
    parameters: dict[str, str]


@cache_short_texts(512)
def parse_accept_header(header: str) -> tuple[MediaRange, ...]:
    ranges = []
    for range_text in header.split(","):
        media, *parameter_texts = (token.strip() for token in range_text.split(";"))
        pairs = (token.partition("=") for token in parameter_texts)
        ranges.append(MediaRange(media.lower(), {name.strip(): value.strip() for name, _, value in pairs}))
    return tuple(sorted(ranges, key=_quality, reverse=True))


def _quality(media_range: MediaRange) -> float:
    """The q value of a media range. Sorting is stable, so equal values keep the client's order."""
    try:
        return float(media_range.parameters.get("q", "1"))
    except ValueError:
        return 1.0


@cache_short_texts(512)
def negotiate_format(accept: str) -> ResponseFormat:
    """The first format in the client's list that this server supports.

    JSON is preferred over protobuf if the client accepts both, because objects are stored as JSON.
    """
    if not accept:
        return JSON_FORMAT
    fallback: ResponseFormat | None = None
    for media, parameters in parse_accept_header(accept):
        encoding = ENCODINGS.get(media)
        if encoding is None:
            continue
        projection: Projection = ""
        if requested := parameters.get("as"):
            if requested not in PROJECTIONS or parameters.get("g") != "meta.k8s.io":
                continue
            if parameters.get("v") not in ("v1", "v1beta1"):
                continue
            projection = PROJECTIONS[requested]
            if encoding == "protobuf" and projection == "Table":
                continue  # k8s: a Table has no protobuf encoding
        candidate = ResponseFormat(encoding, projection, parameters.get("v", "v1"))
        if encoding != "protobuf":
            return candidate
        fallback = fallback or candidate
    if fallback is None:
        message = f"406: Not Acceptable\n\nAvailable representations: {AVAILABLE_MEDIA_TYPES}"
        raise status_errors.not_acceptable(message, details={})
    return fallback
