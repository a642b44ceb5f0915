"""A setting that cannot be read is named with its ConfigMap, key and value, and its default holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.advise.finding import Severity
from argosy.confine import Pool
from argosy.controllers.setting_faults import SWITCHES, SettingFaultLog
from argosy.controllers.settings import Settings
from argosy.desk.doctor.installation import setting_sights
from argosy.pipeline.rules import Rules
from argosy.runtime import Cache
from argosy.source.repositories import Repositories
from argosy.source.settings import SourceSettings
from support.paths import ROOT

NONSENSE = "ab c"
OURS, THEIRS, PARAMETERS = "argosy-cm", "argocd-cm", "argocd-cmd-params-cm"
KEYS = {
    OURS: (
        "fairness.project.budget", "fairness.project.window", "sync.waveDelay", "sync.massPrune", "cluster.maxMemory",
        "source.local.roots", "source.mirrors", "source.protocols", "source.limit.list.seconds",
        "source.limit.fetch.seconds", "source.limit.fetch.bytes", "source.limit.file.bytes",
        "render.limit.manifests", "render.limit.bytes", "render.plugin.cue",
    ),
    THEIRS: (
        "timeout.reconciliation", "timeout.reconciliation.jitter", "timeout.hard.reconciliation",
        "cluster.inClusterEnabled", "globalProjects", "helm.enable", "kustomize.enable", "jsonnet.enable",
        "application.resourceTrackingMethod", "resource.exclusions", "resource.inclusions", "resource.compareoptions",
        "resource.ignoreResourceUpdatesEnabled", "resource.customizations",
        "application.sync.impersonation.enabled", "application.sync.impersonation.enforced",
    ),
    PARAMETERS: (
        "controller.sync.timeout.seconds", "controller.sync.wave.delay.seconds",
        "controller.self.heal.backoff.timeout.seconds", "controller.self.heal.backoff.factor",
        "controller.self.heal.backoff.cap.seconds", "controller.self.heal.timeout.seconds",
        "controller.resource.health.persist", "controller.diff.server.side",
        "controller.ignore.normalizer.jq.timeout",
    ),
}  # fmt: skip
# Settings that any text is a valid value of: names, programs and patterns.
TEXTS = {
    "triggers.namespaces", "cluster.execPrograms", "sync.observedGeneration", "kustomize.buildOptions",
    "kustomize.path.<version>", "kustomize.binary.<version>", "helm.valuesFileSchemes",
}  # fmt: skip
KEY = r"`[a-z][\w.<>]+\.[\w.<>]+`"
ROW = re.compile(rf"^\| (?:arg[a-z-]+-cm \| )?({KEY}(?:, {KEY})*) \|", re.MULTILINE)
DOCUMENTED = ("engine.md", "rendering.md", "sources.md")


def settings_with(folder: Path, config_map: str, key: str, value: str) -> Settings:
    cache = Cache()
    metadata = {"name": config_map, "namespace": "argocd"}
    cache.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: value}})
    return Settings(cache, Repositories(folder, SourceSettings()), Pool(), control_namespace="argocd")


@pytest.mark.parametrize(("config_map", "key"), [(name, key) for name, keys in KEYS.items() for key in keys])
def test_a_value_that_cannot_be_read_is_one_fault_that_names_config_map_and_key(
    tmp_path: Path, config_map: str, key: str
) -> None:
    rules = settings_with(tmp_path, config_map, key, NONSENSE).rules()
    faults = [fault for fault in rules.faults if not fault.endswith("(AGY406)")]  # that is what health checks lack
    assert len(faults) == 1, faults
    assert faults[0].startswith(f"{config_map}: {key}: "), faults


def test_the_sentence_names_the_value_and_what_is_expected_and_the_default_holds(tmp_path: Path) -> None:
    rules = settings_with(tmp_path, OURS, "fairness.project.budget", "abc").rules()
    expected = "argosy-cm: fairness.project.budget: 'abc' is no duration; write it as 30s, 5m or 1h30m"
    assert (rules.budget.seconds, rules.faults) == (60, (expected,))


EFFECTS: dict[str, tuple[str, Callable[[Rules], bool]]] = {
    "helm.enable": (THEIRS, lambda rules: "Helm" not in rules.build.disabled_tools),
    "kustomize.enable": (THEIRS, lambda rules: "Kustomize" not in rules.build.disabled_tools),
    "jsonnet.enable": (THEIRS, lambda rules: "Jsonnet" not in rules.build.disabled_tools),
    "cluster.inClusterEnabled": (THEIRS, lambda rules: rules.clusters.has_own),
    "resource.ignoreResourceUpdatesEnabled": (THEIRS, lambda rules: rules.compare.filters_updates),
    "application.sync.impersonation.enforced": (THEIRS, lambda rules: rules.impersonation.is_enforced),
    "controller.resource.health.persist": (PARAMETERS, lambda rules: rules.shows_health),
    "controller.diff.server.side": (PARAMETERS, lambda rules: rules.compare.server_side),
}


@pytest.mark.parametrize("word", ["true", "false", "True", " FALSE ", "TRUE\n", "\tfalse"])
@pytest.mark.parametrize("key", EFFECTS)
def test_a_boolean_in_any_case_is_no_fault_and_has_its_effect(tmp_path: Path, key: str, word: str) -> None:
    config_map, effect = EFFECTS[key]
    rules = settings_with(tmp_path, config_map, key, word).rules()
    assert (effect(rules), rules.faults) == (word.strip().lower() == "true", ())


def test_the_effect_of_every_boolean_is_tested() -> None:
    assert EFFECTS.keys() == {key for keys in SWITCHES.values() for key in keys}


@pytest.mark.parametrize("word", ["True", " true", "yes"])
def test_impersonation_that_cannot_be_read_is_enabled_and_a_fault_that_shows_the_value(
    tmp_path: Path, word: str
) -> None:
    key = "application.sync.impersonation.enabled"
    rules = settings_with(tmp_path, THEIRS, key, word).rules()
    assert rules.impersonation.is_enabled
    (fault,) = rules.faults
    assert fault.startswith(f"argocd-cm: {key}: {word!r} is ")


@pytest.mark.parametrize(
    ("config_map", "key", "holds"),
    [
        (OURS, "fairness.project.budget", "the last good value is used, and after a restart the default"),
        (OURS, "source.protocols", "the last good value is used, and after a restart no Application is synced"),
        (THEIRS, "resource.exclusions", "the last good value is used, and after a restart no Application is synced"),
        (THEIRS, "helm.enable", "the default is used"),
        (THEIRS, "application.sync.impersonation.enabled", "impersonation is enabled"),
    ],
)
def test_the_log_and_the_doctor_say_the_same_of_what_holds_meanwhile(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, config_map: str, key: str, holds: str
) -> None:
    faults = settings_with(tmp_path, config_map, key, NONSENSE).rules().faults
    SettingFaultLog().log_new(faults)
    (sight,) = setting_sights(faults, {}, "argocd")
    assert caplog.messages[-1].endswith(f"; until then {holds}") and sight.fix.endswith(f"; until then {holds}")
    assert (sight.severity is Severity.ERROR) is ("no Application is synced" in holds)


def test_every_documented_key_is_tested_with_nonsense() -> None:
    tested = {key for keys in KEYS.values() for key in keys} | {"render.plugin.<name>"} | TEXTS
    for page in DOCUMENTED:
        text = (ROOT / "docs/reference" / page).read_text(encoding="utf-8")
        documented = {key for row in ROW.findall(text) for key in re.findall(r"`([^`]+)`", row)}
        documented = {key for key in documented if not key.startswith("webhook.")}  # in a Secret
        assert documented and documented <= tested, (page, documented - tested)
