"""Serves `/doctor`: findings grouped by cause, with the command that fixes each.

In: a request. Out: findings. Never: fixes anything; shows findings to a caller who may not see all Applications.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any, Final

from argosy.features.doctor.service import Wanted
from argosy.features.doctor.visible_report import examined
from argosy.gitops.analysis.diagnosis import Line
from argosy.gitops.cluster_view.health_causes import told
from argosy.web.owned_objects import everything
from argosy.web.request import Asked
from argosy.web.responses import Page
from argosy.web.route import May, Parameter, Route

SECONDS: Final = 6.0
PROGRAMS: Final = ("argosy ", "argocd ", "kubectl ", "oc ", "git ")


async def page(asked: Asked) -> Page:
    return Page("doctor/doctor.html", await values(asked))


async def values(asked: Asked) -> dict[str, Any]:
    """Use statuses only; with `deep`, also compare unhealthy Applications and prove fixes."""
    is_deep = asked.query.flag("deep")
    report = await examined(asked, Wanted(is_quick=not is_deep, seconds=SECONDS))
    lines = sorted(report.lines, key=lambda each: (-each.severity.weight, each.cause, each.app))
    groups = [_group(asked, cause, list(found)) for cause, found in groupby(lines, key=lambda each: each.cause)]
    worst = {each["severity"] for each in groups}
    return {
        "title": "Doctor",
        "section": "settings",
        "state": "bad" if "error" in worst else "warn" if "warning" in worst else "ok",
        "crumbs": [("Settings", "/settings")],
        "checks": [{"name": each.name, "mark": str(each.mark), "text": each.text} for each in report.found.checks],
        "groups": groups,
        "apps": len(report.found.chosen),
        "notes": list(report.found.view.notes),
        "follow_ups": list(report.follow_ups()),
        "is_deep": is_deep,
    }


def _group(asked: Asked, cause: str, lines: list[Line]) -> dict[str, Any]:
    first = lines[0]
    return {
        "cause": told(asked.site.lookout.cache.get, cause),
        "severity": first.severity.value,
        "rule": first.finding.rule.id if first.finding else "",
        "sure": first.finding.rule.why_sure if first.finding else "",
        "rows": [
            {
                "app": each.app,
                "state": each.state,
                "fix": each.fix,
                "word": each.remedy.word,
                "commands": commands_of(each.fix),
                "said": words_of(each.fix),
                "path": path_of(asked, each.app),
            }
            for each in lines
        ],
    }


def commands_of(text: str) -> list[str]:
    """Return the commands in an advice."""
    return [part for part in _parts(text) if part.startswith(PROGRAMS)]


def words_of(text: str) -> str:
    """Return the advice without its commands."""
    return "; ".join(part for part in _parts(text) if not part.startswith(PROGRAMS))


def _parts(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"; |: (?=(?:argosy|argocd|kubectl|oc|git) )", text) if part.strip()]


def path_of(asked: Asked, app: str) -> str:
    namespace, _, name = app.rpartition("/")
    row = asked.site.lookout.row(namespace or asked.site.desk.control, name)
    return f"/apps/{row.namespace}/{row.name}" if row else ""


ROUTES = (
    Route(
        "GET", "/doctor", May("applications", "get", everything), page, "Show findings and their fixes.",
        query=(Parameter("deep", "Also compare unhealthy Applications, and prove fixes.", "boolean"),),
    ),
)  # fmt: skip
