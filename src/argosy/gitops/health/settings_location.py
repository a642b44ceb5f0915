"""Collects the settings of an installation from its manifests.

In: manifests. Out: the entries of argocd-cm and argosy-cm, each with its location. Never: interprets an entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from argosy.gitops.health.kind_keys import from_key, joined
from argosy.gitops.health.setting_error import NOWHERE, Fault, Place, meant
from argosy.kube.names import split_api_version
from argosy.kube.objects import Manifest

ARGOCD_CM: Final = "argocd-cm"
ARGOSY_CM: Final = "argosy-cm"
MAP_KEY: Final = "resource.customizations"
PREFIX: Final = MAP_KEY + "."
READ: Final = ("resourceHealthChecks", "resourceActions", "extraConfig", "resourceCustomizations")
# argo: fields of an ArgoCD resource with similar names and another meaning
OTHERS: Final = ("resourceIgnoreDifferences", "resourceInclusions", "resourceExclusions", "resourceTrackingMethod")
_NEAR: Final = 0.8


class Entry(NamedTuple):
    value: str
    where: str
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Installation:
    argocd_cm: Mapping[str, Entry]
    argosy_cm: Mapping[str, Entry]
    faults: tuple[Fault, ...]


def holds_settings(manifest: Manifest) -> bool:
    """True if settings are read from this manifest."""
    return _is_operator_resource(manifest) or _config_map_name(manifest) in (ARGOCD_CM, ARGOSY_CM)


def gather(manifests: Iterable[Manifest]) -> Installation:
    """Merge the entries of all manifests. An ArgoCD resource wins, because its operator rewrites argocd-cm."""
    maps: dict[str, dict[str, Entry]] = {ARGOCD_CM: {}, ARGOSY_CM: {}}
    operated: dict[str, Entry] = {}
    faults: list[Fault] = []
    for number, manifest in enumerate(manifests):
        name = _config_map_name(manifest)
        if name in maps:
            texts = _texts(manifest.get("data"), "", f"ConfigMap {name} data", Place(number, ("data",)), faults)
            _add(maps[name], texts, faults)
        elif _is_operator_resource(manifest):
            _Resource(manifest, number, faults).add_to(operated)
    for key, entry in operated.items():
        _note_disagreement(key, entry, maps[ARGOCD_CM].get(key), faults)
    return Installation({**maps[ARGOCD_CM], **operated}, maps[ARGOSY_CM], tuple(faults))


def pattern_of(key: str) -> str:
    """Return the kind in a key of argocd-cm; empty if it names none."""
    _, _, name = key.removeprefix(PREFIX).partition(".")
    return from_key(name).pattern if key.startswith(PREFIX) else ""


def _config_map_name(manifest: Manifest) -> str:
    if (manifest.get("apiVersion"), manifest.get("kind")) != ("v1", "ConfigMap"):
        return ""
    metadata = manifest.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""


def _is_operator_resource(manifest: Manifest) -> bool:
    group, _ = split_api_version(str(manifest.get("apiVersion")))
    return (group, manifest.get("kind")) == ("argoproj.io", "ArgoCD")


def _add(entries: dict[str, Entry], more: Iterable[tuple[str, Entry]], faults: list[Fault]) -> None:
    for key, entry in more:
        before = entries.get(key)
        if before is not None and before.value.strip() != entry.value.strip() and key.startswith((PREFIX, "health.")):
            again = "a second time" if before.where == entry.where else f"already in {before.where}"
            text = f"{key} is set {again} with another value; the last one wins, keep one"
            faults.append(Fault(entry.where, text, place=entry.place, pattern=pattern_of(key)))
        entries[key] = entry


def _texts(data: Any, prefix: str, where: str, place: Place, faults: list[Fault]) -> Iterator[tuple[str, Entry]]:
    if data is None:
        return
    if not isinstance(data, dict):
        faults.append(Fault(where, "is not a map; write it as key: value", place=place))
        return
    for key, value in data.items():
        if isinstance(value, str):
            yield key, Entry(value, f"{prefix}{key}", place.below(key))
        else:
            text = "is not a string; put it in quotes, or a | after the colon"
            faults.append(Fault(f"{prefix}{key}", text, place=place.below(key), pattern=pattern_of(key)))


def _note_disagreement(key: str, entry: Entry, in_map: Entry | None, faults: list[Fault]) -> None:
    if in_map is not None and in_map.value.strip() != entry.value.strip() and key.startswith(MAP_KEY):
        text = f"differs from {entry.where}, from which the operator overwrites it"
        advice = "change the ArgoCD resource only"
        where = f"argocd-cm {in_map.where}"
        faults.append(Fault(where, f"{text}; {advice}", "AGY405", place=in_map.place, pattern=pattern_of(key)))


class _Resource:
    """Reads an ArgoCD resource as its operator does."""

    def __init__(self, manifest: Manifest, number: int, faults: list[Fault]) -> None:
        metadata = manifest.get("metadata")
        self._name = f"ArgoCD/{metadata.get('name', '')}" if isinstance(metadata, dict) else "ArgoCD"
        self._version = split_api_version(str(manifest.get("apiVersion")))[1]
        self._spec = manifest.get("spec")
        self._place = Place(number, ("spec",))
        self._faults = faults

    def add_to(self, operated: dict[str, Entry]) -> None:
        spec = self._spec
        if spec is None:
            return
        if not isinstance(spec, dict):
            self._fault("", "is not a map; write it as field: value")
            return
        self._note_wrong_fields(spec)
        old = spec.get("resourceCustomizations")
        if isinstance(old, str) and old:
            place = self._place.below("resourceCustomizations")
            operated[MAP_KEY] = Entry(old, f"{self._name} spec.resourceCustomizations", place)
            if self._version != "v1alpha1":
                what = "only v1alpha1 has this field, later versions drop it"
                self._fault("resourceCustomizations", f"{what}; use resourceHealthChecks and resourceActions")
        _add(operated, self._listed(spec, "resourceHealthChecks", "check", "health"), self._faults)
        _add(operated, self._listed(spec, "resourceActions", "action", "actions"), self._faults)
        extra = f"{self._name} spec.extraConfig"
        place = self._place.below("extraConfig")
        # argo: the operator copies these last, so they win
        _add(operated, _texts(spec.get("extraConfig"), f"{extra} ", extra, place, self._faults), self._faults)

    def _fault(self, field: str, text: str, *steps: str | int, pattern: str = "") -> None:
        where = f"{self._name} spec{f'.{field}' if field else ''}{''.join(f'[{step}]' for step in steps)}"
        place = self._place.below(*filter(None, (field,)), *steps)
        self._faults.append(Fault(where, text, place=place, pattern=pattern))

    def _note_wrong_fields(self, spec: Mapping[str, Any]) -> None:
        for field in spec:
            if field == "ignoreDifferences":
                what = "an ArgoCD resource has no such field; it has no effect"
                self._fault(field, f"{what}; put it into the Application's spec, or here as resourceIgnoreDifferences")
            elif field not in (*READ, *OTHERS) and (right := meant(field, (*READ, *OTHERS), _NEAR)) in READ:
                self._fault(field, f"an ArgoCD resource has no such field; did you mean {right}?")
                self._faults[-1] = replace(self._faults[-1], severity="warning")

    def _listed(
        self, spec: Mapping[str, Any], field: str, text_field: str, kind_of_key: str
    ) -> Iterator[tuple[str, Entry]]:
        """Yield the entries of `[{group, kind, check}]` as keys of argocd-cm."""
        given = spec.get(field) or []
        if not isinstance(given, list):
            self._fault(field, f"is not a list; write each entry as - group, kind and {text_field}")
            return
        for number, each in enumerate(given):
            if not isinstance(each, dict) or not isinstance(each.get("kind"), str) or not each["kind"]:
                self._fault(field, f"kind is missing; write group, kind and {text_field}", number)
                continue
            group, kind = str(each.get("group") or ""), each["kind"]
            if not isinstance(each.get(text_field), str):
                text = f"{text_field} is not a string; write the script after {text_field}: |"
                self._fault(field, text, number, pattern="/".join(filter(None, (group, kind))))
                continue
            where, place = f"{self._name} spec.{field}[{number}]", self._place.below(field, number, text_field)
            yield PREFIX + f"{kind_of_key}." + joined(group, kind), Entry(each[text_field], where, place)
