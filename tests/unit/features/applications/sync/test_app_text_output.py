"""Text output of Applications: columns, waves, results, differences and trees; Go-style flags."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.cli.subcommand_flags_and_runner import normalize_go_flags
from argosy.cli.tables import TerminalOutput
from argosy.features.applications.read import text_output
from argosy.features.applications.sync.progress_output import (
    ResultLinePrinter,
    RetryReporter,
    WaveDisplay,
    render_waves,
)
from argosy.features.argocd_cli.cli import drop_server_flags
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.diff_presentation import DifferingObject, format_normal_diff, format_unified_diff
from argosy.gitops.application_client.tree_order import list_tree_lines
from argosy.gitops.live.parent_references import ParentRef
from argosy.gitops.live.resource_tree import ResourceNode
from argosy.kube.resource_key import ResourceKey
from argosy.main import build_parser

KEY = ResourceKey("", "ConfigMap", "ml", "settings")


def application(phase: str = "Running", **operation: object) -> object:
    return read_application(
        {
            "metadata": {"name": "models", "namespace": "argocd", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "source": {"repoURL": "https://git.example/ml", "path": "app", "targetRevision": "main"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
            },
            "status": {
                "sync": {"status": "OutOfSync", "revision": "4c1d2e3" + "0" * 33},
                "health": {"status": "Missing"},
                "resources": [
                    {"kind": "ConfigMap", "namespace": "ml", "name": "settings", "status": "OutOfSync", "syncWave": 1},
                    {"kind": "Secret", "namespace": "ml", "name": "token", "status": "OutOfSync"},
                ],
                "operationState": {
                    "operation": {"sync": {}},
                    "phase": phase,
                    "message": "one more",
                    "startedAt": "2026-01-01T00:00:00Z",
                    **operation,
                    "syncResult": {
                        "revision": "x",
                        "resources": [
                            {"group": "", "kind": "Secret", "namespace": "ml", "name": "token", "status": "Synced",
                             "message": "secret/token created", "syncPhase": "Sync"}
                        ],
                    },
                },
            },
        }
    )  # fmt: skip


def test_columns_are_two_spaces_apart_without_trailing_padding() -> None:
    assert text_output.format_aligned_columns([("A", "LONG", "C"), ("aaa", "b", "c")]) == [
        "A    LONG  C",
        "aaa  b     c",
    ]


def test_table_cells_drop_control_characters() -> None:
    assert text_output.format_aligned_columns([("A",), ("\x1b[2Jx\ny",)])[1] == " [2Jx y"


def test_list_prefixes_names_from_other_namespaces() -> None:
    screen, now = TerminalOutput(io.StringIO()), datetime(2026, 1, 2, tzinfo=UTC)
    app = application("Succeeded")
    here = text_output.render_list([app], screen, now, "argocd")[1]  # type: ignore[list-item]
    there = text_output.render_list([app], screen, now, "elsewhere")[1]  # type: ignore[list-item]
    assert here.split()[0] == "models" and there.split()[0] == "argocd/models"
    assert here.split()[-3:] == ["4c1d2e3", "Manual", "24h"]


def test_waves_are_listed_in_order_including_pending_ones() -> None:
    lines = render_waves(application(), TerminalOutput(io.StringIO()))  # type: ignore[arg-type]
    assert [line.split()[:2] for line in lines[:2]] == [["wave", "0"], ["wave", "1"]]
    assert "Synced" in lines[0] and "Secret/token" in lines[0] and "secret/token created" in lines[0]
    assert "OutOfSync" in lines[1] and "Missing" not in lines[1]
    assert lines[2] == " Running: one more"


def build_pending_application(*resources: dict[str, Any]) -> Application:
    """An operation is requested, but the status still contains the result of the previous one."""
    live = {"kind": "ConfigMap", "namespace": "ml", "name": "settings", "status": "OutOfSync"}
    result = {"group": "", "kind": "ConfigMap", "namespace": "ml", "name": "settings", "status": "Synced",
              "message": "configmap/settings unchanged", "syncPhase": "Sync"}  # fmt: skip
    state = {"operation": {"sync": {}}, "phase": "Succeeded", "message": "successfully synced (all tasks run)",
             "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z",
             "syncResult": {"revision": "x", "resources": [result]}}  # fmt: skip
    return read_application(
        {
            "metadata": {"name": "models", "namespace": "argocd"},
            "spec": {"source": {"repoURL": "https://git.example/ml", "path": "app"}, "destination": {"name": "a"}},
            "operation": {"sync": {}},
            "status": {"resources": [*resources, live], "operationState": state},
        }
    )


def test_only_missing_objects_are_shown_as_missing_while_pending() -> None:
    absent = {"kind": "ConfigMap", "namespace": "ml", "name": "absent", "status": "OutOfSync",
              "health": {"status": "Missing"}}  # fmt: skip
    same = {"kind": "ConfigMap", "namespace": "ml", "name": "same", "status": "Synced"}
    lines = render_waves(build_pending_application(absent, same), TerminalOutput(io.StringIO()))
    words = {line.split()[4]: line.split()[3] for line in lines}
    assert words == {"ConfigMap/absent": "Missing", "ConfigMap/same": "Synced", "ConfigMap/settings": "OutOfSync"}


def test_results_of_the_previous_operation_are_not_shown_for_a_pending_one() -> None:
    stream = io.StringIO()
    ResultLinePrinter(stream).show(build_pending_application())
    assert "settings" in stream.getvalue() and "unchanged" not in stream.getvalue()
    drawn = "\n".join(render_waves(build_pending_application(), TerminalOutput(io.StringIO())))
    assert "unchanged" not in drawn and "Succeeded" not in drawn


def test_wave_display_redraws_in_place_only_on_change() -> None:
    stream = io.StringIO()
    waves = WaveDisplay(stream)
    waves.show(application())  # type: ignore[arg-type]
    first = stream.getvalue()
    waves.show(application())  # type: ignore[arg-type]
    assert stream.getvalue() == first
    waves.show(application("Succeeded"))  # type: ignore[arg-type]
    assert stream.getvalue()[len(first) :].startswith("\x1b[3A")


def test_result_line_is_printed_once_per_state() -> None:
    stream = io.StringIO()
    lines = ResultLinePrinter(stream)
    for phase in ("Running", "Running", "Succeeded"):
        lines.show(application(phase))  # type: ignore[arg-type]
    printed = stream.getvalue().splitlines()
    assert printed[0].split()[0] == "TIMESTAMP"
    assert [line.split()[-4:][0] for line in printed[1:]].count("settings") <= 1
    assert len(printed) == 4  # header, two objects, and one object whose status is that of the Application again


def test_each_retry_is_reported_once() -> None:
    messages: list[str] = []
    retries = RetryReporter(messages.append)
    ended = "2026-01-01T00:00:01Z"
    for count in (0, 1, 1, 2):
        message = f"no such branch. Retrying attempt #{count} at 3:04PM."
        retries.show(application(finishedAt=ended if count else "", retryCount=count, message=message))  # type: ignore[arg-type]
    retries.show(application(retryCount=2))  # type: ignore[arg-type]
    retries.show(application("Failed", finishedAt=ended, retryCount=3))  # type: ignore[arg-type]
    assert messages == [f"models: no such branch. Retrying attempt #{count} at 3:04PM." for count in (1, 2)]


def test_differences_use_the_output_format_of_diff() -> None:
    differing_object = DifferingObject(KEY, (), "a\nb\nc\n", "a\nx\nc\nd\n")
    assert format_normal_diff(differing_object) == ["2c2", "< b", "---", "> x", "3a4", "> d"]
    assert format_normal_diff(DifferingObject(KEY, (), "a\nb\n", "")) == ["1,2d0", "< a", "< b"]
    assert format_unified_diff(differing_object)[:2] == [
        "--- live/ConfigMap/ml/settings",
        "+++ desired/ConfigMap/ml/settings",
    ]


def test_tree_lists_children_below_parents_and_omits_owner_cycles() -> None:
    keys = [ResourceKey("", "A", "ml", name) for name in ("root", "one", "two", "three")]
    root, one, two, three = keys

    def node(key: ResourceKey, parent: ResourceKey | None) -> ResourceNode:
        return ResourceNode(key, "v1", parents=(ParentRef(parent, ""),) if parent else ())

    ring = [ResourceKey("", "A", "ml", name) for name in ("this", "that")]
    nodes = [node(root, None), node(one, root), node(two, one), node(three, root)]
    lines = list(list_tree_lines([*nodes, node(ring[0], ring[1]), node(ring[1], ring[0])]))
    assert [(line.node.key.name, line.is_last) for line in lines] == [
        ("root", ()), ("one", (False,)), ("two", (False, True)), ("three", (True,)),
    ]  # fmt: skip


def test_boolean_flags_accept_go_style_values() -> None:
    parser = build_parser("app")
    words = ["app", "sync", "models", "--prune=true", "--force=false", "--dry-run"]
    assert normalize_go_flags(parser, words) == ["app", "sync", "models", "--prune", "--dry-run"]
    assert normalize_go_flags(parser, ["app", "delete", "x", "--cascade"]) == ["app", "delete", "x", "--cascade=true"]
    assert normalize_go_flags(parser, ["app", "delete", "x", "--cascade=false"])[-1] == "--cascade=false"


def test_argocd_server_flags_are_dropped() -> None:
    words = ["--server", "x:443", "app", "--grpc-web", "list", "--auth-token=t", "-o", "name", "--kube-context", "c"]
    assert drop_server_flags(words) == ["app", "list", "-o", "name", "--context", "c"]


def test_list_of_1000_applications_keeps_columns_aligned() -> None:
    wire = {**application().wire}  # type: ignore[attr-defined]
    names = ["a" * 200, *(f"app-{number:03}" for number in range(999))]
    apps = [read_application({**wire, "metadata": {**wire["metadata"], "name": name}}) for name in names]
    lines = text_output.render_list(apps, TerminalOutput(io.StringIO()), datetime(2026, 1, 2, tzinfo=UTC), "argocd")
    assert len(lines) == 1001
    assert {line.index("OutOfSync") - lines[0].index("STATUS") for line in lines[1:]} == {3}


CAUSE = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen: the end"


@pytest.mark.parametrize("width", [100, 120, 160])
def test_cause_is_truncated_to_the_terminal_width(width: int) -> None:
    screen, now = TerminalOutput(io.StringIO()), datetime(2026, 1, 2, tzinfo=UTC)
    app = application(message=CAUSE)
    assert CAUSE in text_output.render_list([app], screen, now, "argocd")[1]  # type: ignore[list-item]
    screen.width = width
    head, row = text_output.render_list([app], screen, now, "argocd")  # type: ignore[list-item]
    assert "WHY" in head and "one two three" in row and "…" in row and "4c1d2e3" in row
    assert len(row) == width


def test_cause_that_does_not_fit_the_row_is_printed_below_it() -> None:
    screen, now = TerminalOutput(io.StringIO()), datetime(2026, 1, 2, tzinfo=UTC)
    screen.width = 80
    apps = [application(message=CAUSE), application(message="short")]
    head, row, below, _, short = text_output.render_list(apps, screen, now, "argocd")  # type: ignore[arg-type]
    assert "WHY" not in head and "4c1d2e3" in row
    assert below.startswith("  └ one two three") and below.endswith("…") and short == "  └ short"
    assert len(below) == 80 and all(len(line) <= 80 for line in (head, row))


def test_long_cause_is_truncated_without_a_terminal() -> None:
    screen, now = TerminalOutput(io.StringIO()), datetime(2026, 1, 2, tzinfo=UTC)
    long = "why " * 200
    _, row = text_output.render_list([application(message=long)], screen, now, "argocd")  # type: ignore[list-item]
    assert f"{long[:299]}… " in row and "4c1d2e3" in row
    assert text_output.render_wide_list([application(message=long)], {})[1].endswith(long.strip())  # type: ignore[list-item]


def test_wide_list_has_the_full_cause_in_the_last_column() -> None:
    app = application(message=CAUSE)
    head, row = text_output.render_wide_list([app], {})  # type: ignore[list-item]
    assert head.split()[-1] == "WHY" and row.endswith(f"  {CAUSE}")
    head, row = text_output.render_wide_list([app])  # type: ignore[list-item]
    assert head.split()[-1] == "TARGET" and CAUSE not in row


def test_health_check_message_is_prefixed_with_health() -> None:
    wire = {**application("Succeeded").wire}  # type: ignore[attr-defined]
    (result,) = wire["status"]["operationState"]["syncResult"]["resources"]
    result["message"] = "Secret is configured"
    lines = render_waves(read_application(wire), TerminalOutput(io.StringIO()))
    assert any(line.endswith("Secret/token  health: Secret is configured") for line in lines)


def test_summary_line_suggests_the_application_that_needs_attention() -> None:
    line = text_output.render_summary_line([application()])  # type: ignore[list-item]
    assert line == "1 app · 0 Synced · 1 not          next: argosy app get models"


@pytest.mark.parametrize(
    ("others", "advice"),
    [
        ([], "argosy app diff models"),
        ([("Synced", "Degraded")], "argosy app get app-0"),
        ([("OutOfSync", "Missing")], "argosy app diff models"),
    ],
)
def test_summary_prefers_degraded_over_out_of_sync_over_missing(others: list[tuple[str, str]], advice: str) -> None:
    def app(name: str, sync: str, health: str, history: list[object]) -> Application:
        status: dict[str, Any] = {"sync": {"status": sync}, "health": {"status": health}, "history": history}
        status["resources"] = [{"kind": "ConfigMap", "name": "a", "status": sync}]
        return read_application({"metadata": {"name": name}, "spec": {}, "status": status})

    deployed = [{"id": 1, "revision": "a", "deployedAt": "2026-01-01T00:00:00Z"}]
    apps = [*(app(f"app-{number}", *states, []) for number, states in enumerate(others)),
            app("models", "OutOfSync", "Healthy", deployed)]  # fmt: skip
    assert text_output.render_summary_line(apps).endswith(f"next: {advice}")
