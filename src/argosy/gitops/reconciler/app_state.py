"""Compares an Application's desired state with the live state, and assesses its health.

In: desired manifests, the cache. Out: AppState. Never: changes anything in the cluster, except by dry runs.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap
from typing import Any, Final

from argosy.annotations import COMPARE_OPTIONS
from argosy.errors import ClusterError, UserError
from argosy.fair_share import on_behalf_of
from argosy.gitops.application import Application
from argosy.gitops.application.project import Project
from argosy.gitops.application.step_results import Assessment, Comparison, Health, SyncStatus
from argosy.gitops.diff import (
    NOTHING_REMOVED,
    CompareRules,
    CustomShapes,
    Memory,
    Question,
    Removed,
    compare,
    needs_confined,
    questions,
    rules_for,
)
from argosy.gitops.health.aggregate import Managed, aggregate
from argosy.gitops.live import (
    CacheReader,
    in_other_versions,
    instance_name,
    is_self_referenced,
    is_slim,
    managed,
    orphan_warning,
    orphans,
    owner,
    settle,
    walk,
)
from argosy.gitops.reconciler.app_state_report import build_resources, build_warnings, find_shared
from argosy.gitops.reconciler.desired_state import Assembled
from argosy.gitops.reconciler.fetch_cache import Answers, Asked
from argosy.gitops.reconciler.impersonation import impersonate
from argosy.gitops.reconciler.permissions import Allowed, permission, refuse_strangers
from argosy.gitops.reconciler.read_your_writes import Doorway
from argosy.gitops.reconciler.server_side_diff import Predictions
from argosy.gitops.reconciler.settings import Rules
from argosy.gitops.status.conditions import Condition, ConditionType
from argosy.gitops.status.resources import Resource, told_keys
from argosy.kube.client import Catalog
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

DEFINITION: Final = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
READER: Final = "argosy-reader"
LASTS: Final = 300.0  # seconds


@dataclass(frozen=True, slots=True)
class Look:
    """If something could not be determined, `comparison` is Unknown and a condition says why."""

    assembled: Assembled
    comparison: Comparison
    live: Mapping[ResourceKey, Manifest]
    resources: Sequence[Resource] | None = None  # None: not known
    health: Assessment = field(default_factory=lambda: Assessment(Health.UNKNOWN))
    conditions: tuple[Condition, ...] = ()
    shared: str = ""  # about the first object that another Application tracks too
    is_invalid: bool = False  # the Application is invalid, so nothing was compared

    @property
    def is_whole(self) -> bool:
        """True if everything is known, so that it may be synced."""
        return self.comparison.status is not SyncStatus.UNKNOWN


@dataclass(frozen=True, slots=True)
class _Seen:
    """A cached AppState and its inputs. It is valid as long as the inputs are identical."""

    given: tuple[Any, ...]
    spec: Any
    live: Mapping[ResourceKey, Manifest]
    look: Look
    until: float  # monotonic; a check may read the clock

    def holds(self, given: tuple[Any, ...], spec: Any, live: Mapping[ResourceKey, Manifest]) -> bool:
        return (
            all(map(operator.is_, self.given, given))
            and self.live.keys() == live.keys()
            and all(map(operator.is_, map(self.live.__getitem__, live), live.values()))
            and bool(self.spec == spec)
        )


class Looker:
    def __init__(
        self,
        cluster: Doorway,
        cache: CacheReader,
        memory: Memory,
        knows: Callable[[GroupKind], bool] = lambda kind: True,
        *,
        applications: CacheReader | None = None,
    ) -> None:
        """`is_kind_cached` tells for which kinds the cache is complete; for other kinds a missing key means nothing.

        `applications` is the cache with the Applications, if these are in another cluster.
        """
        self.cluster, self.cache, self.memory, self.knows = cluster, cache, memory, knows
        self._applications = cache if applications is None else applications
        self.shape_of = CustomShapes(partial(cache.list, DEFINITION))
        self._versions, self._whole = Answers(), Answers()  # in another apiVersion; full versions of slim entries
        self._seen: dict[ResourceKey, _Seen] = {}
        self.predictions = Predictions()

    def forget(self, app: ResourceKey) -> None:
        self._seen.pop(app, None)
        for each in (self._versions, self._whole, self.predictions):
            each.forget(app)

    def asked_for(self) -> int:
        """Return how many manifests are kept besides the cache."""
        return self._versions.count() + self._whole.count()

    async def look(
        self,
        app: Application,
        project: Project,
        assembled: Assembled,
        rules: Rules,
        kinds: Catalog,
        *,
        afresh: bool = False,
    ) -> Look:
        """Return the same AppState as last time if no input changed; `repeat_dry_runs` ignores cached ones."""
        refuse_strangers(assembled.keys, app, rules, kinds)
        allowed = permission(app, project, rules, kinds)
        unsure = self._unsure(assembled.keys, kinds)
        live = self._newest(app, assembled, rules, allowed, unsure)
        whole = await self._whole.to(app.key, map(self._whole_of, filter(is_slim, live.values())))
        live |= await self._asked_for(unsure, live, allowed) | whole
        given = (project, assembled.desired, rules, kinds)
        spec = (app.wire.get("spec"), app.annotations.get(COMPARE_OPTIONS))
        seen = self._seen.get(app.key)
        if afresh and rules_for(app, rules.compare).server_side:
            seen = None
            self.predictions.forget(app.key)
        if seen is not None and seen.until > time.monotonic() and seen.holds(given, spec, live):
            known = seen.look.assembled
            if (known.revisions, known.sources) == (assembled.revisions, assembled.sources):
                return seen.look
            look = replace(seen.look, assembled=assembled)
            self._seen[app.key] = replace(seen, look=look)
            return look
        with on_behalf_of(rules.tenant(app.project)):
            look = await self._looked(app, project, assembled, rules, allowed, dict(live))
        # Orphans and failed checks may differ next time, although no input here changed.
        if project.orphans is None and not any(each.type.is_error for each in look.conditions):
            self._seen[app.key] = _Seen(given, spec, live, look, time.monotonic() + LASTS)
        else:
            self._seen.pop(app.key, None)
        return look

    def _newest(
        self, app: Application, assembled: Assembled, rules: Rules, allowed: Allowed, unsure: Set[ResourceKey]
    ) -> dict[ResourceKey, Manifest]:
        """Overlay the cache with our own writes. Deleted objects count until the operation has seen them go."""
        instance = instance_name(app, rules.tracking)
        live = managed(self.cache, instance, assembled.keys, allowed)
        for key in assembled.keys:
            cached = live.get(key)
            found = self.cluster.newest(key, cached)
            if cached is None and key in unsure:
                continue  # our write would count forever, because no watch reports its deletion
            if found is not None and found is not cached and allowed(key):
                live[key] = found
        if app.operation is None:
            return {key: found for key, found in live.items() if not self.cluster.is_deleted(key, found)}
        return live

    async def _looked(
        self,
        app: Application,
        project: Project,
        assembled: Assembled,
        rules: Rules,
        allowed: Allowed,
        live: dict[ResourceKey, Manifest],
    ) -> Look:
        instance = instance_name(app, rules.tracking)
        others = starmap(self._in_its_version, in_other_versions(assembled.desired, live))
        live |= await self._versions.to(app.key, others)
        compare_rules = rules_for(app, rules.compare, mark=repr(rules.tracking))
        settled = self._settled(assembled.desired, live, rules)
        acting = partial(impersonate, self.cluster, app, project, rules)
        predicted = await self.predictions.of(app.key, assembled.desired, live, compare_rules, acting)
        asked = partial(questions, predicted=predicted, memory=self.memory, shape_of=self.shape_of)
        comparison = compare(
            assembled.desired,
            settled,
            compare_rules,
            predicted=predicted,
            removed=await removed_by(rules, compare_rules, asked(assembled.desired, settled, compare_rules)),
            is_own=partial(is_self_referenced, tracking=rules.tracking),
            memory=self.memory,
            shape_of=self.shape_of,
        )
        judged = await self._judged(comparison, live, rules)
        found = aggregate(app.key, judged, uid=app.uid)
        shared = find_shared(live, instance, rules)
        return Look(
            assembled,
            comparison,
            live,
            build_resources(app, comparison, judged, live, allowed),
            Assessment(found.health, found.message),
            (
                *assembled.conditions,
                *build_warnings(comparison, found, shared),
                *self._orphan_warning(app, project, live, rules, allowed),
            ),
            shared[0] if shared else "",
        )

    def _unsure(self, keys: Sequence[ResourceKey], kinds: Catalog) -> set[ResourceKey]:
        """Return keys for which a cache miss proves nothing: the kind is not cached, or the watch missed our write."""
        unknown = {kind for kind in {key.group_kind for key in keys} if kind in kinds and not self.knows(kind)}
        doubtful = {key for key in keys if self.cluster.is_doubtful(key) and key.group_kind in kinds}
        return doubtful | {key for key in keys if unknown and key.group_kind in unknown}

    async def _asked_for(
        self, unsure: Set[ResourceKey], live: Mapping[ResourceKey, Manifest], allowed: Allowed
    ) -> dict[ResourceKey, Manifest]:
        """Fetch the objects that the cache may not have."""
        asked = [key for key in sorted(unsure) if key not in live and allowed(key)]
        return {key: there for key in asked if (there := await self._read(key)) is not None}

    def _whole_of(self, slim: Manifest) -> Asked:
        """Fetch the full object of a slim cache entry, which no Application tracked until now."""
        key, metadata = key_of(slim), slim["metadata"]
        return Asked(key, (metadata.get("uid"), metadata.get("resourceVersion")), partial(self._read, key))

    async def _read(self, key: ResourceKey) -> Manifest | None:
        try:
            return await self.cluster.get(key)
        except ClusterError as error:
            raise UserError(f"cannot read {key.kind} {key.name}: {error}") from error

    def whole(self, look: Look) -> Iterable[Manifest]:
        """Return the managed objects and all their descendants."""
        return walk(self.cache, look.live)

    def tracked(self, app: Application, rules: Rules) -> dict[ResourceKey, Manifest]:
        """Return the objects with the tracking mark of the Application; used if its desired state is unknown."""
        excludes = rules.exclusions.excludes
        return managed(self.cache, instance_name(app, rules.tracking), (), lambda key: not excludes(key.group_kind))

    async def belongings(
        self, app: Application, live: Mapping[ResourceKey, Manifest], rules: Rules, kinds: Catalog
    ) -> dict[ResourceKey, Manifest]:
        """Return `live`, plus objects from the Application's status that carry its tracking mark."""
        instance, excludes = instance_name(app, rules.tracking), rules.exclusions.excludes
        unsure = self._unsure(told_keys(app.status), kinds)
        asked = await self._asked_for(unsure, live, lambda key: not excludes(key.group_kind))
        return {**live, **{key: each for key, each in asked.items() if owner(each, rules.tracking) == instance}}

    async def health_of_tracked(self, app: Application, rules: Rules) -> Assessment | None:
        """Aggregate the health of the objects that carry the tracking mark. None if there are none."""
        live = self.tracked(app, rules)
        said = await rules.assess_all(list(live.values()))
        judged = [Managed(key, None, live[key], each) for key, each in zip(live, said, strict=True)]
        found = aggregate(app.key, judged, uid=app.uid)
        return Assessment(found.health, found.message) if live else None

    def _in_its_version(self, manifest: Manifest, other: Manifest) -> Asked:
        """Fetch a live object in the apiVersion that Git uses, if the cluster prefers another version.

        A dry-run apply of an empty object returns the live object in the requested apiVersion.
        """
        metadata = other["metadata"]
        named = {name: metadata[name] for name in ("name", "namespace") if metadata.get(name)}
        nothing = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": named}

        async def ask() -> Manifest | None:
            try:
                return await self.cluster.apply(nothing, manager=READER, dry_run=True)
            except ClusterError:
                return None  # compare the cached version; a sync will report the error

        mark = (metadata.get("uid"), metadata.get("resourceVersion"), manifest["apiVersion"])
        return Asked(key_of(manifest), mark, ask)

    @staticmethod
    def _settled(
        desired: Sequence[Manifest], live: Mapping[ResourceKey, Manifest], rules: Rules
    ) -> dict[ResourceKey, Manifest]:
        by_key = {key_of(each): each for each in desired if each["metadata"].get("name")}
        return {
            key: settle(by_key[key], found, rules.tracking) if key in by_key else found for key, found in live.items()
        }

    async def _judged(
        self, comparison: Comparison, live: Mapping[ResourceKey, Manifest], rules: Rules
    ) -> list[Managed]:
        there = [pair for pair in comparison.pairs if pair.live is not None]
        said = await rules.assess_all([live.get(pair.key) or pair.live or {} for pair in there])
        by_key = {pair.key: each for pair, each in zip(there, said, strict=True)}
        return [Managed(pair.key, pair.desired, pair.live, by_key.get(pair.key)) for pair in comparison.pairs]

    def _orphan_warning(
        self,
        app: Application,
        project: Project,
        live: Mapping[ResourceKey, Manifest],
        rules: Rules,
        allowed: Allowed,
    ) -> list[Condition]:
        if project.orphans is None:
            return []

        def exists(instance: str) -> bool:
            namespace, _, name = instance.rpartition("_")
            key = app.key._replace(namespace=namespace or rules.control_namespace, name=name)
            return self._applications.get(key) is not None

        namespace, rule = app.destination.namespace, project.orphans
        found = orphans(self.cache, rule, namespace, live, rules.tracking, exists=exists, permitted=allowed)
        said = orphan_warning(found, project.orphans)
        return [Condition(ConditionType.ORPHANED_RESOURCE_WARNING, said)] if said else []


async def removed_by(rules: Rules, compare_rules: CompareRules, asked: Iterable[Question]) -> Removed:
    """Run the jq expressions that only the real jq can evaluate."""
    if rules.remove_all is None or not needs_confined(compare_rules):
        return NOTHING_REMOVED
    return Removed(*await rules.remove_all(asked))
