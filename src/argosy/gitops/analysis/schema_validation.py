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
from argosy.gitops.analysis.kept_defaults import carried
from argosy.gitops.analysis.repository import Step
from argosy.gitops.analysis.serving_fields import odd_fields
from argosy.kube.names import GroupKind, split_api_version
from argosy.kube.objects import Manifest
from argosy.kube.schema import defaults, typed_json, validation
from argosy.kube.schema.builtin_kinds import BUILT_IN
from argosy.kube.schema.builtin_types import type_of
from argosy.kube.schema.bundled_crds import definitions
from argosy.kube.schema.crd.definition import check_definition, with_definition_defaults
from argosy.kube.schema.crd.kind import CustomKind, custom_kinds
from argosy.kube.schema.field_error import Fault, FaultKind, forbidden
from argosy.kube.schema.resources import Resource

UNKNOWN, MISTYPED, WRONG, MISSING = "unknown", "mistyped", "wrong", "missing"
_STRATEGY: Final = "spec.strategy"
_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]|\[([^\]]+)\]")
_TYPE: Final = re.compile(r'in body must be of type (\w+): "(\w+)"$')
_WORDS: Final = {
    "string": "a string", "integer": "an integer", "boolean": "true or false", "object": "a map",
    "array": "a list", "null": "nothing",
}  # fmt: skip
_KINDS: Final = {FaultKind.REQUIRED: MISSING, FaultKind.TYPE_INVALID: MISTYPED}
_OPEN_KINDS: Final = ("InferenceService", "ServingRuntime", "ClusterServingRuntime")
_MISMATCH: Final = re.compile(r"json: cannot unmarshal (.+) into Go struct field [^.]+\.(\S+) of type (.+)")


class Amiss(NamedTuple):
    what: str  # UNKNOWN, MISTYPED, WRONG or MISSING
    path: tuple[Step, ...]
    message: str
    is_bundled: bool = False  # reported by a bundled CRD, which may be older than the one in the cluster
    is_later: bool = False  # a placeholder is filled in later

    @property
    def is_sure(self) -> bool:
        """k8s: newer versions of a kind may add fields and enum values, but never change a field's type."""
        return not self.is_bundled or self.what == MISTYPED

    @property
    def is_refused(self) -> bool:
        """True if every server rejects the object; unknown fields may be dropped instead."""
        return self.is_sure and self.what != UNKNOWN


@cache
def _bundled() -> dict[tuple[str, str, str], tuple[CustomKind, bool]]:
    """Compiled once: bundled CRDs are the same for every repository, and each check uses them several times."""
    return _kinds_of(definitions(), is_bundled=True)


def _kinds_of(
    manifests: Iterable[Manifest], *, is_bundled: bool
) -> dict[tuple[str, str, str], tuple[CustomKind, bool]]:
    found: dict[tuple[str, str, str], tuple[CustomKind, bool]] = {}
    for definition in manifests:
        try:
            whole = with_definition_defaults(definition)
            if not is_bundled and check_definition(whole):
                continue  # the CRD itself is invalid, which is reported for the CRD and not for its objects
            for kind in custom_kinds(whole):
                resource = kind.resource
                found[resource.group, resource.version, resource.kind] = kind, is_bundled
        except (ArgosyError, KeyError, TypeError, AttributeError):
            continue
    return found


class Schemas:
    """All known kinds: built-in ones, the repository's CRDs, and bundled CRDs."""

    def __init__(self, own: Iterable[Manifest] = ()) -> None:
        self._own = tuple(own)

    @cached_property
    def _built_in(self) -> dict[tuple[str, str, str], Resource]:
        return {(each.group, each.version, each.kind): each for each in BUILT_IN}

    @cached_property
    def _custom(self) -> dict[tuple[str, str, str], tuple[CustomKind, bool]]:
        return _bundled() | _kinds_of(self._own, is_bundled=False)

    def knows(self, manifest: Manifest) -> bool:
        return self._name(manifest) in self._built_in or self._name(manifest) in self._custom

    def is_cluster_wide(self, manifest: Manifest) -> bool:
        """True if the kind is known and cluster-scoped."""
        name = self._name(manifest)
        if resource := self._built_in.get(name):
            return not resource.namespaced
        found = self._custom.get(name)
        return found is not None and not found[0].resource.namespaced

    def amiss(self, manifest: Manifest) -> list[Amiss]:
        if "sops" in manifest:
            return []  # encrypted: the applied manifest is another text
        name = self._name(manifest)
        if resource := self._built_in.get(name):
            return [_placed(each, manifest) for each in _built_in_faults(resource, manifest)]
        if found := self._custom.get(name):
            kind, is_bundled = found
            faults = [*_custom_faults(kind, manifest), *(_oddities(kind, manifest) if is_bundled else ())]
            return [_placed(each, manifest)._replace(is_bundled=is_bundled) for each in faults]
        return []

    def whole(self, manifest: Manifest) -> Manifest:
        """Return the manifest with the server's defaults; unchanged if they are unknown or it cannot be decoded."""
        try:
            if resource := self._built_in.get(self._name(manifest)):
                return _with_defaults(resource, manifest) or manifest
            if found := self._custom.get(self._name(manifest)):
                return found[0].default(found[0].decode(manifest)[0])
        except (ArgosyError, KeyError, TypeError, AttributeError, ValueError):
            pass
        return manifest

    def refused(self, before: Manifest, after: Manifest, *, is_server_side: bool = False) -> list[Amiss]:
        """Return the errors about the change itself: immutable fields that were modified.

        `is_server_side`: server-side apply, which keeps defaults that nobody wrote where kubectl removes them.
        """
        resource = self._built_in.get(self._name(after))
        if resource is None or self._name(before) != self._name(after) or "sops" in after:
            return []
        try:
            old = self.whole(before)
            old, new = _stored(resource, old, carried(before, after, old, self.whole(after)))
            anyway = {(each.field, each.message) for each in validation.on_update(resource, new, new)}
            faults = [
                each for each in validation.on_update(resource, new, old) if (each.field, each.message) not in anyway
            ]
            if is_server_side and resource.kind == "Deployment":
                faults += _left_strategy(before, after, old)
        except (ArgosyError, KeyError, TypeError, AttributeError, ValueError):
            return []  # invalid manifests are reported by other rules
        told = {(each.field, each.message): each for each in faults}
        return [
            _placed(Amiss(WRONG, steps_of(each.field), f"{each.field}: {each.message}"), after)
            for each in told.values()
        ]

    @staticmethod
    def _name(manifest: Manifest) -> tuple[str, str, str]:
        return (*split_api_version(str(manifest.get("apiVersion", ""))), str(manifest.get("kind", "")))


def _built_in_faults(resource: Resource, manifest: Manifest) -> Iterator[Amiss]:
    kind = type_of(resource.group, resource.version, resource.kind)
    if kind is None:
        return
    try:
        read = typed_json.decode(kind, manifest, kind=resource.kind, api_version=resource.api_version)
    except ManifestError as error:
        yield _mismatch(error.message)
        return
    for path in read.unknown:
        steps = steps_of(path)
        yield Amiss(UNKNOWN, steps, f"{resource.kind} has no field {path}")
    if resource.kind == "CustomResourceDefinition":
        return
    kind_name = GroupKind(resource.group, resource.kind)
    whole = defaults.apply(kind_name, resource.version, _at_home(resource, read.manifest))
    for fault in validation.on_create(resource, validation.prepare_create(resource, whole)):
        yield Amiss(_KINDS.get(fault.kind, WRONG), steps_of(fault.field), f"{fault.field}: {fault.message}")


def _with_defaults(resource: Resource, manifest: Manifest) -> Manifest | None:
    kind = type_of(resource.group, resource.version, resource.kind)
    if kind is None:
        return None
    read = typed_json.decode(kind, manifest, kind=resource.kind, api_version=resource.api_version)
    return defaults.apply(GroupKind(resource.group, resource.kind), resource.version, read.manifest)


def _stored(resource: Resource, before: Manifest, after: Manifest) -> tuple[Manifest, Manifest]:
    """Return both as a server stores them: with namespace, resourceVersion and the values set on creation."""
    old, new = (_at_home(resource, each) for each in (before, after))
    if resource.kind == "PersistentVolumeClaim":  # k8s: only a bound claim can grow, and none can shrink
        size = ((old.get("spec") or {}).get("resources") or {}).get("requests") or {}
        old, new = ({**each, "status": {"phase": "Bound", "capacity": size}} for each in (old, new))
    if resource.kind == "Service" and (old.get("spec") or {}).get("type") != "ExternalName":
        address = (old.get("spec") or {}).get("clusterIP") or "10.96.0.1"
        old, new = (_with_address(each, address) for each in (old, new))
    if resource.kind == "Pod":
        old, new = ({**each, "spec": validation.patient(each.get("spec") or {})} for each in (old, new))
    about = {"resourceVersion": "1"}
    first, second = ({**each, "metadata": {**(each.get("metadata") or {}), **about}} for each in (old, new))
    return first, second


def _left_strategy(before: Manifest, after: Manifest, old: Manifest) -> list[Fault]:
    """k8s: kubectl replaces strategy as a whole (retainKeys); server-side apply keeps a default that nobody wrote."""
    was, one, other = ((each.get("spec") or {}).get("strategy") or {} for each in (old, before, after))
    is_left = was.get("rollingUpdate") and not one.get("rollingUpdate") and not other.get("rollingUpdate")
    if other.get("type") != "Recreate" or not is_left:
        return []
    return [forbidden(f"{_STRATEGY}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")]


def _with_address(service: Manifest, address: str) -> Manifest:
    """k8s: a Service keeps its clusterIP if a manifest omits it."""
    spec = service.get("spec") or {}
    own = spec.get("clusterIP") or ("" if spec.get("type") == "ExternalName" else address)
    return {**service, "spec": {**spec, "clusterIP": own, "clusterIPs": [own]}} if own else service


def _at_home(resource: Resource, manifest: Manifest) -> Manifest:
    """Return the manifest with the namespace it is applied to, and a name if it has generateName."""
    metadata = manifest.get("metadata") or {}
    if not metadata.get("name") and metadata.get("generateName"):
        metadata = {**metadata, "name": f"{metadata['generateName']}0000000"}
    if resource.namespaced and not metadata.get("namespace"):
        metadata = {**metadata, "namespace": "default"}
    return {**manifest, "metadata": metadata} if metadata else manifest


def _custom_faults(kind: CustomKind, manifest: Manifest) -> Iterator[Amiss]:
    pruned, unknown = kind.decode(manifest)
    for path in unknown:
        yield Amiss(UNKNOWN, steps_of(path), f"{kind.resource.kind} has no field {path}")
    for fault in kind.validate(kind.default(pruned)):
        if found := _TYPE.search(fault.message):
            given, wanted = (_WORDS.get(each, f"a {each}") for each in (found[2], found[1]))
            yield Amiss(MISTYPED, steps_of(fault.field), f"{fault.field}: {given} found, {wanted} expected")
        elif fault.field and fault.field != "<nil>":
            yield Amiss(_KINDS.get(fault.kind, WRONG), steps_of(fault.field), f"{fault.field}: {fault.message}")


def _oddities(kind: CustomKind, manifest: Manifest) -> Iterator[Amiss]:
    if kind.resource.group != "serving.kserve.io" or kind.resource.kind not in _OPEN_KINDS:
        return
    for odd in odd_fields(manifest):
        path = ".".join(map(str, odd.path))
        if odd.meant:
            yield Amiss(UNKNOWN, odd.path, f"{kind.resource.kind} has no field {path}, but {odd.meant}")
        else:
            yield Amiss(WRONG, odd.path, f"{path}: is negative, which the API server rejects for a Pod")


def _mismatch(message: str) -> Amiss:
    if found := _MISMATCH.fullmatch(message):
        value, path, wanted = found.groups()
        return Amiss(MISTYPED, steps_of(path), f"{path}: a {value} found, {_plainly(wanted)} expected")
    return Amiss(MISTYPED, (), message)


def _plainly(go_type: str) -> str:
    if go_type.startswith("map["):
        return "a map"
    if go_type.startswith("[]"):
        return "a list"
    plain = {"string": "a string", "bool": "true or false", "int32": "an integer", "int64": "an integer"}
    return plain.get(go_type, f"a {go_type.rpartition('.')[2]}")


def steps_of(path: str) -> tuple[Step, ...]:
    """Split `spec.containers[0].name` into steps."""
    found: list[Step] = []
    for match in _STEP.finditer(path):
        name, number, key = match.groups()
        found.append(name if name is not None else int(number) if number is not None else key)
    return tuple(found)


def _placed(amiss: Amiss, manifest: Manifest) -> Amiss:
    """Join path steps that belong to one name with dots, such as a label."""
    found: list[Step] = []
    here: Any = manifest
    left = list(amiss.path)
    while left:
        taken = 1
        if isinstance(here, dict) and left[0] not in here:
            joined = (count for count in range(len(left), 1, -1) if ".".join(map(str, left[:count])) in here)
            taken = next(joined, 1)
        step = left[0] if taken == 1 else ".".join(map(str, left[:taken]))
        found.append(step)
        here = here.get(step) if isinstance(here, dict) else here[step] if _holds(here, step) else None
        left = left[taken:]
    texts = [amiss.message, here if isinstance(here, str) else ""]
    return amiss._replace(path=tuple(found), is_later=any(mark in text for mark in ("${", "$(") for text in texts))


def _holds(value: Any, step: Step) -> bool:
    return isinstance(value, list) and isinstance(step, int) and step < len(value)
