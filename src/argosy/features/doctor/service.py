"""Examines the installation, its Applications and related live objects.

In: an ApplicationService and options. Out: Examination. Never: writes; exceeds the time limit: Applications that were
not compared in time are reported from their status.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeVar

from argosy.errors import ArgosyError, ClusterError, Forbidden, UserError
from argosy.features.doctor.application_check import Seen, first_sight, is_at_rest, look_at, urgency
from argosy.features.doctor.concurrency_shares import ProjectPlaces
from argosy.features.doctor.headline import HeadCheck, Mark, head_checks
from argosy.features.doctor.installation_check import Settings, controller_errors, read_installation, setting_sights
from argosy.features.doctor.optional_reads import Asking
from argosy.features.doctor.remedies import Treatment, treat
from argosy.features.models.lineage import trace
from argosy.features.models.service import ModelDesk
from argosy.gitops.analysis.finding import Finding
from argosy.gitops.analysis.live_view import EVENT, Answer, LiveApp, LiveView, ModelView, RepositorySecret
from argosy.gitops.analysis.rules import diagnose
from argosy.gitops.analysis.rules.live.health_checks import NOTEBOOK
from argosy.gitops.analysis.rules.live.workloads import BUILD, CLAIM, CLASS, MODEL, POD, VOLUME, is_ready
from argosy.gitops.analysis.rules.projects import SHALLOW, find_live_denials
from argosy.gitops.analysis.wave_gates import Wait, wait_of
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.client import Desk, clock
from argosy.gitops.application_client.delays import load_budget_uses
from argosy.gitops.application_client.reader import Reader, open_reader
from argosy.gitops.coexistence.argocd_settings import PLAIN_NAMESPACE, USUAL
from argosy.gitops.live.inference_service import read_model
from argosy.gitops.source.credentials import read_credentials
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

SECONDS: Final = 9.0  # for all comparisons and proofs together
LOOKS: Final = 0.6  # of the time limit
LEAST: Final = 2.0  # even if comparisons used up the time
AT_ONCE: Final = 4  # without the slots reserved for projects that have no comparison running
MOST: Final = 5  # in a note
LONG: Final = 60.0  # suggested to users with a shorter timeout
Found = TypeVar("Found")
Item = TypeVar("Item")
PROBE_SECONDS: Final = 2.0
SECRET, QUOTA = GroupKind("", "Secret"), GroupKind("", "ResourceQuota")
OWNERS: Final = tuple(GroupKind("apps", each) for each in ("ReplicaSet", "Deployment", "StatefulSet"))
WATCHED: Final = (POD, CLAIM, EVENT, QUOTA, BUILD, NOTEBOOK, MODEL, GroupKind("batch", "Job"), *OWNERS)
LABEL: Final = "argocd.argoproj.io/secret-type"


@dataclass(frozen=True)
class Wanted:
    names: tuple[str, ...] = ()
    pattern: str = ""  # regular expression for names
    is_whole: bool = False  # also compare healthy Applications
    is_here: bool = False  # only Applications in the service's namespace
    is_quick: bool = False  # use statuses only: compare nothing, and probe no model
    seconds: float = SECONDS


class Limit(NamedTuple):
    """Time limit of one kind of work, and the `--timeout` for all work."""

    seconds: float
    timeout: float

    def advice(self, names: Sequence[str]) -> str:
        """Suggest a longer timeout, or after a long one a single Application."""
        if self.timeout < LONG:
            return f"give it longer: argosy doctor --timeout {LONG:.0f}"
        return f"look at one alone: argosy doctor {names[0]} --timeout {2 * self.timeout:.0f}"


@dataclass(frozen=True)
class Examination:
    where: str
    checks: tuple[HeadCheck, ...]
    view: LiveView
    chosen: tuple[LiveApp, ...]
    findings: tuple[Finding, ...]
    waits: tuple[Wait, ...] = ()
    treatments: Mapping[str, Treatment] = field(default_factory=dict)  # by Application
    settings: Settings | None = None

    @property
    def is_ill(self) -> bool:
        """True if the installation itself does not work."""
        return any(each.mark is Mark.BAD for each in self.checks)

    @property
    def is_blind(self) -> bool:
        """True if no Application could be read."""
        return any(each.name == "applications" and each.mark is not Mark.OK for each in self.checks)


async def at_home(desk: Desk) -> Desk:
    """Find a namespace in which the user may read Applications, if they may not list them cluster-wide."""
    for place in dict.fromkeys((desk.control, USUAL, PLAIN_NAMESPACE)):
        try:
            await _in(desk, place)
        except ClusterError as error:
            if error.code != 403:
                return desk
        else:
            return desk if place == desk.control else Desk(desk.cluster, desk.where, place, place)
    return desk


async def examine(desk: Desk, reader: Reader, wanted: Wanted) -> Examination:
    asking, now = Asking(desk.cluster), clock()
    (apps, check), settings = await asyncio.gather(
        _applications(desk, asking, wanted), read_installation(asking, desk.control)
    )
    titles = titles_of(apps)
    chosen = {titles[app.key]: app for app in _chosen(apps, wanted)}
    looked = {} if wanted.is_quick else {name: app for name, app in chosen.items() if wanted.is_whole or _is_ill(app)}
    end = time.monotonic() + wanted.seconds
    first = in_turn(sorted(looked.items(), key=lambda each: urgency(each[1])), lambda each: each[1].project)
    tasks = {name: look_at(reader, app, asking, name) for name, app in first}
    limit = Limit(wanted.seconds * LOOKS, wanted.seconds)
    seen = await in_time(tasks, limit, "compared", asking, {name: app.project for name, app in first})
    live = tuple(seen[name].live if (name := titles[app.key]) in seen else first_sight(app, name) for app in apps)
    heads, objects, secrets = await asyncio.gather(
        head_checks(asking, settings.view, now, apps),
        _objects(asking, live, chosen),
        _repositories(asking, desk.control),
    )
    for each in seen.values():
        _add(objects, each.objects.values())
    models = await _models(desk, objects, is_asking=not wanted.is_quick)
    shown = settings.view
    if not shown.is_engine and any(each.health == "Progressing" for each in live if each.name in seen):
        shown = replace(shown, errors=await controller_errors(asking, shown.namespace))
    projects, clusters = reader.rules.projects, reader.rules.clusters
    unreadable = setting_sights(reader.rules.faults, settings.told, desk.control)
    told = {**settings.told, SHALLOW: find_live_denials(projects, live)}
    unread = frozenset(asking.unread)
    view = LiveView(
        now, live, objects, unread, shown, secrets, models, told, projects, clusters, unreadable_settings=unreadable,
        budget_uses=load_budget_uses(reader.control_cache.get, desk.control, now),
    )  # fmt: skip
    mine = tuple(each for each in live if each.name in chosen)
    waits = tuple(wait for each in mine if (wait := wait_of(each, view)))
    compared = [each for each in mine if each.name in seen]
    limit = Limit(max(end - time.monotonic(), LEAST), wanted.seconds)
    treatments = await _treatments(reader, apps, compared, seen, asking, limit)
    findings = tuple(each for each in diagnose(view) if _is_mine(each, chosen, has_names=bool(wanted.names)))
    view = replace(view, notes=tuple(asking.notes))
    return Examination(desk.where, (*heads, check), view, mine, findings, waits, treatments, settings)


def _is_mine(finding: Finding, names: Collection[str], *, has_names: bool) -> bool:
    kind, _, name = finding.place.file.partition("/")
    return name in names if kind == "Application" else not has_names


# -- Applications -----------------------------------------------------------------------------------------------------


def titles_of(apps: Iterable[Application]) -> dict[ResourceKey, str]:
    """Return display names: the name, with the namespace if two Applications share a name."""
    keys = [app.key for app in apps]
    count = Counter(key.name for key in keys)
    return {key: key.name if count[key.name] == 1 else f"{key.namespace}/{key.name}" for key in keys}


async def _applications(desk: Desk, asking: Asking, wanted: Wanted) -> tuple[list[Application], HeadCheck]:
    """List readable Applications: cluster-wide, else in the usual namespaces, else the given ones."""
    for place in (desk.namespace,) if wanted.is_here else ("", *_places(desk)):
        try:
            found = await desk.all(everywhere=True) if not place else await _in(desk, place)
        except Forbidden:
            continue
        found = [app for app in found if app.status.get("controllerNamespace", desk.control) == desk.control]
        return found, HeadCheck("applications", Mark.OK, f"{len(found)} application{'s'[: len(found) != 1]} readable")
    if wanted.names:
        return [await desk.find(each) for each in wanted.names], HeadCheck(
            "applications", Mark.OK, f"{len(wanted.names)} named, others may not be listed"
        )
    asking.note(f"you may not list Applications in {desk.control}: ask for get and list of applications.argoproj.io")
    return [], HeadCheck("applications", Mark.UNKNOWN, "Applications cannot be read")


def _places(desk: Desk) -> list[str]:
    return list(dict.fromkeys((desk.namespace, desk.control, USUAL, PLAIN_NAMESPACE)))


async def _in(desk: Desk, namespace: str) -> list[Application]:
    found = await desk.cluster.list(GroupKind("argoproj.io", "Application"), namespace=namespace)
    return [read_application(each, f"Application {each['metadata']['name']}") for each in found.items]


def _chosen(apps: Sequence[Application], wanted: Wanted) -> list[Application]:
    if wanted.pattern:
        try:
            pattern = re.compile(wanted.pattern)
        except re.error as error:
            raise UserError(f"invalid pattern {wanted.pattern!r}: {error}; example: 'stage0|stage1'") from error
        return [app for app in apps if pattern.search(app.name)]
    if not wanted.names:
        return list(apps)
    by_name = {key: app for app in apps for key in (app.name, f"{app.namespace}/{app.name}")}
    missing = [name for name in wanted.names if name not in by_name]
    if missing:
        raise UserError(f"Application {missing[0]!r} not found; list them: argosy app list")
    return list({by_name[name].key: by_name[name] for name in wanted.names}.values())


def in_turn(items: Iterable[Item], project_of: Callable[[Item], str]) -> list[Item]:
    """Order items round-robin by project; keep the order within a project."""
    rounds: Counter[str] = Counter()
    numbered = []
    for item in items:
        project = project_of(item)
        numbered.append((rounds[project], item))
        rounds[project] += 1
    return [item for _, item in sorted(numbered, key=lambda pair: pair[0])]


async def in_time(
    work: Mapping[str, Coroutine[Any, Any, Found]],
    limit: Limit,
    what: str,
    asking: Asking,
    projects: Mapping[str, str],
) -> dict[str, Found]:
    """Return results by name; note work that failed or was not finished in time.

    `projects` is by name. A project runs at most MAX_CONCURRENT_COMPARISONS at once; further slots are reserved for
    projects without running work, so that slow work of one project does not block others.
    """
    places = ProjectPlaces(AT_ONCE)
    begun: set[str] = set()

    async def do(name: str, one: Coroutine[Any, Any, Found]) -> Found:
        try:
            async with places.hold(projects[name]):
                begun.add(name)
                return await one
        finally:
            one.close()  # avoids the warning about a coroutine that was never awaited

    tasks = {name: asyncio.create_task(do(name, one)) for name, one in work.items()}
    if not tasks:
        return {}
    _, late = await asyncio.wait(tasks.values(), timeout=limit.seconds)
    slow = [name for name, task in tasks.items() if task in late and name in begun]
    waiting = [name for name, task in tasks.items() if task in late and name not in begun]
    for task in late:
        task.cancel()
    if slow:
        lead = f"not {what} within {limit.seconds:.0f} s, rendering or reading takes longer"
        asking.note(f"{lead}: {_listed(slow)}; {limit.advice(slow)}")
    if waiting:
        lead = f"not {what}, the time was up before their turn"
        asking.note(f"{lead}: {_listed(waiting)}; {limit.advice(waiting)}")
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    found = {}
    for name, task in tasks.items():
        error = None if task.cancelled() else task.exception()
        if isinstance(error, ArgosyError):
            asking.note(f"{name} cannot be {what} from here: {error}")
        elif error is not None:
            raise error
        elif not task.cancelled():
            found[name] = task.result()
    return found


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return f"{', '.join(names[:MOST])}{more}"


async def _treatments(
    reader: Reader,
    apps: Sequence[Application],
    mine: Sequence[LiveApp],
    seen: Mapping[str, Seen],
    asking: Asking,
    limit: Limit,
) -> dict[str, Treatment]:
    """Find and prove remedies for Applications that are not settled."""
    ill = [each for each in mine if not is_at_rest(each) and (seen[each.name].look or each.unrendered)]
    first = in_turn(sorted(ill, key=lambda each: urgency(each.app)), lambda each: each.app.project)
    tasks = {each.name: treat(reader, each.app, seen[each.name].look, apps) for each in first}
    return await in_time(tasks, limit, "proven", asking, {each.name: each.app.project for each in first})


def _is_ill(app: Application) -> bool:
    """True if the Application is not settled, or creates other Applications."""
    seen = first_sight(app)
    return not is_at_rest(seen) or any(row.key.kind == "Application" for row in seen.rows)


# -- related live objects ---------------------------------------------------------------------------------------------


async def _objects(asking: Asking, apps: Iterable[LiveApp], names: Collection[str]) -> dict[GroupKind, list[Manifest]]:
    mine = [app for app in apps if app.name in names]
    namespaces = {app.app.destination.namespace for app in mine}
    namespaces |= {row.key.namespace for app in mine for row in app.rows}
    found, classes, volumes = await asyncio.gather(
        asking.list_all(WATCHED, sorted(namespaces - {""})), asking.all_of(CLASS), asking.all_of(VOLUME)
    )
    return {**found, CLASS: classes, VOLUME: volumes}


def _add(objects: dict[GroupKind, list[Manifest]], more: Iterable[Manifest]) -> None:
    for each in more:
        key = key_of(each)
        here = objects.setdefault(key.group_kind, [])
        if key.group_kind not in WATCHED:
            here.append(each)


async def _repositories(asking: Asking, control: str) -> tuple[RepositorySecret, ...] | None:
    found = await asking.all_of(SECRET, control, LABEL)
    if SECRET in asking.unread:
        return None
    return tuple(
        RepositorySecret(each.secret, str(each.url), each.is_template, each.fault) for each in read_credentials(found)
    )


async def _models(desk: Desk, objects: dict[GroupKind, list[Manifest]], *, is_asking: bool) -> tuple[ModelView, ...]:
    async def seen(service: Manifest) -> ModelView:
        answers = await _answers(desk, service) if is_asking and is_ready(service) else ()
        return ModelView(service, answers, _outdated(service, objects))

    return tuple(await asyncio.gather(*map(seen, objects.get(MODEL, ()))))


async def _answers(desk: Desk, service: Manifest) -> tuple[Answer, ...]:
    """Return nothing if the model is not reachable from here, because that proves nothing about the model."""
    model = read_model(service)
    if not model.url:
        return ()
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            found = await ModelDesk(desk.cluster, desk.where).probe(model, insecure=True)
    except (ArgosyError, TimeoutError):
        return ()
    return tuple(Answer(each.path, each.code) for each in found)


def _outdated(service: Manifest, objects: dict[GroupKind, list[Manifest]]) -> str:
    """Describe Pods that loaded the model file before the last run replaced it."""
    name, namespace = service["metadata"]["name"], service["metadata"].get("namespace")
    here = [each for each in objects.get(NOTEBOOK, ()) if each["metadata"].get("namespace") == namespace]
    label = "serving.kserve.io/inferenceservice"
    pods = [
        each
        for each in objects.get(POD, ())
        if each["metadata"].get("namespace") == namespace and (each["metadata"].get("labels") or {}).get(label) == name
    ]
    found = trace(service, here, pods)
    old = [each.name for each in found.copies if not each.is_current]
    if not found.runs or not old:
        return ""
    last = found.runs[-1]
    return f"{', '.join(old)} started before {last.job} left it at {last.ended}"


__all__ = ["Examination", "Wanted", "examine", "open_reader"]
