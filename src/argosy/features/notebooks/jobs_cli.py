"""`argosy notebook list|get|cells|logs|trigger`: the notebook jobs of a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from argosy.cli.cluster_flags import read_target_options
from argosy.cli.exit_codes import EXIT_NEGATIVE
from argosy.cli.subcommand_flags_and_runner import print_document, print_message, run_with_client
from argosy.cli.tables import format_table
from argosy.features.notebooks.notebook_job_lookup_and_rerun import NotebookJobClient, is_over, open_jobs
from argosy.features.notebooks.run_result_log_formatter import format_cell_result, format_result
from argosy.kube.objects import Manifest

Fields = dict[str, Any]
HEADINGS = ("NAME", "NAMESPACE", "PHASE", "CELLS", "COMMIT", "ENDED", "MESSAGE")
FAILED_CONDITION = ("Failed", "True")  # of a condition
MAX_REASON_CHARACTERS = 300
COMMIT_CHARACTERS = 7  # characters of a commit


def list(args: argparse.Namespace) -> int:
    return run_with_client(open_jobs(read_target_options(args)), _print_jobs, args)


def get(args: argparse.Namespace) -> int:
    return run_with_client(open_jobs(read_target_options(args)), _print_job, args)


def cells(args: argparse.Namespace) -> int:
    return run_with_client(open_jobs(read_target_options(args)), _print_cells, args)


def logs(args: argparse.Namespace) -> int:
    return run_with_client(open_jobs(read_target_options(args)), _print_logs, args)


def trigger(args: argparse.Namespace) -> int:
    return run_with_client(open_jobs(read_target_options(args)), _run_again, args)


async def _print_jobs(client: NotebookJobClient, args: argparse.Namespace) -> int:
    jobs = await client.list_jobs(args.namespace)
    if args.output != "text":
        print_document({"items": jobs}, args.output)
    elif not jobs:
        print_message("no notebook jobs found; start with: docs/guides/notebooks-with-argocd.md")
    else:
        print("\n".join(format_table(HEADINGS, [_build_row(job) for job in jobs])))
    return 0


def _build_row(job: Manifest) -> tuple[str, ...]:
    metadata, status = job["metadata"], _get_status(job)
    return (
        metadata["name"], metadata["namespace"], str(status.get("phase") or "Pending"), _describe_cell_count(status),
        str(status.get("gitCommit") or "")[:COMMIT_CHARACTERS], str(status.get("completionTime") or ""),
        str(status.get("message") or ""),
    )  # fmt: skip


async def _print_job(client: NotebookJobClient, args: argparse.Namespace) -> int:
    job = await client.find(args.name, args.namespace)
    if args.output != "text":
        print_document(job, args.output)
    else:
        print("\n".join(f"{label:<12}{text}" for label, text in _describe_job(job) if text))
    return 0


def _describe_job(job: Manifest) -> Iterator[tuple[str, str]]:
    metadata, status = job["metadata"], _get_status(job)
    notebook = job["spec"]["notebook"]
    git = notebook.get("git") or {}
    yield "name", f"{metadata['namespace']}/{metadata['name']}"
    yield "phase", f"{status.get('phase') or 'Pending'}: {status.get('message') or 'not started yet'}"
    yield "why", _describe_failure(status)
    yield "notebook", f"{notebook['path']} in {git.get('url')}, {git.get('ref') or 'main'}"
    yield "commit", str(status.get("gitCommit") or "")
    yield "cells", _describe_cell_count(status)
    yield "began", str(status.get("startTime") or "")
    yield "ended", str(status.get("completionTime") or "")
    for entry in status.get("attempts") or ():
        ended = f" at {entry['completionTime']}" if entry.get("completionTime") else ""
        yield f"run #{entry.get('number')}", f"{entry.get('phase')}{ended} {entry.get('message') or ''}".rstrip()
    for entry in status.get("artefacts") or ():
        yield "left", f"{entry['path']}  {entry['digest']}"
    for entry in _list_last_run_triggers(job):
        message_text = f": {entry['message']}" if entry.get("message") else ""
        target = "/".join(str(entry[name]) for name in ("kind", "name") if entry.get(name))
        action_text = " ".join(filter(None, (entry.get("action"), target))) or "an entry"
        yield "triggered", f"{action_text}: {entry.get('status')}{message_text}"
    for entry in status.get("educationalFeedback") or ():
        cell_text = f"cell {entry['cell']}, " if (entry.get("cell") or 0) >= 0 else ""
        yield "finding", f"{cell_text}{entry.get('severity')}: {entry.get('message')}"


def _describe_failure(status: Fields) -> str:
    """The failure on one line: the cell, its error, and the advice for a missing package."""
    failed_conditions = [
        condition
        for condition in status.get("conditions") or ()
        if (condition.get("type"), condition.get("status")) == FAILED_CONDITION
    ]
    message = " ".join(str(failed_conditions[0].get("message") or "").split()) if failed_conditions else ""
    return message if len(message) <= MAX_REASON_CHARACTERS else message[: MAX_REASON_CHARACTERS - 1] + "…"


def _list_last_run_triggers(job: Manifest) -> Iterator[Fields]:
    """Triggers of the run that is shown; those of an earlier run would look like results of a failed one."""
    status = _get_status(job)
    attempts = status.get("attempts") or [{}]
    last_run = (status.get("observedGeneration"), int(attempts[-1].get("number") or 1))
    return (
        record
        for record in status.get("triggers") or ()
        if (record.get("generation"), record.get("attempt")) == last_run
    )


async def _print_cells(client: NotebookJobClient, args: argparse.Namespace) -> int:
    results = _get_status(await client.find(args.name, args.namespace)).get("results") or []
    if args.output != "text":
        print_document({"items": results}, args.output)
    elif not results:
        print_message(f"no cell of {args.name} has run yet; see: argosy notebook get {args.name}")
    else:
        rows = [
            (
                str(result["cellIndex"]),
                result["status"],
                result.get("executionTime") or "",
                _get_first_output_line(result),
            )
            for result in results
        ]
        print("\n".join(format_table(("CELL", "STATUS", "TIME", "MESSAGE"), rows)))
    return 0


async def _print_logs(client: NotebookJobClient, args: argparse.Namespace) -> int:
    job = await client.find(args.name, args.namespace)
    return await _follow_run(client, job) if args.follow else _print_new_cells(job, 0, is_last=True)[1]


async def _run_again(client: NotebookJobClient, args: argparse.Namespace) -> int:
    job = await client.find(args.name, args.namespace)
    print_message(f"target: {client.target_name}")
    re_run = await client.run_again(job)
    print(f"{job['metadata']['namespace']}/{job['metadata']['name']} runs again")
    return await _follow_run(client, job, re_run) if args.wait else 0


async def _follow_run(client: NotebookJobClient, job: Manifest, re_run: str = "") -> int:
    shown_count, exit_code = 0, 0
    async for live in client.follow(job, re_run=re_run):
        result_count = len(_get_status(live).get("results") or ())
        shown_count = 0 if result_count < shown_count else shown_count  # another attempt starts with the first cell
        shown_count, exit_code = _print_new_cells(live, shown_count, is_last=is_over(live, re_run))
    return exit_code


def _print_new_cells(job: Manifest, shown_count: int, *, is_last: bool) -> tuple[int, int]:
    """Print cells that were not shown yet; returns how many are shown, and the exit code so far."""
    status = _get_status(job)
    results = status.get("results") or []
    for result in results[shown_count:]:
        print("\n".join(format_cell_result(result)), flush=True)
    if is_last:
        print_message(format_result(status))
    return len(results), EXIT_NEGATIVE if status.get("phase") == "Failed" else 0


def _get_status(job: Manifest) -> Fields:
    return job.get("status") or {}


def _describe_cell_count(status: Fields) -> str:
    """Succeeded cells of those that ran, without text cells and cells after a failure."""
    statuses = [result.get("status") for result in status.get("results") or () if result.get("status") != "Skipped"]
    return f"{statuses.count('Success')}/{len(statuses)}" if statuses else ""


def _get_first_output_line(cell: Fields) -> str:
    text = str(cell.get("errorMessage") or cell.get("output") or "")
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
