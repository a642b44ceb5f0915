"""Differences as pages show them: whose they are, what is deleted, and both sides line by line."""

from __future__ import annotations

from argosy.features.applications.diff.field_changes import changes, counts, side_by_side, value_text
from argosy.gitops.analysis.cause import Cause, CauseKind
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import Difference
from argosy.gitops.application_client.differences import Differing
from argosy.kube.names import ResourceKey

APP = Application("web", "argocd")


def differing(name: str, live: str = "a: 1\n", desired: str = "a: 2\n", **causes: CauseKind) -> Differing:
    fields = tuple(Difference(f"/{pointer}", 2, 1) for pointer in causes)
    told = {f"/{pointer}": Cause(kind, "why") for pointer, kind in causes.items()}
    return Differing(ResourceKey("", "ConfigMap", "ml", name), fields, live, desired, causes=told)


def test_what_is_deleted_stands_first_and_is_called_so() -> None:
    found = changes(APP, [differing("b", a=CauseKind.YOUR_CHANGE), differing("z", desired=""), differing("c", live="")])
    assert [(each.name, each.deed) for each in found] == [("z", "prune"), ("b", "update"), ("c", "create")]


def test_mine_and_the_clusters_are_told_apart() -> None:
    one = differing("b", mine=CauseKind.YOUR_CHANGE, theirs=CauseKind.OTHER_CONTROLLER)
    (mine,), (theirs,) = changes(APP, [one], "mine"), changes(APP, [one], "cluster")
    assert [field.path for field in mine.fields] == ["mine"]
    assert [field.path for field in theirs.fields] == ["theirs"]
    assert (mine.hidden, theirs.hidden) == (1, 1)


def test_an_object_without_a_field_of_the_kind_is_left_out() -> None:
    assert changes(APP, [differing("b", a=CauseKind.WEBHOOK)], "mine") == ()


def test_counts_are_of_all_that_differs() -> None:
    found = counts([differing("b", a=CauseKind.WEBHOOK), differing("z", desired=""), differing("c", live="")])
    assert (found.create, found.update, found.prune, found.fields, found.total) == (1, 1, 1, 1, 3)


def test_lines_that_differ_stand_beside_each_other_with_their_numbers() -> None:
    found = side_by_side("a: 1\nb: 2\nc: 3\n", "a: 1\nb: 9\nc: 3\nd: 4\n")
    assert [(line.kind, line.left, line.right) for line in found] == [
        ("same", 1, 1), ("changed", 2, 2), ("same", 3, 3), ("new", 0, 4),
    ]  # fmt: skip


def test_what_is_the_same_far_away_is_a_gap() -> None:
    same = "".join(f"k{at}: 1\n" for at in range(40))
    found = side_by_side(f"a: 1\n{same}b: 1\n", f"a: 2\n{same}b: 2\n")
    assert [line.kind for line in found].count("gap") == 1
    assert len(found) < 20


def test_a_value_that_would_not_be_seen_is_quoted() -> None:
    assert (value_text("plain"), value_text(" a"), value_text(""), value_text(True)) == ("plain", '" a"', '""', "true")


def test_a_long_value_is_cut() -> None:
    assert len(value_text("x" * 5000)) == 2000
