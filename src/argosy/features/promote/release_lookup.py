"""Finds the release that a promotion or a rollback names.

In: a RepositorySnapshot, and a release or commit as typed. Out: Release, and its contents. Never: writes; accepts a
release that has not been in the previous environment.
"""

from __future__ import annotations

import re

from argosy.errors import UserError
from argosy.features.promote.classified_manifest_fields import Release
from argosy.features.promote.environments_at_commit import EnvironmentSnapshot, RepositorySnapshot
from argosy.features.promote.promotion_log_trailers import RELEASE_CHANGING_ACTIONS, PromotionAction, find_latest
from argosy.gitops.delivery_file.delivery_value_types import DeliveryEnvironment


class ReleaseFinder:
    """Finds releases by name or commit in one repository snapshot."""

    def __init__(self, snapshot: RepositorySnapshot) -> None:
        self.snapshot = snapshot

    def choose_release(
        self, typed: str, source: DeliveryEnvironment, target: DeliveryEnvironment
    ) -> tuple[Release, EnvironmentSnapshot, bool]:
        """Return the release, its contents, and True if the target had it before."""
        snapshot = self.snapshot
        current = snapshot.get_release(source)
        if not typed or _matches_release(current, typed):
            return current, snapshot.get_environment(source), False
        if previous := self.find_earlier_release(target, typed):
            return previous[0], snapshot.get_environment(target, previous[1]), True
        commit = self._find_commit(typed) if snapshot.pipeline.find_previous(source) is None else ""
        if commit and snapshot.repository.contains(snapshot.head, commit):
            source_snapshot = snapshot.get_environment(source, commit)
            return (
                snapshot.build_release(snapshot.repository.find_last_change(commit, source_snapshot.inputs)),
                source_snapshot,
                False,
            )
        if previous := self.find_earlier_release(source, typed):
            return previous[0], snapshot.get_environment(source, previous[1]), False
        raise self._build_unknown_release_error(typed, source, target)

    def _find_commit(self, typed: str) -> str:
        repository = self.snapshot.repository
        if number := re.fullmatch(r"r(\d+)", typed):
            return repository.find_nth_commit(int(number[1]), self.snapshot.head)
        return repository.find_commit(typed)

    def find_earlier_release(self, environment: DeliveryEnvironment, typed: str) -> tuple[Release, str] | None:
        """Find a former release of the environment, and a commit that has it."""
        for entry in self.snapshot.log:
            if entry.environment != environment.name or entry.action not in RELEASE_CHANGING_ACTIONS:
                continue
            if entry.release and _matches_release(entry.release, typed):
                return entry.release, entry.commit
            if entry.replaced and _matches_release(entry.replaced, typed):
                return entry.replaced, f"{entry.commit}~1"
        return None

    def _build_unknown_release_error(
        self, typed: str, source: DeliveryEnvironment, target: DeliveryEnvironment
    ) -> UserError:
        pipeline = self.snapshot.pipeline
        before = pipeline.find_previous(source)
        while before is not None:
            is_known = _matches_release(self.snapshot.get_release(before), typed) or self.find_earlier_release(
                before, typed
            )
            is_first = pipeline.find_previous(before) is None
            if is_known or (is_first and self._find_commit(typed)):
                promote_advice = f"promote it there first: argosy promote run {typed} --to {source.name}"
                skip_advice = f"skip it: --skip {source.name} --reason TEXT"
                problem = f"{typed} has not been in {source.name}, which is before {target.name}"
                return UserError(f"{problem}; {promote_advice}, or {skip_advice}")
            before = pipeline.find_previous(before)
        return UserError(f"release {typed!r} not found in {source.name}; list releases: argosy promote history")

    def find_previous_release_commit(self, target: DeliveryEnvironment) -> str:
        """Return the commit of the environment's previous release."""
        if not target.after:
            message = f"{target.name} is the first environment: it gets releases from commits, not from promotions"
            raise UserError(f"{message}; use git revert, or argosy app rollback {target.application}")
        now = self.snapshot.get_release(target)
        if (
            now.is_by_hand
            and (promotion := find_latest(self.snapshot.log, target.name, *RELEASE_CHANGING_ACTIONS))
            and promotion.release
        ):
            return promotion.release.commit
        for entry in self.snapshot.log:
            is_promotion = (
                entry.environment == target.name and entry.action is PromotionAction.PROMOTE and entry.replaced
            )
            if is_promotion and entry.release and entry.release.commit == now.commit and entry.replaced:
                return entry.replaced.commit
        message = f"{now.name} was not promoted to {target.name}, so its previous release is unknown"
        raise UserError(f"{message}; choose one: argosy promote run RELEASE --to {target.name}, or use git revert")


def _matches_release(release: Release, typed: str) -> bool:
    return typed == release.name or (len(typed) >= 4 and release.commit.startswith(typed))
