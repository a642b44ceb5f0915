"""Evaluates promotion gates: may a release go to the next environment?

In: gates and the facts about them. Out: one GateResult per gate. Never: opens a gate because a fact is unknown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from argosy.features.promote.environments import ANYBODY, Way
from argosy.features.promote.promotion_log import Action, Entry, last
from argosy.features.promote.releases import Release
from argosy.gitops.delivery_file.values import Environment, Gate

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
WAIT: Final = "wait, and run it again"
AHEAD: Final = 5.0


@dataclass(frozen=True)
class Verdict:
    gate: str  # as shown to users: `soak 1h`
    is_open: bool
    why: str
    who: str = ""  # the people or groups that can open it
    next: str = ""  # the command to run next
    kind: str = ""


@dataclass(frozen=True)
class Standing:
    """The state of an environment as its Application in the cluster reports it."""

    health: str = ""
    since: datetime | None = None  # last transition of the health
    sync: str = ""
    runs: bool | None = None  # the deployed revision contains the release; None: this clone lacks the revision
    revision: str = ""  # deployed last; Git may be ahead
    deployed: datetime | None = None  # time of that deployment
    hold: str = ""  # a hold on the Application, as a sentence
    trouble: str = ""  # a failed sync after that deployment
    is_past: bool = False  # a later revision replaced the release
    is_unpushed: bool = False  # the release is only in this clone
    back: str = ""  # message about a rollback, while Git still has the newer revision


@dataclass(frozen=True)
class Ran:
    """The last run of a NotebookValidationJob."""

    phase: str
    ended: datetime | None = None
    message: str = ""


@dataclass(frozen=True)
class Facts:
    """Facts for the evaluation of gates. If `source` is None, `unavailable_reason` says why there is no data."""

    now: datetime
    log: Sequence[Entry] = ()
    release: Release | None = None
    released: datetime | None = None  # commit time of the release
    check: Callable[[], tuple[bool, str]] | None = None  # returns (passed, message)
    source: Standing | None = None
    target: Standing | None = None
    notebooks: dict[str, Ran | None] | None = None
    why: str = ""  # why there is no cluster data: no cluster, or no Application
    unseen: str = ""  # a log entry about the target on the upstream branch that is not pulled yet


def verdicts(way: Way, source: Environment, target: Environment, facts: Facts) -> list[Verdict]:
    """Evaluate holds first, then the gates in the order of the file."""
    found = [*holds(target, facts)]
    return [*found, *(_judged(each, way, source, target, facts) for each in target.gates)]


def advised(closed: Sequence[Verdict]) -> str:
    """Choose the command to run first. Waiting comes last, because other gates can be opened meanwhile."""
    found = [each.next for each in closed if each.next]
    return next((each for each in found if each != WAIT), found[0] if found else "")


def shown(gate: Gate) -> str:
    if gate.kind == "healthy" and duration(gate.value) == 0:
        return gate.kind
    if gate.kind == "approval":
        return f"approval ({gate.value or 'anybody'})"
    return f"{gate.kind} {gate.value}".rstrip()


def asked_after(way: Way, target: Environment) -> list[str]:
    """Describe the gates of the environments directly after this one, with their approvers."""
    found = []
    for each in way.environments:
        if each.after == target.name and each.gates:
            gates = ", ".join(_with_members(gate, way) for gate in each.gates)
            found.append(f"{each.name} requires {gates}")
    return found


def _with_members(gate: Gate, way: Way) -> str:
    if gate.kind != "approval":
        return shown(gate)
    role = way.role(gate.value)
    who = "anybody who may push" if gate.value == ANYBODY else ", ".join(role.groups) if role else "nobody yet"
    return f"approval by {gate.value or 'anybody'} ({who})"


def holds(target: Environment, facts: Facts) -> list[Verdict]:
    found = kept_away(target, facts)
    if facts.target and facts.target.hold:
        command = f"argosy app release {target.application}"
        found.append(Verdict("hold", False, facts.target.hold, next=command, kind="hold"))
    return found


def kept_away(target: Environment, facts: Facts) -> list[Verdict]:
    """List log entries that block promotions and rollbacks: unpulled entries, a hold, a rollback of the release."""
    found = [Verdict("log", False, facts.unseen, next="git pull", kind="log")] if facts.unseen else []
    advice = f"argosy promote resume {target.name}"
    held = last(facts.log, target.name, Action.HOLD, Action.RESUME)
    if held and held.action is Action.HOLD:
        told = f"held by {held.by.name}: {held.reason or 'no reason given'}"
        found.append(Verdict("hold", False, told, next=advice, kind="hold"))
    for back in _rollbacks(target, facts.log):
        if facts.release and _is_same(back.over, facts.release):
            told = f"from {facts.release.name}, by {back.by.name}: {back.reason or 'no reason given'}"
            return [*found, Verdict("rolled back", False, told, next=advice, kind="hold")]
    return found


def approvals_again(way: Way, target: Environment, facts: Facts) -> list[Verdict]:
    """A release that was rolled back needs a new approval: a rollback voids the approvals it had."""
    if not any(entry.environment == target.name and takes_back(entry, facts.release) for entry in facts.log):
        return []
    found = [_approval(shown(each), each, way, target, facts) for each in target.gates if each.kind == "approval"]
    name = facts.release.name if facts.release else ""
    advice = f"argosy promote approve {name} --to {target.name}"
    return [replace(each, next=advice) if each.next == _approve(target) else each for each in found]


def takes_back(entry: Entry, release: Release | None) -> bool:
    """True if the entry is a rollback of this release."""
    return entry.action is Action.ROLLBACK and _is_same(entry.over, release)


def _rollbacks(target: Environment, log: Sequence[Entry]) -> Iterator[Entry]:
    """Newest first, back to the last resume of the environment."""
    for entry in log:
        if entry.environment == target.name and entry.action is Action.RESUME:
            return
        if entry.environment == target.name and entry.action is Action.ROLLBACK:
            yield entry


def _is_same(one: Release | None, other: Release | None) -> bool:
    return one is not None and other is not None and one.commit == other.commit


def _judged(gate: Gate, way: Way, source: Environment, target: Environment, facts: Facts) -> Verdict:
    name = shown(gate)
    if gate.kind == "check":
        is_green, told = facts.check() if facts.check else (False, "unknown: the check did not run")
        return Verdict(name, is_green, told, next="" if is_green else "argosy check", kind=gate.kind)
    if gate.kind == "approval":
        return _approval(name, gate, way, target, facts)
    if facts.source is None:
        return Verdict(name, False, f"unknown: {facts.why or 'no cluster'}", kind=gate.kind)
    if gate.kind == "notebook":
        return _not_running(name, gate, source, facts.source) or _notebook(name, gate, source, facts)
    return _not_running(name, gate, source, facts.source) or _lasting(name, gate, source, facts.source, facts)


def _approval(name: str, gate: Gate, way: Way, target: Environment, facts: Facts) -> Verdict:
    role = way.role(gate.value)
    members = role.groups if role else ()
    who = "anybody who may push" if gate.value == ANYBODY else ", ".join(members)
    if gate.value != ANYBODY and not members:
        told = f"nobody has the role {gate.value}"
        advice = f"add rbac.roles.{gate.value}.groups to {way.told_by}"
        return Verdict(name, False, told, "", advice, gate.kind)
    for entry in facts.log:
        if entry.environment != target.name:
            continue
        if takes_back(entry, facts.release):
            return Verdict(name, False, "not approved since it was rolled back", who, _approve(target), gate.kind)
        if not _is_same(entry.release, facts.release):
            continue
        if entry.action is Action.REJECT:
            told = f"rejected by {entry.by.name}: {entry.reason or 'no reason given'}"
            return Verdict(name, False, told, who, _approve(target), gate.kind)
        if entry.action is Action.APPROVE and (gate.value == ANYBODY or entry.by.has(members)):
            since = _ago(facts.now, datetime.fromtimestamp(entry.seconds, facts.now.tzinfo))
            told = f"approved by {entry.by.name}{since} ({entry.by.said_by})"
            return Verdict(name, True, told, who, kind=gate.kind)
    return Verdict(name, False, "not approved yet", who, _approve(target), gate.kind)


def _approve(target: Environment) -> str:
    return f"argosy promote approve --to {target.name}"


def _notebook(name: str, gate: Gate, source: Environment, facts: Facts) -> Verdict:
    found = (facts.notebooks or {}).get(gate.value)
    where = f"NotebookValidationJob/{gate.value} in {source.namespace}"
    if found is None:
        return Verdict(name, False, f"{where} not found", next=f"add that job to {source.path}", kind=gate.kind)
    again = f"argosy notebook trigger {gate.value} -n {source.namespace}"
    if found.phase != "Succeeded":
        told = f"{where} {f'is {found.phase}' if found.phase else 'has not run yet'}" + (
            f": {found.message}" if found.message else ""
        )
        return Verdict(name, False, told, next=again, kind=gate.kind)
    if found.ended is None or (facts.released and found.ended < facts.released):
        told = f"{where} succeeded before this release was committed"
        return Verdict(name, False, told, next=again, kind=gate.kind)
    return Verdict(name, True, f"succeeded{_ago(facts.now, found.ended)}", kind=gate.kind)


def _not_running(name: str, gate: Gate, source: Environment, standing: Standing) -> Verdict | None:
    """Return a closed gate unless the source runs the release: its health proves nothing about other releases."""
    app = source.application
    if standing.runs is None:
        told, advice = f"{app} runs {standing.revision[:7] or 'nothing'}, which is not in this clone", "git pull"
    elif standing.is_past:
        told, advice = (
            f"{app} runs a different release now",
            f"argosy promote plan --to ENV, for the release in {source.name}",
        )
    elif not standing.runs and standing.is_unpushed:
        told, advice = f"{app} does not run this release: not pushed yet", f"git push; then: argosy app sync {app}"
    elif not standing.runs:
        told, advice = f"{app} does not run this release yet", f"argosy app sync {app}"
    else:
        return None
    return Verdict(name, False, told, next=advice, kind=gate.kind)


def _lasting(name: str, gate: Gate, source: Environment, standing: Standing, facts: Facts) -> Verdict:
    app, needed = source.application, duration(gate.value)

    def closed(why: str, advice: str = "") -> Verdict:
        return Verdict(name, False, why, next=advice, kind=gate.kind)

    if standing.sync != "Synced":
        return closed(f"{app} is {standing.sync}: the release is not fully deployed", f"argosy app diff {app}")
    if standing.health != "Healthy":
        return closed(f"{app} is {standing.health}", f"argosy app get {app}")
    begin = standing.since
    if gate.kind == "soak":
        if standing.trouble:
            return closed(f"{app}: {standing.trouble}", f"argosy app get {app}")
        times = [each for each in (standing.since, standing.deployed) if each]
        begin = max(times) if standing.deployed else None
    if begin is None:
        return closed(f"{app} is Healthy, but reports no start time") if needed else _healthy(name, gate, app, "")
    lasted = (facts.now - begin).total_seconds()
    if lasted < -AHEAD:
        return closed(f"this machine's clock is {spoken(-lasted)} behind the cluster's", "set the clock")
    if lasted < needed:
        left = f"{spoken(math.ceil(needed - max(lasted, 0)))} to go"
        return closed(f"{app} is Healthy for {spoken(max(lasted, 0))}, {left}", WAIT)
    return _healthy(name, gate, app, f" for {spoken(lasted)}")


def _healthy(name: str, gate: Gate, app: str, since: str) -> Verdict:
    return Verdict(name, True, f"{app} is Healthy{since}", kind=gate.kind)


def duration(text: str) -> float:
    return float(sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([smhd])", text)))


def spoken(seconds: float) -> str:
    """Format with one unit: 45s, 12m, 3h, 9d."""
    for unit, size in reversed(_UNITS.items()):
        if seconds >= size * (1 if unit in "smd" else 2) or unit == "s":
            return f"{int(seconds // size)}{unit}"
    raise AssertionError


def _ago(now: datetime, then: datetime) -> str:
    return f" {spoken(max(0.0, (now - then).total_seconds()))} ago"
