"""Reads the settings of an installation live from its ConfigMaps, Secrets and AppProjects.

In: the cache. Out: ReconcilerSettings. Never: fails for an unreadable setting: it is reported, and the last good value
stays.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from argosy.errors import UserError
from argosy.fair_share import Budget
from argosy.gitops.application.project_spec import DEFAULT_PROJECT_MANIFEST, Project, read_project
from argosy.gitops.application.step_results import Assessment
from argosy.gitops.application.sync_policy import parse_duration
from argosy.gitops.clusters.cluster_secret import read_exec_programs, read_max_memory
from argosy.gitops.diff import read_diff_settings
from argosy.gitops.health.assess import HealthAssessor
from argosy.gitops.health.rule_lookup import HealthRules
from argosy.gitops.health.settings import read_config_maps
from argosy.gitops.health.storage_class_facts import read_cluster_facts
from argosy.gitops.live import CacheReader, Exclusions, TrackingSettings, read_exclusions, read_tracking
from argosy.gitops.live.exclusions import EXCLUSIONS_SETTING, INCLUSIONS_SETTING
from argosy.gitops.policy.destination_cluster_lookup import is_own_cluster_enabled, read_clusters
from argosy.gitops.policy.global_projects import GLOBAL_PROJECTS_KEY, deny_everything
from argosy.gitops.policy.impersonation import read_impersonation
from argosy.gitops.policy.project_scoped_resources import build_effective_projects
from argosy.gitops.policy.rbac_config import RBAC_CM, read_access_policy
from argosy.gitops.reconciler.health_check_failure_log import CheckFailureLog
from argosy.gitops.reconciler.reconciler_settings import EvaluateJq, ReconcilerSettings
from argosy.gitops.reconciler.setting_error_messages import (
    add_location,
    describe_fault,
    describe_invalid_values,
    find_key,
)
from argosy.gitops.render import read_build_settings, read_sidecar_settings
from argosy.gitops.source.credentials import HostTrust, read_credentials
from argosy.gitops.source.repository_access_settings import PROTOCOLS_SETTING, SourceSettings, read_source_settings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.source.submodules import SUBMODULES_SETTING
from argosy.gitops.source.webhook_verification import WebhookSecrets, read_webhook_secrets
from argosy.gitops.sync.auto_sync_decision import HealBackoff
from argosy.gitops.sync.effective_apply_and_prune_options import SyncSettings
from argosy.gitops.sync.observed_generation_check import DEFAULT_OBSERVED_KINDS, read_observed_kinds
from argosy.isolation.script_backoff import ScriptBackoff
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.config_map_booleans import read_boolean
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APP_PROJECT, CONFIG_MAP, SECRET, STORAGE_CLASS
from argosy.languages.jq_path_deletion import DEFAULT_JQ_SECONDS, JqWorkerPool, build_jq_limits, delete_paths_confined

SETTINGS_KINDS: Final = (CONFIG_MAP, APP_PROJECT, SECRET)  # they say what may be delivered, and where
HEALTH_FACT_KINDS: Final = (STORAGE_CLASS,)  # what health checks know of the cluster
ARGOCD_CM, ARGOSY_CM, PARAMETERS_CM = "argocd-cm", "argosy-cm", "argocd-cmd-params-cm"
KNOWN_HOSTS_CM, TLS_CERTS_CM, GPG_KEYS_CM = "argocd-ssh-known-hosts-cm", "argocd-tls-certs-cm", "argocd-gpg-keys-cm"
ARGOCD_SECRET: Final = "argocd-secret"
_SETTINGS_CONFIG_MAPS: Final = frozenset(
    {ARGOCD_CM, ARGOSY_CM, PARAMETERS_CM, KNOWN_HOSTS_CM, TLS_CERTS_CM, GPG_KEYS_CM, RBAC_CM}
)
MASS_PRUNE_KEY: Final = "sync.massPrune"
JQ_TIMEOUT_KEY: Final = "controller.ignore.normalizer.jq.timeout"
BUDGET_KEY, BUDGET_WINDOW_KEY = "fairness.project.budget", "fairness.project.window"  # in argosy-cm: durations
# in argosy-cm: patterns of kinds whose status counts only if it is current
OBSERVED_KINDS_KEY: Final = "sync.observedGeneration"
_SECRET_TYPE_LABEL: Final = "argocd.argoproj.io/secret-type"
T = TypeVar("T")


class SettingsWatcher:
    def __init__(
        self,
        cache: InformerCache,
        repositories: Repositories,
        confined: JqWorkerPool,
        *,
        control_namespace: str,
        wave_delay: float = 2.0,
        plugin_sockets: str = "",  # the folder with the sockets of plug-ins in sidecars; empty: none
    ) -> None:
        self._cache, self._confined = cache, confined
        self._wave_delay, self._plugin_sockets = wave_delay, plugin_sockets
        self.control_namespace = control_namespace
        self._assessor = HealthAssessor(HealthRules(), confined)
        self._check_failures = CheckFailureLog()
        self._check_data: tuple[dict[str, str], dict[str, str]] | None = None
        self._jq_seconds = DEFAULT_JQ_SECONDS
        self._settings = ReconcilerSettings(
            repositories, self.assess_health, self._build_jq_evaluator(), control_namespace=control_namespace
        )
        # The last good values of restricting settings; None: none was read yet.
        self._global_projects: str | None = None
        self._exclusions: Exclusions | None = None
        self._source_settings: SourceSettings | None = None
        self._is_own_cluster_enabled: bool | None = None
        self._has_read_tracking = False
        self._is_stale = True

    def affects_settings(self, manifest: Manifest) -> bool:
        """True if a change of this object may change the settings."""
        metadata, key = manifest["metadata"], key_of(manifest)
        if key.namespace != self.control_namespace:
            return key.group_kind == STORAGE_CLASS
        if key.group_kind == CONFIG_MAP:
            return key.name in _SETTINGS_CONFIG_MAPS
        if key.group_kind == SECRET:
            return _SECRET_TYPE_LABEL in (metadata.get("labels") or {})
        return key.group_kind == APP_PROJECT

    def invalidate(self) -> None:
        self._is_stale = True

    def current_settings(self) -> ReconcilerSettings:
        if self._is_stale:
            self._settings = self._read_settings()
            self._is_stale = False
        return self._settings

    def _read_settings(self) -> ReconcilerSettings:
        previous, faults = self._settings, list[str]()
        argosy_cm, argocd_cm, parameters = map(self._read_config_map, (ARGOSY_CM, ARGOCD_CM, PARAMETERS_CM))

        def read_or_keep(read: Callable[[], T], last: T) -> T:
            try:
                return read()
            except (UserError, ValueError) as error:
                faults.append(describe_fault(error))
                return last

        def read_interval(name: str, default: float, last: float) -> float:
            return read_or_keep(partial(_read_seconds, argocd_cm, name, default), last)

        jq_seconds = read_or_keep(partial(_read_jq_seconds, parameters), self._jq_seconds)
        evaluate_jq = previous.evaluate_jq if jq_seconds == self._jq_seconds else self._build_jq_evaluator(jq_seconds)
        self._jq_seconds = jq_seconds
        self._update_repositories(previous.repositories, argosy_cm, faults)
        exclusions = self._read_exclusions(argocd_cm, faults)
        tracking = self._read_tracking(argocd_cm, faults)
        diff = read_diff_settings(argocd_cm, parameters)
        faults += [*diff.faults, *self._update_health_checks(argocd_cm, argosy_cm)]
        projects, project_faults = self._read_projects()
        access = read_access_policy(self._read_config_map(RBAC_CM))
        sidecars = read_sidecar_settings(self._plugin_sockets, parameters)
        build = read_or_keep(partial(read_build_settings, argocd_cm, argosy_cm, sidecars=sidecars), previous.build)
        maps = {ARGOSY_CM: argosy_cm, ARGOCD_CM: argocd_cm, PARAMETERS_CM: parameters}
        settings = replace(
            previous,
            evaluate_jq=evaluate_jq,
            access=previous.access if access.faults else access,
            build=replace(build, fetches_submodules=read_boolean(parameters, SUBMODULES_SETTING, default=True)),
            tracking=tracking,
            exclusions=exclusions,
            diff=diff,
            sync=read_or_keep(partial(self._read_sync_settings, argosy_cm, parameters), previous.sync),
            heal_backoff=read_or_keep(partial(_read_heal_backoff, parameters), previous.heal_backoff),
            projects=self._apply_global_projects(projects, argocd_cm, faults),
            clusters=replace(
                read_clusters(self._list_argo_secrets(), argocd_cm), has_in_cluster=self._allows_own_cluster(argocd_cm)
            ),
            # A ConfigMap that is missing for a moment must not give syncs the rights of the controller.
            impersonation=read_impersonation(argocd_cm) if self._has_argocd_cm else previous.impersonation,
            signature_keys=self._read_config_map(GPG_KEYS_CM),
            reconciliation_seconds=read_interval("timeout.reconciliation", 120.0, previous.reconciliation_seconds),
            hard_reconciliation_seconds=read_interval(
                "timeout.hard.reconciliation", 0.0, previous.hard_reconciliation_seconds
            ),
            jitter_seconds=read_interval("timeout.reconciliation.jitter", 60.0, previous.jitter_seconds),
            budget=read_or_keep(partial(_read_budget, argosy_cm), previous.budget),
            confirms_mass_prune=read_or_keep(partial(_asks_mass_prune, argosy_cm), previous.confirms_mass_prune),
            persists_resource_health=read_boolean(parameters, "controller.resource.health.persist", default=False),
        )
        faults = [add_location(setting_fault, maps) for setting_fault in (*faults, *describe_invalid_values(maps))]
        unread_restrictions = [fault for fault in dict.fromkeys(faults) if find_key(fault) in self._list_unread_keys()]
        all_faults = tuple(dict.fromkeys((*faults, *project_faults, *access.faults)))
        return replace(settings, faults=all_faults, unread_restrictions=tuple(unread_restrictions))

    def _update_repositories(self, repositories: Repositories, argosy_cm: Mapping[str, str], faults: list[str]) -> None:
        repositories.settings = self._read_sources(argosy_cm, repositories.settings, faults)
        repositories.credentials = tuple(read_credentials(self._list_argo_secrets()))
        known_hosts = self._read_config_map(KNOWN_HOSTS_CM).get("ssh_known_hosts", "")
        repositories.trust = HostTrust(known_hosts, self._read_config_map(TLS_CERTS_CM))

    def _build_jq_evaluator(self, jq_seconds: float = DEFAULT_JQ_SECONDS) -> EvaluateJq:
        """Use a new backoff: an expression that timed out before has another timeout now."""
        limits = build_jq_limits(jq_seconds)
        return partial(delete_paths_confined, pool=self._confined, backoff=ScriptBackoff(), limits=limits)

    def _find_config_map(self, name: str) -> Manifest | None:
        return self._cache.get(ResourceKey(*CONFIG_MAP, self.control_namespace, name))

    def _read_config_map(self, name: str) -> dict[str, str]:
        config_map = self._find_config_map(name) or {}
        return {key: value for key, value in (config_map.get("data") or {}).items() if isinstance(value, str)}

    def _list_argo_secrets(self) -> list[Manifest]:
        secrets = self._cache.list(SECRET, namespace=self.control_namespace)
        return [secret for secret in secrets if _SECRET_TYPE_LABEL in (secret["metadata"].get("labels") or {})]

    def load_webhook_secrets(self) -> WebhookSecrets:
        """Read the webhook secrets when needed; they are not kept in memory."""
        secret = self._cache.get(ResourceKey(*SECRET, self.control_namespace, ARGOCD_SECRET)) or {}
        return read_webhook_secrets({name: _decode_base64(text) for name, text in (secret.get("data") or {}).items()})

    def _read_projects(self) -> tuple[dict[str, Project], list[str]]:
        projects = {"default": read_project(DEFAULT_PROJECT_MANIFEST)}
        faults = []
        for manifest in self._cache.list(APP_PROJECT, namespace=self.control_namespace):
            name = manifest["metadata"]["name"]
            try:
                projects[name] = read_project(manifest, f"AppProject {name}")
            except UserError as error:
                projects.pop(name, None)  # an unreadable project permits nothing
                faults.append(str(error))
        return projects, faults

    def _list_unread_keys(self) -> set[str]:
        """Return the keys of restricting settings that have no good value yet."""
        return {
            *([GLOBAL_PROJECTS_KEY] if self._global_projects is None else ()),
            *([EXCLUSIONS_SETTING, INCLUSIONS_SETTING] if self._exclusions is None else ()),
            *([PROTOCOLS_SETTING] if self._source_settings is None else ()),
        }

    def _allows_own_cluster(self, argocd_cm: Mapping[str, str]) -> bool:
        """Return the last good value if it is unreadable; without one, nothing is delivered to the own cluster."""
        if not self._has_argocd_cm:  # missing for a moment, or not listed yet
            return self._is_own_cluster_enabled is not False
        is_enabled = is_own_cluster_enabled(argocd_cm)
        if is_enabled is None:
            return self._is_own_cluster_enabled is True
        self._is_own_cluster_enabled = is_enabled
        return is_enabled

    @property
    def _has_argocd_cm(self) -> bool:
        return self._find_config_map(ARGOCD_CM) is not None

    def _read_tracking(self, argocd_cm: Mapping[str, str], faults: list[str]) -> TrackingSettings:
        """Return the previous value if it is unreadable: a typo must not change which objects are tracked."""
        tracking = read_tracking(argocd_cm, self.control_namespace)
        faults += tracking.faults
        if tracking.faults or (self._has_read_tracking and not self._has_argocd_cm):
            tracking = self._settings.tracking
        self._has_read_tracking |= self._has_argocd_cm
        return tracking

    def _read_exclusions(self, argocd_cm: Mapping[str, str], faults: list[str]) -> Exclusions:
        exclusions = read_exclusions(argocd_cm)
        faults += exclusions.faults
        if exclusions.faults or not self._has_argocd_cm:
            return exclusions if self._exclusions is None else self._exclusions
        self._exclusions = exclusions
        return exclusions

    def _read_sources(
        self, argosy_cm: Mapping[str, str], previous: SourceSettings, faults: list[str]
    ) -> SourceSettings:
        """Return the last good value if one is unreadable; without one, only protocols that are named explicitly."""
        is_missing = self._find_config_map(ARGOSY_CM) is None  # missing for a moment, or not listed yet
        if is_missing and self._source_settings is not None:
            return self._source_settings
        try:
            sources = read_source_settings(argosy_cm, self.control_namespace)
        except (UserError, ValueError) as error:
            faults.append(describe_fault(error))
        else:
            if not is_missing:
                self._source_settings = sources
            return sources
        if self._source_settings is not None:
            return self._source_settings
        try:
            protocols_only = {key: text for key, text in argosy_cm.items() if key == PROTOCOLS_SETTING}
            protocols = read_source_settings(protocols_only).protocols
        except (UserError, ValueError) as error:
            faults.append(describe_fault(error))
            protocols = frozenset()
        return replace(previous, protocols=protocols)

    def _apply_global_projects(
        self, projects: Mapping[str, Project], argocd_cm: Mapping[str, str], faults: list[str]
    ) -> Mapping[str, Project]:
        """Apply globalProjects to the projects; without a good value of it, all projects permit nothing."""
        build = partial(build_effective_projects, projects, self._list_argo_secrets())
        last_good = {GLOBAL_PROJECTS_KEY: self._global_projects or ""}
        if not self._has_argocd_cm:  # missing for a moment, or not listed yet
            return build(last_good)
        try:
            effective_projects = build(argocd_cm)
        except (UserError, ValueError) as error:
            faults.append(describe_fault(error))
            if self._global_projects is None:
                return {name: deny_everything(project) for name, project in projects.items()}
            return build(last_good)
        self._global_projects = argocd_cm.get(GLOBAL_PROJECTS_KEY, "")
        return effective_projects

    def _read_sync_settings(self, argosy_cm: Mapping[str, str], parameters: Mapping[str, str]) -> SyncSettings:
        delay = _read_seconds(parameters, "controller.sync.wave.delay.seconds", self._wave_delay)
        kinds_text = argosy_cm.get(OBSERVED_KINDS_KEY)
        kinds = DEFAULT_OBSERVED_KINDS if kinds_text is None else read_observed_kinds(kinds_text, OBSERVED_KINDS_KEY)
        return SyncSettings(
            observed_kinds=kinds,
            wave_delay_seconds=_read_seconds(argosy_cm, "sync.waveDelay", delay),
            timeout_seconds=_read_seconds(parameters, "controller.sync.timeout.seconds", 0.0),
        )

    def _update_health_checks(self, argocd_cm: dict[str, str], argosy_cm: dict[str, str]) -> tuple[str, ...]:
        customizations = read_config_maps(argocd_cm, argosy_cm)
        if self._check_data != (argocd_cm, argosy_cm):  # with the same checks, cached assessments stay valid
            self._assessor = HealthAssessor(HealthRules(customizations), self._confined)
            self._check_data = (argocd_cm, argosy_cm)
            self._check_failures.forget()
        return customizations.faults

    async def assess_health(
        self, manifests: Sequence[Manifest], cache: CacheReader | None = None
    ) -> list[Assessment | None]:
        """Assess objects; `cache` is that of their cluster, if it is not the control cluster."""
        facts = read_cluster_facts((cache or self._cache).list(STORAGE_CLASS))
        assessments = await self._assessor.assess_all(manifests, facts)
        self._check_failures.log_failures(manifests, assessments)
        return assessments

    def localize_settings(self, cache: CacheReader, server: str, settings: ReconcilerSettings) -> ReconcilerSettings:
        """Return the settings for another cluster: its facts and exclusions."""
        return replace(
            settings,
            assess_all=partial(self.assess_health, cache=cache),
            exclusions=replace(settings.exclusions, cluster=server),
        )

    def find_cluster_secret(self, name: str) -> Manifest | None:
        return self._cache.get(ResourceKey(*SECRET, self.control_namespace, name))

    def list_auth_programs(self) -> frozenset[str]:
        """Return the programs that may be run to authenticate to a cluster."""
        return read_exec_programs(self._read_config_map(ARGOSY_CM))

    def read_max_memory(self) -> int:
        """Return the bytes that lists and watches of one other cluster may use."""
        return read_max_memory(self._read_config_map(ARGOSY_CM))


def _read_heal_backoff(parameters: Mapping[str, str]) -> HealBackoff:
    defaults, prefix = HealBackoff(), "controller.self.heal.backoff."
    return HealBackoff(
        first_seconds=_read_seconds(parameters, f"{prefix}timeout.seconds", defaults.first_seconds),
        factor=_read_seconds(parameters, f"{prefix}factor", defaults.factor),
        max_seconds=_read_seconds(parameters, f"{prefix}cap.seconds", defaults.max_seconds),
        constant_seconds=_read_seconds(parameters, "controller.self.heal.timeout.seconds", defaults.constant_seconds),
    )


def _read_budget(argosy_cm: Mapping[str, str]) -> Budget:
    defaults = Budget()
    budget = Budget(
        _read_seconds(argosy_cm, BUDGET_KEY, defaults.seconds),
        _read_seconds(argosy_cm, BUDGET_WINDOW_KEY, defaults.window),
    )
    for name, seconds in ((BUDGET_KEY, budget.seconds), (BUDGET_WINDOW_KEY, budget.window)):
        if seconds <= 0:
            raise UserError("the duration must be longer than zero, such as 60s", where=f"{ARGOSY_CM}: {name}")
    return budget


def _asks_mass_prune(argosy_cm: Mapping[str, str]) -> bool:
    """True if an automated sync needs confirmation before it prunes most of the objects."""
    value = argosy_cm.get(MASS_PRUNE_KEY, "ask").strip()
    if value not in ("ask", "allow"):
        raise UserError(f"{value!r} is not valid; write ask or allow", where=f"{ARGOSY_CM}: {MASS_PRUNE_KEY}")
    return value == "ask"


def _decode_base64(text: Any) -> str:
    try:
        return base64.b64decode(str(text)).decode()
    except ValueError:
        return ""


def _read_seconds(data: Mapping[str, str], name: str, default: float) -> float:
    text = data.get(name, "").strip()
    try:
        return parse_duration(text) if text else default
    except ValueError as error:
        raise UserError(str(error), where=name) from None


def _read_jq_seconds(parameters: Mapping[str, str]) -> float:
    """argo: a duration with a unit; 0 is the default, and so is a number without a unit, which Go does not parse."""
    text = parameters.get(JQ_TIMEOUT_KEY, "").strip()
    if text.isdecimal() and text.strip("0"):
        raise UserError(f"{text!r} has no unit; write {text}s", where=JQ_TIMEOUT_KEY)
    return _read_seconds(parameters, JQ_TIMEOUT_KEY, DEFAULT_JQ_SECONDS) or DEFAULT_JQ_SECONDS
