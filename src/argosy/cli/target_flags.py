"""The flags that choose a cluster, the same for every command that talks to one.

In: a parser, or parsed flags. Out: the flags, or TargetOptions. Never: opens anything.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argosy.app.target import TargetOptions


def named(text: str) -> str:
    """Refuse an empty value: in a script it is mostly a variable that is not set, and no wish for the default."""
    if not text:
        raise argparse.ArgumentTypeError("the value is empty; give one, or leave the flag out for the default")
    return text


def named_path(text: str) -> Path:
    return Path(named(text))


def add_target_flags(parser: argparse.ArgumentParser) -> None:
    usual = "ARGOSY_CONTEXT, else the current one of KUBECONFIG, else a running sandbox, else ~/.kube/config"
    parser.add_argument("--context", type=named, metavar="NAME", help=f"context of the kubeconfig (default: {usual})")
    parser.add_argument("--kubeconfig", type=named_path, metavar="FILE", help="kubeconfig to use")
    parser.add_argument("--data-dir", type=named_path, metavar="DIR", help="folder of the sandbox to use")


def target_options(chosen: argparse.Namespace) -> TargetOptions:
    from argosy.app.target import TargetOptions  # late: most commands need no cluster

    return TargetOptions(chosen.context or "", chosen.kubeconfig, chosen.data_dir)
