"""`argosy app logs`: print logs of the Pods of an Application."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from argosy.cli.verbs import Commands, at_desk, is_compat, talk, verb
from argosy.errors import ClusterError, UserError
from argosy.features.applications.diff.cli import add_choice, choice_of

if TYPE_CHECKING:
    from argosy.gitops.application_client.client import Desk
    from argosy.gitops.application_client.reader import Reader
    from argosy.gitops.application_client.resource_actions import Excerpt, Log


def add_to(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = verb(
        parts, "logs", "print logs of the Pods of an Application", run_logs,
        examples=("logs models", "logs models --kind Deployment --name predictor --tail 20 -f",
                  "logs models --previous --since 10m"),
    )  # fmt: skip
    add_choice(parser, "--name")
    add = parser.add_argument
    add("-c", "--container", default="", metavar="NAME", help="only this container")
    add("-f", "--follow", action="store_true", help="stream new lines")
    about = "print logs of the previous container instances"
    add("-p", "--previous", action="store_true", help=about)
    add("--tail", type=whole, metavar="N", help="only the last N lines of each container (0: all, as argocd)")
    add("--since", default="", metavar="D", help="only lines newer than this duration, such as 10m")
    add("--since-seconds", type=whole, metavar="N", help="only lines of the last N seconds")
    add("--filter", default="", metavar="TEXT", help="only lines with this text")
    add("-m", "--match-case", action="store_true", help="with --filter: match upper and lower case")


def whole(text: str) -> int:
    found = int(text)
    if found < 0:
        raise ValueError(text)
    return found


whole.__name__ = "whole number"


def run_logs(chosen: argparse.Namespace) -> int:
    excerpt = _excerpt(chosen)

    async def work(desk: Desk) -> int:
        import asyncio

        from argosy.gitops.application_client.reader import open_reader
        from argosy.gitops.application_client.resource_actions import logs_of

        app = await desk.find(chosen.name)
        async with open_reader(desk, app=app) as reader:
            found = await logs_of(reader, app, choice_of(chosen), chosen.container)
            lead = len(found) > 1 and not is_compat(chosen)
            works = [_print_log(reader, log, excerpt, chosen, lead=lead) for log in found]
            if chosen.follow:
                problems = await asyncio.gather(*works)
            else:
                problems = [await each for each in works]
        return _told([each for each in problems if each is not None], len(found))

    return at_desk(chosen, work)


def _excerpt(chosen: argparse.Namespace) -> Excerpt:
    from argosy.gitops.application.sync_policy import seconds_of
    from argosy.gitops.application_client.resource_actions import Excerpt

    since = chosen.since_seconds or None
    if chosen.since:
        try:
            since = math.ceil(seconds_of(chosen.since))
        except ValueError:
            told = f"invalid duration {chosen.since!r}: use a duration such as 90s, 10m or 2h"
            raise UserError(told, where="--since") from None
    return Excerpt(chosen.follow, chosen.tail or None, since, chosen.previous)


async def _print_log(
    reader: Reader, log: Log, excerpt: Excerpt, chosen: argparse.Namespace, *, lead: bool
) -> ClusterError | None:
    """Print a log; return the error instead of raising it, so that the logs of other containers are printed."""
    from argosy.gitops.application_client.resource_actions import lines

    before = f"{log.pod.name}/{log.container}: " if lead else ""
    wanted = chosen.filter if chosen.match_case else chosen.filter.lower()
    try:
        async for line in lines(reader, log, excerpt):
            text = line.rstrip("\n")
            if wanted in (text if chosen.match_case else text.lower()):
                print(f"{before}{text}", flush=excerpt.follow)
    except ClusterError as error:
        return error
    return None


def _told(problems: list[ClusterError], count: int) -> int:
    if len(problems) == count:
        raise problems[-1]
    for each in problems:
        talk(f"argosy: cannot read log: {each}")
    return 0
