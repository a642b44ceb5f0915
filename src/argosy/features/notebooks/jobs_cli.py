"""`argosy notebook list|get|cells|logs|trigger`: the notebook jobs of a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from argosy.cli.exit_codes import NO
from argosy.cli.tables import table
from argosy.cli.target_flags import target_options
from argosy.cli.verbs import print_data, talk, work_at
from argosy.features.notebooks.jobs import JobDesk, is_over, open_jobs
from argosy.features.notebooks.log_lines import cell_lines, ending
from argosy.kube.objects import Manifest

Fields = dict[str, Any]
HEADINGS = ("NAME", "NAMESPACE", "PHASE", "CELLS", "COMMIT", "ENDED", "MESSAGE")
FAILED = ("Failed", "True")  # of a condition
MOST_WHY = 300
SHORT = 7  # characters of a commit


def list(chosen: argparse.Namespace) -> int:
    return work_at(open_jobs(target_options(chosen)), _list, chosen)


def get(chosen: argparse.Namespace) -> int:
    return work_at(open_jobs(target_options(chosen)), _get, chosen)


def cells(chosen: argparse.Namespace) -> int:
    return work_at(open_jobs(target_options(chosen)), _cells, chosen)


def logs(chosen: argparse.Namespace) -> int:
    return work_at(open_jobs(target_options(chosen)), _logs, chosen)


def trigger(chosen: argparse.Namespace) -> int:
    return work_at(open_jobs(target_options(chosen)), _trigger, chosen)


async def _list(desk: JobDesk, chosen: argparse.Namespace) -> int:
    jobs = await desk.all(chosen.namespace)
    if chosen.output != "text":
        print_data({"items": jobs}, chosen.output)
    elif not jobs:
        talk("no notebook jobs found; start with: docs/guides/notebooks-with-argocd.md")
    else:
        print("\n".join(table(HEADINGS, [_row(each) for each in jobs])))
    return 0


def _row(job: Manifest) -> tuple[str, ...]:
    metadata, status = job["metadata"], _status(job)
    return (
        metadata["name"], metadata["namespace"], str(status.get("phase") or "Pending"), _counted(status),
        str(status.get("gitCommit") or "")[:SHORT], str(status.get("completionTime") or ""),
        str(status.get("message") or ""),
    )  # fmt: skip


async def _get(desk: JobDesk, chosen: argparse.Namespace) -> int:
    job = await desk.find(chosen.name, chosen.namespace)
    if chosen.output != "text":
        print_data(job, chosen.output)
    else:
        print("\n".join(f"{label:<12}{text}" for label, text in _told(job) if text))
    return 0


def _told(job: Manifest) -> Iterator[tuple[str, str]]:
    metadata, status = job["metadata"], _status(job)
    notebook = job["spec"]["notebook"]
    git = notebook.get("git") or {}
    yield "name", f"{metadata['namespace']}/{metadata['name']}"
    yield "phase", f"{status.get('phase') or 'Pending'}: {status.get('message') or 'not started yet'}"
    yield "why", _why(status)
    yield "notebook", f"{notebook['path']} in {git.get('url')}, {git.get('ref') or 'main'}"
    yield "commit", str(status.get("gitCommit") or "")
    yield "cells", _counted(status)
    yield "began", str(status.get("startTime") or "")
    yield "ended", str(status.get("completionTime") or "")
    for each in status.get("attempts") or ():
        ended = f" at {each['completionTime']}" if each.get("completionTime") else ""
        yield f"run #{each.get('number')}", f"{each.get('phase')}{ended} {each.get('message') or ''}".rstrip()
    for each in status.get("artefacts") or ():
        yield "left", f"{each['path']}  {each['digest']}"
    for each in _set_off(job):
        said = f": {each['message']}" if each.get("message") else ""
        target = "/".join(str(each[name]) for name in ("kind", "name") if each.get(name))
        what = " ".join(filter(None, (each.get("action"), target))) or "an entry"
        yield "triggered", f"{what}: {each.get('status')}{said}"
    for each in status.get("educationalFeedback") or ():
        place = f"cell {each['cell']}, " if (each.get("cell") or 0) >= 0 else ""
        yield "finding", f"{place}{each.get('severity')}: {each.get('message')}"


def _why(status: Fields) -> str:
    """The failure on one line: the cell, its error, and the advice for a missing package."""
    found = [each for each in status.get("conditions") or () if (each.get("type"), each.get("status")) == FAILED]
    words = " ".join(str(found[0].get("message") or "").split()) if found else ""
    return words if len(words) <= MOST_WHY else words[: MOST_WHY - 1] + "…"


def _set_off(job: Manifest) -> Iterator[Fields]:
    """Triggers of the run that is shown; those of an earlier run would look like results of a failed one."""
    status = _status(job)
    attempts = status.get("attempts") or [{}]
    last = (status.get("observedGeneration"), int(attempts[-1].get("number") or 1))
    return (each for each in status.get("triggers") or () if (each.get("generation"), each.get("attempt")) == last)


async def _cells(desk: JobDesk, chosen: argparse.Namespace) -> int:
    found = _status(await desk.find(chosen.name, chosen.namespace)).get("results") or []
    if chosen.output != "text":
        print_data({"items": found}, chosen.output)
    elif not found:
        talk(f"no cell of {chosen.name} has run yet; see: argosy notebook get {chosen.name}")
    else:
        rows = [
            (str(each["cellIndex"]), each["status"], each.get("executionTime") or "", _gist(each)) for each in found
        ]
        print("\n".join(table(("CELL", "STATUS", "TIME", "MESSAGE"), rows)))
    return 0


async def _logs(desk: JobDesk, chosen: argparse.Namespace) -> int:
    job = await desk.find(chosen.name, chosen.namespace)
    return await _followed(desk, job) if chosen.follow else _show(job, 0, is_last=True)[1]


async def _trigger(desk: JobDesk, chosen: argparse.Namespace) -> int:
    job = await desk.find(chosen.name, chosen.namespace)
    talk(f"target: {desk.where}")
    mark = await desk.run_again(job)
    print(f"{job['metadata']['namespace']}/{job['metadata']['name']} runs again")
    return await _followed(desk, job, mark) if chosen.wait else 0


async def _followed(desk: JobDesk, job: Manifest, since: str = "") -> int:
    shown, code = 0, 0
    async for live in desk.following(job, since=since):
        done = len(_status(live).get("results") or ())
        shown = 0 if done < shown else shown  # another attempt starts with the first cell
        shown, code = _show(live, shown, is_last=is_over(live, since))
    return code


def _show(job: Manifest, shown: int, *, is_last: bool) -> tuple[int, int]:
    """Print cells that were not shown yet; returns how many are shown, and the exit code so far."""
    status = _status(job)
    results = status.get("results") or []
    for each in results[shown:]:
        print("\n".join(cell_lines(each)), flush=True)
    if is_last:
        talk(ending(status))
    return len(results), NO if status.get("phase") == "Failed" else 0


def _status(job: Manifest) -> Fields:
    return job.get("status") or {}


def _counted(status: Fields) -> str:
    """Succeeded cells of those that ran, without text cells and cells after a failure."""
    found = [each.get("status") for each in status.get("results") or () if each.get("status") != "Skipped"]
    return f"{found.count('Success')}/{len(found)}" if found else ""


def _gist(cell: Fields) -> str:
    text = str(cell.get("errorMessage") or cell.get("output") or "")
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
