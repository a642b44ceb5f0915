"""`argosy app logs`: print logs of the Pods of an Application."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from argosy.cli.subcommand_flags_and_runner import (
    SubParsersAction,
    add_app_subcommand,
    is_compat,
    print_message,
    run_with_service,
)
from argosy.errors import ClusterError, UserError
from argosy.features.applications.diff.cli import add_object_filters, read_object_selector

if TYPE_CHECKING:
    from argosy.gitops.application_client.app_state_reader import ApplicationReader
    from argosy.gitops.application_client.application_service import ApplicationService
    from argosy.gitops.application_client.resource_actions_and_logs import ContainerLog, LogOptions


def add_commands(parts: SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_app_subcommand(
        parts, "logs", "print logs of the Pods of an Application", run_logs,
        examples=("logs models", "logs models --kind Deployment --name predictor --tail 20 -f",
                  "logs models --previous --since 10m"),
    )  # fmt: skip
    add_object_filters(parser, "--name")
    add = parser.add_argument
    add("-c", "--container", default="", metavar="NAME", help="only this container")
    add("-f", "--follow", action="store_true", help="stream new lines")
    help_text = "print logs of the previous container instances"
    add("-p", "--previous", action="store_true", help=help_text)
    add(
        "--tail",
        type=read_non_negative_integer,
        metavar="N",
        help="only the last N lines of each container (0: all, as argocd)",
    )
    add("--since", default="", metavar="D", help="only lines newer than this duration, such as 10m")
    add("--since-seconds", type=read_non_negative_integer, metavar="N", help="only lines of the last N seconds")
    add("--filter", default="", metavar="TEXT", help="only lines with this text")
    add("-m", "--match-case", action="store_true", help="with --filter: match upper and lower case")


def read_non_negative_integer(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


read_non_negative_integer.__name__ = "whole number"


def run_logs(args: argparse.Namespace) -> int:
    excerpt = _read_log_options(args)

    async def work(service: ApplicationService) -> int:
        import asyncio

        from argosy.gitops.application_client.app_state_reader import open_reader
        from argosy.gitops.application_client.resource_actions_and_logs import list_log_containers

        app = await service.load_application(args.name)
        async with open_reader(service, app=app) as reader:
            logs = await list_log_containers(reader, app, read_object_selector(args), args.container)
            has_prefix = len(logs) > 1 and not is_compat(args)
            coroutines = [_print_log(reader, log, excerpt, args, has_prefix=has_prefix) for log in logs]
            if args.follow:
                problems = await asyncio.gather(*coroutines)
            else:
                problems = [await item for item in coroutines]
        return _report_problems([item for item in problems if item is not None], len(logs))

    return run_with_service(args, work)


def _read_log_options(args: argparse.Namespace) -> LogOptions:
    from argosy.gitops.application.sync_policy import parse_duration
    from argosy.gitops.application_client.resource_actions_and_logs import LogOptions

    since = args.since_seconds or None
    if args.since:
        try:
            since = math.ceil(parse_duration(args.since))
        except ValueError:
            message = f"invalid duration {args.since!r}: use a duration such as 90s, 10m or 2h"
            raise UserError(message, where="--since") from None
    return LogOptions(args.follow, args.tail or None, since, args.previous)


async def _print_log(
    reader: ApplicationReader, log: ContainerLog, excerpt: LogOptions, args: argparse.Namespace, *, has_prefix: bool
) -> ClusterError | None:
    """Print a log; return the error instead of raising it, so that the logs of other containers are printed."""
    from argosy.gitops.application_client.resource_actions_and_logs import read_log_lines

    prefix = f"{log.pod.name}/{log.container}: " if has_prefix else ""
    filter_text = args.filter if args.match_case else args.filter.lower()
    try:
        async for line in read_log_lines(reader, log, excerpt):
            text = line.rstrip("\n")
            if filter_text in (text if args.match_case else text.lower()):
                print(f"{prefix}{text}", flush=excerpt.follow)
    except ClusterError as error:
        return error
    return None


def _report_problems(problems: list[ClusterError], count: int) -> int:
    if len(problems) == count:
        raise problems[-1]
    for problem in problems:
        print_message(f"argosy: cannot read log: {problem}")
    return 0
