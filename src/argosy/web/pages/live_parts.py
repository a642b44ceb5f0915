"""Live parts of pages about models, notebooks, environments and activity.

In: a request, as the page itself gets it. Out: whole elements by their ids. Never: what only one caller may see, beyond
what the page shows; the token of a form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.gitops.application import APPLICATION
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.models.facts import INFERENCE_SERVICE
from argosy.web.live_updates.live_parts import Live, Touches
from argosy.web.object_lookup import PROJECT
from argosy.web.pages import activity, environments, model, models, notebook, notebooks
from argosy.web.pages.template_rendering import part
from argosy.web.request import Asked
from argosy.web.route import Filtered, May
from argosy.web.views.environments import concerns
from argosy.web.views.owned_objects import JOB
from argosy.web.views.owned_objects import model as a_model
from argosy.web.views.owned_objects import notebook as a_notebook

POD, DEPLOYMENT = GroupKind("", "Pod"), GroupKind("apps", "Deployment")
LISTS: Final = Filtered("applications", "get")


def touching(*kinds: GroupKind) -> Touches:
    names = {each.kind for each in kinds}

    def touches(before: Manifest | None, after: Manifest | None) -> bool:
        return (after or before or {}).get("kind") in names

    return touches


def in_namespace(asked: Asked, before: Manifest | None, after: Manifest | None) -> bool:
    """Of a model or a job: its neighbours are what its page tells of, and its Application says whose it is."""
    changed: Mapping[str, Any] = (after or before or {}).get("metadata") or {}
    return changed.get("namespace") in (asked.values.get("ns"), asked.site.desk.control)


def _mark(values: Mapping[str, Any]) -> dict[str, str]:
    return {"page-state": part("page.html", "page_mark", values["state"], values["title"])}


async def of_models(asked: Asked) -> dict[str, str]:
    values = models.values(asked)
    return {each.row.id: part("models.html", "model_row", each) for each in values["rows"]} | _mark(values)


async def of_model(asked: Asked) -> dict[str, str]:
    values = model.values(asked)
    return {
        "readiness": part("models.html", "readiness", values["chain"], values["open"]),
        "model-state": part("models.html", "model_state", values["row"]),
        "copies": part("models.html", "copies", values["row"], values["view"].pods),
        **_mark(values),
    }


async def of_notebooks(asked: Asked) -> dict[str, str]:
    values = notebooks.values(asked)
    return {each.row.id: part("notebooks.html", "job_row", each) for each in values["rows"]} | _mark(values)


async def of_notebook(asked: Asked) -> dict[str, str]:
    values = await notebook.values(asked)
    cells = part("notebooks.html", "cell_list", values["cells"], values["source_note"], values["view"].is_last)
    return {
        "job-state": part("notebooks.html", "job_state", values["phase"], values["told"]),
        "cell-strip": part("notebooks.html", "strip", values["strip"]),
        "nbcells": cells,
        "runs": part("notebooks.html", "runs", values["view"]),
        **_mark(values),
    }


async def of_environments(asked: Asked) -> dict[str, str]:
    values = await environments.values(asked)
    found = values["board"]
    if found is None:
        return _mark(values)
    may, paths = values["may"], values["paths"]
    shown = {
        each.id: part("environments.html", "stage", each, may[each.name], paths[each.name]) for each in found.stages
    }
    return shown | {"promotions": part("environments.html", "promotions", found.history)} | _mark(values)


async def of_activity(asked: Asked) -> dict[str, str]:
    """The head alone: who turned the page reads on undisturbed."""
    values = await activity.values(asked)
    line = values["line"]
    return {"happenings": part("activity.html", "happenings", line.shown)} if line.page == 1 and line.shown else {}


SERVING: Final = touching(INFERENCE_SERVICE, POD, DEPLOYMENT, JOB, GroupKind(*APPLICATION))
RUNNING: Final = touching(JOB, GroupKind(*APPLICATION))
OF_NOTEBOOK: Final = May("applications", "get", a_notebook)
LIVE = (
    Live("/models", LISTS, of_models, SERVING),
    Live("/models/{ns}/{name}", May("applications", "get", a_model), of_model, SERVING, in_namespace),
    Live("/notebooks", LISTS, of_notebooks, RUNNING),
    Live("/notebooks/{ns}/{name}", OF_NOTEBOOK, of_notebook, RUNNING, in_namespace),
    Live(
        "/notebooks/{ns}/{name}/runs/{id}", May("applications", "get", a_notebook), of_notebook, RUNNING, in_namespace
    ),
    Live("/environments", LISTS, of_environments, touching(GroupKind(*APPLICATION), JOB), concerns),
    Live("/activity", LISTS, of_activity, touching(GroupKind(*APPLICATION), JOB, INFERENCE_SERVICE, PROJECT)),
)
