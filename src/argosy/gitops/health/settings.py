"""Reads the health and action settings of an installation.

In: the data of the ConfigMaps argocd-cm and argosy-cm, or manifests that contain them (also an ArgoCD resource).
Out: Customizations; errors are listed in `faults`, and all other settings apply.
Never: raises for a bad value; runs or lints a script.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from argosy.errors import UserError
from argosy.gitops.health import kind_keys, kind_patterns
from argosy.gitops.health.bundled import profile_rules, profiles_of
from argosy.gitops.health.setting_error import EVERY_KIND, NOWHERE, Fault, Place, meant
from argosy.gitops.health.settings_location import ARGOCD_CM, ARGOSY_CM, MAP_KEY, PREFIX, Entry, gather
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest, load

# argo: the known types of customization; any other makes Argo CD reject all of them
TYPES: Final = ("health", "useOpenLibs", "actions", "ignoreDifferences", "ignoreResourceUpdates", "knownTypeFields")
FALLBACK: Final = "health.fallback"
PROFILE: Final = "health.profile."
IN_MAP: Final = ("health.lua", "health.lua.useOpenLibs", "actions", *TYPES[3:])
DISCOVERY: Final = "discovery.lua"
IN_ACTIONS: Final = (DISCOVERY, "definitions", "mergeBuiltinActions")
_NEAR: Final = 0.8
# argo: the values of Go's strconv.ParseBool
_YES, _NO = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")


@dataclass(frozen=True, slots=True)
class Check:
    """A user's health check for a kind, or for all kinds that a wildcard pattern matches."""

    pattern: str
    script: str
    open_libs: bool
    where: str
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ActionsCheck:
    """A user's resource actions for a kind: the discovery script and one script per action."""

    pattern: str
    discovery: str
    definitions: Mapping[str, str]
    merge_builtin: bool
    where: str
    places: Mapping[str, Place] = field(default_factory=dict, compare=False)  # of discovery.lua, and of each action


@dataclass(frozen=True, slots=True)
class Customizations:
    checks: tuple[Check, ...] = ()  # exact ones first, then wildcards in the order of the setting
    actions: tuple[ActionsCheck, ...] = ()
    profiles: Mapping[str, str] = field(default_factory=dict)
    fallback: bool = False
    problems: tuple[Fault, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        """All problems as text."""
        return tuple(map(str, self.problems))


def from_config_maps(argocd_cm: Mapping[str, str], argosy_cm: Mapping[str, str] = {}) -> Customizations:
    """Read the settings from the data of the two ConfigMaps."""
    return _read(
        {key: Entry(value, key) for key, value in argocd_cm.items()},
        {key: Entry(value, key) for key, value in argosy_cm.items()},
        [],
    )


def from_manifests(manifests: Iterable[Manifest]) -> Customizations:
    """Read the settings from manifests; other kinds are ignored."""
    found = gather(manifests)
    return _read(found.argocd_cm, found.argosy_cm, list(found.faults))


def _read(argocd_cm: Mapping[str, Entry], argosy_cm: Mapping[str, Entry], faults: list[Fault]) -> Customizations:
    reading = _Reading(faults)
    if MAP_KEY in argocd_cm:
        reading.read_map(argocd_cm[MAP_KEY])
    for key, entry in argocd_cm.items():
        reading.read_key(key, entry)
    profiles, fallback = reading.read_own(argosy_cm)
    overrides = sorted(reading.overrides.items(), key=lambda item: kind_keys.is_wild(item[0]))
    checks = tuple(
        Check(pattern, override.health.value, override.open_libs, override.health.where, override.health.place)
        for pattern, override in overrides
        # argo: an empty script counts as none
        if override.health.value
    )
    actions = [reading.actions_of(pattern, each.actions) for pattern, each in overrides if each.actions.value]
    return Customizations(checks, tuple(filter(None, actions)), profiles, fallback, tuple(faults))


_NOTHING: Final = Entry("", "")


@dataclass(slots=True)
class _Override:
    """The settings of one pattern read so far."""

    health: Entry = _NOTHING
    open_libs: bool = False
    actions: Entry = _NOTHING


class _Reading:
    """Reads all settings once: first the map, then the keys of single kinds, which win."""

    def __init__(self, faults: list[Fault]) -> None:
        self.overrides: dict[str, _Override] = {}
        self._faults = faults

    def fault(self, at: Entry, text: str, *steps: str | int, pattern: str = "", is_error: bool = True) -> None:
        severity: Literal["error", "warning"] = "error" if is_error else "warning"
        place = at.place.below(*steps)
        self._faults.append(Fault(at.where, text, severity=severity, place=place, pattern=pattern))

    def unknown(self, at: Entry, given: Iterable[str], known: tuple[str, ...], pattern: str) -> None:
        """Report words similar to known ones; other words may be for another program."""
        for word in given:
            if word not in known and (right := meant(word, known)):
                self.fault(at, f"{word} is not read; did you mean {right}?", word, pattern=pattern, is_error=False)

    def read_map(self, entry: Entry) -> None:
        found = self._mapping(entry, EVERY_KIND)
        for name, value in found.items():
            at = Entry("", f"{entry.where}[{name}]", entry.place.below(name))
            named = kind_keys.from_map(name)
            if named.fault:
                self.fault(at, named.fault, pattern=named.pattern)
            elif unsound := _unsound(named.pattern):
                self.fault(at, unsound)
            elif not isinstance(value, dict):
                self.fault(at, "is not a map; give it health.lua or actions", pattern=named.pattern)
            else:
                self._add_from_map(named.pattern, value, at)

    def _add_from_map(self, pattern: str, value: Mapping[str, Any], at: Entry) -> None:
        override = self.overrides.setdefault(pattern, _Override())
        for name in ("health.lua", "actions"):
            text = value.get(name)
            if text is not None and not isinstance(text, str):
                self.fault(at, f"{name} is not a string; put a | after its colon", name, pattern=pattern)
            elif text:
                setattr(override, name.removesuffix(".lua"), Entry(text, at.where, at.place.below(name)))
        if "health.lua.useOpenLibs" in value:
            override.open_libs = self._truth(value["health.lua.useOpenLibs"], at, "health.lua.useOpenLibs", pattern)
        if "useOpenLibs" in value:
            # argo: in the map only the long name is read
            what = "useOpenLibs is not read in the map; name it health.lua.useOpenLibs"
            self.fault(at, what, "useOpenLibs", pattern=pattern)
        self.unknown(at, set(value) - {"useOpenLibs"}, IN_MAP, pattern)

    def read_key(self, key: str, entry: Entry) -> None:
        """Read `resource.customizations.<type>.<group>_<Kind>`; other keys are ignored."""
        if not key.startswith(PREFIX):
            self._note_near(key, entry)
            return
        kind_of_key, _, name = key.removeprefix(PREFIX).partition(".")
        if kind_of_key not in TYPES:
            near = meant(kind_of_key, TYPES)
            advice = f"did you mean {near}?" if near else f"known are {', '.join(TYPES)}"
            what = f"{kind_of_key!r} is not a type of customization, and makes Argo CD ignore all of them"
            self.fault(entry, f"{what}; {advice}", pattern=EVERY_KIND)
            return
        if kind_of_key not in TYPES[:3]:
            return
        named = kind_keys.from_key(name, f"{PREFIX}{kind_of_key}.")
        if named.fault:
            self.fault(entry, named.fault, pattern=named.pattern)
            return
        self._add_from_key(kind_of_key, named.pattern, entry)

    def _note_near(self, key: str, entry: Entry) -> None:
        """Report a key that is almost a known one and has no effect as written."""
        if key == MAP_KEY:
            return
        if key.startswith((FALLBACK, PROFILE)):
            self.fault(entry, f"is not read here; move it into ConfigMap {ARGOSY_CM}", is_error=False)
            return
        first, second, *rest = [*key.split("."), "", ""]
        if meant(f"{first}.{second}", [MAP_KEY], 0.85):
            right = ".".join([MAP_KEY, *filter(None, rest)])
            pattern = kind_keys.from_key(".".join(filter(None, rest[1:]))).pattern
            self.fault(entry, f"is not read; did you mean {right}?", pattern=pattern, is_error=False)

    def _add_from_key(self, kind_of_key: str, pattern: str, entry: Entry) -> None:
        override = self.overrides.setdefault(pattern, _Override())
        if kind_of_key == "useOpenLibs":
            override.open_libs = self._truth(entry.value, entry, "the value", pattern)
            return
        before: Entry = getattr(override, kind_of_key)
        if before.value and before.value.strip() != entry.value.strip():
            what = f"{pattern} has another {'check' if kind_of_key == 'health' else 'set of actions'} in {before.where}"
            self.fault(entry, f"{what}; this one wins, remove the other", pattern=pattern)
        # argo: an empty key wins, too, and removes the check of the map
        setattr(override, kind_of_key, entry)

    def read_own(self, argosy_cm: Mapping[str, Entry]) -> tuple[dict[str, str], bool]:
        """Read argosy-cm: the chosen profiles, and whether the fallback assesses kinds without a rule."""
        profiles: dict[str, str] = {}
        fallback = False
        for key, entry in argosy_cm.items():
            if key == FALLBACK:
                fallback = self._truth(entry.value, entry, "the value", "")
            elif key.startswith(PROFILE):
                named = kind_keys.from_key(key.removeprefix(PROFILE), PROFILE)
                if named.fault:
                    self.fault(entry, named.fault, pattern=named.pattern)
                elif not entry.value.strip():
                    what = "the profile is missing; `argosy health list` shows all profiles"
                    self.fault(entry, what, pattern=named.pattern)
                else:
                    profiles[named.pattern] = entry.value.strip()
                    self._check_profile(entry, named.pattern)
            else:
                self._note_unknown(key, entry)
        return profiles, fallback

    def _check_profile(self, entry: Entry, pattern: str) -> None:
        group, _, kind = pattern.rpartition("/")
        of, profile = GroupKind(group, kind), entry.value.strip()
        if of in profile_rules(profile):
            return
        near = meant(profile, profiles_of(of))
        advice = f"did you mean {near}?" if near else f"it has {', '.join(profiles_of(of)) or 'none'}"
        self.fault(entry, f"{pattern} has no profile {profile!r}; {advice}", pattern=pattern, is_error=False)

    def _note_unknown(self, key: str, entry: Entry) -> None:
        """Report an unknown key of argosy-cm if it looks like a health setting; other settings are there, too."""
        first, _, rest = key.partition(".")
        if key.startswith(MAP_KEY):
            self.fault(entry, f"is not read here; move it into ConfigMap {ARGOCD_CM}", is_error=False)
        elif meant(first, ["health"], _NEAR) or meant(first, ["fallback", "profile"], _NEAR):
            words = rest if meant(first, ["health"], _NEAR) else key
            word, _, kind = words.partition(".")
            right = meant(word, ["fallback", "profile"])
            known = f"{FALLBACK} and {PROFILE}<group>_<Kind>"
            name = {"fallback": FALLBACK, "profile": PROFILE + (kind or "<group>_<Kind>")}.get(right)
            advice = f"did you mean {name}?" if name else f"known are {known}"
            self.fault(entry, f"is not a known setting; {advice}", is_error=False)

    def actions_of(self, pattern: str, entry: Entry) -> ActionsCheck | None:
        found = self._mapping(entry, pattern)
        if not found:
            return None
        discovery = found.get(DISCOVERY, "")
        if not isinstance(discovery, str):
            what = "discovery.lua is not a string; put a | after its colon"
            self.fault(entry, what, DISCOVERY, pattern=pattern)
            discovery = ""
        merge = self._truth(found.get("mergeBuiltinActions", False), entry, "mergeBuiltinActions", pattern)
        self.unknown(entry, found, IN_ACTIONS, pattern)
        definitions = self._definitions(found, entry, pattern)
        texts = {name: each.value for name, each in definitions.items()}
        places = {name: each.place for name, each in definitions.items()}
        places[DISCOVERY] = entry.place.below(DISCOVERY)
        return ActionsCheck(pattern, discovery, texts, merge, entry.where, places)

    def _definitions(self, found: Mapping[str, Any], at: Entry, pattern: str) -> dict[str, Entry]:
        given = found.get("definitions") or []
        if not isinstance(given, list):
            what = "definitions is not a list; write each as - name and action.lua"
            self.fault(at, what, "definitions", pattern=pattern)
            return {}
        scripts: dict[str, Entry] = {}
        for number, each in enumerate(given):
            name, script = (each.get("name"), each.get("action.lua")) if isinstance(each, dict) else (None, None)
            if not isinstance(name, str) or not isinstance(script, str) or not name:
                what = f"definitions[{number}] needs name and action.lua, both strings; add the missing one"
                self.fault(at, what, "definitions", number, pattern=pattern)
            elif name in scripts:
                what = f"the action {name!r} is defined twice, and the first one counts; remove the other"
                self.fault(at, what, "definitions", number, pattern=pattern)
            else:
                scripts[name] = Entry(script, at.where, at.place.below("definitions", number, "action.lua"))
        return scripts

    def _mapping(self, entry: Entry, pattern: str) -> dict[str, Any]:
        try:
            found = load(entry.value)
        except UserError as error:
            self._faults.append(_not_yaml(entry, error, pattern))
            return {}
        if found is None:
            return {}
        if not isinstance(found, dict):
            what = "must be a YAML map; see the health check reference for its form"
            self.fault(entry, what, pattern=pattern)
            return {}
        return found

    def _truth(self, value: object, at: Entry, name: str, pattern: str) -> bool:
        text = str(value).lower() if isinstance(value, bool) else value
        if text not in _YES and text not in _NO:
            what = f'{name} is {text!r}, neither true nor false; write "true" or "false"'
            self.fault(at, what, *([] if name == "the value" else [name]), pattern=pattern)
        return text in _YES


def _unsound(pattern: str) -> str:
    """Return what is wrong with a wildcard pattern; empty if it is valid."""
    try:
        kind_patterns.read(pattern)
    except UserError as error:
        return error.message
    return ""


def _not_yaml(entry: Entry, error: UserError, pattern: str) -> Fault:
    """Build the fault of a YAML error, whose message is `problem: what to do`."""
    what, _, advice = error.message.rpartition(": ")
    place = f", in line {error.line} of its text" if error.line else ""
    text = f"is not valid YAML{place}: {what or advice}; {advice if what else 'correct it'}"
    return Fault(entry.where, text, place=entry.place, pattern=pattern, line=error.line)


__all__ = ["ARGOCD_CM", "ActionsCheck", "Check", "Customizations", "from_config_maps", "from_manifests"]
