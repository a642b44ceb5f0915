"""Log flags, the same for every long-running command.

In: a parser, or parsed flags. Out: the flags, or configured logging on stderr. Never: decides what is logged.
"""

from __future__ import annotations

import argparse
import logging
import sys
from typing import Final

FORMATS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warn", "error")  # argo


def add_log_flags(parser: argparse.ArgumentParser, form: str = "text", level: str = "info") -> None:
    usual = form or "plain text"
    about = f"log format: name=value pairs, or one JSON object per line (default: {usual})"
    parser.add_argument("--log-format", choices=FORMATS, default=form, metavar="|".join(FORMATS), help=about)
    about = f"minimum log level (default: {level})"
    parser.add_argument("--log-level", choices=LEVELS, default=level, metavar="|".join(LEVELS), help=about)


def begin_log(chosen: argparse.Namespace) -> None:
    from argosy.gitops.engine.logging_setup import begin  # late: most commands do not log

    begin(chosen.log_format, chosen.log_level)


def say(chosen: argparse.Namespace, line: str) -> None:
    """Print a message on stderr; with --log-format json as a log line, because readers expect only JSON."""
    if chosen.log_format == "json":
        from argosy.gitops.engine.logging_setup import Lines

        line = Lines("json").format(logging.makeLogRecord({"msg": line, "levelname": "INFO"}))
    print(line, file=sys.stderr, flush=True)
