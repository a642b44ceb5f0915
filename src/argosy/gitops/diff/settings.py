"""Reads the diff settings of an installation.

In: the data of ConfigMap argocd-cm. Out: DiffSettings; invalid values are sentences in `faults`, and the rest
applies. Never: raises for an invalid value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from argosy.errors import UserError
from argosy.gitops.application import IgnoreDifference
from argosy.gitops.diff.diff_options import PRESETS, CompareSettings, IgnoreStatus, KnownField
from argosy.gitops.diff.known_types import type_named
from argosy.kube.objects import load
from argosy.kube.objects.boolean_text import read_switch

MAP_KEY: Final = "resource.customizations"
IGNORE_KEY: Final = f"{MAP_KEY}.ignoreDifferences."
UPDATES_KEY: Final = f"{MAP_KEY}.ignoreResourceUpdates."
FILTER_KEY: Final = "resource.ignoreResourceUpdatesEnabled"
KNOWN_KEY: Final = f"{MAP_KEY}.knownTypeFields."
OPTIONS_KEY: Final = "resource.compareoptions"
MASKED_KEY: Final = "resource.sensitive.mask.annotations"
SERVER_SIDE_KEY: Final = "controller.diff.server.side"
_STATUS_WORDS: Final[dict[str, IgnoreStatus]] = {
    "all": "all", "crd": "crd", "none": "none", "off": "none", "false": "none", "": "all",
}  # fmt: skip
_IN_MAP: Final = ("ignoreDifferences", "ignoreResourceUpdates", "knownTypeFields")
_LISTS: Final = {"jsonPointers": "pointers", "jqPathExpressions": "jq_paths", "managedFieldsManagers": "managers"}


def read_compare_settings(argocd_cm: Mapping[str, str], parameters: Mapping[str, str] = {}) -> CompareSettings:
    """Read the settings. `parameters` is the data of argocd-cmd-params-cm."""
    reading = _Reading()
    overrides = reading.overrides(argocd_cm)
    status, aggregated, on_updates = reading.options(argocd_cm.get(OPTIONS_KEY, ""))
    masked = argocd_cm.get(MASKED_KEY, "")
    return CompareSettings(
        ignored=reading.rules("ignoreDifferences", overrides),
        ignored_updates=reading.rules("ignoreResourceUpdates", overrides),
        filters_updates=read_switch(argocd_cm, FILTER_KEY, default=True),
        ignore_status=status,
        ignore_aggregated_roles=aggregated,
        ignores_on_updates=on_updates,
        known_fields=(*PRESETS, *reading.known(overrides)),
        masked_annotations=frozenset(word for part in masked.split(",") if (word := part.strip())),
        server_side=read_switch(parameters, SERVER_SIDE_KEY, default=False),
        faults=tuple(reading.faults),
    )


Kind = tuple[str, str]


class Override(NamedTuple):
    """One entry of resource.customizations for one kind."""

    kind: Kind
    where: str
    what: str  # ignoreDifferences, ignoreResourceUpdates or knownTypeFields
    value: Any


class _Reading:
    """Reads the settings once, and collects faults."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def overrides(self, argocd_cm: Mapping[str, str]) -> list[Override]:
        """Return the entries of the map first, then the keys of single kinds."""
        found = [*self._of_map(argocd_cm.get(MAP_KEY, ""))]
        for key, text in argocd_cm.items():
            for prefix in (IGNORE_KEY, UPDATES_KEY, KNOWN_KEY):
                if key.startswith(prefix):
                    kind, what = _kind_of_key(key.removeprefix(prefix)), prefix.rstrip(".").rpartition(".")[2]
                    found.append(Override(kind, key, what, self._loaded(key, text)))
        return [each for each in found if each.value is not None]

    def _of_map(self, text: str) -> Iterator[Override]:
        given = self._loaded(MAP_KEY, text)
        if given is not None and not isinstance(given, dict):
            self.faults.append(f"{MAP_KEY}: must hold a YAML mapping from kinds to settings; correct it")
            return
        for name, value in (given or {}).items():
            where = f"{MAP_KEY}[{name}]"
            group, _, kind = str(name).rpartition("/")
            for what in _IN_MAP:
                found = value.get(what) if isinstance(value, dict) else None  # the health settings report other errors
                if isinstance(found, str):  # argo: the value may be a string that contains YAML
                    found = self._loaded(where, found)
                yield Override((group, kind), where, what, found)

    def _loaded(self, where: str, text: str) -> Any:
        try:
            return load(text)
        except UserError as error:
            self.faults.append(f"{where}: invalid YAML: {error.message}; correct it")
            return None

    def rules(self, what: str, overrides: Iterable[Override]) -> tuple[IgnoreDifference, ...]:
        found: list[IgnoreDifference] = []
        for each in overrides:
            if each.what != what:
                continue
            if not isinstance(each.value, dict):
                self.faults.append(f"{each.where}: must hold a YAML mapping with {', '.join(_LISTS)}; correct it")
                continue
            lists = {ours: self._texts(each.where, name, each.value.get(name)) for name, ours in _LISTS.items()}
            found.append(IgnoreDifference(*each.kind, **lists))  # type: ignore[arg-type]
        return tuple(found)

    def _texts(self, where: str, name: str, given: Any) -> tuple[str, ...]:
        if given is None:
            return ()
        if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
            self.faults.append(f"{where}: {name} must be a list of strings; put each after a dash, in quotes")
            return ()
        return tuple(given)

    def known(self, overrides: Iterable[Override]) -> Iterator[KnownField]:
        for kind, where, what, given in overrides:
            if what != "knownTypeFields":
                continue
            if not isinstance(given, list):
                self.faults.append(f"{where}: knownTypeFields must be a list with field and type; correct it")
                continue
            for each in given:
                path, type_ = (each.get("field"), each.get("type")) if isinstance(each, dict) else (None, None)
                if not isinstance(path, str) or not isinstance(type_, str):
                    self.faults.append(
                        f"{where}: each entry of knownTypeFields needs field and type; add the missing one"
                    )
                elif type_named(type_) is None:
                    self.faults.append(f"{where}: unknown type {type_!r}; write one such as core/v1/PodSpec")
                else:
                    yield KnownField(*kind, tuple(path.split(".")), type_)

    def options(self, text: str) -> tuple[IgnoreStatus, bool, bool]:
        given = self._loaded(OPTIONS_KEY, text)
        if given is not None and not isinstance(given, dict):
            self.faults.append(f"{OPTIONS_KEY}: must hold a YAML mapping; correct it")
        found = given if isinstance(given, dict) else {}
        word = found.get("ignoreResourceStatusField")
        status = _STATUS_WORDS.get(str("" if word is None else word).lower())
        if status is None:
            what = f"ignoreResourceStatusField is {word!r}; write all, crd or none"
            self.faults.append(f"{OPTIONS_KEY}: {what}")
        aggregated = self._flag(found, "ignoreAggregatedRoles", usual=False)
        return status or "crd", aggregated, self._flag(found, "ignoreDifferencesOnResourceUpdates", usual=True)

    def _flag(self, given: Mapping[str, Any], name: str, *, usual: bool) -> bool:
        value = given.get(name)
        if value is None or isinstance(value, bool):
            return usual if value is None else value
        self.faults.append(f"{OPTIONS_KEY}: {name} is {value!r}; write true or false")
        return usual


def _kind_of_key(name: str) -> Kind:
    """argo: `all` means every kind; core kinds have no group prefix."""
    if name == "all":
        return "*", "*"
    group, _, kind = name.rpartition("_")
    return group, kind
