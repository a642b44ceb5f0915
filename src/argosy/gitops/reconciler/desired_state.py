"""Builds the desired state of an Application: sources to manifests, with namespaces and tracking marks.

In: sources and refs. Out: DesiredState, or a UserError. Never: applies anything.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.errors import PolicyError, UserError
from argosy.fair_share import on_behalf_of
from argosy.gitops.application import Application, Source
from argosy.gitops.application.hooks import is_hook, is_skipped, phases
from argosy.gitops.application.project import Project
from argosy.gitops.application.step_results import Checkout, Rendered
from argosy.gitops.application.unknown_fields import SPEC, unknown_fields
from argosy.gitops.live import track
from argosy.gitops.policy.projects import permits_source
from argosy.gitops.reconciler.render_cache import Asked, Renders
from argosy.gitops.reconciler.settings import Rules
from argosy.gitops.render import chart_error
from argosy.gitops.source.signatures import signature_rule
from argosy.gitops.status.conditions import Condition, ConditionType
from argosy.kube.client import Catalog
from argosy.kube.controller.log_context import note
from argosy.kube.names import ResourceKey, split_api_version
from argosy.kube.objects import Manifest, key_of, key_of_source

HEAD: Final = "HEAD"
NOT_LOADED: Final = "Failed to load target state"  # argo: the same message


def load_error_text(error: UserError) -> str:
    """Format a source error for a condition or an operation: the error with its ref and path."""
    return f"{NOT_LOADED}: {error}{f' ({error.source})' if error.source else ''}"


@contextmanager
def _naming_source(source: Source, ref: str) -> Iterator[None]:
    """Add the ref and path of the source to a UserError. Overwrites: Applications may share one error of a host."""
    try:
        yield
    except UserError as error:
        place = f"chart {source.chart}" if source.chart else f"path {source.path or '.'}"
        error.source = f"targetRevision {ref or HEAD}, {place}"
        raise


@dataclass(frozen=True, slots=True)
class Wanted:
    """The sources to load, each at a ref. `max_age` limits how many seconds ago a ref was resolved."""

    sources: tuple[Source, ...]
    refs: tuple[str, ...]
    max_age: float = 0.0
    afresh: bool = False  # argo: a hard refresh; ignores cached renders


@dataclass(frozen=True, slots=True)
class Assembled:
    sources: tuple[Source, ...]
    revisions: tuple[str, ...]
    desired: Sequence[Manifest]
    tools: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    rendered: Sequence[Rendered] = field(default_factory=tuple)
    keys: Sequence[ResourceKey] = ()  # of the desired manifests that have a name


@dataclass(frozen=True, slots=True)
class _Shape:
    """Cached desired manifests. Holds its inputs, so that their identity cannot be reused by other objects."""

    given: tuple[Any, ...]
    namespace: str
    desired: Sequence[Manifest]
    conditions: tuple[Condition, ...]
    keys: Sequence[ResourceKey]

    def is_of(self, given: tuple[Any, ...], namespace: str) -> bool:
        same = len(self.given) == len(given) and all(map(operator.is_, self.given, given))
        return same and self.namespace == namespace


class Assembler:
    """Builds desired states, and caches the tracked manifests of the last render."""

    def __init__(self, renders: Renders) -> None:
        self.renders = renders
        self._shaped: dict[ResourceKey, _Shape] = {}

    async def is_touched(self, app: Application, project: Project, rules: Rules) -> bool:
        """True if the sources may give other manifests than last time."""
        wanted = Wanted(app.sources, tuple(source.ref for source in app.sources), rules.reconciliation)
        try:
            checkouts = await self._checkouts(project, wanted, rules)
        except UserError:
            return True
        aliases = {source.alias: each for source, each in zip(wanted.sources, checkouts) if source.alias}
        return any(
            self.renders.is_touched(Asked(app, source, checkout, rules.build, aliases), number)
            for number, (source, checkout) in enumerate(zip(wanted.sources, checkouts))
            if not (source.alias and not source.path and not source.chart)
        )

    def is_carried(self, app: Application, revisions: Sequence[str]) -> bool:
        """True if the last render is known to be the same as that of these revisions."""
        if len(revisions) != len(app.sources) or any(source.alias for source in app.sources):
            return False
        return all(self.renders.is_carried(app.key, number, each) for number, each in enumerate(revisions))

    async def assemble(
        self, app: Application, project: Project, wanted: Wanted, rules: Rules, kinds: Catalog
    ) -> Assembled:
        checkouts = await self._checkouts(project, wanted, rules)
        note(revision=",".join(each.revision for each in checkouts))
        aliases = {source.alias: each for source, each in zip(wanted.sources, checkouts) if source.alias}

        async def fetch(url: str, ref: str) -> Checkout:
            if not permits_source(project, url):
                raise PolicyError(f"the remote base {url} is not permitted in project '{project.name}'", where=url)
            return await self._checkout(url, ref or HEAD, "", project, wanted, rules)

        rendered = []
        for number, (source, ref, checkout) in enumerate(zip(wanted.sources, wanted.refs, checkouts)):
            if source.alias and not source.path and not source.chart:
                continue
            asked = Asked(app, source, checkout, rules.build, aliases)
            with _naming_source(source, ref), on_behalf_of(rules.tenant(app.project)):
                rendered.append(await self.renders.render(asked, number, fetch, afresh=wanted.afresh))
        shape = self._in_shape(app, rendered, rules, kinds)
        return Assembled(
            sources=wanted.sources,
            revisions=tuple(each.revision for each in checkouts),
            desired=shape.desired,
            tools=tuple(each.tool for each in rendered),
            conditions=(*shape.conditions, *_notes(app, rendered)),
            rendered=rendered,
            keys=shape.keys,
        )

    async def _checkouts(self, project: Project, wanted: Wanted, rules: Rules) -> list[Checkout]:
        checkouts = []
        for source, ref in zip(wanted.sources, wanted.refs, strict=True):
            with _naming_source(source, ref):
                if source.chart:  # before the host is contacted: as a Git repository it would seem to need credentials
                    raise chart_error(source)
                found = await self._checkout(source.repo_url, ref, source.tag_prefix, project, wanted, rules)
                checkouts.append(found)
        return checkouts

    async def _checkout(
        self, url: str, ref: str, prefix: str, project: Project, wanted: Wanted, rules: Rules
    ) -> Checkout:
        return await rules.repositories.checkout(
            url,
            ref or HEAD,
            project=project.name,
            tag_prefix=prefix,
            max_age=wanted.max_age,
            signatures=signature_rule(project.signature_keys, rules.signature_keys),
        )

    def forget(self, app: ResourceKey) -> None:
        self.renders.forget(app)
        self._shaped.pop(app, None)

    def _in_shape(self, app: Application, rendered: Sequence[Rendered], rules: Rules, kinds: Catalog) -> _Shape:
        # The same renders under the same settings give the same manifests: reuse them.
        given = (*rendered, rules.tracking, rules.exclusions, kinds)
        namespace = app.destination.namespace
        known = self._shaped.get(app.key)
        if known is not None and known.is_of(given, namespace):
            return known
        desired, conditions = in_shape(app, [each for part in rendered for each in part.manifests], rules, kinds)
        keys = [key_of(each) for each in desired if each["metadata"].get("name")]
        shape = self._shaped[app.key] = _Shape(given, namespace, desired, conditions, keys)
        return shape


def in_shape(
    app: Application, manifests: Iterable[Manifest], rules: Rules, kinds: Catalog
) -> tuple[list[Manifest], tuple[Condition, ...]]:
    """Set namespaces and tracking marks, keep the last of duplicate keys, and collect warnings."""
    by_key: dict[ResourceKey, Manifest] = {}
    unnamed: list[Manifest] = []
    repeated: dict[ResourceKey, int] = {}
    excluded: dict[str, None] = {}
    for manifest in manifests:
        placed = in_namespace(manifest, app.destination.namespace, kinds)
        if is_hook(placed) and not phases(placed) and not is_skipped(placed):
            continue  # argo: hooks of unknown types are ignored
        if not placed["metadata"].get("name"):
            _check_generate_name(placed)
            if rules.exclusions.excludes(key_of_source(placed).group_kind):
                excluded[_excluded_text(key_of_source(placed))] = None
                continue
            unnamed.append(track(placed, app, rules.tracking))
            continue
        key = key_of(placed)
        if rules.exclusions.excludes(key.group_kind):
            excluded[_excluded_text(key)] = None
            continue
        if key in by_key:
            repeated[key] = repeated.get(key, 1) + 1
            del by_key[key]  # argo: the last one wins
        by_key[key] = track(placed, app, rules.tracking)
    conditions = [Condition(ConditionType.EXCLUDED_RESOURCE_WARNING, text) for text in excluded]
    conditions += [
        Condition(
            ConditionType.REPEATED_RESOURCE_WARNING,
            f"Resource {key.group}/{key.kind}/{key.namespace}/{key.name} appeared {count} times among application "
            "resources.",
        )
        for key, count in repeated.items()
    ]
    return [*by_key.values(), *unnamed], tuple(conditions)


def _notes(app: Application, rendered: Sequence[Rendered]) -> list[Condition]:
    """Return warnings about likely mistakes in Git and in the Application."""
    said = [note for each in rendered for note in each.notes]
    said += [each.sentence for each in unknown_fields(app.wire.get("spec"), SPEC, ("spec",))]
    return [Condition(ConditionType.SOURCE_WARNING, text) for text in dict.fromkeys(said)]


def in_namespace(manifest: Manifest, namespace: str, kinds: Mapping[Any, Any]) -> Manifest:
    """argo: a manifest without a namespace gets the destination's; cluster-scoped manifests get none."""
    group, _ = split_api_version(str(manifest.get("apiVersion") or ""))
    info = kinds.get((group, manifest.get("kind")))
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        raise UserError(f"a {manifest.get('kind')} has no metadata; add its name")
    is_namespaced = info is None or info.namespaced
    if is_namespaced and not metadata.get("namespace") and namespace:
        return {**manifest, "metadata": {**metadata, "namespace": namespace}}
    if not is_namespaced and "namespace" in metadata:
        return {**manifest, "metadata": {name: value for name, value in metadata.items() if name != "namespace"}}
    return manifest


def _excluded_text(key: ResourceKey) -> str:
    return f"Resource {key.group}/{key.kind} {key.name} is excluded in the settings"


def _check_generate_name(manifest: Manifest) -> None:
    """Raise UserError for a manifest without a name, unless it is a hook, whose name each sync generates."""
    prefix = manifest["metadata"].get("generateName")
    if not prefix:
        raise UserError(f"a {manifest.get('kind')} has no metadata.name; add it")
    if not is_hook(manifest):
        what = f"a {manifest.get('kind')} with generateName {prefix!r} has no metadata.name"
        raise UserError(f"{what}; only hooks may use generateName: give it a name, or make it a hook")
