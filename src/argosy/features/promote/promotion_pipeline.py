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
from argosy.gitops.analysis.environment_names import ENVIRONMENT_WORDS, PRODUCTION, rank_environment
from argosy.gitops.application import Application
from argosy.gitops.delivery_file.delivery_value_types import (
    DeliveryEnvironment,
    DeliveryFile,
    DeliveryRole,
    PromotionGate,
    SyncMode,
)

ENVIRONMENT_PARENT_FOLDERS: Final = ("overlays", "environments", "envs", "env", "clusters")
ENVIRONMENT_LABELS: Final = ("environment", "env")
BY_CONVENTION: Final = "by convention"
ANYBODY_ROLE: Final = ""  # the role of an approval gate without a role


@dataclass(frozen=True)
class PromotionPipeline:
    """Environments in promotion order, the approver roles, and the file that defines them."""

    environments: tuple[DeliveryEnvironment, ...]
    roles: tuple[DeliveryRole, ...] = ()
    defined_in: str = BY_CONVENTION
    control_namespace: str = ""  # namespace of the Applications; empty: that of the connected Argo CD

    def find(self, name: str) -> DeliveryEnvironment:
        names = [item.name for item in self.environments]
        for item in self.environments:
            if item.name == name:
                return item
        # For example prod for production.
        same_rank = [item for item in names if rank_environment(item) == rank_environment(name) >= 0]
        suggestions = same_rank or difflib.get_close_matches(name, names, n=1)
        advice = f"did you mean {suggestions[0]}?" if suggestions else f"choose one of {', '.join(names)}"
        raise UserError(f"environment {name!r} not found ({self.defined_in}); {advice}")

    def find_previous(self, environment: DeliveryEnvironment) -> DeliveryEnvironment | None:
        return self.find(environment.after) if environment.after else None

    def find_source(self, target: DeliveryEnvironment, skipped: Sequence[str] = ()) -> DeliveryEnvironment:
        """Return the environment that releases for the target come from: the previous one that is not skipped."""
        source = self.find_previous(target)
        if source is None:
            message = f"{target.name} is the first environment: it gets releases from commits, not from promotions"
            raise UserError(f"{message}; choose a later environment")
        for name in skipped:
            if self.find(name).name != source.name:
                message = f"{source.name} is before {target.name}, not {name}"
                raise UserError(f"{message}; skip {source.name}, or omit --skip")
            source = self.find_previous(source)
            if source is None:
                raise UserError(f"no environment is before {name}; omit --skip")
        return source

    def find_role(self, name: str) -> DeliveryRole | None:
        return next((role for role in self.roles if role.name == name), None)


def build_declared_pipeline(delivery: DeliveryFile, defined_in: str) -> PromotionPipeline:
    roles = delivery.rbac.roles if delivery.rbac else ()
    environments = [
        replace(environment, path=normalize_folder(environment.path)) for environment in delivery.environments
    ]
    return PromotionPipeline(_order_environments(environments), roles, defined_in, delivery.argocd.namespace)


def normalize_folder(path: str) -> str:
    """Normalize a path as file trees do: no leading or trailing slash, and empty for the repository root."""
    normalized = posixpath.normpath(path).strip("/")
    return "" if normalized == "." else normalized


def _order_environments(environments: Iterable[DeliveryEnvironment]) -> tuple[DeliveryEnvironment, ...]:
    """Sort each environment behind its `after`, otherwise keep the order of the file. `after` has no cycles."""
    unordered, ordered = list(environments), list[DeliveryEnvironment]()
    while unordered:
        ordered_names = {environment.name for environment in ordered}
        next_environment = next(
            (environment for environment in unordered if not environment.after or environment.after in ordered_names),
            unordered[0],
        )
        unordered.remove(next_environment)
        ordered.append(next_environment)
    return tuple(ordered)


def infer_pipeline(applications: Sequence[Application]) -> PromotionPipeline | None:
    """Infer the pipeline from common environment names in labels and folders. None for fewer than two environments."""
    ranked: dict[int, DeliveryEnvironment] = {}
    for app in applications:
        environment = _find_environment(app)
        if environment is None:
            continue
        position = rank_environment(environment.name)
        if position in ranked:
            return None  # two environments of one rank (or two products): their order is unknown
        ranked[position] = environment
    if len(ranked) < 2:
        return None
    environments = [ranked[position] for position in sorted(ranked)]
    chain = [environments[0]]
    for before, environment_after in pairwise(environments):
        chain.append(replace(environment_after, after=before.name, gates=_build_default_gates(environment_after)))
    return PromotionPipeline(tuple(chain))


def describe_undeployed_folder(pipeline: PromotionPipeline, list_sibling_names: Callable[[str], Iterable[str]]) -> str:
    """Describe an environment folder between two of the pipeline that no Application deploys, so it is not skipped."""
    ranks = [rank_environment(environment.name) for environment in pipeline.environments]
    for environment in pipeline.environments:
        for name in list_sibling_names(environment.path):
            if min(ranks) < rank_environment(name) < max(ranks) and rank_environment(name) not in ranks:
                return f"no Application deploys the folder {name} next to {posixpath.basename(environment.path)}"
    return ""


def _find_environment(app: Application) -> DeliveryEnvironment | None:
    if len(app.sources) != 1 or not app.sources[0].path:
        return None
    path = app.sources[0].path
    name = _infer_environment_name(app, path)
    if rank_environment(name) < 0:
        return None
    sync = SyncMode.AUTO if app.policy.automated is not None else SyncMode.MANUAL
    return DeliveryEnvironment(name, app.name, app.destination.namespace, normalize_folder(path), sync)


def _infer_environment_name(app: Application, path: str) -> str:
    labels = app.wire.get("metadata", {}).get("labels") or {}
    for label in ENVIRONMENT_LABELS:
        if rank_environment(word := str(labels.get(label) or "")) >= 0:
            return word
    parts = path.strip("/").split("/")
    for above, name in pairwise(parts):
        if above in ENVIRONMENT_PARENT_FOLDERS and rank_environment(name) >= 0:
            return name
    return next((word for word in re.split(r"[-/]", parts[-1]) if rank_environment(word) >= 0), "")


def _build_default_gates(environment: DeliveryEnvironment) -> tuple[PromotionGate, ...]:
    """Gates for a repository without argosy.yaml: check, healthy source, and an approval for production."""
    gates = (PromotionGate("check"), PromotionGate("healthy", "0s"))
    is_last = environment.name in ENVIRONMENT_WORDS[PRODUCTION]
    return (*gates, PromotionGate("approval", ANYBODY_ROLE)) if is_last else gates
