"""Shared parts of subcommands: flags, the application service, progress and error output.

In: parsers, parsed flags. Out: parsers with added flags; exit codes. Never: knows what a subcommand does.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from argosy.cli.error_messages import failed
from argosy.cli.prompts import asked as asked
from argosy.cli.target_flags import add_target_flags, target_options, with_target
from argosy.errors import ArgosyError

if TYPE_CHECKING:
    from argosy.gitops.application_client.client import Desk
    from argosy.kube.objects import Manifest

Commands = argparse._SubParsersAction  # no public name in argparse
Run = Callable[[argparse.Namespace], int]
Add = Callable[..., Any]
AnyDesk = TypeVar("AnyDesk")

SEE = "See also: docs/guides/deliver.md, docs/reference/cli.md"


def described(
    parts: Commands[argparse.ArgumentParser], name: str, about: str, examples: Sequence[str], *, see: str = SEE
) -> argparse.ArgumentParser:
    """Add a subcommand with a description and examples."""
    shown = "\n".join(f"  argosy {each}" for each in examples)
    parser: argparse.ArgumentParser = parts.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=f"Examples:\n{shown}\n\n{see}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def verb(
    parts: Commands[argparse.ArgumentParser],
    name: str,
    about: str,
    run: Run,
    *,
    examples: Sequence[str],
    named: str = "one",
    forms: Sequence[str] = (),
) -> argparse.ArgumentParser:
    """Add a subcommand of `argosy app`. `name_count`: one, any or none; `outputs`: default first."""
    parser = described(parts, name, about, [f"app {each}" for each in examples])
    if named == "one":
        parser.add_argument("name", metavar="NAME", help="Application, as NAME or NAMESPACE/NAME")
    elif named == "any":
        parser.add_argument("names", nargs="*", metavar="NAME", help="Applications, as NAME or NAMESPACE/NAME")
    about = "namespace of the Application (default: the control plane namespace)"
    parser.add_argument("-N", "--app-namespace", default="", metavar="NS", help=about)
    if forms:
        about = f"{', '.join(forms)} (default: {forms[0]})"
        parser.add_argument("-o", "--output", choices=forms, default="", help=about)
    add_target_flags(parser)
    parser.set_defaults(run=functools.partial(_telling, run))
    return parser


def _telling(run: Run, chosen: argparse.Namespace) -> int:
    """Run a command and print its error: the command, the cause, and what to type next."""
    try:
        return run(chosen)
    except ArgosyError as error:
        return failed(error, f"{typed(chosen)} failed")


def typed(chosen: argparse.Namespace) -> str:
    """Return the command and its arguments, for messages."""
    names = getattr(chosen, "names", None) or [getattr(chosen, "name", "")]
    words = (chosen.command, chosen.part, getattr(chosen, "what", ""), *names)
    return " ".join(filter(None, words))


def truth(text: str) -> bool:
    """Parse a boolean like Go."""
    if text.lower() in ("1", "t", "true"):
        return True
    if text.lower() in ("0", "f", "false"):
        return False
    raise ValueError(text)


truth.__name__ = "true or false"  # name in argparse's error messages


def add_truth(parser: argparse.ArgumentParser, flag: str, about: str, *, usual: bool | None = None) -> None:
    """Add a boolean flag that can also be turned off: `--flag=false`."""
    parser.add_argument(flag, nargs="?", type=truth, const=True, default=usual, metavar="BOOL", help=about)


def spelled(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> list[str]:
    """argo: rewrite Go-style flags (`--prune=true`, `--prune=false`, bare `--cascade`) for argparse."""
    plain, choosing = _switches(parser)
    found = []
    for word in arguments:
        name, equals, value = word.partition("=")
        if name in plain and equals and value.lower() in ("true", "false"):
            found += [name] if value.lower() == "true" else []
        elif word in choosing:
            found.append(f"{word}=true")
        else:
            found.append(word)
    return found


def _switches(parser: argparse.ArgumentParser) -> tuple[set[str], set[str]]:
    plain: set[str] = set()
    choosing: set[str] = set()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                more, most = _switches(child)
                plain |= more
                choosing |= most
        elif action.nargs == 0:
            plain |= {each for each in action.option_strings if each.startswith("--")}
        elif action.nargs == "?" and action.const is True:
            choosing |= set(action.option_strings)
    return plain, choosing


def work_at(
    opened: AbstractAsyncContextManager[AnyDesk],
    work: Callable[[AnyDesk, argparse.Namespace], Awaitable[int]],
    chosen: argparse.Namespace,
) -> int:
    """Run a subcommand with an opened client, and print its error."""

    async def run() -> int:
        async with opened as desk:
            return await work(desk, chosen)

    try:
        return asyncio.run(run())
    except ArgosyError as error:
        return failed(error, f"{typed(chosen)} failed")


def at_desk(chosen: argparse.Namespace, work: Callable[[Desk], Awaitable[int]], *, writes: bool = False) -> int:
    from argosy.cli.connection import open_desk

    async def run() -> int:
        async with open_desk(target_options(chosen), chosen.app_namespace) as desk:
            if writes:
                talk(f"target: {desk.where}")
            return await work(desk)

    return asyncio.run(run())


def is_compat(chosen: argparse.Namespace) -> bool:
    """True if the command must behave like argocd."""
    return bool(getattr(chosen, "compat", False))


def form(chosen: argparse.Namespace, usual: str = "table", theirs: str = "wide") -> str:
    return str(chosen.output or (theirs if is_compat(chosen) else usual))


def talk(text: str) -> None:
    print(with_target(text), file=sys.stderr, flush=True)


async def record(desk: Desk, event: Manifest) -> None:
    if problem := await desk.record(event):
        talk(f"argosy: {problem}")


def print_data(data: Any, how: str) -> None:
    """Print data as JSON or YAML."""
    if how == "json":
        import orjson

        print(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())
        return
    from argosy.kube.objects import dump

    print(dump(data), end="")


def can_ask() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
