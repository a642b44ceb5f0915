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
from argosy.gitops.application.project import Project, read_project
from argosy.gitops.application.step_results import Assessment
from argosy.gitops.application.sync_policy import seconds_of
from argosy.gitops.clusters.cluster_secret import max_memory_of, programs_of
from argosy.gitops.diff import read_compare_settings
from argosy.gitops.health.assess import Assessor
from argosy.gitops.health.cluster_facts import facts_from
from argosy.gitops.health.rule_lookup import Rulebook
from argosy.gitops.health.settings import from_config_maps
from argosy.gitops.live import CacheReader, Exclusions, read_exclusions, read_tracking
from argosy.gitops.live.exclusions import EXCLUSIONS, INCLUSIONS
from argosy.gitops.policy.destination_clusters import is_own_cluster_enabled, read_clusters
from argosy.gitops.policy.global_projects import GLOBAL, deny_everything, inherited
from argosy.gitops.policy.impersonation import read_impersonation
from argosy.gitops.policy.rbac_config import RBAC_CM, read_access
from argosy.gitops.reconciler.health_check_log import CheckFailureLog
from argosy.gitops.reconciler.setting_errors import describe_fault, find_key, find_unread_values, name_setting
from argosy.gitops.reconciler.settings import RemoveAll, Rules
from argosy.gitops.render import read_build_settings
from argosy.gitops.source.credentials import Trust, read_credentials
from argosy.gitops.source.repositories import Repositories
from argosy.gitops.source.settings import PROTOCOLS, SourceSettings, read_settings
from argosy.gitops.source.webhooks import WebhookSecrets, read_webhook_secrets
from argosy.gitops.sync.auto_sync import HealBackoff
from argosy.gitops.sync.operation_terms import SyncSettings
from argosy.gitops.sync.stale_status import DEFAULT_OBSERVED_KINDS, read_observed_kinds
from argosy.isolation.backoff import ScriptBackoff
from argosy.kube.controller import Cache
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.objects.boolean_text import read_switch
from argosy.languages.jq_pool import DEFAULT_JQ_SECONDS, Confined, jq_limits, remove_confined

CONFIG_MAP: Final = GroupKind("", "ConfigMap")
SECRET: Final = GroupKind("", "Secret")
PROJECT: Final = GroupKind("argoproj.io", "AppProject")
SETTINGS: Final = (CONFIG_MAP, PROJECT, SECRET)  # without these it is unknown what may be delivered, and where
STORAGE_CLASS: Final = GroupKind("storage.k8s.io", "StorageClass")
ARGOCD_CM, ARGOSY_CM, PARAMETERS = "argocd-cm", "argosy-cm", "argocd-cmd-params-cm"
KNOWN_HOSTS, AUTHORITIES, GPG_KEYS = "argocd-ssh-known-hosts-cm", "argocd-tls-certs-cm", "argocd-gpg-keys-cm"
ARGOCD_SECRET: Final = "argocd-secret"  # noqa: S105 - its name
_MAPS: Final = frozenset({ARGOCD_CM, ARGOSY_CM, PARAMETERS, KNOWN_HOSTS, AUTHORITIES, GPG_KEYS, RBAC_CM})
MASS_PRUNE: Final = "sync.massPrune"
JQ_TIMEOUT: Final = "controller.ignore.normalizer.jq.timeout"
BUDGET, BUDGET_WINDOW = "fairness.project.budget", "fairness.project.window"  # in argosy-cm: durations
# in argosy-cm: patterns of kinds whose status counts only if it is current
OBSERVED_KINDS: Final = "sync.observedGeneration"
_TYPE: Final = "argocd.argoproj.io/secret-type"
EVERYTHING_ALLOWED: Final[Mapping[str, Any]] = {
    "metadata": {"name": "default"},
    "spec": {
        "sourceRepos": ["*"],
        "destinations": [{"server": "*", "namespace": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
    },
}
T = TypeVar("T")


class Settings:
    def __init__(
        self,
        cache: Cache,
        repositories: Repositories,
        confined: Confined,
        *,
        control_namespace: str,
        wave_delay: float = 2.0,
    ) -> None:
        self._cache, self._confined = cache, confined
        self._wave_delay = wave_delay
        self.control_namespace = control_namespace
        self._assessor = Assessor(Rulebook(), confined)
        self._check_failures = CheckFailureLog()
        self._checks: tuple[dict[str, str], dict[str, str]] | None = None
        self._jq_seconds = DEFAULT_JQ_SECONDS
        self._rules = Rules(repositories, self.assess, self._remover(), control_namespace=control_namespace)
        # The last good values of restricting settings; None: none was read yet.
        self._global_projects: str | None = None
        self._exclusions: Exclusions | None = None
        self._sources: SourceSettings | None = None
        self._is_own_enabled: bool | None = None
        self._has_read_tracking = False
        self._is_stale = True

    def concerns(self, manifest: Manifest) -> bool:
        """True if a change of this object may change the settings."""
        metadata, kind = manifest["metadata"], manifest.get("kind")
        if metadata.get("namespace") != self.control_namespace:
            return kind == STORAGE_CLASS.kind
        if kind == CONFIG_MAP.kind:
            return metadata["name"] in _MAPS
        if kind == SECRET.kind:
            return _TYPE in (metadata.get("labels") or {})
        return kind == PROJECT.kind

    def outdate(self) -> None:
        self._is_stale = True

    def rules(self) -> Rules:
        if self._is_stale:
            self._rules = self._read()
            self._is_stale = False
        return self._rules

    def _read(self) -> Rules:
        before, faults = self._rules, list[str]()
        ours, theirs, parameters = map(self._data, (ARGOSY_CM, ARGOCD_CM, PARAMETERS))

        def good(read: Callable[[], T], last: T) -> T:
            try:
                return read()
            except (UserError, ValueError) as error:
                faults.append(describe_fault(error))
                return last

        jq_seconds = good(partial(_jq_seconds, parameters), self._jq_seconds)
        remove_all = before.remove_all if jq_seconds == self._jq_seconds else self._remover(jq_seconds)
        self._jq_seconds = jq_seconds
        self._update_repositories(before.repositories, ours, faults)
        tracking = read_tracking(theirs, self.control_namespace)
        exclusions = self._read_exclusions(theirs, faults)
        compare = read_compare_settings(theirs, parameters)
        faults += [*tracking.faults, *compare.faults, *self._judge_by(theirs, ours)]
        # A typo must not change which objects are tracked; the fault is reported above.
        has_argocd_cm = self._config_map(ARGOCD_CM) is not None
        if tracking.faults or (self._has_read_tracking and not has_argocd_cm):
            tracking = before.tracking
        self._has_read_tracking |= has_argocd_cm
        projects, wrong = self._projects()
        access = read_access(self._data(RBAC_CM))
        maps = {ARGOSY_CM: ours, ARGOCD_CM: theirs, PARAMETERS: parameters}
        rules = replace(
            before,
            remove_all=remove_all,
            access=before.access if access.faults else access,
            build=good(partial(read_build_settings, theirs, ours), before.build),
            tracking=tracking,
            exclusions=exclusions,
            compare=compare,
            sync=good(partial(self._sync, ours, parameters), before.sync),
            heal=good(partial(_heal, parameters), before.heal),
            projects=self._inheriting(projects, theirs, faults),
            clusters=replace(read_clusters(self._secrets(), theirs), has_own=self._has_own_cluster(theirs)),
            # A ConfigMap that is missing for a moment must not give syncs the rights of the controller.
            impersonation=read_impersonation(theirs) if has_argocd_cm else before.impersonation,
            signature_keys=self._data(GPG_KEYS),
            reconciliation=good(partial(_seconds, theirs, "timeout.reconciliation", 120.0), before.reconciliation),
            hard_reconciliation=good(
                partial(_seconds, theirs, "timeout.hard.reconciliation", 0.0), before.hard_reconciliation
            ),
            jitter=good(partial(_seconds, theirs, "timeout.reconciliation.jitter", 60.0), before.jitter),
            budget=good(partial(_budget, ours), before.budget),
            asks_before_mass_prune=good(partial(_asks, ours), before.asks_before_mass_prune),
            shows_health=read_switch(parameters, "controller.resource.health.persist", default=False),
        )
        faults = [name_setting(each, maps) for each in (*faults, *find_unread_values(maps))]
        unread = [fault for fault in dict.fromkeys(faults) if find_key(fault) in self._unread_keys()]
        faults = [*dict.fromkeys((*faults, *wrong, *access.faults))]
        return replace(rules, faults=tuple(faults), unread_restrictions=tuple(unread))

    def _update_repositories(self, repositories: Repositories, argosy_cm: Mapping[str, str], faults: list[str]) -> None:
        repositories.settings = self._read_sources(argosy_cm, repositories.settings, faults)
        repositories.credentials = tuple(read_credentials(self._secrets()))
        repositories.trust = Trust(self._data(KNOWN_HOSTS).get("ssh_known_hosts", ""), self._data(AUTHORITIES))

    def _remover(self, jq_seconds: float = DEFAULT_JQ_SECONDS) -> RemoveAll:
        """Use a new backoff: an expression that timed out before has another timeout now."""
        return partial(remove_confined, pool=self._confined, backoff=ScriptBackoff(), limits=jq_limits(jq_seconds))

    def _config_map(self, name: str) -> Manifest | None:
        return self._cache.get(ResourceKey("", "ConfigMap", self.control_namespace, name))

    def _data(self, name: str) -> dict[str, str]:
        found = self._config_map(name) or {}
        return {key: value for key, value in (found.get("data") or {}).items() if isinstance(value, str)}

    def _secrets(self) -> list[Manifest]:
        found = self._cache.list(SECRET, namespace=self.control_namespace)
        return [each for each in found if _TYPE in (each["metadata"].get("labels") or {})]

    def webhook_secrets(self) -> WebhookSecrets:
        """Read the webhook secrets when needed; they are not kept in memory."""
        found = self._cache.get(ResourceKey("", "Secret", self.control_namespace, ARGOCD_SECRET)) or {}
        return read_webhook_secrets({name: _decoded(text) for name, text in (found.get("data") or {}).items()})

    def _projects(self) -> tuple[dict[str, Project], list[str]]:
        projects = {"default": read_project(EVERYTHING_ALLOWED)}
        faults = []
        for manifest in self._cache.list(PROJECT, namespace=self.control_namespace):
            name = manifest["metadata"]["name"]
            try:
                projects[name] = read_project(manifest, f"AppProject {name}")
            except UserError as error:
                projects.pop(name, None)  # an unreadable project permits nothing
                faults.append(str(error))
        return projects, faults

    def _unread_keys(self) -> set[str]:
        """Return the keys of restricting settings that have no good value yet."""
        return {
            *([GLOBAL] if self._global_projects is None else ()),
            *([EXCLUSIONS, INCLUSIONS] if self._exclusions is None else ()),
            *([PROTOCOLS] if self._sources is None else ()),
        }

    def _has_own_cluster(self, theirs: Mapping[str, str]) -> bool:
        """Return the last good value if it is unreadable; without one, nothing is delivered to the own cluster."""
        if self._config_map(ARGOCD_CM) is None:  # missing for a moment, or not listed yet
            return self._is_own_enabled is not False
        is_enabled = is_own_cluster_enabled(theirs)
        if is_enabled is None:
            return self._is_own_enabled is True
        self._is_own_enabled = is_enabled
        return is_enabled

    def _read_exclusions(self, theirs: Mapping[str, str], faults: list[str]) -> Exclusions:
        exclusions, is_missing = read_exclusions(theirs), self._config_map(ARGOCD_CM) is None
        faults += exclusions.faults
        if is_missing or exclusions.faults:
            return exclusions if self._exclusions is None else self._exclusions
        self._exclusions = exclusions
        return exclusions

    def _read_sources(self, ours: Mapping[str, str], before: SourceSettings, faults: list[str]) -> SourceSettings:
        """Return the last good value if one is unreadable; without one, only protocols that are named explicitly."""
        is_missing = self._config_map(ARGOSY_CM) is None  # missing for a moment, or not listed yet
        if is_missing and self._sources is not None:
            return self._sources
        try:
            sources = read_settings(ours, self.control_namespace)
        except (UserError, ValueError) as error:
            faults.append(describe_fault(error))
        else:
            if not is_missing:
                self._sources = sources
            return sources
        if self._sources is not None:
            return self._sources
        try:
            protocols = read_settings({key: ours[key] for key in (PROTOCOLS,) if key in ours}).protocols
        except (UserError, ValueError) as error:
            faults.append(describe_fault(error))
            protocols = frozenset()
        return replace(before, protocols=protocols)

    def _inheriting(
        self, projects: Mapping[str, Project], theirs: Mapping[str, str], faults: list[str]
    ) -> Mapping[str, Project]:
        """Apply globalProjects to the projects; without a good value of it, all projects permit nothing."""
        if self._config_map(ARGOCD_CM) is None:  # missing for a moment, or not listed yet
            return inherited(projects, {GLOBAL: self._global_projects or ""})
        try:
            inheriting = inherited(projects, theirs)
        except (UserError, ValueError) as error:
            faults.append(describe_fault(error))
            if self._global_projects is None:
                return {name: deny_everything(project) for name, project in projects.items()}
            return inherited(projects, {GLOBAL: self._global_projects})
        self._global_projects = theirs.get(GLOBAL, "")
        return inheriting

    def _sync(self, ours: Mapping[str, str], parameters: Mapping[str, str]) -> SyncSettings:
        delay = _seconds(parameters, "controller.sync.wave.delay.seconds", self._wave_delay)
        observed = ours.get(OBSERVED_KINDS)
        return SyncSettings(
            observed_kinds=(
                DEFAULT_OBSERVED_KINDS if observed is None else read_observed_kinds(observed, OBSERVED_KINDS)
            ),
            wave_delay=_seconds(ours, "sync.waveDelay", delay),
            timeout=_seconds(parameters, "controller.sync.timeout.seconds", 0.0),
        )

    def _judge_by(self, theirs: dict[str, str], ours: dict[str, str]) -> tuple[str, ...]:
        customizations = from_config_maps(theirs, ours)
        if self._checks != (theirs, ours):  # with the same checks, cached assessments stay valid
            self._assessor = Assessor(Rulebook(customizations), self._confined)
            self._checks = (theirs, ours)
            self._check_failures.forget()
        return customizations.faults

    async def assess(self, manifests: Sequence[Manifest], there: CacheReader | None = None) -> list[Assessment | None]:
        """Assess objects; `cache` is that of their cluster, if it is not the control cluster."""
        facts = facts_from((there or self._cache).list(STORAGE_CLASS))
        assessments = await self._assessor.assess_all(manifests, facts)
        self._check_failures.log_failures(manifests, assessments)
        return assessments

    def localised(self, there: CacheReader, server: str, rules: Rules) -> Rules:
        """Return the settings for another cluster: its facts and exclusions."""
        return replace(
            rules,
            assess_all=partial(self.assess, there=there),
            exclusions=replace(rules.exclusions, cluster=server),
        )

    def cluster_secret(self, name: str) -> Manifest | None:
        return self._cache.get(ResourceKey("", "Secret", self.control_namespace, name))

    def programs(self) -> frozenset[str]:
        """Return the programs that may be run to authenticate to a cluster."""
        return programs_of(self._data(ARGOSY_CM))

    def max_memory(self) -> int:
        """Return the bytes that lists and watches of one other cluster may use."""
        return max_memory_of(self._data(ARGOSY_CM))


def _heal(parameters: Mapping[str, str]) -> HealBackoff:
    usual, backoff = HealBackoff(), "controller.self.heal.backoff."
    return HealBackoff(
        first=_seconds(parameters, f"{backoff}timeout.seconds", usual.first),
        factor=_seconds(parameters, f"{backoff}factor", usual.factor),
        longest=_seconds(parameters, f"{backoff}cap.seconds", usual.longest),
        flat=_seconds(parameters, "controller.self.heal.timeout.seconds", usual.flat),
    )


def _budget(ours: Mapping[str, str]) -> Budget:
    usual = Budget()
    budget = Budget(_seconds(ours, BUDGET, usual.seconds), _seconds(ours, BUDGET_WINDOW, usual.window))
    for name, seconds in ((BUDGET, budget.seconds), (BUDGET_WINDOW, budget.window)):
        if seconds <= 0:
            raise UserError("the duration must be longer than zero, such as 60s", where=f"{ARGOSY_CM}: {name}")
    return budget


def _asks(ours: Mapping[str, str]) -> bool:
    """True if an automated sync needs confirmation before it prunes most of the objects."""
    word = ours.get(MASS_PRUNE, "ask").strip()
    if word not in ("ask", "allow"):
        raise UserError(f"{word!r} is not valid; write ask or allow", where=f"{ARGOSY_CM}: {MASS_PRUNE}")
    return word == "ask"


def _decoded(text: Any) -> str:
    try:
        return base64.b64decode(str(text)).decode()
    except ValueError:
        return ""


def _seconds(data: Mapping[str, str], name: str, usual: float) -> float:
    text = data.get(name, "").strip()
    try:
        return seconds_of(text) if text else usual
    except ValueError as error:
        raise UserError(str(error), where=name) from None


def _jq_seconds(parameters: Mapping[str, str]) -> float:
    """argo: a duration with a unit; 0 is the default, and so is a number without a unit, which Go does not parse."""
    text = parameters.get(JQ_TIMEOUT, "").strip()
    if text.isdecimal() and text.strip("0"):
        raise UserError(f"{text!r} has no unit; write {text}s", where=JQ_TIMEOUT)
    return _seconds(parameters, JQ_TIMEOUT, DEFAULT_JQ_SECONDS) or DEFAULT_JQ_SECONDS
