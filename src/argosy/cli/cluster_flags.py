"""Flags that choose a cluster, the same for every command that uses one.

In: a parser, or parsed flags. Out: the flags, or TargetOptions. Never: opens anything.
"""

from __future__ import annotations

import argparse
import re
import shlex
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from argosy.cli.cluster_target import TargetOptions


# argosy commands in a sentence; `argosy controller` only where it is a command to type.
_COMMAND: Final = re.compile(
    r"\bargosy (?=(?:app|proj|doctor|explain|align|account|cluster|model|notebook|preview|promote|trace|kubectl|oc) \S)"
    r"|(?<=: )argosy (?=(?:doctor|controller)\b)"
)
_typed_flags: ContextVar[str] = ContextVar("typed_flags", default="")  # flags that chose the cluster, as typed


def remember_target_flags(args: argparse.Namespace) -> None:
    """Store the flags that chose the cluster, so that printed commands use the same cluster."""
    values = {"--kubeconfig": "kubeconfig", "--context": "context", "--data-dir": "data_dir"}
    values_by_flag = {flag: getattr(args, name, None) for flag, name in values.items()}
    # For these commands, --kubeconfig is a file to write.
    uses_cluster = getattr(args, "command", "") not in ("sandbox", "demo", "open")
    typed = (f"{flag} {shlex.quote(str(value))} " for flag, value in values_by_flag.items() if value and uses_cluster)
    _typed_flags.set("".join(typed))


def add_target_flags_to_printed_commands(text: str) -> str:
    """Add the flags that chose the cluster to each argosy command in a text."""
    flags = _typed_flags.get()
    return _COMMAND.sub(lambda match: f"{match[0]}{flags}", text) if flags else text


def parse_non_empty(text: str) -> str:
    """Reject an empty value: in scripts it usually comes from an unset variable."""
    if not text:
        raise argparse.ArgumentTypeError("the value is empty; set one, or omit the flag to use the default")
    return text


def parse_path(text: str) -> Path:
    return Path(parse_non_empty(text))


def add_target_flags(parser: argparse.ArgumentParser) -> None:
    default_text = "ARGOSY_CONTEXT, else the current one of KUBECONFIG, else a running sandbox, else ~/.kube/config"
    parser.add_argument(
        "--context", type=parse_non_empty, metavar="NAME", help=f"context of the kubeconfig (default: {default_text})"
    )
    parser.add_argument("--kubeconfig", type=parse_path, metavar="FILE", help="kubeconfig to use")
    parser.add_argument("--data-dir", type=parse_path, metavar="DIR", help="folder of the sandbox to use")


def read_target_options(args: argparse.Namespace) -> TargetOptions:
    from argosy.cli.cluster_target import TargetOptions  # late: most commands do not need a cluster

    return TargetOptions(args.context or "", args.kubeconfig, args.data_dir)
