"""What a client sent, as a kind understands it: decoded, or patched and then decoded.

In: a value from the wire and a served kind. Out: a manifest and warnings, or a refusal in Kubernetes' words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.apiserver import refusals
from argosy.apiserver.call import Validation
from argosy.apiserver.served import Served
from argosy.cluster import PatchKind
from argosy.model.errors import ClusterError, ManifestError, PatchError
from argosy.model.manifest import Manifest
from argosy.patch import json_patch, merge_patch, strategic
from argosy.patch.json_patch import PatchTooLarge


class Undecodable(ClusterError):
    """A value that cannot be read as its kind; `why` without the sentence around it."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message, code=400, reason="BadRequest")
        self.why = why


def decoded(
    served: Served, value: Any, validation: Validation, duplicates: Sequence[str] = ()
) -> tuple[Manifest, Sequence[str]]:
    """What a value from the wire means as this kind; unknown fields are an error, a warning or nothing."""
    resource = served.resource
    if not isinstance(value, dict):
        raise refusals.bad_request(_cannot_handle(served, f"json: cannot unmarshal into a {resource.kind}: no object"))
    if value.get("kind", resource.kind) != resource.kind or value.get("apiVersion", resource.api_version) != (
        resource.api_version
    ):
        raise refusals.bad_request(wrong_kind(served, value))
    if served.resource.custom and not (value.get("kind") and value.get("apiVersion")):
        raise refusals.bad_request("Object 'Kind' is missing in the object; set apiVersion and kind")
    try:
        manifest, unknown = served.decode(value)
    except ManifestError as error:
        raise Undecodable(_cannot_handle(served, error.message), error.message) from error
    given = value.get("metadata")
    if isinstance(given, dict) and given.get("managedFields") == []:
        manifest = {**manifest, "metadata": {**manifest["metadata"], "managedFields": []}}
    problems = [f'duplicate field "{path}"' for path in duplicates] + [f'unknown field "{path}"' for path in unknown]
    if problems and validation == "Strict":
        why = "strict decoding error: " + ", ".join(problems)
        raise Undecodable(_cannot_handle(served, why), why)
    return manifest, problems if validation == "Warn" else ()


def _cannot_handle(served: Served, why: str) -> str:
    kind = served.resource.kind
    return f'{kind} in version "{served.resource.version}" cannot be handled as a {kind}: {why}'


def wrong_kind(served: Served, value: Mapping[str, Any]) -> str:
    resource = served.resource
    kind, api_version = str(value.get("kind", "")), str(value.get("apiVersion", ""))
    version = api_version.rpartition("/")[2]
    if api_version == resource.api_version and not resource.custom:
        package = resource.group.split(".")[0] or "core"
        return (
            f'{kind} in version "{version}" cannot be handled as a {resource.kind}: '
            f"converting (v1.{kind}) to ({package}.{resource.kind}): unknown conversion"
        )
    return (
        f"the API version in the data ({api_version}) and kind ({kind}) do not match the expected "
        f"{resource.api_version} {resource.kind}"
    )


def patched(served: Served, old: Manifest, patch: Any, kind: PatchKind) -> Any:
    try:
        match kind:
            case PatchKind.JSON:
                # k8s: its library adds what a replace does not find
                return json_patch.apply(old, patch, lenient_replace=True)
            case PatchKind.STRATEGIC:
                return strategic.apply(old, patch, served.shape)
            case _:
                return merge_patch.apply(old, patch)
    except PatchTooLarge as error:
        raise refusals.too_large(str(error)) from error
    except PatchError as error:
        if kind is PatchKind.JSON:
            raise refusals.unprocessable_patch() from error
        raise refusals.bad_request(str(error)) from error
