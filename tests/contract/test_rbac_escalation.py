"""RBAC escalation checks: every server answers as kube-apiserver 1.32 did.

Its answers are in `tests/data/rbac/escalation.json`; the flavour `real` compares them with a real server again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.escalation import Case, ask
from support.escalation_of_bindings import AGGREGATION, BINDINGS, IMPERSONATION
from support.escalation_of_roles import ESCALATE, NAMES, PATHS, RULES, SCOPES, UPDATES

if TYPE_CHECKING:
    from contract.conftest import Flavour

pytestmark = pytest.mark.anyio

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "rbac" / "escalation.json").read_text())
TABLES = {
    "rules": RULES,
    "names": NAMES,
    "paths": PATHS,
    "scopes": SCOPES,
    "updates": UPDATES,
    "escalate": ESCALATE,
    "bindings": BINDINGS,
    "aggregation": AGGREGATION,
    "impersonation": IMPERSONATION,
}
# The embedded server rejects these too, with a different error:
# - the name of an object is generated before the check, so the error contains it;
# - an old resourceVersion is rejected first;
# - a roleRef that no server can resolve is invalid, where kube-apiserver answers with 500 or without the field.
NOT_RESOLVED = '422 Invalid: RoleBinding.rbac.authorization.k8s.io "binding" is invalid: '
KINDS = 'supported values: "Role", "ClusterRole"'
DIFFERENT = {
    "a generated name": (
        '403 Forbidden: roles.rbac.authorization.k8s.io "$GENERATED" is forbidden: user "$USER" '
        '(groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["delete"]}'
    ),
    "an old resourceVersion and strong rules": (
        '409 Conflict: Operation cannot be fulfilled on roles.rbac.authorization.k8s.io "target": the object has been '
        "modified; please apply your changes to the latest version and try again"
    ),
    "a ClusterRoleBinding of a Role, limited": (
        '422 Invalid: ClusterRoleBinding.rbac.authorization.k8s.io "$NS-binding" is invalid: roleRef.kind: '
        'Unsupported value: "Role": supported values: "ClusterRole"'
    ),
    "a roleRef of an unknown kind": f'{NOT_RESOLVED}roleRef.kind: Unsupported value: "Pod": {KINDS}',
    "a roleRef without a name": f"{NOT_RESOLVED}roleRef.name: Required value",
    "no roleRef": (f'{NOT_RESOLVED}[roleRef.kind: Unsupported value: "": {KINDS}, roleRef.name: Required value]'),
}


@pytest.mark.parametrize("table", TABLES)
async def test_limited_user_gets_the_answers_recorded_from_kube_apiserver(flavour: Flavour, table: str) -> None:
    expected = dict(RECORDED[table])
    if flavour.name != "real":
        expected.update({name: answer for name, answer in DIFFERENT.items() if name in expected})
    assert await ask_all(flavour, TABLES[table]) == expected


async def ask_all(flavour: Flavour, cases: Sequence[Case]) -> dict[str, str]:
    answers = {}
    for case in cases:
        assert case.name not in answers, f"two cases are named {case.name!r}"
        answers[case.name] = re.sub(r'"g-[a-z0-9]{5}"', '"$GENERATED"', await ask(flavour.cluster, case))
    return answers


def test_every_escalation_case_is_recorded_once_and_listed_differences_are_real() -> None:
    named = {table: [case.name for case in cases] for table, cases in TABLES.items()}
    assert {table: list(answers) for table, answers in RECORDED.items()} == named
    answers = {name: answer for table in RECORDED.values() for name, answer in table.items()}
    assert sum(map(len, named.values())) == len(answers)
    assert all(answers[name] != answer for name, answer in DIFFERENT.items())
