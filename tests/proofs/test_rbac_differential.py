"""Two RBAC evaluators give the same answer to 100,000 random pairs of policy and question."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from argosy.gitops.policy.rbac import RbacEnforcer, RbacRequester
from argosy.gitops.policy.rbac_config import read_access_policy
from support.reference_rbac import (
    ACTIONS,
    ASKED,
    NAMES,
    OBJECTS,
    OWN,
    RESOURCES,
    Line,
    as_project,
    expected,
    project_lines,
)

pytestmark = pytest.mark.tier("test", "prove")
PAIRS, EACH = 100_000, 20
ASKERS = ["ann", "bob", "", "proj:p:dev", "admin"]
GROUPS = ["team", "crew", "role:admin", "nobody"]


def line(rng: random.Random) -> Line:
    if rng.random() < 0.35:
        return ("g", rng.choice(NAMES), rng.choice(NAMES))
    permission = (rng.choice(RESOURCES), rng.choice(ACTIONS), rng.choice(OBJECTS))
    return ("p", rng.choice(NAMES), *permission, rng.choice(["allow", "allow", "deny"]))


def own_lines(rng: random.Random) -> list[Line]:
    return [(rng.choice(OWN), rng.choice(ACTIONS), rng.choice(OBJECTS)) for _ in range(rng.randrange(4))]


class Differs(AssertionError):
    """The two evaluators disagree."""


def compared(rng: random.Random, pairs: int) -> int:
    """Compare both evaluators and return how often access was allowed."""
    yes = 0
    for _ in range(pairs // EACH // len(ASKERS)):
        policy = [line(rng) for _ in range(rng.randrange(16))]
        usual = rng.choice(["", "", "role:readonly", "role:a"])
        groups = {"p": ["team"], "q": ["crew", "ann"]}
        own = {name: project_lines(name, own_lines(rng), groups[name]) for name in groups}
        projects = [as_project(name, lines, groups[name]) for name, lines in own.items()]
        quoted = "\n".join(", ".join(f'"{word}"' for word in rule) for rule in policy)
        enforcer = RbacEnforcer(read_access_policy({"policy.csv": quoted, "policy.default": usual}), projects)
        questions = rng.sample(ASKED, EACH)
        for name in ASKERS:  # all at one enforcer: a cached decision for one requester must not leak to another
            who = RbacRequester(name, tuple(rng.sample(GROUPS, rng.randrange(3))), name.startswith("proj:"))
            for question in questions:
                answer = enforcer.get_permissions(who).may(*question)
                yes += answer
                if answer != expected(policy, usual, own, who, question):
                    raise Differs(policy, usual, own, who, question)
    return yes


def test_both_evaluators_agree_on_random_policies(size: Callable[[int], int], rng: random.Random) -> None:
    pairs = size(PAIRS)
    assert compared(rng, pairs) > pairs // 50  # otherwise the proof is vacuous


def test_proof_detects_an_enforcer_that_confuses_two_requesters(
    rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    permissions, first = RbacEnforcer.get_permissions, dict[RbacEnforcer, RbacRequester]()

    def forgetful(self: RbacEnforcer, who: RbacRequester) -> object:
        return permissions(self, first.setdefault(self, who))

    monkeypatch.setattr(RbacEnforcer, "get_permissions", forgetful)
    with pytest.raises(Differs):
        compared(rng, PAIRS)
