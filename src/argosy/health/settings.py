"""The health settings of an installation.

In: the data of ConfigMaps argocd-cm and argosy-cm, or manifests that hold them (an ArgoCD resource too).
Out: Customizations; what is wrong with the settings is a sentence in `faults`, and the rest still holds.
Never: raises for a bad value; runs or judges a script.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.health import kind_keys
from argosy.health.installation import ARGOCD_CM, MAP_KEY, PREFIX, Entry, gather
from argosy.model.errors import UserError
from argosy.model.manifest import Manifest, load

# argo: the types of customization that it knows; any other makes it refuse all of them
TYPES: Final = ("health", "useOpenLibs", "actions", "ignoreDifferences", "ignoreResourceUpdates", "knownTypeFields")
FALLBACK: Final = "health.fallback"
PROFILE: Final = "health.profile."
# argo: the spellings of Go's strconv.ParseBool
_YES, _NO = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")


@dataclass(frozen=True, slots=True)
class Check:
    """A user's rule for a kind, or for all kinds that a pattern with wildcards matches."""

    pattern: str
    script: str
    open_libs: bool
    where: str


@dataclass(frozen=True, slots=True)
class ActionsCheck:
    """A user's actions for a kind: which there are, and what each does."""

    pattern: str
    discovery: str
    definitions: Mapping[str, str]
    merge_builtin: bool
    where: str


@dataclass(frozen=True, slots=True)
class Customizations:
    checks: tuple[Check, ...] = ()  # exact ones first, then wildcards in the order of the text
    actions: tuple[ActionsCheck, ...] = ()
    profiles: Mapping[str, str] = field(default_factory=dict)
    fallback: bool = False
    faults: tuple[str, ...] = ()


def from_config_maps(argocd_cm: Mapping[str, str], argosy_cm: Mapping[str, str] = {}) -> Customizations:
    """The settings in force with these two ConfigMaps' data."""
    return _read(
        {key: Entry(value, key) for key, value in argocd_cm.items()},
        {key: Entry(value, key) for key, value in argosy_cm.items()},
        [],
    )


def from_manifests(manifests: Iterable[Manifest]) -> Customizations:
    """The settings that these manifests hold; manifests of other kinds are passed over."""
    found = gather(manifests)
    return _read(found.argocd_cm, found.argosy_cm, list(found.faults))


def _read(argocd_cm: Mapping[str, Entry], argosy_cm: Mapping[str, Entry], faults: list[str]) -> Customizations:
    reading = _Reading(faults)
    if MAP_KEY in argocd_cm:
        reading.read_map(argocd_cm[MAP_KEY])
    for key, entry in argocd_cm.items():
        reading.read_key(key, entry)
    profiles, fallback = reading.read_own(argosy_cm)
    overrides = sorted(reading.overrides.items(), key=lambda item: kind_keys.is_wild(item[0]))
    checks = tuple(
        Check(pattern, override.health.value, override.open_libs, override.health.where)
        for pattern, override in overrides
        # argo: an empty script is as good as none
        if override.health.value
    )
    actions = [reading.actions_of(pattern, each.actions) for pattern, each in overrides if each.actions.value]
    return Customizations(checks, tuple(filter(None, actions)), profiles, fallback, tuple(faults))


_NOTHING: Final = Entry("", "")


@dataclass(slots=True)
class _Override:
    """What was said of one pattern so far."""

    health: Entry = _NOTHING
    open_libs: bool = False
    actions: Entry = _NOTHING


class _Reading:
    """One pass over the settings. The map comes first, then keys of single kinds, which win."""

    def __init__(self, faults: list[str]) -> None:
        self.overrides: dict[str, _Override] = {}
        self._faults = faults

    def fault(self, where: str, text: str) -> None:
        self._faults.append(f"{where}: {text}")

    def read_map(self, entry: Entry) -> None:
        found = self._mapping(entry)
        for name, value in found.items():
            where = f"{entry.where}[{name}]"
            named = kind_keys.from_map(name)
            if named.fault:
                self.fault(entry.where, named.fault)
            elif not isinstance(value, dict):
                self.fault(where, "is no mapping; give it health.lua or actions")
            else:
                self._add_from_map(named.pattern, value, where)

    def _add_from_map(self, pattern: str, value: Mapping[str, Any], where: str) -> None:
        override = self.overrides.setdefault(pattern, _Override())
        for name in ("health.lua", "actions"):
            text = value.get(name)
            if text is not None and not isinstance(text, str):
                self.fault(where, f"{name} is no text; put a | after its colon")
            elif text:
                setattr(override, name.removesuffix(".lua"), Entry(text, where))
        if "health.lua.useOpenLibs" in value:
            override.open_libs = self._truth(value["health.lua.useOpenLibs"], where, "health.lua.useOpenLibs")
        if "useOpenLibs" in value:
            # argo: in the map only the long name counts
            self.fault(where, "useOpenLibs is not read in the map; name it health.lua.useOpenLibs")

    def read_key(self, key: str, entry: Entry) -> None:
        """`resource.customizations.<type>.<group>_<Kind>`; other keys are not ours."""
        if not key.startswith(PREFIX):
            return
        kind_of_key, _, name = key.removeprefix(PREFIX).partition(".")
        if kind_of_key not in TYPES:
            near = difflib.get_close_matches(kind_of_key, TYPES, n=1)
            advice = f"did you mean {near[0]}?" if near else f"known are {', '.join(TYPES)}"
            what = f"{kind_of_key!r} is no type of customization, and Argo CD then reads none"
            self.fault(entry.where, f"{what}; {advice}")
            return
        if kind_of_key not in TYPES[:3]:
            return
        named = kind_keys.from_key(name, f"{PREFIX}{kind_of_key}.")
        if named.fault:
            self.fault(entry.where, named.fault)
            return
        self._add_from_key(kind_of_key, named.pattern, entry)

    def _add_from_key(self, kind_of_key: str, pattern: str, entry: Entry) -> None:
        override = self.overrides.setdefault(pattern, _Override())
        if kind_of_key == "useOpenLibs":
            override.open_libs = self._truth(entry.value, entry.where, "the value")
            return
        before: Entry = getattr(override, kind_of_key)
        if before.value and before.value.strip() != entry.value.strip():
            what = f"{pattern} has another {'check' if kind_of_key == 'health' else 'set of actions'} in {before.where}"
            self.fault(entry.where, f"{what}; this one wins, remove the other")
        # argo: an empty key wins too, and takes the map's check away
        setattr(override, kind_of_key, entry)

    def read_own(self, argosy_cm: Mapping[str, Entry]) -> tuple[dict[str, str], bool]:
        """Of argosy-cm: which profiles are chosen, and whether kinds without a rule are judged by the fallback."""
        profiles: dict[str, str] = {}
        fallback = False
        for key, entry in argosy_cm.items():
            if key == FALLBACK:
                fallback = self._truth(entry.value, entry.where, "the value")
            elif key.startswith(PROFILE):
                named = kind_keys.from_key(key.removeprefix(PROFILE), PROFILE)
                if named.fault:
                    self.fault(entry.where, named.fault)
                elif not entry.value.strip():
                    self.fault(entry.where, "names no profile; `argosy health list` shows which there are")
                else:
                    profiles[named.pattern] = entry.value.strip()
            elif key.startswith("health."):
                self.fault(entry.where, f"is no setting; known are {FALLBACK} and {PROFILE}<group>_<Kind>")
        return profiles, fallback

    def actions_of(self, pattern: str, entry: Entry) -> ActionsCheck | None:
        found = self._mapping(entry)
        if not found:
            return None
        discovery = found.get("discovery.lua", "")
        if not isinstance(discovery, str):
            self.fault(entry.where, "discovery.lua is no text; put a | after its colon")
            discovery = ""
        merge = self._truth(found.get("mergeBuiltinActions", False), entry.where, "mergeBuiltinActions")
        return ActionsCheck(pattern, discovery, self._definitions(found, entry.where), merge, entry.where)

    def _definitions(self, found: Mapping[str, Any], where: str) -> dict[str, str]:
        given = found.get("definitions") or []
        if not isinstance(given, list):
            self.fault(where, "definitions is no list; write each as - name and action.lua")
            return {}
        scripts: dict[str, str] = {}
        for number, each in enumerate(given):
            name, script = (each.get("name"), each.get("action.lua")) if isinstance(each, dict) else (None, None)
            if not isinstance(name, str) or not isinstance(script, str) or not name:
                self.fault(where, f"definitions[{number}] needs name and action.lua, both texts; add what is missing")
            elif name in scripts:
                self.fault(where, f"the action {name!r} is defined twice, and the first one counts; remove the other")
            else:
                scripts[name] = script
        return scripts

    def _mapping(self, entry: Entry) -> dict[str, Any]:
        try:
            found = load(entry.value)
        except UserError as error:
            self.fault(entry.where, f"is not valid YAML ({error.message})")
            return {}
        if found is None:
            return {}
        if not isinstance(found, dict):
            self.fault(entry.where, "must hold a YAML mapping; see the reference of health checks for its form")
            return {}
        return found

    def _truth(self, value: object, where: str, name: str) -> bool:
        text = str(value).lower() if isinstance(value, bool) else value
        if text not in _YES and text not in _NO:
            self.fault(where, f'{name} is {text!r}, neither true nor false; write "true" or "false"')
        return text in _YES


__all__ = ["ARGOCD_CM", "ActionsCheck", "Check", "Customizations", "from_config_maps", "from_manifests"]
