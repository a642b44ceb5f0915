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
from argosy.gitops.health import kind_patterns, setting_kind_names
from argosy.gitops.health.argocd_cm_entries_with_locations import (
    ARGOCD_CM,
    ARGOSY_CM,
    CUSTOMIZATIONS_KEY,
    CUSTOMIZATIONS_PREFIX,
    SettingEntry,
    collect_settings,
)
from argosy.gitops.health.bundled_rules import list_profiles_of_kind, load_profile_rules
from argosy.gitops.health.setting_fault_and_location import (
    EVERY_KIND,
    UNKNOWN_LOCATION,
    SettingFault,
    SettingLocation,
    find_similar_word,
)
from argosy.kube.objects import Manifest, read_yaml
from argosy.kube.resource_key import GroupKind

# argo: the known types of customization; any other makes Argo CD reject all of them
CUSTOMIZATION_TYPES: Final = (
    "health",
    "useOpenLibs",
    "actions",
    "ignoreDifferences",
    "ignoreResourceUpdates",
    "knownTypeFields",
)
FALLBACK_SETTING: Final = "health.fallback"
PROFILE_SETTING_PREFIX: Final = "health.profile."
MAP_FIELDS: Final = ("health.lua", "health.lua.useOpenLibs", "actions", *CUSTOMIZATION_TYPES[3:])
DISCOVERY_FIELD: Final = "discovery.lua"
ACTIONS_FIELDS: Final = (DISCOVERY_FIELD, "definitions", "mergeBuiltinActions")
_SIMILARITY_CUTOFF: Final = 0.8
# argo: the values of Go's strconv.ParseBool
_TRUE_VALUES, _FALSE_VALUES = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")


@dataclass(frozen=True, slots=True)
class CustomHealthCheck:
    """A user's health check for a kind, or for all kinds that a wildcard pattern matches."""

    pattern: str
    script: str
    open_libs: bool
    where: str
    location: SettingLocation = field(default=UNKNOWN_LOCATION, compare=False)


@dataclass(frozen=True, slots=True)
class CustomActions:
    """A user's resource actions for a kind: the discovery script and one script per action."""

    pattern: str
    discovery: str
    definitions: Mapping[str, str]
    merge_builtin: bool
    where: str
    locations: Mapping[str, SettingLocation] = field(
        default_factory=dict, compare=False
    )  # of discovery.lua, and of each action


@dataclass(frozen=True, slots=True)
class Customizations:
    checks: tuple[CustomHealthCheck, ...] = ()  # exact ones first, then wildcards in the order of the setting
    actions: tuple[CustomActions, ...] = ()
    profiles: Mapping[str, str] = field(default_factory=dict)
    fallback: bool = False
    problems: tuple[SettingFault, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        """All problems as text."""
        return tuple(map(str, self.problems))


def read_config_maps(argocd_cm: Mapping[str, str], argosy_cm: Mapping[str, str] = {}) -> Customizations:
    """Read the settings from the data of the two ConfigMaps."""
    return _read_customizations(
        {key: SettingEntry(value, key) for key, value in argocd_cm.items()},
        {key: SettingEntry(value, key) for key, value in argosy_cm.items()},
        [],
    )


def read_manifests(manifests: Iterable[Manifest]) -> Customizations:
    """Read the settings from manifests; other kinds are ignored."""
    installation = collect_settings(manifests)
    return _read_customizations(installation.argocd_cm, installation.argosy_cm, list(installation.faults))


def _read_customizations(
    argocd_cm: Mapping[str, SettingEntry], argosy_cm: Mapping[str, SettingEntry], faults: list[SettingFault]
) -> Customizations:
    reader = _CustomizationReader(faults)
    if CUSTOMIZATIONS_KEY in argocd_cm:
        reader.read_map(argocd_cm[CUSTOMIZATIONS_KEY])
    for key, entry in argocd_cm.items():
        reader.read_key(key, entry)
    profiles, fallback = reader.read_argosy_cm(argosy_cm)
    overrides = sorted(reader.overrides.items(), key=lambda item: setting_kind_names.has_wildcard(item[0]))
    checks = tuple(
        CustomHealthCheck(
            pattern, override.health.value, override.open_libs, override.health.where, override.health.location
        )
        for pattern, override in overrides
        # argo: an empty script counts as none
        if override.health.value
    )
    actions = [
        reader.read_actions(pattern, actions_override.actions)
        for pattern, actions_override in overrides
        if actions_override.actions.value
    ]
    return Customizations(checks, tuple(filter(None, actions)), profiles, fallback, tuple(faults))


_EMPTY_ENTRY: Final = SettingEntry("", "")


@dataclass(slots=True)
class _Override:
    """The settings of one pattern read so far."""

    health: SettingEntry = _EMPTY_ENTRY
    open_libs: bool = False
    actions: SettingEntry = _EMPTY_ENTRY


class _CustomizationReader:
    """Reads all settings once: first the map, then the keys of single kinds, which win."""

    def __init__(self, faults: list[SettingFault]) -> None:
        self.overrides: dict[str, _Override] = {}
        self._faults = faults

    def add_fault(
        self, entry: SettingEntry, text: str, *steps: str | int, pattern: str = "", is_error: bool = True
    ) -> None:
        severity: Literal["error", "warning"] = "error" if is_error else "warning"
        location = entry.location.append_steps(*steps)
        self._faults.append(SettingFault(entry.where, text, severity=severity, location=location, pattern=pattern))

    def report_misspelled_words(
        self, entry: SettingEntry, words: Iterable[str], known_words: tuple[str, ...], pattern: str
    ) -> None:
        """Report words similar to known ones; other words may be for another program."""
        for word in words:
            if word not in known_words and (suggestion := find_similar_word(word, known_words)):
                self.add_fault(
                    entry, f"{word} is not read; did you mean {suggestion}?", word, pattern=pattern, is_error=False
                )

    def read_map(self, entry: SettingEntry) -> None:
        values = self._load_map(entry, EVERY_KIND)
        for name, value in values.items():
            map_entry = SettingEntry("", f"{entry.where}[{name}]", entry.location.append_steps(name))
            parsed = setting_kind_names.parse_map_kind(name)
            if parsed.fault:
                self.add_fault(map_entry, parsed.fault, pattern=parsed.pattern)
            elif problem := _find_pattern_problem(parsed.pattern):
                self.add_fault(map_entry, problem)
            elif not isinstance(value, dict):
                self.add_fault(map_entry, "is not a map; give it health.lua or actions", pattern=parsed.pattern)
            else:
                self._add_from_map(parsed.pattern, value, map_entry)

    def _add_from_map(self, pattern: str, value: Mapping[str, Any], entry: SettingEntry) -> None:
        override = self.overrides.setdefault(pattern, _Override())
        for name in ("health.lua", "actions"):
            text = value.get(name)
            if text is not None and not isinstance(text, str):
                self.add_fault(entry, f"{name} is not a string; put a | after its colon", name, pattern=pattern)
            elif text:
                setattr(
                    override,
                    name.removesuffix(".lua"),
                    SettingEntry(text, entry.where, entry.location.append_steps(name)),
                )
        if "health.lua.useOpenLibs" in value:
            override.open_libs = self._read_bool(
                value["health.lua.useOpenLibs"], entry, "health.lua.useOpenLibs", pattern
            )
        if "useOpenLibs" in value:
            # argo: in the map only the long name is read
            problem = "useOpenLibs is not read in the map; name it health.lua.useOpenLibs"
            self.add_fault(entry, problem, "useOpenLibs", pattern=pattern)
        self.report_misspelled_words(entry, set(value) - {"useOpenLibs"}, MAP_FIELDS, pattern)

    def read_key(self, key: str, entry: SettingEntry) -> None:
        """Read `resource.customizations.<type>.<group>_<Kind>`; other keys are ignored."""
        if not key.startswith(CUSTOMIZATIONS_PREFIX):
            self._report_misspelled_key(key, entry)
            return
        customization_type, _, name = key.removeprefix(CUSTOMIZATIONS_PREFIX).partition(".")
        if customization_type not in CUSTOMIZATION_TYPES:
            suggestion = find_similar_word(customization_type, CUSTOMIZATION_TYPES)
            advice = f"did you mean {suggestion}?" if suggestion else f"known are {', '.join(CUSTOMIZATION_TYPES)}"
            problem = f"{customization_type!r} is not a type of customization, and makes Argo CD ignore all of them"
            self.add_fault(entry, f"{problem}; {advice}", pattern=EVERY_KIND)
            return
        if customization_type not in CUSTOMIZATION_TYPES[:3]:
            return
        parsed = setting_kind_names.parse_key_kind(name, f"{CUSTOMIZATIONS_PREFIX}{customization_type}.")
        if parsed.fault:
            self.add_fault(entry, parsed.fault, pattern=parsed.pattern)
            return
        self._add_from_key(customization_type, parsed.pattern, entry)

    def _report_misspelled_key(self, key: str, entry: SettingEntry) -> None:
        """Report a key that is almost a known one and has no effect as written."""
        if key == CUSTOMIZATIONS_KEY:
            return
        if key.startswith((FALLBACK_SETTING, PROFILE_SETTING_PREFIX)):
            self.add_fault(entry, f"is not read here; move it into ConfigMap {ARGOSY_CM}", is_error=False)
            return
        first, second, *remainder = [*key.split("."), "", ""]
        if find_similar_word(f"{first}.{second}", [CUSTOMIZATIONS_KEY], 0.85):
            suggestion = ".".join([CUSTOMIZATIONS_KEY, *filter(None, remainder)])
            pattern = setting_kind_names.parse_key_kind(".".join(filter(None, remainder[1:]))).pattern
            self.add_fault(entry, f"is not read; did you mean {suggestion}?", pattern=pattern, is_error=False)

    def _add_from_key(self, customization_type: str, pattern: str, entry: SettingEntry) -> None:
        override = self.overrides.setdefault(pattern, _Override())
        if customization_type == "useOpenLibs":
            override.open_libs = self._read_bool(entry.value, entry, "the value", pattern)
            return
        previous: SettingEntry = getattr(override, customization_type)
        if previous.value and previous.value.strip() != entry.value.strip():
            problem = (
                f"{pattern} has another {'check' if customization_type == 'health' else 'set of actions'} in "
                f"{previous.where}"
            )
            self.add_fault(entry, f"{problem}; this one wins, remove the other", pattern=pattern)
        # argo: an empty key wins, too, and removes the check of the map
        setattr(override, customization_type, entry)

    def read_argosy_cm(self, argosy_cm: Mapping[str, SettingEntry]) -> tuple[dict[str, str], bool]:
        """Read argosy-cm: the chosen profiles, and whether the fallback assesses kinds without a rule."""
        profiles: dict[str, str] = {}
        fallback = False
        for key, entry in argosy_cm.items():
            if key == FALLBACK_SETTING:
                fallback = self._read_bool(entry.value, entry, "the value", "")
            elif key.startswith(PROFILE_SETTING_PREFIX):
                parsed = setting_kind_names.parse_key_kind(
                    key.removeprefix(PROFILE_SETTING_PREFIX), PROFILE_SETTING_PREFIX
                )
                if parsed.fault:
                    self.add_fault(entry, parsed.fault, pattern=parsed.pattern)
                elif not entry.value.strip():
                    problem = "the profile is missing; `argosy health list` shows all profiles"
                    self.add_fault(entry, problem, pattern=parsed.pattern)
                else:
                    profiles[parsed.pattern] = entry.value.strip()
                    self._check_profile(entry, parsed.pattern)
            else:
                self._report_suspicious_key(key, entry)
        return profiles, fallback

    def _check_profile(self, entry: SettingEntry, pattern: str) -> None:
        group, _, kind = pattern.rpartition("/")
        group_kind, profile = GroupKind(group, kind), entry.value.strip()
        if group_kind in load_profile_rules(profile):
            return
        suggestion = find_similar_word(profile, list_profiles_of_kind(group_kind))
        advice = (
            f"did you mean {suggestion}?"
            if suggestion
            else f"it has {', '.join(list_profiles_of_kind(group_kind)) or 'none'}"
        )
        self.add_fault(entry, f"{pattern} has no profile {profile!r}; {advice}", pattern=pattern, is_error=False)

    def _report_suspicious_key(self, key: str, entry: SettingEntry) -> None:
        """Report an unknown key of argosy-cm if it looks like a health setting; other settings are there, too."""
        first, _, remainder = key.partition(".")
        if key.startswith(CUSTOMIZATIONS_KEY):
            self.add_fault(entry, f"is not read here; move it into ConfigMap {ARGOCD_CM}", is_error=False)
        elif find_similar_word(first, ["health"], _SIMILARITY_CUTOFF) or find_similar_word(
            first, ["fallback", "profile"], _SIMILARITY_CUTOFF
        ):
            suffix = remainder if find_similar_word(first, ["health"], _SIMILARITY_CUTOFF) else key
            setting, _, kind = suffix.partition(".")
            suggestion = find_similar_word(setting, ["fallback", "profile"])
            known_settings = f"{FALLBACK_SETTING} and {PROFILE_SETTING_PREFIX}<group>_<Kind>"
            name = {"fallback": FALLBACK_SETTING, "profile": PROFILE_SETTING_PREFIX + (kind or "<group>_<Kind>")}.get(
                suggestion
            )
            advice = f"did you mean {name}?" if name else f"known are {known_settings}"
            self.add_fault(entry, f"is not a known setting; {advice}", is_error=False)

    def read_actions(self, pattern: str, entry: SettingEntry) -> CustomActions | None:
        values = self._load_map(entry, pattern)
        if not values:
            return None
        discovery = values.get(DISCOVERY_FIELD, "")
        if not isinstance(discovery, str):
            problem = "discovery.lua is not a string; put a | after its colon"
            self.add_fault(entry, problem, DISCOVERY_FIELD, pattern=pattern)
            discovery = ""
        merge = self._read_bool(values.get("mergeBuiltinActions", False), entry, "mergeBuiltinActions", pattern)
        self.report_misspelled_words(entry, values, ACTIONS_FIELDS, pattern)
        definitions = self._read_definitions(values, entry, pattern)
        texts = {name: definition.value for name, definition in definitions.items()}
        locations = {name: definition.location for name, definition in definitions.items()}
        locations[DISCOVERY_FIELD] = entry.location.append_steps(DISCOVERY_FIELD)
        return CustomActions(pattern, discovery, texts, merge, entry.where, locations)

    def _read_definitions(
        self, values: Mapping[str, Any], entry: SettingEntry, pattern: str
    ) -> dict[str, SettingEntry]:
        items = values.get("definitions") or []
        if not isinstance(items, list):
            problem = "definitions is not a list; write each as - name and action.lua"
            self.add_fault(entry, problem, "definitions", pattern=pattern)
            return {}
        scripts: dict[str, SettingEntry] = {}
        for number, item in enumerate(items):
            name, script = (item.get("name"), item.get("action.lua")) if isinstance(item, dict) else (None, None)
            if not isinstance(name, str) or not isinstance(script, str) or not name:
                problem = f"definitions[{number}] needs name and action.lua, both strings; add the missing one"
                self.add_fault(entry, problem, "definitions", number, pattern=pattern)
            elif name in scripts:
                problem = f"the action {name!r} is defined twice, and the first one counts; remove the other"
                self.add_fault(entry, problem, "definitions", number, pattern=pattern)
            else:
                scripts[name] = SettingEntry(
                    script, entry.where, entry.location.append_steps("definitions", number, "action.lua")
                )
        return scripts

    def _load_map(self, entry: SettingEntry, pattern: str) -> dict[str, Any]:
        try:
            value = read_yaml(entry.value)
        except UserError as error:
            self._faults.append(_yaml_fault(entry, error, pattern))
            return {}
        if value is None:
            return {}
        if not isinstance(value, dict):
            problem = "must be a YAML map; see the health check reference for its form"
            self.add_fault(entry, problem, pattern=pattern)
            return {}
        return value

    def _read_bool(self, value: object, entry: SettingEntry, name: str, pattern: str) -> bool:
        text = str(value).lower() if isinstance(value, bool) else value
        if text not in _TRUE_VALUES and text not in _FALSE_VALUES:
            problem = f'{name} is {text!r}, neither true nor false; write "true" or "false"'
            self.add_fault(entry, problem, *([] if name == "the value" else [name]), pattern=pattern)
        return text in _TRUE_VALUES


def _find_pattern_problem(pattern: str) -> str:
    """Return what is wrong with a wildcard pattern; empty if it is valid."""
    try:
        kind_patterns.parse_kind_pattern(pattern)
    except UserError as error:
        return error.message
    return ""


def _yaml_fault(entry: SettingEntry, error: UserError, pattern: str) -> SettingFault:
    """Build the fault of a YAML error, whose message is `problem: what to do`."""
    problem, _, advice = error.message.rpartition(": ")
    position = f", in line {error.line} of its text" if error.line else ""
    text = f"is not valid YAML{position}: {problem or advice}; {advice if problem else 'correct it'}"
    return SettingFault(entry.where, text, location=entry.location, pattern=pattern, line=error.line)


__all__ = ["ARGOCD_CM", "CustomActions", "CustomHealthCheck", "Customizations", "read_config_maps", "read_manifests"]
