"""Expressions of notifications: what they are, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.language.argocd_names import namespaces
from argosy.language.expr import compile_expression
from argosy.model.errors import LimitError, UserError

NOW = datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
APP = {
    "metadata": {"name": "wine", "annotations": {"mlops.dev/notebook-status": '{"failed": 2, "failedJobs": ["a"]}'}},
    "spec": {"source": {"repoURL": "git@github.com:team/wine.git"}},
    "status": {
        "sync": {"status": "OutOfSync", "revision": "abcdef0"},
        "operationState": {"phase": "Succeeded", "startedAt": "2026-01-01T00:00:00Z"},
        "health": {"status": "Healthy"},
        "resources": [{"kind": "Deployment", "status": "OutOfSync"}, {"kind": "Service", "status": "Synced"}],
    },
}
VALUES = {"app": APP, **namespaces(NOW)}

MEANT: list[tuple[str, Any]] = [
    ("app.status.operationState.phase in ['Succeeded'] and app.status.health.status == 'Healthy'", True),
    ("app.status?.operationState.phase in ['Error', 'Failed']", False),
    ("app.status.sync.status == \"Unknown\" || app.status.sync.status != 'Synced'", True),
    ("time.Now().Sub(time.Parse(app.status.operationState.startedAt)).Minutes() >= 5", True),
    ("time.Now() - time.Parse(app.status.operationState.startedAt) > 15 * time.Minute", False),
    ("app.metadata.annotations['mlops.dev/notebook-status'] contains 'Jobs'", True),
    ("let s = fromJSON(app.metadata.annotations['mlops.dev/notebook-status']); s.failed > 0 ? s.failedJobs : 0", ["a"]),
    ("filter(app.status.resources, {.status == 'OutOfSync'}) | map(.kind) | join(', ')", "Deployment"),
    ("any(app.status.resources, #.kind == 'Service') && none(app.status.resources, .kind == 'Pod')", True),
    ("count(app.status.resources, .status == 'Synced') + len(app.status.resources)", 3),
    ("'mlops.dev/none' in app.metadata.annotations", False),
    ("'x' not in ['x', 'y'] or not false", True),
    ("app.status?.nothing?.here", None),
    ("app.status.nothing ?? 'none'", "none"),
    ("app.status.sync.revision[:3] + '…'", "abc…"),
    ("repo.FullNameByRepoURL(app.spec.source.repoURL)", "team/wine"),
    ("repo.RepoURLToHTTPS(app.spec.source.repoURL)", "https://github.com/team/wine.git"),
    ("strings.ReplaceAll('a-b', '-', '+')", "a+b"),
    ("1 + 2 * 3", 7),
    ("7 / 2", 3.5),
    ("2 ** 3 ** 2", 512.0),
    ("-7 % 3", -1),
    ("[1, 2, 3][-1]", 3),
    ("reduce([1, 2, 3], #acc + #)", 6),
    ("sortBy([{n: 2}, {n: 1}], .n) | map(.n)", [1, 2]),
    ("'abc' matches '^a.c$'", True),
    ("9223372036854775807 + 1", -9223372036854775808),
    ("1 == true", False),
]


@pytest.mark.parametrize(("text", "value"), MEANT)
def test_an_expression_is_what_expr_makes_of_it(text: str, value: Any) -> None:
    assert compile_expression(text).evaluate(VALUES) == value


REFUSED = [
    ("(", "ends too early"),
    ("a b", "'b' at 3"),
    ("app.nothing.here", "cannot fetch 'here' from nil"),
    ("'a' < 1", "cannot be compared"),
    ("'a' and true", "needs true or false"),
    ("app.status.__class__.x", "cannot fetch 'x' from nil"),
    ("'text'.upper", "cannot fetch 'upper' from a text"),
    ("time.Parse('yesterday')", "is no time"),
    ("len(5)", "len cannot be asked"),
    ("repo.GetCommitMetadata('abc')", "nothing is known"),
    ("unknown('x')", "is no function"),
    ("'a' matches '('", "is no pattern"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_cannot_be_is_refused_in_a_sentence(text: str, why: str) -> None:
    with pytest.raises(UserError) as told:
        compile_expression(text).evaluate(VALUES)
    assert why in str(told.value)


DEAR = [
    "(" * 200 + "1" + ")" * 200,
    "1..1000000 | map(1..1000000)",
    "repeat('a', 10000000)",
    "map(1..1000, map(1..1000, # + 1))",
    "x" * 20_000,
    " + ".join(["'" + "a" * 90 + "'"] * 90) + " | repeat(100000)",
]


@pytest.mark.parametrize("text", DEAR, ids=range(len(DEAR)))
def test_an_expression_cannot_spend_more_than_its_limits(text: str) -> None:
    with pytest.raises(LimitError):
        compile_expression(text).evaluate(VALUES)


def test_an_expression_tells_which_names_it_asks_for() -> None:
    assert compile_expression("let a = job.x; a == app.y && any([1], # > 0)").names == {"app", "job"}
