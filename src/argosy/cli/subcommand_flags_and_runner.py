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

from argosy.cli.cluster_flags import add_target_flags, add_target_flags_to_printed_commands, read_target_options
from argosy.cli.error_messages import report_error
from argosy.cli.prompts import confirm as confirm
from argosy.errors import ArgosyError

if TYPE_CHECKING:
    from argosy.gitops.application_client.application_service import ApplicationService
    from argosy.kube.objects import Manifest

SubParsersAction = argparse._SubParsersAction  # no public name in argparse
SubcommandFunction = Callable[[argparse.Namespace], int]
AddArgument = Callable[..., Any]
AnyDesk = TypeVar("AnyDesk")

SEE_ALSO = "See also: docs/guides/deliver.md, docs/reference/cli.md"


def add_subcommand(
    subparsers: SubParsersAction[argparse.ArgumentParser],
    name: str,
    description: str,
    examples: Sequence[str],
    *,
    see_also: str = SEE_ALSO,
) -> argparse.ArgumentParser:
    """Add a subcommand with a description and examples."""
    example_lines = "\n".join(f"  argosy {example}" for example in examples)
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=description,
        description=description[0].upper() + description[1:] + ".",
        epilog=f"Examples:\n{example_lines}\n\n{see_also}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def add_app_subcommand(
    subparsers: SubParsersAction[argparse.ArgumentParser],
    name: str,
    about: str,
    run: SubcommandFunction,
    *,
    examples: Sequence[str],
    name_count: str = "one",
    outputs: Sequence[str] = (),
) -> argparse.ArgumentParser:
    """Add a subcommand of `argosy app`. `name_count`: one, any or none; `outputs`: default first."""
    parser = add_subcommand(subparsers, name, about, [f"app {example}" for example in examples])
    if name_count == "one":
        parser.add_argument("name", metavar="NAME", help="Application, as NAME or NAMESPACE/NAME")
    elif name_count == "any":
        parser.add_argument("names", nargs="*", metavar="NAME", help="Applications, as NAME or NAMESPACE/NAME")
    about = "namespace of the Application (default: the control plane namespace)"
    parser.add_argument("-N", "--app-namespace", default="", metavar="NS", help=about)
    if outputs:
        about = f"{', '.join(outputs)} (default: {outputs[0]})"
        parser.add_argument("-o", "--output", choices=outputs, default="", help=about)
    add_target_flags(parser)
    parser.set_defaults(run=functools.partial(_run_and_report_error, run))
    return parser


def _run_and_report_error(run: SubcommandFunction, args: argparse.Namespace) -> int:
    """Run a command and print its error: the command, the cause, and what to type next."""
    try:
        return run(args)
    except ArgosyError as error:
        return report_error(error, f"{format_command(args)} failed")


def format_command(args: argparse.Namespace) -> str:
    """Return the command and its arguments, for messages."""
    names = getattr(args, "names", None) or [getattr(args, "name", "")]
    words = (args.command, args.part, getattr(args, "what", ""), *names)
    return " ".join(filter(None, words))


def parse_bool(text: str) -> bool:
    """Parse a boolean like Go."""
    if text.lower() in ("1", "t", "true"):
        return True
    if text.lower() in ("0", "f", "false"):
        return False
    raise ValueError(text)


parse_bool.__name__ = "true or false"  # name in argparse's error messages


def add_bool_flag(parser: argparse.ArgumentParser, flag: str, help_text: str, *, default: bool | None = None) -> None:
    """Add a boolean flag that can also be turned off: `--flag=false`."""
    parser.add_argument(flag, nargs="?", type=parse_bool, const=True, default=default, metavar="BOOL", help=help_text)


def normalize_go_flags(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> list[str]:
    """argo: rewrite Go-style flags (`--prune=true`, `--prune=false`, bare `--cascade`) for argparse."""
    switches, bool_flags = _list_switches(parser)
    normalized = []
    for word in arguments:
        name, equals, value = word.partition("=")
        if name in switches and equals and value.lower() in ("true", "false"):
            normalized += [name] if value.lower() == "true" else []
        elif word in bool_flags:
            normalized.append(f"{word}=true")
        else:
            normalized.append(word)
    return normalized


def _list_switches(parser: argparse.ArgumentParser) -> tuple[set[str], set[str]]:
    switches: set[str] = set()
    bool_flags: set[str] = set()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                child_switches, child_bool_flags = _list_switches(child)
                switches |= child_switches
                bool_flags |= child_bool_flags
        elif action.nargs == 0:
            switches |= {option for option in action.option_strings if option.startswith("--")}
        elif action.nargs == "?" and action.const is True:
            bool_flags |= set(action.option_strings)
    return switches, bool_flags


def run_with_client(
    opening_client: AbstractAsyncContextManager[AnyDesk],
    work: Callable[[AnyDesk, argparse.Namespace], Awaitable[int]],
    args: argparse.Namespace,
) -> int:
    """Run a subcommand with an opened client, and print its error."""

    async def run() -> int:
        async with opening_client as client:
            return await work(client, args)

    try:
        return asyncio.run(run())
    except ArgosyError as error:
        return report_error(error, f"{format_command(args)} failed")


def run_with_service(
    args: argparse.Namespace, work: Callable[[ApplicationService], Awaitable[int]], *, show_target: bool = False
) -> int:
    from argosy.cli.application_service_connection import open_service

    async def run() -> int:
        async with open_service(read_target_options(args), args.app_namespace) as service:
            if show_target:
                print_message(f"target: {service.cluster_name}")
            return await work(service)

    return asyncio.run(run())


def is_compat(args: argparse.Namespace) -> bool:
    """True if the command must behave like argocd."""
    return bool(getattr(args, "compat", False))


def choose_output(args: argparse.Namespace, default: str = "table", argocd_default: str = "wide") -> str:
    return str(args.output or (argocd_default if is_compat(args) else default))


def print_message(text: str) -> None:
    print(add_target_flags_to_printed_commands(text), file=sys.stderr, flush=True)


async def record_event(service: ApplicationService, event: Manifest) -> None:
    if problem := await service.record_event(event):
        print_message(f"argosy: {problem}")


def print_document(data: Any, output: str) -> None:
    """Print data as JSON or YAML."""
    if output == "json":
        import orjson

        print(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())
        return
    from argosy.kube.objects import dump_yaml

    print(dump_yaml(data), end="")


def is_interactive() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
