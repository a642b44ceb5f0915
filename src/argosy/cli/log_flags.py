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


def add_log_flags(parser: argparse.ArgumentParser, default_format: str = "text", default_level: str = "info") -> None:
    format_text = default_format or "plain text"
    help_text = f"log format: name=value pairs, or one JSON object per line (default: {format_text})"
    parser.add_argument(
        "--log-format", choices=FORMATS, default=default_format, metavar="|".join(FORMATS), help=help_text
    )
    help_text = f"minimum log level (default: {default_level})"
    parser.add_argument("--log-level", choices=LEVELS, default=default_level, metavar="|".join(LEVELS), help=help_text)


def start_logging(args: argparse.Namespace) -> None:
    from argosy.gitops.engine.logging_setup import configure_logging  # late: most commands do not log

    configure_logging(args.log_format, args.log_level)


def print_line(args: argparse.Namespace, line: str) -> None:
    """Print a message on stderr; with --log-format json as a log line, because readers expect only JSON."""
    if args.log_format == "json":
        from argosy.gitops.engine.logging_setup import LogLineFormatter

        line = LogLineFormatter("json").format(logging.makeLogRecord({"msg": line, "levelname": "INFO"}))
    print(line, file=sys.stderr, flush=True)
