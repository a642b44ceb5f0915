"""Validates manifests against the schemas of their kinds.

In: a manifest and CustomResourceDefinitions. Out: the errors that an API server would return, or none if the kind is
unknown. Never: asks a server; rejects what a server would accept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from typing import Any, Final, NamedTuple

from argosy.errors import ArgosyError, ManifestError
from argosy.gitops.analysis.defaulted_object_after_apply import merge_defaults
from argosy.gitops.analysis.kserve_field_typos import find_suspicious_fields
from argosy.gitops.analysis.repository_view import PathStep
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, split_api_version
from argosy.kube.schema import builtin_type_json_codec, defaults, validation
from argosy.kube.schema.api_resource import ApiResource
from argosy.kube.schema.builtin_go_struct_fields import find_builtin_type
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES
from argosy.kube.schema.bundled_crds import load_definitions
from argosy.kube.schema.crd.definition_validation import apply_definition_defaults, check_definition
from argosy.kube.schema.crd.kind import CustomKind, build_custom_kinds
from argosy.kube.schema.field_error import FieldError, FieldErrorType, forbidden

UNKNOWN, MISTYPED, WRONG, MISSING = "unknown", "mistyped", "wrong", "missing"
_STRATEGY_PATH: Final = "spec.strategy"
_PATH_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]|\[([^\]]+)\]")
_TYPE_ERROR: Final = re.compile(r'in body must be of type (\w+): "(\w+)"$')
_TYPE_LABELS: Final = {
    "string": "a string", "integer": "an integer", "boolean": "true or false", "object": "a map",
    "array": "a list", "null": "nothing",
}  # fmt: skip
_CATEGORY_BY_ERROR_TYPE: Final = {FieldErrorType.REQUIRED: MISSING, FieldErrorType.TYPE_INVALID: MISTYPED}
_KINDS_WITH_UNKNOWN_FIELDS: Final = ("InferenceService", "ServingRuntime", "ClusterServingRuntime")
_DECODE_ERROR: Final = re.compile(r"json: cannot unmarshal (.+) into Go struct field [^.]+\.(\S+) of type (.+)")


class SchemaViolation(NamedTuple):
    category: str  # UNKNOWN, MISTYPED, WRONG or MISSING
    path: tuple[PathStep, ...]
    message: str
    is_bundled: bool = False  # reported by a bundled CRD, which may be older than the one in the cluster
    has_placeholder: bool = False  # a placeholder is filled in later

    @property
    def is_certain(self) -> bool:
        """k8s: newer versions of a kind may add fields and enum values, but never change a field's type."""
        return not self.is_bundled or self.category == MISTYPED

    @property
    def is_rejected(self) -> bool:
        """True if every server rejects the object; unknown fields may be dropped instead."""
        return self.is_certain and self.category != UNKNOWN


@cache
def _load_bundled_kinds() -> dict[tuple[str, str, str], tuple[CustomKind, bool]]:
    """Compiled once: bundled CRDs are the same for every repository, and each check uses them several times."""
    return _compile_kinds(load_definitions(), is_bundled=True)


def _compile_kinds(
    manifests: Iterable[Manifest], *, is_bundled: bool
) -> dict[tuple[str, str, str], tuple[CustomKind, bool]]:
    kinds: dict[tuple[str, str, str], tuple[CustomKind, bool]] = {}
    for definition in manifests:
        try:
            definition_with_defaults = apply_definition_defaults(definition)
            if not is_bundled and check_definition(definition_with_defaults):
                continue  # the CRD itself is invalid, which is reported for the CRD and not for its objects
            for kind in build_custom_kinds(definition_with_defaults):
                resource = kind.resource
                kinds[resource.group, resource.version, resource.kind] = kind, is_bundled
        except (ArgosyError, KeyError, TypeError, AttributeError):
            continue
    return kinds


class SchemaValidator:
    """All known kinds: built-in ones, the repository's CRDs, and bundled CRDs."""

    def __init__(self, own: Iterable[Manifest] = ()) -> None:
        self._repository_crds = tuple(own)

    @cached_property
    def _built_in(self) -> dict[tuple[str, str, str], ApiResource]:
        return {(resource.group, resource.version, resource.kind): resource for resource in BUILTIN_RESOURCES}

    @cached_property
    def _custom(self) -> dict[tuple[str, str, str], tuple[CustomKind, bool]]:
        return _load_bundled_kinds() | _compile_kinds(self._repository_crds, is_bundled=False)

    def has_schema(self, manifest: Manifest) -> bool:
        return self._read_type(manifest) in self._built_in or self._read_type(manifest) in self._custom

    def is_cluster_scoped(self, manifest: Manifest) -> bool:
        """True if the kind is known and cluster-scoped."""
        name = self._read_type(manifest)
        if resource := self._built_in.get(name):
            return not resource.namespaced
        custom = self._custom.get(name)
        return custom is not None and not custom[0].resource.namespaced

    def validate(self, manifest: Manifest) -> list[SchemaViolation]:
        if "sops" in manifest:
            return []  # encrypted: the applied manifest is another text
        name = self._read_type(manifest)
        if resource := self._built_in.get(name):
            return [
                _merge_dotted_path_steps(violation, manifest) for violation in _validate_built_in(resource, manifest)
            ]
        if custom := self._custom.get(name):
            kind, is_bundled = custom
            violations = [
                *_validate_custom(kind, manifest),
                *(_find_suspicious_fields(kind, manifest) if is_bundled else ()),
            ]
            return [
                _merge_dotted_path_steps(violation, manifest)._replace(is_bundled=is_bundled)
                for violation in violations
            ]
        return []

    def apply_defaults(self, manifest: Manifest) -> Manifest:
        """Return the manifest with the server's defaults; unchanged if they are unknown or it cannot be decoded."""
        try:
            if resource := self._built_in.get(self._read_type(manifest)):
                return _apply_built_in_defaults(resource, manifest) or manifest
            if custom := self._custom.get(self._read_type(manifest)):
                return custom[0].apply_defaults(custom[0].decode(manifest)[0])
        except (ArgosyError, KeyError, TypeError, AttributeError, ValueError):
            pass
        return manifest

    def validate_update(
        self, before: Manifest, after: Manifest, *, is_server_side: bool = False
    ) -> list[SchemaViolation]:
        """Return the errors about the change itself: immutable fields that were modified.

        `is_server_side`: server-side apply, which keeps defaults that nobody wrote where kubectl removes them.
        """
        resource = self._built_in.get(self._read_type(after))
        if resource is None or self._read_type(before) != self._read_type(after) or "sops" in after:
            return []
        try:
            old = self.apply_defaults(before)
            old, new = _simulate_stored(resource, old, merge_defaults(before, after, old, self.apply_defaults(after)))
            unrelated = {(error.field, error.message) for error in validation.validate_update(resource, new, new)}
            errors = [
                error
                for error in validation.validate_update(resource, new, old)
                if (error.field, error.message) not in unrelated
            ]
            if is_server_side and resource.kind == "Deployment":
                errors += _find_leftover_strategy(before, after, old)
        except (ArgosyError, KeyError, TypeError, AttributeError, ValueError):
            return []  # invalid manifests are reported by other rules
        unique_errors = {(error.field, error.message): error for error in errors}
        return [
            _merge_dotted_path_steps(
                SchemaViolation(WRONG, split_path(error.field), f"{error.field}: {error.message}"), after
            )
            for error in unique_errors.values()
        ]

    @staticmethod
    def _read_type(manifest: Manifest) -> tuple[str, str, str]:
        return (*split_api_version(str(manifest.get("apiVersion", ""))), str(manifest.get("kind", "")))


def _validate_built_in(resource: ApiResource, manifest: Manifest) -> Iterator[SchemaViolation]:
    kind = find_builtin_type(resource.group, resource.version, resource.kind)
    if kind is None:
        return
    try:
        decoded = builtin_type_json_codec.decode(kind, manifest, kind=resource.kind, api_version=resource.api_version)
    except ManifestError as error:
        yield _read_decode_error(error.message)
        return
    for path in decoded.unknown_fields:
        steps = split_path(path)
        yield SchemaViolation(UNKNOWN, steps, f"{resource.kind} has no field {path}")
    if resource.kind == "CustomResourceDefinition":
        return
    kind_name = GroupKind(resource.group, resource.kind)
    defaulted = defaults.apply_defaults(
        kind_name, resource.version, _set_name_and_namespace(resource, decoded.manifest)
    )
    for field_error in validation.validate_create(resource, validation.prepare_create(resource, defaulted)):
        yield SchemaViolation(
            _CATEGORY_BY_ERROR_TYPE.get(field_error.kind, WRONG),
            split_path(field_error.field),
            f"{field_error.field}: {field_error.message}",
        )


def _apply_built_in_defaults(resource: ApiResource, manifest: Manifest) -> Manifest | None:
    kind = find_builtin_type(resource.group, resource.version, resource.kind)
    if kind is None:
        return None
    decoded = builtin_type_json_codec.decode(kind, manifest, kind=resource.kind, api_version=resource.api_version)
    return defaults.apply_defaults(GroupKind(resource.group, resource.kind), resource.version, decoded.manifest)


def _simulate_stored(resource: ApiResource, before: Manifest, after: Manifest) -> tuple[Manifest, Manifest]:
    """Return both as a server stores them: with namespace, resourceVersion and the values set on creation."""
    old, new = (_set_name_and_namespace(resource, manifest) for manifest in (before, after))
    if resource.kind == "PersistentVolumeClaim":  # k8s: only a bound claim can grow, and none can shrink
        size = ((old.get("spec") or {}).get("resources") or {}).get("requests") or {}
        old, new = ({**manifest, "status": {"phase": "Bound", "capacity": size}} for manifest in (old, new))
    if resource.kind == "Service" and (old.get("spec") or {}).get("type") != "ExternalName":
        address = (old.get("spec") or {}).get("clusterIP") or "10.96.0.1"
        old, new = (_set_cluster_ip(manifest, address) for manifest in (old, new))
    if resource.kind == "Pod":
        old, new = (
            {**manifest, "spec": validation.add_default_tolerations(manifest.get("spec") or {})}
            for manifest in (old, new)
        )
    stored_metadata = {"resourceVersion": "1"}
    first, second = (
        {**manifest, "metadata": {**(manifest.get("metadata") or {}), **stored_metadata}} for manifest in (old, new)
    )
    return first, second


def _find_leftover_strategy(before: Manifest, after: Manifest, old: Manifest) -> list[FieldError]:
    """k8s: kubectl replaces strategy as a whole (retainKeys); server-side apply keeps a default that nobody wrote."""
    old_strategy, before_strategy, after_strategy = (
        (manifest.get("spec") or {}).get("strategy") or {} for manifest in (old, before, after)
    )
    is_leftover = (
        old_strategy.get("rollingUpdate")
        and not before_strategy.get("rollingUpdate")
        and not after_strategy.get("rollingUpdate")
    )
    if after_strategy.get("type") != "Recreate" or not is_leftover:
        return []
    return [forbidden(f"{_STRATEGY_PATH}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")]


def _set_cluster_ip(service: Manifest, address: str) -> Manifest:
    """k8s: a Service keeps its clusterIP if a manifest omits it."""
    spec = service.get("spec") or {}
    cluster_ip = spec.get("clusterIP") or ("" if spec.get("type") == "ExternalName" else address)
    return {**service, "spec": {**spec, "clusterIP": cluster_ip, "clusterIPs": [cluster_ip]}} if cluster_ip else service


def _set_name_and_namespace(resource: ApiResource, manifest: Manifest) -> Manifest:
    """Return the manifest with the namespace it is applied to, and a name if it has generateName."""
    metadata = manifest.get("metadata") or {}
    if not metadata.get("name") and metadata.get("generateName"):
        metadata = {**metadata, "name": f"{metadata['generateName']}0000000"}
    if resource.namespaced and not metadata.get("namespace"):
        metadata = {**metadata, "namespace": "default"}
    return {**manifest, "metadata": metadata} if metadata else manifest


def _validate_custom(kind: CustomKind, manifest: Manifest) -> Iterator[SchemaViolation]:
    pruned, unknown = kind.decode(manifest)
    for path in unknown:
        yield SchemaViolation(UNKNOWN, split_path(path), f"{kind.resource.kind} has no field {path}")
    for error in kind.validate(kind.apply_defaults(pruned)):
        if match := _TYPE_ERROR.search(error.message):
            actual, expected = (_TYPE_LABELS.get(type_name, f"a {type_name}") for type_name in (match[2], match[1]))
            yield SchemaViolation(
                MISTYPED, split_path(error.field), f"{error.field}: {actual} found, {expected} expected"
            )
        elif error.field and error.field != "<nil>":
            yield SchemaViolation(
                _CATEGORY_BY_ERROR_TYPE.get(error.kind, WRONG),
                split_path(error.field),
                f"{error.field}: {error.message}",
            )


def _find_suspicious_fields(kind: CustomKind, manifest: Manifest) -> Iterator[SchemaViolation]:
    if kind.resource.group != "serving.kserve.io" or kind.resource.kind not in _KINDS_WITH_UNKNOWN_FIELDS:
        return
    for suspicious in find_suspicious_fields(manifest):
        path = ".".join(map(str, suspicious.path))
        if suspicious.suggestion:
            yield SchemaViolation(
                UNKNOWN, suspicious.path, f"{kind.resource.kind} has no field {path}, but {suspicious.suggestion}"
            )
        else:
            yield SchemaViolation(
                WRONG, suspicious.path, f"{path}: is negative, which the API server rejects for a Pod"
            )


def _read_decode_error(message: str) -> SchemaViolation:
    if match := _DECODE_ERROR.fullmatch(message):
        value, path, go_type = match.groups()
        return SchemaViolation(
            MISTYPED, split_path(path), f"{path}: a {value} found, {_describe_go_type(go_type)} expected"
        )
    return SchemaViolation(MISTYPED, (), message)


def _describe_go_type(go_type: str) -> str:
    if go_type.startswith("map["):
        return "a map"
    if go_type.startswith("[]"):
        return "a list"
    labels = {"string": "a string", "bool": "true or false", "int32": "an integer", "int64": "an integer"}
    return labels.get(go_type, f"a {go_type.rpartition('.')[2]}")


def split_path(path: str) -> tuple[PathStep, ...]:
    """Split `spec.containers[0].name` into steps."""
    steps: list[PathStep] = []
    for match in _PATH_STEP.finditer(path):
        name, number, key = match.groups()
        steps.append(name if name is not None else int(number) if number is not None else key)
    return tuple(steps)


def _merge_dotted_path_steps(violation: SchemaViolation, manifest: Manifest) -> SchemaViolation:
    """Join path steps that belong to one name with dots, such as a label."""
    steps: list[PathStep] = []
    value: Any = manifest
    remaining = list(violation.path)
    while remaining:
        count_taken = 1
        if isinstance(value, dict) and remaining[0] not in value:
            joined = (count for count in range(len(remaining), 1, -1) if ".".join(map(str, remaining[:count])) in value)
            count_taken = next(joined, 1)
        step = remaining[0] if count_taken == 1 else ".".join(map(str, remaining[:count_taken]))
        steps.append(step)
        value = value.get(step) if isinstance(value, dict) else value[step] if _has_index(value, step) else None
        remaining = remaining[count_taken:]
    texts = [violation.message, value if isinstance(value, str) else ""]
    return violation._replace(
        path=tuple(steps), has_placeholder=any(mark in text for mark in ("${", "$(") for text in texts)
    )


def _has_index(value: Any, step: PathStep) -> bool:
    return isinstance(value, list) and isinstance(step, int) and step < len(value)
