"""Runner that assesses objects and runs rule tests in a pool of confined workers.

In: objects, test suites and settings. Out: object health and test outcomes. Never: runs a user's script in this
process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, TypeVar

from argosy.features.health_checks.catalog import called
from argosy.gitops.application.step_results import Assessment, Health
from argosy.gitops.health.assess import Assessor
from argosy.gitops.health.bundled import Origin
from argosy.gitops.health.kind_keys import is_wild
from argosy.gitops.health.lua import EVALUATE, LuaFault, answer_of, health_of
from argosy.gitops.health.lua.health_results import INVALID
from argosy.gitops.health.rule_lookup import Rulebook
from argosy.gitops.health.settings import Check, Customizations
from argosy.gitops.health.test_suite import Outcome, Suite, run
from argosy.isolation import Pool
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

TELL_SECONDS: Final = 1.0


@dataclass(frozen=True)
class Verdict:
    """The health of one object. No assessment means that its kind has no health rule."""

    key: ResourceKey
    assessment: Assessment | None
    file: str = ""
    origin: Origin | None = None  # of the rule

    @property
    def health(self) -> str:
        """The health status; empty if the script returned none or the kind has no rule."""
        return str(self.assessment.health or "") if self.assessment else ""

    @property
    def message(self) -> str:
        if self.assessment is None:
            return "no health rule for this kind"
        if self.assessment.health is None:
            return "the check returned nothing"
        return self.assessment.message

    @property
    def told(self) -> str:
        """The message, with the script name in place of Lua's `<string>`."""
        return in_script(self.message, self.rule)

    @property
    def rule(self) -> str:
        return called(self.assessment.rule) if self.assessment else ""

    @property
    def fault(self) -> str:
        return fault_of(self.assessment) if self.assessment else ""

    @property
    def is_ours(self) -> bool:
        """True if the rule is not a user's check; if it fails, the object is malformed."""
        return self.origin is not Origin.ARGOCD_CM


def in_script(text: str, script: str) -> str:
    """Insert the script name, because Argo CD's messages call every script `<string>`."""
    return text.replace("<string>:", f"{script.removeprefix(f'{Origin.ARGOCD_CM} ')}:") if script else text


def fault_of(assessment: Assessment) -> str:
    """Return why a rule failed. An invalid status is Unknown in a cluster, but an error in a test."""
    is_no_word = (assessment.health, assessment.message) == (Health.UNKNOWN, INVALID)
    return assessment.fault or (f"{INVALID}: none of {', '.join(Health)}" if is_no_word else "")


@dataclass(frozen=True)
class Trial:
    """One run of a check on an empty object of its kind."""

    check: Check
    health: str
    message: str
    fault: str

    @property
    def told(self) -> str:
        return in_script(self.message, self.check.where)


Tell = Callable[[str], None]
Answer = TypeVar("Answer")


class Workbench:
    """Context manager whose workers serve all runs. `tell` gets progress of work that takes longer than a second."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._runner = asyncio.Runner()
        self.pool = Pool(preload=("argosy.gitops.health.lua.worker",))

    def __enter__(self) -> Workbench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._runner.run(self.pool.close())
        finally:
            self._runner.close()

    def run_suite(self, suite: Suite) -> list[Outcome]:
        done = 0

        def note(now: int, _total: int) -> None:
            nonlocal done
            done = now

        running = run(suite, self.pool, progress=note, together=asyncio.gather)
        return self._wait(running, lambda: f"{done} of {len(suite.cases)} cases")

    def _wait(self, work: Coroutine[Any, Any, Answer], about: Callable[[], str]) -> Answer:
        async def ticking() -> Answer:
            running = asyncio.ensure_future(work)
            try:
                while not (await asyncio.wait({running}, timeout=TELL_SECONDS))[0]:
                    self._tell(about())
                return running.result()
            finally:
                running.cancel()  # after Ctrl-C
                await asyncio.gather(running, return_exceptions=True)

        return self._runner.run(ticking())

    def judge(
        self, customizations: Customizations, manifests: Sequence[Manifest], facts: Mapping[str, Any]
    ) -> list[Verdict]:
        # No cache: files may share uid and resourceVersion, and are edited between runs.
        rulebook = Rulebook(customizations)
        assessor = Assessor(rulebook, self.pool, remembered=0)
        found = self._wait(assessor.assess_all(manifests, facts), lambda: f"assessing {len(manifests)} objects")
        return [
            Verdict(_key(manifest), each, origin=_origin(rulebook, manifest))
            for manifest, each in zip(manifests, found, strict=True)
        ]

    def try_checks(self, checks: Sequence[Check]) -> list[Trial]:
        """Run each check once on an object that has only a kind and a name; it must not fail."""
        payloads = [
            {"script": check.script, "manifest": _empty(check.pattern), "open": check.open_libs} for check in checks
        ]
        answers = self._wait(self.pool.run_batch(EVALUATE, payloads), lambda: f"trying {len(checks)} checks")
        return [_trial(check, answer) for check, answer in zip(checks, answers, strict=True)]


def _key(manifest: Manifest) -> ResourceKey:
    """Read the key; objects in files may have only generateName."""
    metadata = manifest["metadata"]
    return key_of({**manifest, "metadata": {**metadata, "name": metadata.get("name") or metadata.get("generateName")}})


def _origin(rulebook: Rulebook, manifest: Manifest) -> Origin | None:
    key = _key(manifest)
    rule = rulebook.rule_for(key.group, key.kind)
    return rule.origin if rule else None


def _empty(pattern: str) -> Manifest:
    group, _, kind = pattern.rpartition("/")
    group, kind = ("example.com" if is_wild(group) else group), ("Example" if is_wild(kind) else kind)
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": {"name": "empty"}}


def _trial(check: Check, answer: Any) -> Trial:
    try:
        found = health_of(answer_of(answer))
    except LuaFault as fault:
        return Trial(check, "Unknown", str(fault), str(fault))
    return Trial(check, str(found.health or ""), found.message, fault_of(found))
