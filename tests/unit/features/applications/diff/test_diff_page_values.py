"""Differences as pages show them: by cause, with prunes first, side by side."""

from __future__ import annotations

from argosy.features.applications.diff.page_values import (
    build_changes,
    build_side_by_side,
    count_changes,
    render_value,
)
from argosy.gitops.analysis.difference_cause_kinds import Cause, CauseKind
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import FieldDifference
from argosy.gitops.application_client.diff_presentation import DifferingObject
from argosy.kube.resource_key import ResourceKey

APP = Application("web", "argocd")


def differing(name: str, live: str = "a: 1\n", desired: str = "a: 2\n", **causes: CauseKind) -> DifferingObject:
    fields = tuple(FieldDifference(f"/{pointer}", 2, 1) for pointer in causes)
    causes_by_pointer = {f"/{pointer}": Cause(kind, "why") for pointer, kind in causes.items()}
    return DifferingObject(ResourceKey("", "ConfigMap", "ml", name), fields, live, desired, causes=causes_by_pointer)


def test_pruned_objects_are_listed_first() -> None:
    changes = build_changes(
        APP, [differing("b", a=CauseKind.GIT_CHANGE), differing("z", desired=""), differing("c", live="")]
    )
    assert [(change.name, change.deed) for change in changes] == [("z", "prune"), ("b", "update"), ("c", "create")]


def test_filter_separates_git_changes_from_cluster_changes() -> None:
    one = differing("b", mine=CauseKind.GIT_CHANGE, theirs=CauseKind.OTHER_CONTROLLER)
    (our_change,), (cluster_change,) = build_changes(APP, [one], "mine"), build_changes(APP, [one], "cluster")
    assert [field.path for field in our_change.fields] == ["mine"]
    assert [field.path for field in cluster_change.fields] == ["theirs"]
    assert (our_change.hidden, cluster_change.hidden) == (1, 1)


def test_object_without_a_matching_field_is_left_out() -> None:
    assert build_changes(APP, [differing("b", a=CauseKind.WEBHOOK)], "mine") == ()


def test_change_counts_cover_create_update_prune_and_fields() -> None:
    counts = count_changes([differing("b", a=CauseKind.WEBHOOK), differing("z", desired=""), differing("c", live="")])
    assert (counts.create, counts.update, counts.prune, counts.fields, counts.total) == (1, 1, 1, 1, 3)


def test_side_by_side_diff_pairs_changed_lines_with_line_numbers() -> None:
    lines = build_side_by_side("a: 1\nb: 2\nc: 3\n", "a: 1\nb: 9\nc: 3\nd: 4\n")
    assert [(line.kind, line.left, line.right) for line in lines] == [
        ("same", 1, 1), ("changed", 2, 2), ("same", 3, 3), ("new", 0, 4),
    ]  # fmt: skip


def test_side_by_side_diff_collapses_long_unchanged_parts() -> None:
    same = "".join(f"k{at}: 1\n" for at in range(40))
    lines = build_side_by_side(f"a: 1\n{same}b: 1\n", f"a: 2\n{same}b: 2\n")
    assert [line.kind for line in lines].count("gap") == 1
    assert len(lines) < 20


def test_empty_or_padded_value_is_quoted() -> None:
    assert (render_value("plain"), render_value(" a"), render_value(""), render_value(True)) == (
        "plain",
        '" a"',
        '""',
        "true",
    )


def test_long_value_is_truncated() -> None:
    assert len(render_value("x" * 5000)) == 2000
