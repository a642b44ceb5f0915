"""Where an installation keeps its settings.

In: manifests. Out: the entries that argocd-cm and argosy-cm would hold, each with the place that it comes from.
Never: reads what an entry means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from argosy.health.kind_keys import joined
from argosy.model.manifest import Manifest
from argosy.model.names import split_api_version

ARGOCD_CM: Final = "argocd-cm"
ARGOSY_CM: Final = "argosy-cm"
MAP_KEY: Final = "resource.customizations"
PREFIX: Final = MAP_KEY + "."


class Entry(NamedTuple):
    value: str
    where: str


@dataclass(frozen=True, slots=True)
class Installation:
    argocd_cm: Mapping[str, Entry]
    argosy_cm: Mapping[str, Entry]
    faults: tuple[str, ...]


def holds_settings(manifest: Manifest) -> bool:
    """Whether a manifest is one that settings are read from."""
    return _is_operator_resource(manifest) or _config_map_name(manifest) in (ARGOCD_CM, ARGOSY_CM)


def gather(manifests: Iterable[Manifest]) -> Installation:
    """The entries of all manifests together. An ArgoCD resource wins, because its operator writes argocd-cm anew."""
    maps: dict[str, dict[str, Entry]] = {ARGOCD_CM: {}, ARGOSY_CM: {}}
    operated: dict[str, Entry] = {}
    faults: list[str] = []
    for manifest in manifests:
        name = _config_map_name(manifest)
        if name in maps:
            _add(maps[name], _texts(manifest.get("data"), "", f"ConfigMap {name} data", faults), faults)
        elif _is_operator_resource(manifest):
            _add_operated(operated, manifest, faults)
    for key, entry in operated.items():
        _note_disagreement(key, entry, maps[ARGOCD_CM].get(key), faults)
    return Installation({**maps[ARGOCD_CM], **operated}, maps[ARGOSY_CM], tuple(faults))


def _config_map_name(manifest: Manifest) -> str:
    if (manifest.get("apiVersion"), manifest.get("kind")) != ("v1", "ConfigMap"):
        return ""
    metadata = manifest.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""


def _is_operator_resource(manifest: Manifest) -> bool:
    group, _ = split_api_version(str(manifest.get("apiVersion")))
    return (group, manifest.get("kind")) == ("argoproj.io", "ArgoCD")


def _add(entries: dict[str, Entry], more: Iterable[tuple[str, Entry]], faults: list[str]) -> None:
    for key, entry in more:
        before = entries.get(key)
        if before is not None and before.value.strip() != entry.value.strip() and key.startswith((PREFIX, "health.")):
            again = "a second time" if before.where == entry.where else f"already in {before.where}"
            faults.append(f"{entry.where}: {key} is given {again}, with another value; the last one wins, keep one")
        entries[key] = entry


def _texts(data: Any, prefix: str, where: str, faults: list[str]) -> Iterator[tuple[str, Entry]]:
    if data is None:
        return
    if not isinstance(data, dict):
        faults.append(f"{where}: is no mapping; write it as key: value")
        return
    for key, value in data.items():
        if isinstance(value, str):
            yield key, Entry(value, f"{prefix}{key}")
        else:
            faults.append(f"{where}: the value of {key} is no text; put it in quotes, or a | after the colon")


def _note_disagreement(key: str, entry: Entry, in_map: Entry | None, faults: list[str]) -> None:
    if in_map is not None and in_map.value.strip() != entry.value.strip() and key.startswith(MAP_KEY):
        what = f"argocd-cm {in_map.where}: says otherwise than {entry.where}, from which the operator writes it anew"
        faults.append(f"{what}; change the ArgoCD resource only (AGY405)")


def _add_operated(operated: dict[str, Entry], manifest: Manifest, faults: list[str]) -> None:
    """What the operator makes of an ArgoCD resource."""
    metadata = manifest.get("metadata")
    name = f"ArgoCD/{metadata.get('name', '')}" if isinstance(metadata, dict) else "ArgoCD"
    spec = manifest.get("spec")
    if spec is None:
        return
    if not isinstance(spec, dict):
        faults.append(f"{name} spec: is no mapping; write it as field: value")
        return
    _note_misplaced(spec, name, faults)
    old = spec.get("resourceCustomizations")
    if isinstance(old, str) and old:
        operated[MAP_KEY] = Entry(old, f"{name} spec.resourceCustomizations")
        if split_api_version(str(manifest.get("apiVersion")))[1] != "v1alpha1":
            what = f"{name} spec.resourceCustomizations: only v1alpha1 has this field, later versions drop it"
            faults.append(f"{what}; use resourceHealthChecks and resourceActions")
    _add(operated, _listed(spec, name, "resourceHealthChecks", "check", "health", faults), faults)
    _add(operated, _listed(spec, name, "resourceActions", "action", "actions", faults), faults)
    extra = f"{name} spec.extraConfig"
    for key, entry in _texts(spec.get("extraConfig"), f"{extra} ", extra, faults):
        # argo: the operator copies these last, and they win
        _add(operated, [(key, entry)], faults)


def _note_misplaced(spec: Mapping[str, Any], name: str, faults: list[str]) -> None:
    if "ignoreDifferences" in spec:
        what = f"{name} spec.ignoreDifferences: an ArgoCD resource has no such field, so it does nothing"
        faults.append(f"{what}; put it into the Application's spec, or here as resourceIgnoreDifferences")


def _listed(
    spec: Mapping[str, Any], name: str, field: str, text_field: str, kind_of_key: str, faults: list[str]
) -> Iterator[tuple[str, Entry]]:
    """`[{group, kind, check}]` as keys of argocd-cm."""
    given = spec.get(field) or []
    if not isinstance(given, list):
        faults.append(f"{name} spec.{field}: is no list; write each entry as - group, kind and {text_field}")
        return
    for number, each in enumerate(given):
        where = f"{name} spec.{field}[{number}]"
        if not isinstance(each, dict) or not isinstance(each.get("kind"), str) or not each["kind"]:
            faults.append(f"{where}: names no kind; write group, kind and {text_field}")
        elif not isinstance(each.get(text_field), str):
            faults.append(f"{where}: {text_field} is no text; write the script after {text_field}: |")
        else:
            yield (
                PREFIX + f"{kind_of_key}." + joined(str(each.get("group") or ""), each["kind"]),
                Entry(each[text_field], where),
            )
