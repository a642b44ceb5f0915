"""Orders the environments of a repository into a promotion pipeline.

In: argosy.yaml, or the Applications in the repository. Out: PromotionPipeline. Never: a cycle.
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
ANYBODY: Final = ""  # the role of an approval gate without a role


@dataclass(frozen=True)
class Way:
    """Environments in promotion order, the approver roles, and the file that defines them."""

    environments: tuple[Environment, ...]
    roles: tuple[Role, ...] = ()
    told_by: str = BY_CONVENTION
    control: str = ""  # namespace of the Applications; empty: that of the connected Argo CD

    def find(self, name: str) -> Environment:
        names = [each.name for each in self.environments]
        for each in self.environments:
            if each.name == name:
                return each
        alike = [each for each in names if rank(each) == rank(name) >= 0]  # prod for production
        near = alike or difflib.get_close_matches(name, names, n=1)
        meant = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(names)}"
        raise UserError(f"environment {name!r} not found ({self.told_by}); {meant}")

    def before(self, environment: Environment) -> Environment | None:
        return self.find(environment.after) if environment.after else None

    def source(self, target: Environment, skipped: Sequence[str] = ()) -> Environment:
        """Return the environment that releases for the target come from: the previous one that is not skipped."""
        found = self.before(target)
        if found is None:
            message = f"{target.name} is the first environment: it gets releases from commits, not from promotions"
            raise UserError(f"{message}; choose a later environment")
        for name in skipped:
            if self.find(name).name != found.name:
                message = f"{found.name} is before {target.name}, not {name}"
                raise UserError(f"{message}; skip {found.name}, or omit --skip")
            found = self.before(found)
            if found is None:
                raise UserError(f"no environment is before {name}; omit --skip")
        return found

    def role(self, name: str) -> Role | None:
        return next((each for each in self.roles if each.name == name), None)


def declared(delivery: Delivery, told_by: str) -> Way:
    roles = delivery.rbac.roles if delivery.rbac else ()
    environments = [replace(each, path=folder(each.path)) for each in delivery.environments]
    return Way(_ordered(environments), roles, told_by, delivery.argocd.namespace)


def folder(path: str) -> str:
    """Normalize a path as file trees do: no leading or trailing slash, and empty for the repository root."""
    found = posixpath.normpath(path).strip("/")
    return "" if found == "." else found


def _ordered(environments: Iterable[Environment]) -> tuple[Environment, ...]:
    """Sort each environment behind its `after`, otherwise keep the order of the file. `after` has no cycles."""
    waiting, found = list(environments), list[Environment]()
    while waiting:
        known = {each.name for each in found}
        free = next((each for each in waiting if not each.after or each.after in known), waiting[0])
        waiting.remove(free)
        found.append(free)
    return tuple(found)


def found(applications: Sequence[Application]) -> Way | None:
    """Infer the pipeline from common environment names in labels and folders. None for fewer than two environments."""
    ranked: dict[int, Environment] = {}
    for app in applications:
        environment = _environment(app)
        if environment is None:
            continue
        place = rank(environment.name)
        if place in ranked:
            return None  # two environments of one rank (or two products): their order is unknown
        ranked[place] = environment
    if len(ranked) < 2:
        return None
    listed = [ranked[place] for place in sorted(ranked)]
    chain = [listed[0]]
    for before, each in pairwise(listed):
        chain.append(replace(each, after=before.name, gates=_usual_gates(each)))
    return Way(tuple(chain))


def passed_by(way: Way, names_beside: Callable[[str], Iterable[str]]) -> str:
    """Describe an environment folder between two of the pipeline that no Application deploys, so it is not skipped."""
    places = [rank(each.name) for each in way.environments]
    for each in way.environments:
        for name in names_beside(each.path):
            if min(places) < rank(name) < max(places) and rank(name) not in places:
                return f"no Application deploys the folder {name} next to {posixpath.basename(each.path)}"
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
    """Gates for a repository without argosy.yaml: check, healthy source, and an approval for production."""
    gates = (Gate("check"), Gate("healthy", "0s"))
    is_last = environment.name in WORDS[PRODUCTION]
    return (*gates, Gate("approval", ANYBODY)) if is_last else gates
