"""The environments of a repository, in the order in which a release passes them.

In: argosy.yaml, or the Applications that a repository holds. Out: a Way. Never: an environment before itself.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from argosy.errors import UserError
from argosy.gitops.analysis.environment_names import PRODUCTION, WORDS, rank
from argosy.gitops.application import Application
from argosy.gitops.delivery_file.values import Delivery, Environment, Gate, Role, Sync

FOLDERS: Final = ("overlays", "environments", "envs", "env", "clusters")
LABELS: Final = ("environment", "env")
BY_CONVENTION: Final = "by convention"
ANYBODY: Final = ""  # the role of an approval that names none


@dataclass(frozen=True)
class Way:
    """Environments, each after the one before; who has which role; and who says so."""

    environments: tuple[Environment, ...]
    roles: tuple[Role, ...] = ()
    told_by: str = BY_CONVENTION
    control: str = ""  # the namespace of the Applications, where it is said

    def find(self, name: str) -> Environment:
        names = [each.name for each in self.environments]
        for each in self.environments:
            if each.name == name:
                return each
        alike = [each for each in names if rank(each) == rank(name) >= 0]  # prod for production
        near = alike or difflib.get_close_matches(name, names, n=1)
        meant = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(names)}"
        raise UserError(f"there is no environment {name!r} ({self.told_by}); {meant}")

    def before(self, environment: Environment) -> Environment | None:
        return self.find(environment.after) if environment.after else None

    def source(self, target: Environment, skipped: Sequence[str] = ()) -> Environment:
        """Where a release for it comes from: the one before, but for those that are skipped."""
        found = self.before(target)
        if found is None:
            message = f"{target.name} is the first environment: what it has comes from commits, not from a promotion"
            raise UserError(f"{message}; choose one that is after another")
        for name in skipped:
            if self.find(name).name != found.name:
                raise UserError(f"{found.name} is before {target.name}, not {name}; skip that, or leave --skip out")
            found = self.before(found)
            if found is None:
                raise UserError(f"nothing is before {name}; leave --skip out")
        return found

    def role(self, name: str) -> Role | None:
        return next((each for each in self.roles if each.name == name), None)


def declared(delivery: Delivery, told_by: str) -> Way:
    roles = delivery.rbac.roles if delivery.rbac else ()
    environments = [replace(each, path=folder(each.path)) for each in delivery.environments]
    return Way(_ordered(environments), roles, told_by, delivery.argocd.namespace)


def folder(path: str) -> str:
    """As a tree names it: no slash at its ends, and nothing for the whole repository."""
    found = posixpath.normpath(path).strip("/")
    return "" if found == "." else found


def _ordered(environments: Iterable[Environment]) -> tuple[Environment, ...]:
    """Each behind the one that it is after; beside that as they are written. `after` is known to lead nowhere back."""
    waiting, found = list(environments), list[Environment]()
    while waiting:
        known = {each.name for each in found}
        free = next((each for each in waiting if not each.after or each.after in known), waiting[0])
        waiting.remove(free)
        found.append(free)
    return tuple(found)


def found(applications: Sequence[Application]) -> Way | None:
    """By the words that people use for environments, in labels and folders. None where there are not two of them."""
    ranked: dict[int, Environment] = {}
    for app in applications:
        environment = _environment(app)
        if environment is None:
            continue
        place = rank(environment.name)
        if place in ranked:
            return None  # two products, or two of a kind: nobody can tell which comes after which
        ranked[place] = environment
    if len(ranked) < 2:
        return None
    listed = [ranked[place] for place in sorted(ranked)]
    chain = [listed[0]]
    for before, each in pairwise(listed):
        chain.append(replace(each, after=before.name, gates=_usual_gates(each)))
    return Way(tuple(chain))


def passed_by(way: Way, names_beside: Callable[[str], Iterable[str]]) -> str:
    """An environment that is there as a folder, between two of the way, and is not on it: nobody may skip it so."""
    places = [rank(each.name) for each in way.environments]
    for each in way.environments:
        for name in names_beside(each.path):
            if min(places) < rank(name) < max(places) and rank(name) not in places:
                return f"{name} is a folder beside {posixpath.basename(each.path)}, and no Application deploys it"
    return ""


def _environment(app: Application) -> Environment | None:
    if len(app.sources) != 1 or not app.sources[0].path:
        return None
    path = app.sources[0].path
    name = _name(app, path)
    if rank(name) < 0:
        return None
    sync = Sync.AUTO if app.policy.automated is not None else Sync.MANUAL
    return Environment(name, app.name, app.destination.namespace, folder(path), sync)


def _name(app: Application, path: str) -> str:
    labels = app.wire.get("metadata", {}).get("labels") or {}
    for label in LABELS:
        if rank(word := str(labels.get(label) or "")) >= 0:
            return word
    parts = path.strip("/").split("/")
    for above, name in pairwise(parts):
        if above in FOLDERS and rank(name) >= 0:
            return name
    return next((word for word in re.split(r"[-/]", parts[-1]) if rank(word) >= 0), "")


def _usual_gates(environment: Environment) -> tuple[Gate, ...]:
    """What a repository that says nothing gets: sound files, a healthy source, and for production somebody's yes."""
    gates = (Gate("check"), Gate("healthy", "0s"))
    is_last = environment.name in WORDS[PRODUCTION]
    return (*gates, Gate("approval", ANYBODY)) if is_last else gates
