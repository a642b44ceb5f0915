"""Collects the settings of an installation from its manifests.

In: manifests. Out: the entries of argocd-cm and argosy-cm, each with its location. Never: interprets an entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from argosy.gitops.health.setting_fault_and_location import (
    UNKNOWN_LOCATION,
    SettingFault,
    SettingLocation,
    find_similar_word,
)
from argosy.gitops.health.setting_kind_names import parse_key_kind, render_key_kind
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import split_api_version

ARGOCD_CM: Final = "argocd-cm"
ARGOSY_CM: Final = "argosy-cm"
CUSTOMIZATIONS_KEY: Final = "resource.customizations"
CUSTOMIZATIONS_PREFIX: Final = CUSTOMIZATIONS_KEY + "."
READ_FIELDS: Final = ("resourceHealthChecks", "resourceActions", "extraConfig", "resourceCustomizations")
# argo: fields of an ArgoCD resource with similar names and another meaning
SIMILAR_FIELDS: Final = (
    "resourceIgnoreDifferences",
    "resourceInclusions",
    "resourceExclusions",
    "resourceTrackingMethod",
)
_SIMILARITY_CUTOFF: Final = 0.8


class SettingEntry(NamedTuple):
    value: str
    where: str
    location: SettingLocation = UNKNOWN_LOCATION


@dataclass(frozen=True, slots=True)
class InstallationSettings:
    argocd_cm: Mapping[str, SettingEntry]
    argosy_cm: Mapping[str, SettingEntry]
    faults: tuple[SettingFault, ...]


def has_settings(manifest: Manifest) -> bool:
    """True if settings are read from this manifest."""
    return _is_operator_resource(manifest) or _config_map_name(manifest) in (ARGOCD_CM, ARGOSY_CM)


def collect_settings(manifests: Iterable[Manifest]) -> InstallationSettings:
    """Merge the entries of all manifests. An ArgoCD resource wins, because its operator rewrites argocd-cm."""
    config_maps: dict[str, dict[str, SettingEntry]] = {ARGOCD_CM: {}, ARGOSY_CM: {}}
    operator_entries: dict[str, SettingEntry] = {}
    faults: list[SettingFault] = []
    for number, manifest in enumerate(manifests):
        name = _config_map_name(manifest)
        if name in config_maps:
            texts = _read_setting_entries(
                manifest.get("data"), "", f"ConfigMap {name} data", SettingLocation(number, ("data",)), faults
            )
            _merge_entries(config_maps[name], texts, faults)
        elif _is_operator_resource(manifest):
            _OperatorResource(manifest, number, faults).add_entries(operator_entries)
    for key, entry in operator_entries.items():
        _report_conflict(key, entry, config_maps[ARGOCD_CM].get(key), faults)
    return InstallationSettings({**config_maps[ARGOCD_CM], **operator_entries}, config_maps[ARGOSY_CM], tuple(faults))


def kind_pattern_of_key(key: str) -> str:
    """Return the kind in a key of argocd-cm; empty if it names none."""
    _, _, name = key.removeprefix(CUSTOMIZATIONS_PREFIX).partition(".")
    return parse_key_kind(name).pattern if key.startswith(CUSTOMIZATIONS_PREFIX) else ""


def _config_map_name(manifest: Manifest) -> str:
    if (manifest.get("apiVersion"), manifest.get("kind")) != ("v1", "ConfigMap"):
        return ""
    metadata = manifest.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""


def _is_operator_resource(manifest: Manifest) -> bool:
    group, _ = split_api_version(str(manifest.get("apiVersion")))
    return (group, manifest.get("kind")) == ("argoproj.io", "ArgoCD")


def _merge_entries(
    entries: dict[str, SettingEntry], new_entries: Iterable[tuple[str, SettingEntry]], faults: list[SettingFault]
) -> None:
    for key, entry in new_entries:
        previous = entries.get(key)
        if (
            previous is not None
            and previous.value.strip() != entry.value.strip()
            and key.startswith((CUSTOMIZATIONS_PREFIX, "health."))
        ):
            position = "a second time" if previous.where == entry.where else f"already in {previous.where}"
            text = f"{key} is set {position} with another value; the last one wins, keep one"
            faults.append(SettingFault(entry.where, text, location=entry.location, pattern=kind_pattern_of_key(key)))
        entries[key] = entry


def _read_setting_entries(
    data: Any, prefix: str, where: str, location: SettingLocation, faults: list[SettingFault]
) -> Iterator[tuple[str, SettingEntry]]:
    if data is None:
        return
    if not isinstance(data, dict):
        faults.append(SettingFault(where, "is not a map; write it as key: value", location=location))
        return
    for key, value in data.items():
        if isinstance(value, str):
            yield key, SettingEntry(value, f"{prefix}{key}", location.append_steps(key))
        else:
            text = "is not a string; put it in quotes, or a | after the colon"
            faults.append(
                SettingFault(
                    f"{prefix}{key}", text, location=location.append_steps(key), pattern=kind_pattern_of_key(key)
                )
            )


def _report_conflict(
    key: str, entry: SettingEntry, config_map_entry: SettingEntry | None, faults: list[SettingFault]
) -> None:
    if (
        config_map_entry is not None
        and config_map_entry.value.strip() != entry.value.strip()
        and key.startswith(CUSTOMIZATIONS_KEY)
    ):
        text = f"differs from {entry.where}, from which the operator overwrites it"
        advice = "change the ArgoCD resource only"
        where = f"argocd-cm {config_map_entry.where}"
        faults.append(
            SettingFault(
                where,
                f"{text}; {advice}",
                "AGY405",
                location=config_map_entry.location,
                pattern=kind_pattern_of_key(key),
            )
        )


class _OperatorResource:
    """Reads an ArgoCD resource as its operator does."""

    def __init__(self, manifest: Manifest, number: int, faults: list[SettingFault]) -> None:
        metadata = manifest.get("metadata")
        self._name = f"ArgoCD/{metadata.get('name', '')}" if isinstance(metadata, dict) else "ArgoCD"
        self._version = split_api_version(str(manifest.get("apiVersion")))[1]
        self._spec = manifest.get("spec")
        self._location = SettingLocation(number, ("spec",))
        self._faults = faults

    def add_entries(self, entries: dict[str, SettingEntry]) -> None:
        spec = self._spec
        if spec is None:
            return
        if not isinstance(spec, dict):
            self._add_fault("", "is not a map; write it as field: value")
            return
        self._report_misspelled_fields(spec)
        customizations = spec.get("resourceCustomizations")
        if isinstance(customizations, str) and customizations:
            location = self._location.append_steps("resourceCustomizations")
            entries[CUSTOMIZATIONS_KEY] = SettingEntry(
                customizations, f"{self._name} spec.resourceCustomizations", location
            )
            if self._version != "v1alpha1":
                problem = "only v1alpha1 has this field, later versions drop it"
                self._add_fault("resourceCustomizations", f"{problem}; use resourceHealthChecks and resourceActions")
        _merge_entries(entries, self._read_list(spec, "resourceHealthChecks", "check", "health"), self._faults)
        _merge_entries(entries, self._read_list(spec, "resourceActions", "action", "actions"), self._faults)
        extra = f"{self._name} spec.extraConfig"
        location = self._location.append_steps("extraConfig")
        # argo: the operator copies these last, so they win
        _merge_entries(
            entries,
            _read_setting_entries(spec.get("extraConfig"), f"{extra} ", extra, location, self._faults),
            self._faults,
        )

    def _add_fault(self, field: str, text: str, *steps: str | int, pattern: str = "") -> None:
        where = f"{self._name} spec{f'.{field}' if field else ''}{''.join(f'[{step}]' for step in steps)}"
        location = self._location.append_steps(*filter(None, (field,)), *steps)
        self._faults.append(SettingFault(where, text, location=location, pattern=pattern))

    def _report_misspelled_fields(self, spec: Mapping[str, Any]) -> None:
        for field in spec:
            if field == "ignoreDifferences":
                problem = "an ArgoCD resource has no such field; it has no effect"
                self._add_fault(
                    field, f"{problem}; put it into the Application's spec, or here as resourceIgnoreDifferences"
                )
            elif (
                field not in (*READ_FIELDS, *SIMILAR_FIELDS)
                and (suggestion := find_similar_word(field, (*READ_FIELDS, *SIMILAR_FIELDS), _SIMILARITY_CUTOFF))
                in READ_FIELDS
            ):
                self._add_fault(field, f"an ArgoCD resource has no such field; did you mean {suggestion}?")
                self._faults[-1] = replace(self._faults[-1], severity="warning")

    def _read_list(
        self, spec: Mapping[str, Any], field: str, text_field: str, customization_type: str
    ) -> Iterator[tuple[str, SettingEntry]]:
        """Yield the entries of `[{group, kind, check}]` as keys of argocd-cm."""
        items = spec.get(field) or []
        if not isinstance(items, list):
            self._add_fault(field, f"is not a list; write each entry as - group, kind and {text_field}")
            return
        for number, item in enumerate(items):
            if not isinstance(item, dict) or not isinstance(item.get("kind"), str) or not item["kind"]:
                self._add_fault(field, f"kind is missing; write group, kind and {text_field}", number)
                continue
            group, kind = str(item.get("group") or ""), item["kind"]
            if not isinstance(item.get(text_field), str):
                text = f"{text_field} is not a string; write the script after {text_field}: |"
                self._add_fault(field, text, number, pattern="/".join(filter(None, (group, kind))))
                continue
            where, location = (
                f"{self._name} spec.{field}[{number}]",
                self._location.append_steps(field, number, text_field),
            )
            yield (
                CUSTOMIZATIONS_PREFIX + f"{customization_type}." + render_key_kind(group, kind),
                SettingEntry(item[text_field], where, location),
            )
