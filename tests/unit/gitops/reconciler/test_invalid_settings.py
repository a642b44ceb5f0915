"""An invalid setting is reported with its ConfigMap, key and value, and its default is used."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.features.doctor.installation_state import list_setting_violations
from argosy.gitops.analysis.rule_violation import Severity
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.setting_error_messages import BOOLEAN_KEYS, SettingFaultLog
from argosy.gitops.reconciler.settings_watch import SettingsWatcher
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.isolation import WorkerPool
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest
from support.paths import ROOT

NONSENSE = "ab c"
OURS, THEIRS, PARAMETERS = "argosy-cm", "argocd-cm", "argocd-cmd-params-cm"
KEYS = {
    OURS: (
        "fairness.project.budget", "fairness.project.window", "sync.waveDelay", "sync.massPrune", "cluster.maxMemory",
        "source.local.roots", "source.mirrors", "source.protocols", "source.limit.list.seconds",
        "source.limit.fetch.seconds", "source.limit.fetch.bytes", "source.limit.file.bytes",
        "render.limit.manifests", "render.limit.bytes", "render.plugin.cue",
        "server.proxies", "notifications.hosts", "notifications.selfService",
        "notebooks.parallel", "notebooks.memory", "notebooks.storage", "notebooks.network",
    ),
    THEIRS: (
        "timeout.reconciliation", "timeout.reconciliation.jitter", "timeout.hard.reconciliation",
        "cluster.inClusterEnabled", "globalProjects", "helm.enable", "kustomize.enable", "jsonnet.enable",
        "application.resourceTrackingMethod", "resource.exclusions", "resource.inclusions", "resource.compareoptions",
        "resource.ignoreResourceUpdatesEnabled", "resource.customizations",
        "application.sync.impersonation.enabled", "application.sync.impersonation.enforced",
        "application.sync.requireOverridePrivilegeForRevisionSync", "statusbadge.enabled",
        "admin.enabled", "accounts.ann.enabled", "users.session.duration", "users.anonymous.enabled",
    ),
    PARAMETERS: (
        "controller.sync.timeout.seconds", "controller.sync.wave.delay.seconds",
        "controller.self.heal.backoff.timeout.seconds", "controller.self.heal.backoff.factor",
        "controller.self.heal.backoff.cap.seconds", "controller.self.heal.timeout.seconds",
        "controller.resource.health.persist", "controller.diff.server.side",
        "controller.ignore.normalizer.jq.timeout",
    ),
}  # fmt: skip
# Settings for which any text is valid: names, programs and patterns.
TEXTS = {
    "triggers.namespaces", "cluster.execPrograms", "sync.observedGeneration", "kustomize.buildOptions",
    "kustomize.path.<version>", "kustomize.binary.<version>", "helm.valuesFileSchemes", "accounts.NAME",
}  # fmt: skip
KEY = r"`[a-z][\w.<>]+\.[\w.<>]+`"
ROW = re.compile(rf"^\| (?:arg[a-z-]+-cm \| |`arg[a-z-]+-cm`: )?({KEY}(?:, {KEY})*) \|", re.MULTILINE)
DOCUMENTED = ("engine.md", "rendering.md", "sources.md", "access.md")
# Pages that mention settings of argosy-cm in their text.
PREFIXES = {"notebook-jobs.md": "notebooks", "notifications.md": "notifications", "access.md": "server"}


def build_config_map(name: str, data: dict[str, str]) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "argocd"}, "data": data}


def settings_with(folder: Path, config_map: str, key: str, value: str) -> SettingsWatcher:
    cache = InformerCache()
    cache.put(build_config_map(config_map, {key: value}))
    return SettingsWatcher(cache, Repositories(folder, SourceSettings()), WorkerPool(), control_namespace="argocd")


@pytest.mark.parametrize(("config_map", "key"), [(name, key) for name, keys in KEYS.items() for key in keys])
def test_invalid_value_is_one_fault_that_names_config_map_and_key(tmp_path: Path, config_map: str, key: str) -> None:
    rules = settings_with(tmp_path, config_map, key, NONSENSE).current_settings()
    faults = [fault for fault in rules.faults if not fault.endswith("(AGY406)")]  # AGY406: faults of health checks
    assert len(faults) == 1, faults
    assert faults[0].startswith(f"{config_map}: {key}: "), faults


def test_fault_names_value_and_expected_format_and_the_default_is_used(tmp_path: Path) -> None:
    rules = settings_with(tmp_path, OURS, "fairness.project.budget", "abc").current_settings()
    expected = "argosy-cm: fairness.project.budget: 'abc' is not a duration; write it as 30s, 5m or 1h30m"
    assert (rules.budget.seconds, rules.faults) == (60, (expected,))


EFFECTS: dict[str, tuple[str, Callable[[ReconcilerSettings], bool]]] = {
    "helm.enable": (THEIRS, lambda rules: "Helm" not in rules.build.disabled_tools),
    "kustomize.enable": (THEIRS, lambda rules: "Kustomize" not in rules.build.disabled_tools),
    "jsonnet.enable": (THEIRS, lambda rules: "Jsonnet" not in rules.build.disabled_tools),
    "cluster.inClusterEnabled": (THEIRS, lambda rules: rules.clusters.has_in_cluster),
    "resource.ignoreResourceUpdatesEnabled": (THEIRS, lambda rules: rules.diff.filters_updates),
    "application.sync.impersonation.enforced": (THEIRS, lambda rules: rules.impersonation.is_enforced),
    "controller.resource.health.persist": (PARAMETERS, lambda rules: rules.persists_resource_health),
    "controller.diff.server.side": (PARAMETERS, lambda rules: rules.diff.server_side),
    "reposerver.enable.git.submodule": (PARAMETERS, lambda rules: rules.build.fetches_submodules),
}


@pytest.mark.parametrize("word", ["true", "false", "True", " FALSE ", "TRUE\n", "\tfalse"])
@pytest.mark.parametrize("key", EFFECTS)
def test_boolean_in_any_case_is_valid_and_takes_effect(tmp_path: Path, key: str, word: str) -> None:
    config_map, effect = EFFECTS[key]
    rules = settings_with(tmp_path, config_map, key, word).current_settings()
    assert (effect(rules), rules.faults) == (word.strip().lower() == "true", ())


def test_effect_of_every_boolean_setting_is_tested() -> None:
    assert EFFECTS.keys() == {key for keys in BOOLEAN_KEYS.values() for key in keys}


@pytest.mark.parametrize("word", ["True", " true", "yes"])
def test_invalid_impersonation_setting_enables_it_and_is_reported(tmp_path: Path, word: str) -> None:
    key = "application.sync.impersonation.enabled"
    rules = settings_with(tmp_path, THEIRS, key, word).current_settings()
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
        (THEIRS, "accounts.ann.enabled", "the account is enabled"),
        (THEIRS, "cluster.inClusterEnabled",
         "the last good value is used, and after a restart no Application is synced to this cluster"),
        (OURS, "server.proxies", "entries that cannot be read are not trusted"),
        (OURS, "notifications.hosts", "entries that cannot be read allow no host"),
        (OURS, "notebooks.memory", "the default is used"),
        (THEIRS, "application.sync.impersonation.enabled", "impersonation is enabled"),
    ],
)  # fmt: skip
def test_log_and_doctor_describe_the_same_fallback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, config_map: str, key: str, holds: str
) -> None:
    faults = settings_with(tmp_path, config_map, key, NONSENSE).current_settings().faults
    SettingFaultLog().log_new(faults)
    (sight,) = list_setting_violations(faults, {}, "argocd")
    assert caplog.messages[-1].endswith(f"; until then {holds}") and sight.fix.endswith(f"; until then {holds}")
    assert (sight.severity is Severity.ERROR) is ("no Application is synced" in holds)


def test_every_documented_key_is_tested_with_an_invalid_value() -> None:
    tested = {key for keys in KEYS.values() for key in keys} | {"render.plugin.<name>"} | TEXTS
    for page in DOCUMENTED:
        text = (ROOT / "docs/reference" / page).read_text(encoding="utf-8")
        documented = {key for row in ROW.findall(text) for key in re.findall(r"`([^`]+)`", row)}
        documented = {key for key in documented if not key.startswith("webhook.")}  # in a Secret
        assert documented and documented <= tested, (page, documented - tested)
    for page, prefix in PREFIXES.items():
        text = (ROOT / "docs/reference" / page).read_text(encoding="utf-8")
        documented = set(re.findall(rf"`({prefix}\.[a-zA-Z]+)[`:]", text)) - {"server.secretkey"}  # in a Secret
        assert documented and documented <= tested, (page, documented - tested)


def test_valid_values_give_no_fault(tmp_path: Path) -> None:
    good = {
        OURS: {
            "server.proxies": "10.0.0.1, 10.1.2.3/8,fd00::/8,", "notifications.hosts": "*.slack.com, hooks.example.org",
            "notifications.selfService": "True", "notebooks.parallel": " 4", "notebooks.memory": "3Gi",
            "notebooks.storage": "500M",
        },
        THEIRS: {
            "admin.enabled": "0", "accounts.ann.enabled": "T", "users.session.duration": "8h",
            "users.anonymous.enabled": "false", "statusbadge.enabled": "true",
        },
    }  # fmt: skip
    pairs = [(name, key, value) for name, data in good.items() for key, value in data.items()]
    pairs += [(OURS, "notebooks.network", value) for value in ("", "true", "False", "443", "443, 5432", "80 443")]
    for name, key, value in pairs:
        assert settings_with(tmp_path, name, key, value).current_settings().faults == (), (key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("server.proxies", "10.0.0.1, proxy.example"), ("server.proxies", "10.0.0.0/99"),
        ("notifications.hosts", ","), ("notifications.hosts", "*.slack.com hooks.example.org"),
        ("notebooks.network", "443, 99999"), ("notebooks.network", "0"), ("notebooks.parallel", "-1"),
    ],
)  # fmt: skip
def test_list_with_an_invalid_entry_is_a_fault(tmp_path: Path, key: str, value: str) -> None:
    (fault,) = settings_with(tmp_path, OURS, key, value).current_settings().faults
    assert fault.startswith(f"argosy-cm: {key}: ")


def test_invalid_in_cluster_setting_keeps_the_last_value_and_disables_after_restart(
    tmp_path: Path,
) -> None:
    key = "cluster.inClusterEnabled"
    assert not settings_with(tmp_path, THEIRS, key, NONSENSE).current_settings().clusters.has_in_cluster
    for word in ("true", "false"):
        settings = settings_with(tmp_path, THEIRS, key, word)
        before = settings.current_settings().clusters.has_in_cluster
        settings._cache.put(build_config_map(THEIRS, {key: NONSENSE}))
        settings.invalidate()
        assert before is (word == "true") and settings.current_settings().clusters.has_in_cluster is before
        settings._cache.put(build_config_map(THEIRS, {}))
        settings.invalidate()
        assert settings.current_settings().clusters.has_in_cluster
