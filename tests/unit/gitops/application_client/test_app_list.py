"""Tests the Application list: query strings, rows, filters, facets and sorting."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.annotations import HOLD
from argosy.gitops.application_client.filtered_app_list import (
    AppListQuery,
    AppRow,
    build_app_list_page,
    build_row,
    read_query,
)
from argosy.gitops.application_client.list_query import SORTS
from support.counted_calls import calls_of

HASH = "0123456789abcdef0123456789abcdef01234567"


def manifest(name: str = "fraud-dev", sync: str = "Synced", health: str = "Healthy", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": name,
            "namespace": "argocd",
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": more.get("labels") or {"team": "fraud"},
            "annotations": more.get("annotations") or {},
        },
        "spec": {
            "project": more.get("project", "ml"),
            "source": {"repoURL": "https://git.example.com/ml.git", "path": more.get("path", "overlays/dev")},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
            "syncPolicy": more.get("policy", {}),
        },
        "status": {
            "sync": {"status": sync, "revision": HASH},
            "health": {"status": health},
            "history": [{"id": 0, "revision": HASH, "deployedAt": "2026-02-02T00:00:00Z"}],
            "resources": [
                {"version": "v1", "kind": "ConfigMap", "namespace": "ml", "name": "a", "status": sync},
                {"version": "v1", "kind": "ConfigMap", "namespace": "ml", "name": "b", "status": "Synced"},
            ],
        },
    }


def fleet(count: int) -> list[AppRow]:
    """Return rows ordered by name, as callers of build_app_list_page pass them."""
    syncs, healths = ("Synced", "OutOfSync", "Unknown"), ("Healthy", "Degraded", "Progressing", "Missing", "Suspended")
    envs = ("dev", "staging", "production")
    return [
        build_row(
            manifest(
                f"app-{number:05}",
                syncs[number % 3],
                healths[number % 5],
                project=f"project-{number % 7}",
                path=f"apps/{number}/overlays/{envs[number % 3]}",
                labels={"team": f"team-{number % 11}", "tier": f"tier-{number % 2}"},
            )
        )
        for number in range(count)
    ]


ROWS = fleet(210)


def test_row_contains_all_displayed_fields() -> None:
    row = build_row(manifest(sync="OutOfSync", policy={"automated": {}}))
    assert (row.namespace, row.name, row.project, row.environment) == ("argocd", "fraud-dev", "ml", "dev")
    assert (row.sync, row.health, row.operation, row.policy) == ("OutOfSync", "Healthy", "None", "Auto")
    assert (row.short, row.revision, row.synced) == ("0123456", HASH, "2026-02-02T00:00:00Z")
    assert (row.cluster, row.destination_namespace, row.ref) == ("in-cluster", "ml", "HEAD")
    assert (row.differing, row.objects, row.why) == (1, 2, "1 of 2 objects differ: ConfigMap/a")


def test_unreadable_application_becomes_a_row_with_a_reason() -> None:
    row = build_row({"metadata": {"name": "odd", "namespace": "argocd"}, "spec": {"source": "a text", "project": "p"}})
    assert (row.name, row.project, row.sync) == ("odd", "p", "Unknown")
    assert row.why


def test_row_shares_labels_with_the_application() -> None:
    application = manifest()
    assert build_row(application).labels is application["metadata"]["labels"]


def test_rbac_object_includes_namespace_only_outside_control_namespace() -> None:
    row = build_row(manifest())
    assert row.rbac_object("argocd") == "ml/fraud-dev"
    assert row.rbac_object("openshift-gitops") == "ml/argocd/fraud-dev"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "q=fraud+dev&sync=OutOfSync&sync=Unknown&health=Degraded&env=dev&project=ml&label=team%3Dfraud&cluster=in-cluster",
        "view=tiles&ns=ml&repo=https%3A%2F%2Fx%2Fy.git&rev=main&autosync=manual&op=Failed&fav=1&held=0&sort=-synced&page=3",
    ],
)
def test_query_string_round_trips(text: str) -> None:
    assert read_query(text).text() == read_query(read_query(text).text()).text()
    assert read_query(read_query(text).text()) == read_query(text)
    assert set(text.split("&")) == set(read_query(text).text().split("&"))


def test_filter_values_ignore_case_and_are_split_at_commas() -> None:
    query = read_query("sync=outofsync,SYNCED&autosync=Enabled")
    assert (query.sync, query.autosync, query.told) == (("OutOfSync", "Synced"), ("auto",), ())


def test_unknown_filter_value_is_reported_and_the_rest_applies() -> None:
    query = read_query("sync=Wrong&health=Healthy&label=((&page=0&view=pie&sort=size&fav=maybe&other=x")
    assert query == AppListQuery(health=("Healthy",), told=query.told)
    assert [message.partition(":")[0] for message in query.told] == ["sync", "label", "page", "view", "sort", "fav"]
    assert query.told[0] == "sync: unknown value 'Wrong'; choose one of Synced, OutOfSync, Unknown"


def test_changing_a_filter_resets_page_and_changing_page_keeps_filters() -> None:
    query = read_query("sync=OutOfSync&page=3")
    assert query.text(q="x") == "q=x&sync=OutOfSync"
    assert query.text(page=4) == "sync=OutOfSync&page=4"
    assert query.toggled("sync", "OutOfSync") == ""
    assert query.toggled("sync", "Unknown") == "sync=OutOfSync&sync=Unknown"


def test_every_active_filter_has_a_removable_chip() -> None:
    query = read_query("q=x&sync=OutOfSync&held=1&sort=-name")
    assert query.chips == [
        ("q", "x", "sync=OutOfSync&held=1&sort=-name"),
        ("sync", "OutOfSync", "q=x&held=1&sort=-name"),
        ("held", "yes", "q=x&sync=OutOfSync&sort=-name"),
    ]
    assert (query.is_filtered, query.cleared, AppListQuery().is_filtered) == (True, "sort=-name", False)


def test_page_has_at_most_fifty_matching_rows() -> None:
    page = build_app_list_page(ROWS, read_query("sync=OutOfSync&page=2"))
    assert (page.total, page.matching, page.page, page.pages) == (210, 70, 2, 2)
    assert (len(page.rows), page.first) == (20, 51)
    assert build_app_list_page(ROWS, read_query("page=99")).page == 5


def test_facet_counts_apply_all_other_filters() -> None:
    page = build_app_list_page(ROWS, read_query("sync=OutOfSync&health=Degraded"))
    syncs = {option.value: (option.number, option.is_chosen) for option in page.facets["sync"]}
    both = [row for row in ROWS if row.health == "Degraded"]
    assert syncs["Synced"] == (sum(row.sync == "Synced" for row in both), False)
    assert syncs["OutOfSync"] == (page.matching, True)
    assert {option.value: option.number for option in page.facets["project"]} == {
        f"project-{number}": sum(row.project == f"project-{number}" and row.sync == "OutOfSync" for row in both)
        for number in range(7)
    }
    assert page.count(sync="OutOfSync") == page.matching == page.count(health="Degraded")


def test_hidden_rows_are_not_counted() -> None:
    page = build_app_list_page(ROWS, AppListQuery(), lambda row: row.project == "project-1")
    assert (page.total, page.matching) == (30, 30)
    assert [option.value for option in page.facets["project"]] == ["project-1"]
    assert sum(page.matrix.values()) == 30


def test_labels_narrow_results_and_search_matches_all_words() -> None:
    labelled = build_app_list_page(ROWS, read_query("label=team%3Dteam-1&label=tier%21%3Dtier-0"))
    assert {(row.labels["team"], row.labels["tier"]) for row in labelled.rows} == {("team-1", "tier-1")}
    searched = build_app_list_page(ROWS, read_query("q=APP-0001+project-4"))
    assert [row.name for row in searched.rows] == ["app-00011", "app-00018"]


def test_rows_can_be_filtered_by_hold_and_favourite() -> None:
    rows = [*ROWS[:3], build_row(manifest("held", annotations={HOLD: "because"}))]
    assert [row.name for row in build_app_list_page(rows, read_query("held=1")).rows] == ["held"]
    assert [row.name for row in build_app_list_page(rows, read_query("fav=1"), favourites={ROWS[1].key}).rows] == [
        "app-00001"
    ]


@pytest.mark.parametrize("sort", [*SORTS, *(f"-{order}" for order in SORTS)])
def test_every_sort_order_keeps_all_rows(sort: str) -> None:
    page = build_app_list_page(ROWS, AppListQuery(sort=sort), page_size=len(ROWS))
    assert {row.key for row in page.rows} == {row.key for row in ROWS}


def test_health_sort_puts_worst_first_and_orders_by_name_within() -> None:
    rows = build_app_list_page(ROWS, AppListQuery(sort="health"), page_size=len(ROWS)).rows
    assert rows[0].health == "Degraded" and rows[-1].health == "Healthy"
    assert [row.name for row in rows if row.health == "Degraded"] == sorted(
        row.name for row in rows if row.health == "Degraded"
    )


def test_list_page_takes_fewer_than_100_calls_per_row() -> None:
    rows = fleet(300) * 17
    assert calls_of(build_app_list_page, rows, read_query("q=app&sync=OutOfSync&sort=-health")) < 100 * len(rows)
