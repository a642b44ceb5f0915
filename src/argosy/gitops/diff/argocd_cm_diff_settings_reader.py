"""Reads the diff settings of an installation.

In: the data of ConfigMap argocd-cm. Out: DiffSettings; invalid values are sentences in `faults`, and the rest
applies. Never: raises for an invalid value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from argosy.errors import UserError
from argosy.gitops.application import IgnoreDifference
from argosy.gitops.diff.diff_options import DEFAULT_KNOWN_FIELDS, DiffSettings, IgnoreStatus, KnownField
from argosy.gitops.diff.known_type_fields import find_type_normalizer
from argosy.kube.objects import read_yaml
from argosy.kube.objects.config_map_booleans import read_boolean
from argosy.kube.objects.go_field_names import spell_fields_like_go

CUSTOMIZATIONS_KEY: Final = "resource.customizations"
IGNORE_DIFFERENCES_PREFIX: Final = f"{CUSTOMIZATIONS_KEY}.ignoreDifferences."
IGNORE_UPDATES_PREFIX: Final = f"{CUSTOMIZATIONS_KEY}.ignoreResourceUpdates."
FILTER_UPDATES_KEY: Final = "resource.ignoreResourceUpdatesEnabled"
KNOWN_TYPES_PREFIX: Final = f"{CUSTOMIZATIONS_KEY}.knownTypeFields."
COMPARE_OPTIONS_KEY: Final = "resource.compareoptions"
MASKED_ANNOTATIONS_KEY: Final = "resource.sensitive.mask.annotations"
SERVER_SIDE_KEY: Final = "controller.diff.server.side"
_IGNORE_STATUS_VALUES: Final[dict[str, IgnoreStatus]] = {
    "all": "all", "crd": "crd", "none": "none", "off": "none", "false": "none", "": "all",
}  # fmt: skip
_COMPARE_OPTIONS: Final = (
    "ignoreResourceStatusField",
    "ignoreAggregatedRoles",
    "ignoreDifferencesOnResourceUpdates",
)
_CUSTOMIZATION_NAMES: Final = ("ignoreDifferences", "ignoreResourceUpdates", "knownTypeFields")
_RULE_LISTS: Final = {"jsonPointers": "pointers", "jqPathExpressions": "jq_paths", "managedFieldsManagers": "managers"}


def read_diff_settings(argocd_cm: Mapping[str, str], parameters: Mapping[str, str] = {}) -> DiffSettings:
    """Read the settings. `parameters` is the data of argocd-cmd-params-cm."""
    reading = _SettingsReader()
    overrides = reading.list_overrides(argocd_cm)
    status, aggregated, on_updates = reading.read_compare_options(argocd_cm.get(COMPARE_OPTIONS_KEY, ""))
    masked_text = argocd_cm.get(MASKED_ANNOTATIONS_KEY, "")
    return DiffSettings(
        ignore_rules=reading.read_ignore_rules("ignoreDifferences", overrides),
        ignore_update_rules=reading.read_ignore_rules("ignoreResourceUpdates", overrides),
        filters_updates=read_boolean(argocd_cm, FILTER_UPDATES_KEY, default=True),
        ignore_status=status,
        ignore_aggregated_roles=aggregated,
        ignore_rules_apply_to_updates=on_updates,
        known_fields=(*DEFAULT_KNOWN_FIELDS, *reading.read_known_fields(overrides)),
        masked_annotations=frozenset(annotation for part in masked_text.split(",") if (annotation := part.strip())),
        server_side=read_boolean(parameters, SERVER_SIDE_KEY, default=False),
        faults=tuple(reading.faults),
    )


KindName = tuple[str, str]


class KindOverride(NamedTuple):
    """One entry of resource.customizations for one kind."""

    kind: KindName
    where: str
    setting: str  # ignoreDifferences, ignoreResourceUpdates or knownTypeFields
    value: Any


class _SettingsReader:
    """Reads the settings once, and collects faults."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def list_overrides(self, argocd_cm: Mapping[str, str]) -> list[KindOverride]:
        """Return the entries of the map first, then the keys of single kinds."""
        overrides = [*self._read_customizations(argocd_cm.get(CUSTOMIZATIONS_KEY, ""))]
        for key, text in argocd_cm.items():
            for prefix in (IGNORE_DIFFERENCES_PREFIX, IGNORE_UPDATES_PREFIX, KNOWN_TYPES_PREFIX):
                if key.startswith(prefix):
                    kind, setting = _read_kind_suffix(key.removeprefix(prefix)), prefix.rstrip(".").rpartition(".")[2]
                    overrides.append(KindOverride(kind, key, setting, self._load_yaml(key, text)))
        return [override for override in overrides if override.value is not None]

    def _read_customizations(self, text: str) -> Iterator[KindOverride]:
        customizations = self._load_yaml(CUSTOMIZATIONS_KEY, text)
        if customizations is not None and not isinstance(customizations, dict):
            self.faults.append(f"{CUSTOMIZATIONS_KEY}: must hold a YAML mapping from kinds to settings; correct it")
            return
        for name, value in (customizations or {}).items():
            where = f"{CUSTOMIZATIONS_KEY}[{name}]"
            group, _, kind = str(name).rpartition("/")
            for setting in _CUSTOMIZATION_NAMES:
                setting_value = (
                    value.get(setting) if isinstance(value, dict) else None
                )  # the health settings report other errors
                if isinstance(setting_value, str):  # argo: the value may be a string that contains YAML
                    setting_value = self._load_yaml(where, setting_value)
                yield KindOverride((group, kind), where, setting, setting_value)

    def _load_yaml(self, where: str, text: str) -> Any:
        try:
            return read_yaml(text)
        except UserError as error:
            self.faults.append(f"{where}: invalid YAML: {error.message}; correct it")
            return None

    def read_ignore_rules(self, setting: str, overrides: Iterable[KindOverride]) -> tuple[IgnoreDifference, ...]:
        rules: list[IgnoreDifference] = []
        for override in overrides:
            if override.setting != setting:
                continue
            if not isinstance(override.value, dict):
                self.faults.append(
                    f"{override.where}: must hold a YAML mapping with {', '.join(_RULE_LISTS)}; correct it"
                )
                continue
            # argo: the operator of OpenShift GitOps writes these names in lower case
            values = spell_fields_like_go(override.value, _RULE_LISTS)
            lists = {
                field_name: self._read_strings(override.where, name, values.get(name))
                for name, field_name in _RULE_LISTS.items()
            }
            rules.append(IgnoreDifference(*override.kind, **lists))  # type: ignore[arg-type]
        return tuple(rules)

    def _read_strings(self, where: str, name: str, values: Any) -> tuple[str, ...]:
        if values is None:
            return ()
        if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
            self.faults.append(f"{where}: {name} must be a list of strings; put each after a dash, in quotes")
            return ()
        return tuple(values)

    def read_known_fields(self, overrides: Iterable[KindOverride]) -> Iterator[KnownField]:
        for kind, where, setting, entries in overrides:
            if setting != "knownTypeFields":
                continue
            if not isinstance(entries, list):
                self.faults.append(f"{where}: knownTypeFields must be a list with field and type; correct it")
                continue
            for entry in entries:
                names = spell_fields_like_go(entry if isinstance(entry, dict) else {}, ("field", "type"))
                path, type_ = names.get("field"), names.get("type")
                if not isinstance(path, str) or not isinstance(type_, str):
                    self.faults.append(
                        f"{where}: each entry of knownTypeFields needs field and type; add the missing one"
                    )
                elif find_type_normalizer(type_) is None:
                    self.faults.append(f"{where}: unknown type {type_!r}; write one such as core/v1/PodSpec")
                else:
                    yield KnownField(*kind, tuple(path.split(".")), type_)

    def read_compare_options(self, text: str) -> tuple[IgnoreStatus, bool, bool]:
        document = self._load_yaml(COMPARE_OPTIONS_KEY, text)
        if document is not None and not isinstance(document, dict):
            self.faults.append(f"{COMPARE_OPTIONS_KEY}: must hold a YAML mapping; correct it")
        options = spell_fields_like_go(document if isinstance(document, dict) else {}, _COMPARE_OPTIONS)
        status_text = options.get("ignoreResourceStatusField")
        status = _IGNORE_STATUS_VALUES.get(str("" if status_text is None else status_text).lower())
        if status is None:
            problem = f"ignoreResourceStatusField is {status_text!r}; write all, crd or none"
            self.faults.append(f"{COMPARE_OPTIONS_KEY}: {problem}")
        aggregated = self._read_bool(options, "ignoreAggregatedRoles", default=False)
        return status or "crd", aggregated, self._read_bool(options, "ignoreDifferencesOnResourceUpdates", default=True)

    def _read_bool(self, options: Mapping[str, Any], name: str, *, default: bool) -> bool:
        value = options.get(name)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self.faults.append(f"{COMPARE_OPTIONS_KEY}: {name} is {value!r}; write true or false")
        return default


def _read_kind_suffix(name: str) -> KindName:
    """argo: `all` means every kind; core kinds have no group prefix."""
    if name == "all":
        return "*", "*"
    group, _, kind = name.rpartition("_")
    return group, kind
