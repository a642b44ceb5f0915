"""Serves `/doctor`: findings grouped by cause, with the command that fixes each.

In: a request. Out: findings. Never: fixes anything; shows findings to a caller who may not see all Applications.
"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from itertools import groupby
from typing import Any, Final

from argosy.features.doctor.examination_of_visible_applications import examine_visible
from argosy.features.doctor.service import DoctorOptions
from argosy.gitops.analysis.diagnosis_table_and_score import DiagnosisLine
from argosy.gitops.cluster_view.health_message_of_causing_object import explain_health_message
from argosy.web.objects_of_visible_applications import resolve_whole_installation
from argosy.web.request import RequestContext
from argosy.web.responses import PageResponse
from argosy.web.route import QueryParameter, RequiresPermission, Route

SECONDS: Final = 6.0
PROGRAMS: Final = ("argosy ", "argocd ", "kubectl ", "oc ", "git ")


async def render_doctor_page(lock: asyncio.Lock, request: RequestContext) -> PageResponse:
    return PageResponse("doctor/doctor.html", await build_page_values(request, lock))


async def build_page_values(request: RequestContext, lock: asyncio.Lock) -> dict[str, Any]:
    """Use statuses only; with `deep`, also compare unhealthy Applications and prove fixes."""
    is_deep = request.query.get_bool("deep")
    report = await examine_visible(request, DoctorOptions(is_quick=not is_deep, seconds=SECONDS), lock)
    lines = sorted(report.lines, key=lambda item: (-item.severity.weight, item.cause, item.app))
    groups = [
        _build_group(request, cause, list(group_lines))
        for cause, group_lines in groupby(lines, key=lambda item: item.cause)
    ]
    worst = {item["severity"] for item in groups}
    return {
        "title": "Doctor",
        "section": "settings",
        "state": "bad" if "error" in worst else "warn" if "warning" in worst else "ok",
        "crumbs": [("Settings", "/settings")],
        "checks": [
            {"name": item.name, "mark": str(item.mark), "text": item.text} for item in report.examination.checks
        ],
        "groups": groups,
        "apps": len(report.examination.chosen),
        "notes": list(report.examination.view.notes),
        "follow_ups": list(report.iterate_follow_ups()),
        "is_deep": is_deep,
    }


def _build_group(request: RequestContext, cause: str, lines: list[DiagnosisLine]) -> dict[str, Any]:
    first = lines[0]
    return {
        "cause": explain_health_message(request.cluster_view.cache.get, cause),
        "severity": first.severity.value,
        "rule": first.finding.rule.id if first.finding else "",
        "sure": first.finding.rule.certainty if first.finding else "",
        "rows": [
            {
                "app": line.app,
                "state": line.state,
                "fix": line.fix,
                "word": line.remedy.label,
                "commands": list_commands(line.fix),
                "said": drop_commands(line.fix),
                "path": get_application_path(request, line.app),
            }
            for line in lines
        ],
    }


def list_commands(text: str) -> list[str]:
    """Return the commands in an advice."""
    return [part for part in _split_advice(text) if part.startswith(PROGRAMS)]


def drop_commands(text: str) -> str:
    """Return the advice without its commands."""
    return "; ".join(part for part in _split_advice(text) if not part.startswith(PROGRAMS))


def _split_advice(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"; |: (?=(?:argosy|argocd|kubectl|oc|git) )", text) if part.strip()]


def get_application_path(request: RequestContext, app: str) -> str:
    namespace, _, name = app.rpartition("/")
    row = request.cluster_view.find_row(namespace or request.service.control_namespace, name)
    return f"/apps/{row.namespace}/{row.name}" if row else ""


def build_routes(lock: asyncio.Lock) -> tuple[Route, ...]:
    """`lock` allows one examination at a time."""
    return (
        Route(
            "GET",
            "/doctor",
            RequiresPermission("applications", "get", resolve_whole_installation),
            partial(render_doctor_page, lock),
            "Show findings and their fixes.",
            query=(QueryParameter("deep", "Also compare unhealthy Applications, and prove fixes.", "boolean"),),
        ),
    )
