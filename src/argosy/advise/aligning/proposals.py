"""What would bring one Application in line, as far as what was seen of it tells.

In: a Sight of the Application: its differing objects with causes, its conditions, its rules. Out: proposals, the
smallest first. Never: a rule that hides what somebody changed by hand or in Git, or a whole spec.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.advise.aligning import narrowing
from argosy.advise.aligning.narrowing import Foreign
from argosy.advise.aligning.patterns import is_operators, reason_for, why_redundant, why_too_broad
from argosy.advise.aligning.proposal import ORDER, Dropped, Proposal, ProposalKind
from argosy.advise.aligning.selectors import added_labels, is_in_selector, writes_selectors
from argosy.advise.cause import Cause, CauseKind
from argosy.advise.causes import BY_HAND
from argosy.advise.evidence import ABSENT, value_at
from argosy.compare.rules import concerns
from argosy.model.application import Application, IgnoreDifference
from argosy.model.errors import PatchError
from argosy.model.flow import Difference, Pair
from argosy.model.manifest.yaml_editing import Edit
from argosy.model.names import GroupKind, ResourceKey
from argosy.patch.pointer import parse

RESPECT: Final = "RespectIgnoreDifferences=true"
RECREATE: Final = "Force=true,Replace=true"
SHARED: Final = "SharedResourceWarning"
# Tools that people start, and libraries that scripts are written with: what they changed may have been meant.
_TOOLS: Final = ("helm", "Helm", "terraform", "Terraform", "HashiCorp", "pulumi", "curl", "python-requests", "Python",
                 "OpenAPI-Generator", "node-fetch", "ansible")  # fmt: skip
_IGNORABLE: Final = frozenset({CauseKind.WEBHOOK, CauseKind.OTHER_CONTROLLER, CauseKind.DEFAULTING})


@dataclass(frozen=True)
class SeenObject:
    """One that differs: each field with its cause."""

    pair: Pair
    fields: tuple[tuple[Difference, Cause], ...]

    @property
    def key(self) -> ResourceKey:
        return self.pair.key

    @property
    def form(self) -> Any:
        return self.pair.compared or self.pair.live or {}

    @property
    def name(self) -> str:
        return f"{self.key.kind}/{self.key.name}"


@dataclass(frozen=True)
class AppSight:
    """What was seen of an Application."""

    app: Application
    objects: tuple[SeenObject, ...] = ()
    desired: Mapping[ResourceKey, Mapping[str, Any]] = field(default_factory=dict)
    conditions: tuple[tuple[str, str], ...] = ()  # type and message
    is_healthy: bool = True
    compares_status: bool = False  # argo: ignoreResourceStatusField is not `all`
    kustomizations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by path in the source's tree
    homes: Mapping[ResourceKey, str] = field(default_factory=dict)  # the file there that an object is written in

    @property
    def numbers(self) -> Counter[GroupKind]:
        return Counter(key.group_kind for key in self.desired)


def propose(seen: AppSight) -> list[Proposal]:
    """All that is certain or to be asked; the smallest change first."""
    found = [
        *_ignored(seen),
        *_respected(seen),
        *_dropped(seen),
        *_immutable(seen),
        *_accepted(seen),
        *_informed(seen),
    ]
    return sorted(found, key=lambda each: ORDER.index(each.kind))


# -- what others write --------------------------------------------------------------------------------------------


def is_foreign(cause: Cause) -> bool:
    """Whether somebody writes the field whatever Git says, and is no person at a keyboard."""
    return cause.kind in _IGNORABLE and not cause.manager.startswith(BY_HAND)


def _foreign(each: SeenObject) -> Foreign:
    chosen = [(found, cause) for found, cause in each.fields if is_foreign(cause) and _is_narrow(each, found)]
    managers = tuple(cause.manager if cause.kind is CauseKind.OTHER_CONTROLLER else "" for _, cause in chosen)
    return Foreign(each.key, each.form, tuple(found for found, _ in chosen), managers)


def _is_narrow(each: SeenObject, found: Difference) -> bool:
    return not why_too_broad(each.key.group, each.key.kind, found.pointer)


def _ignored(seen: AppSight) -> Iterator[Proposal]:
    foreign = {each.key: _foreign(each) for each in seen.objects}
    for rule in narrowing.rules_for(foreign.values(), seen.numbers):
        objects = [each for each in seen.objects if concerns(rule, each.key)]
        causes = [cause for each in objects for _, cause in each.fields if is_foreign(cause)]
        fix = "expected; mark" if is_operators(rule.group, rule.kind) else "ignore rule"
        text = f"ignore {narrowing.told(rule)}"
        why = _why(rule, objects, causes)
        # Who takes a field away is only guessed at: nobody owns what is not there. Some kinds are known for it.
        is_certain = all(
            (found.has_live and not cause.manager.startswith(_TOOLS))
            or reason_for(rule.group, rule.kind, found.pointer)
            for each in objects
            for found, cause in each.fields
            if is_foreign(cause)
        )
        said = (f"{each.name}: {cause.text}" for each in objects for _, cause in each.fields if is_foreign(cause))
        evidence = tuple(dict.fromkeys(said))
        yield Proposal(
            seen.app.name, ProposalKind.IGNORE, f"{text} ({why})", fix, is_certain, evidence[:10], ignores=(rule,)
        )  # fmt: skip


def _why(rule: IgnoreDifference, objects: Sequence[SeenObject], causes: Sequence[Cause]) -> str:
    known = next((why for each in rule.pointers if (why := reason_for(rule.group, rule.kind, each))), "")
    writers = ", ".join(dict.fromkeys(cause.manager for cause in causes if cause.manager))
    if known:
        return known
    kinds = {cause.kind for cause in causes}
    if CauseKind.OTHER_CONTROLLER in kinds and writers:
        return f"{writers} writes it"
    return "the server fills it in" if kinds == {CauseKind.DEFAULTING} else "set by admission, whatever Git says"


# -- a sync that leaves them alone --------------------------------------------------------------------------------


def _respected(seen: AppSight) -> Iterator[Proposal]:
    """argo: to ignore a field concerns comparisons alone; every sync still writes what Git has there."""
    if RESPECT in seen.app.policy.options:
        return
    new = [found for each in seen.objects for found in _foreign(each).fields if found.has_desired]
    written = [found.pointer for found in new] or [*_written(seen)]
    if written:
        named = ", ".join(dict.fromkeys(written[:3]))
        text = f"add {RESPECT}: Git has {named}, so every sync would write it, ignored or not"
        yield Proposal(seen.app.name, ProposalKind.SYNC_OPTION, text, "sync option", options=(RESPECT,))


def _written(seen: AppSight) -> Iterator[str]:
    """Of the rules that are there, for objects that differ: pointers to what Git has."""
    for each in seen.objects:
        for rule in seen.app.ignored:
            if concerns(rule, each.key):
                yield from (at for at in rule.pointers if not why_redundant(at) and _has(each.pair.desired, at))


def _has(manifest: Any, pointer: str) -> bool:
    try:
        return value_at(manifest, parse(pointer), manifest) is not ABSENT
    except PatchError:
        return False


# -- rules that do nothing, or too much ---------------------------------------------------------------------------


def _dropped(seen: AppSight) -> Iterator[Proposal]:
    drops = [
        Dropped(rule, pointer, why)
        for rule in seen.app.ignored
        for pointer in rule.pointers
        if (why := why_redundant(pointer)) and not (seen.compares_status and pointer.startswith("/status"))
    ]
    if drops:
        named = ", ".join(dict.fromkeys(each.pointer for each in drops))
        text = f"take out {named}: not compared anyway"
        evidence = tuple(dict.fromkeys(f"{each.pointer}: {each.why}" for each in drops))
        # A rule that does nothing does no harm either: where nothing else is to be done, it may stay.
        yield Proposal(
            seen.app.name, ProposalKind.DROP, text, "drop rule", bool(seen.objects), evidence, drops=tuple(drops)
        )  # fmt: skip
    for rule in seen.app.ignored:
        for pointer in rule.pointers:
            if why := why_too_broad(rule.group, rule.kind, pointer):
                text = f"the rule for {rule.kind} is too broad: {why}; name the fields that others write, one by one"
                yield Proposal(seen.app.name, ProposalKind.INFORM, text, "narrow the rule")


# -- what cannot be changed ---------------------------------------------------------------------------------------


def _immutable(seen: AppSight) -> Iterator[Proposal]:
    for each in seen.objects:
        fields = [found for found, cause in each.fields if cause.kind is CauseKind.IMMUTABLE]
        if not fields:
            continue
        told = ", ".join(found.pointer for found in fields[:3])
        cured = [*_selectors(seen, each, fields, told)] if any(is_in_selector(f.pointer) for f in fields) else []
        yield from cured or [_recreated(seen, each, told)]


def _selectors(seen: AppSight, each: SeenObject, fields: Sequence[Difference], told: str) -> Iterator[Proposal]:
    """Kustomize's labels, leaked into selectors: to keep them out changes nothing that lives."""
    wanted = added_labels(fields)
    evidence = (f"{each.name}: {told} cannot be changed while the object lives",)
    yield from _own_labels(seen, each, wanted, evidence)
    for file, kustomization in seen.kustomizations.items():
        if labels := writes_selectors(kustomization, wanted):
            named = ", ".join(labels)
            text = f"{file}: leave {named} out of selectors: it came into that of {each.name}, which cannot be changed"
            target = (each.key.group, each.key.kind, each.key.name)
            pods = value_at(each.form, ("spec", "template", "metadata", "labels"), each.form)
            has_them = isinstance(pods, Mapping) and any(label in pods for label in labels)
            yield Proposal(
                seen.app.name, ProposalKind.SELECTORS, text, "includeSelectors: false", True, evidence,
                file=file, labels=labels, on_pods=has_them, target=target,
            )  # fmt: skip


def _own_labels(
    seen: AppSight, each: SeenObject, wanted: Sequence[str], evidence: tuple[str, ...]
) -> Iterator[Proposal]:
    """argo: commonLabels of an Application go into selectors, too, unless it says otherwise."""
    options = seen.app.sources[0].kustomize if len(seen.app.sources) == 1 else None
    labels = [name for name in wanted if options and name in options.common_labels]
    if labels and options and not options.label_without_selector and not seen.app.has_many_sources:
        path = ("spec", "source", "kustomize", "labelWithoutSelector")
        text = f"leave commonLabels ({', '.join(labels)}) out of selectors: one came into that of {each.name}"
        sets = (Edit(path, True),)
        yield Proposal(
            seen.app.name, ProposalKind.SELECTORS, text, "labelWithoutSelector", True, evidence, sets=sets
        )  # fmt: skip


def _recreated(seen: AppSight, each: SeenObject, told: str) -> Proposal:
    group, kind, name = each.key.group, each.key.kind, each.key.name
    chosen = f"{group}:{kind}:{name}"
    text = (
        f"recreate {each.name}: {told} cannot be changed while it lives;"
        f" annotate it once with sync-options {RECREATE} (Replace=true alone does not recreate), or delete it and sync"
    )
    place = f" -n {each.key.namespace}" if each.key.namespace else ""
    commands = (
        f"argosy app sync {seen.app.name} --force --replace --resource {chosen}",
        f"kubectl delete {kind.lower()} {name}{place}",
    )
    evidence = tuple(f"{each.name} {found.pointer}: {cause.text}" for found, cause in each.fields[:5])
    return Proposal(
        seen.app.name, ProposalKind.RECREATE, text, "recreate", False, evidence,
        file=seen.homes.get(each.key, ""), target=(group, kind, name), commands=commands,
    )  # fmt: skip


# -- what is only told --------------------------------------------------------------------------------------------


def _accepted(seen: AppSight) -> Iterator[Proposal]:
    """Healthy, and only its operator's: nothing is wrong, and nothing narrow would say so."""
    for each in seen.objects:
        broad = [found for found, cause in each.fields if is_foreign(cause) and not _is_narrow(each, found)]
        if broad:
            named = ", ".join(found.pointer or "all of it" for found in broad)
            tail = "it is Healthy, so this may stay" if seen.is_healthy else "see why it is not Healthy first"
            text = f"{each.name}: {named} is written whole by somebody else, and no rule is proposed for it; {tail}"
            yield Proposal(seen.app.name, ProposalKind.ACCEPT, text, "accepted" if seen.is_healthy else "look")


def _informed(seen: AppSight) -> Iterator[Proposal]:
    for kind, message in seen.conditions:
        if kind == SHARED:
            yield Proposal(seen.app.name, ProposalKind.INFORM, f"{kind}: {message}", "informational")
    others = [
        (found, cause)
        for each in seen.objects
        if not any(cause.kind is CauseKind.IMMUTABLE for _, cause in each.fields)  # the rest of it goes with that
        for found, cause in each.fields
        if not is_foreign(cause)
    ]
    for text, fix, next_ in dict.fromkeys(_told(cause) for _, cause in others):
        mine = [found for found, cause in others if _told(cause)[0] == text]
        what = "field" if all(found.pointer for found in mine) else "object"
        noun = f"{what} differs" if len(mine) == 1 else f"{what}s differ"
        commands = (next_,) if next_ else ()
        yield Proposal(seen.app.name, ProposalKind.INFORM, f"{len(mine)} {noun}: {text}", fix, commands=commands)


def _told(cause: Cause) -> tuple[str, str, str]:
    fix = "sync" if cause.kind in (CauseKind.YOUR_CHANGE, CauseKind.DELETED, CauseKind.OTHER_CONTROLLER) else "look"
    return f"{cause.kind.words}: {cause.text}", "prune" if cause.kind is CauseKind.PRUNE else fix, cause.next


def unanswered(objects: Iterable[SeenObject]) -> int:
    """How many fields would still differ with every rule that may be proposed."""
    return sum(not is_foreign(cause) or not _is_narrow(each, found) for each in objects for found, cause in each.fields)


def contested(objects: Iterable[SeenObject]) -> tuple[str, ...]:
    """What a sync would write, and somebody else write again: no dry run tells of that."""
    told = {
        f"{each.name} {found.pointer}: {cause.manager} would write it again": None
        for each in objects
        for found, cause in each.fields
        if cause.kind is CauseKind.OTHER_CONTROLLER and is_foreign(cause) and not cause.manager.startswith(_TOOLS)
    }
    return tuple(told)
