"""The flags of what a process logs, the same for every command that stays.

In: a parser, or parsed flags. Out: the flags, or lines on stderr from then on. Never: decides what is logged.
"""

from __future__ import annotations

import argparse
import logging
import sys
from typing import Final

FORMATS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warn", "error")  # argo: its own


def add_log_flags(parser: argparse.ArgumentParser, form: str = "text", level: str = "info") -> None:
    usual = form or "plain sentences"
    about = f"lines of the log as name=value, or as a JSON object each (default: {usual})"
    parser.add_argument("--log-format", choices=FORMATS, default=form, metavar="|".join(FORMATS), help=about)
    about = f"the least that is logged (default: {level})"
    parser.add_argument("--log-level", choices=LEVELS, default=level, metavar="|".join(LEVELS), help=about)


def begin_log(chosen: argparse.Namespace) -> None:
    from argosy.gitops.engine.logging_setup import begin  # late: most commands log nothing

    begin(chosen.log_format, chosen.log_level)


def say(chosen: argparse.Namespace, line: str) -> None:
    """A sentence on stderr; who reads JSON there expects nothing else, and gets it as a line of the log."""
    if chosen.log_format == "json":
        from argosy.gitops.engine.logging_setup import Lines

        line = Lines("json").format(logging.makeLogRecord({"msg": line, "levelname": "INFO"}))
    print(line, file=sys.stderr, flush=True)
