"""RBAC decisions compared with a second, independent evaluator, which is slow and short."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.gitops.policy.rbac import RbacEnforcer, RbacRequester
from argosy.gitops.policy.rbac_config import read_access_policy
from support.examples import examples
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

grants = st.tuples(
    st.just("p"), st.sampled_from(NAMES), st.sampled_from(RESOURCES), st.sampled_from(ACTIONS),
    st.sampled_from(OBJECTS), st.sampled_from(["allow", "allow", "deny"]),
)  # fmt: skip
members = st.tuples(st.just("g"), st.sampled_from(NAMES), st.sampled_from(NAMES))
policies = st.lists(st.one_of(grants, members), max_size=14)
own_lines = st.lists(
    st.tuples(st.sampled_from(OWN), st.sampled_from(ACTIONS), st.sampled_from(OBJECTS)), max_size=3
)  # fmt: skip
askers = st.builds(
    lambda name, groups: RbacRequester(name, tuple(groups), name.startswith("proj:")),
    st.sampled_from(["ann", "bob", "", "proj:p:dev", "admin"]),
    st.lists(st.sampled_from(["team", "crew", "role:admin", "nobody"]), max_size=2, unique=True),
)


@given(policies, st.sampled_from(["", "role:readonly", "role:a"]), own_lines, own_lines, askers, st.randoms())
@settings(max_examples=examples(60), deadline=None)
def test_rbac_decisions_equal_the_reference_evaluator_in_any_order(
    policy: list[Line], usual: str, of_p: list[Line], of_q: list[Line], who: RbacRequester, rng: random.Random
) -> None:
    groups = {"p": ["team"], "q": ["crew", "ann"]}
    own = {"p": project_lines("p", of_p, groups["p"]), "q": project_lines("q", of_q, groups["q"])}
    projects = [as_project(name, lines, groups[name]) for name, lines in own.items()]
    answers = [{question: expected(policy, usual, own, who, question) for question in ASKED}]
    for _ in range(2):
        rng.shuffle(policy)
        rng.shuffle(projects)
        quoted = "\n".join(", ".join(f'"{word}"' for word in line) for line in policy)
        enforcer = RbacEnforcer(read_access_policy({"policy.csv": quoted, "policy.default": usual}), projects)
        questions = [*ASKED, *ASKED]
        rng.shuffle(questions)
        answers.append({question: enforcer.get_permissions(who).may(*question) for question in questions})
    assert answers[1] == answers[0]
    assert answers[2] == answers[0]


def test_rbac_decisions_are_the_same_from_many_threads() -> None:
    lines = "p, role:a, applications, *, p/*, allow\ng, ann, role:a\ng, team, role:readonly"
    policy = read_access_policy({"policy.csv": lines})
    alone = RbacEnforcer(policy).get_permissions(RbacRequester("ann", ("team",)))
    answers = [alone.may(*request) for request in ASKED]
    shared = RbacEnforcer(policy)
    with ThreadPoolExecutor(8) as threads:
        concurrent_answers = threads.map(
            lambda question: shared.get_permissions(RbacRequester("ann", ("team",))).may(*question), ASKED * 8
        )
    assert list(concurrent_answers) == list(chain.from_iterable([answers] * 8))


@given(policies, own_lines, askers, askers)
@settings(max_examples=examples(60), deadline=None)
def test_covering_permissions_allow_everything_the_covered_ones_allow(
    policy: list[Line], of_p: list[Line], one: RbacRequester, other: RbacRequester
) -> None:
    projects = [as_project("p", project_lines("p", of_p, ["team"]), ["team"])]
    quoted = "\n".join(", ".join(f'"{word}"' for word in line) for line in policy)
    enforcer = RbacEnforcer(read_access_policy({"policy.csv": quoted}), projects)
    wide, narrow = enforcer.get_permissions(one), enforcer.get_permissions(other)
    if wide.covers(narrow):
        assert not [question for question in ASKED if narrow.may(*question) and not wide.may(*question)]
    assert wide.covers(wide)
