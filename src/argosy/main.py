"""Entry point of the `argosy` command: parses the command line and runs one command.

In: argv. Out: an exit code; data on stdout, messages on stderr. Never: imports a command that was not typed, so that
`argosy --help` is fast.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import io
import itertools
import os
import sys
from collections.abc import Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING

from argosy import __version__
from argosy.cli.command_parser import ARGOCD, COMPAT, CommandParser
from argosy.cli.error_messages import OutputClosed, report_error
from argosy.cli.exit_codes import EXIT_INTERRUPTED, EXIT_OK
from argosy.command_modules import COMMANDS
from argosy.errors import ArgosyError, UserError

if TYPE_CHECKING:
    from argosy.features.argocd_cli.server_flag_cluster_match import NamedServer


GC_THRESHOLDS = (
    10_000,
    20,
    20,
)  # the default thresholds would collect dozens of times during imports, and find nothing
PASSTHROUGH_COMMANDS = ("kubectl", "oc")  # their arguments are passed on
APP_COMMAND = "app"  # the group with many subcommands
OVERVIEW = """\
argosy takes models and notebooks from Git to Kubernetes, and speaks Argo CD's language.

Try it:
  argosy demo                          a complete setup: Git, a cluster, a model in three environments
  argosy app list                      in a second terminal: Applications, their status and its reason
  argosy sandbox start                 a Kubernetes API server on this machine, without dependencies
  kubectl --kubeconfig … get ns        as printed by start, with the path filled in
  argosy sandbox status                show whether it is running, and its URL
  argosy health test model.yaml        show the health of an object, and the rule that decides it

Commands:
  account    manage accounts, their tokens, passwords and permissions
  admin      print the initial admin password
  align      find the smallest changes in Git that make Applications Synced, with proof
  app        list, sync, compare and change Applications
  check      find problems in Git before anything is deployed
  cluster    add, list, rotate and remove destination clusters
  controller run the application controller of a cluster
  demo       run a complete setup on this machine: Git, cluster, controller, a model
  doctor     find problems of an installation and its Applications, with causes and fixes
  explain    explain the state of an object, a field or an Application, or a rule
  generate   generate manifests of sync gates, and settings for notifications
  health     list, test, lint and compare health checks
  init       create a repository with a model, three environments and checks
  install    install argosy in a cluster; uninstall: remove it
  kubectl    run kubectl, or a built-in subset if it is missing; oc: the same for oc
  model      list, query, probe and restart served models
  notebook   run, validate and compare notebooks; list, follow and rerun notebook jobs
  notifications  list, test and trace notifications about Applications and notebooks
  open       open the web page of a running instance in a browser
  preview    show what a branch would change, before it is merged
  proj       list and change projects
  promote    promote a release to the next environment, through gates
  render     print the manifests of folders and Applications
  sandbox    start, stop and populate the embedded cluster
  serve      serve the web page and the REST API of a cluster
  setup      create environments, permissions and Applications for an Argo CD
  trace      show the commit, notebook run and file that a served model comes from
  version    print the version, and what is simulated

Run `argosy COMMAND --help` for its flags and examples.
"""


class RootParser(CommandParser):
    """Parser of the top-level command."""

    def get_command_name(self) -> str:
        """Return the typed command: this parser also reports errors that no subparser understood."""
        words = list(itertools.takewhile(lambda word: not word.startswith("-"), sys.argv[1:]))
        return " ".join(["argosy", *words]) if words and words[0] in COMMANDS else self.prog

    def suggest_for_word(self, word: str) -> str:
        """Suggest the argocd mode, or a subcommand of `app`, which people often omit."""
        if sys.argv[1:2] != [word]:
            return ""
        if word == ARGOCD:
            return f"; run argocd commands as: argosy {COMPAT} {' '.join(sys.argv[2:]) or 'app list'}"
        from argosy.features.applications.cli import VERBS_BY_MODULE  # late: only needed for errors

        return (
            f"; did you mean 'argosy {APP_COMMAND} {word}'?"
            if any(word in verbs for verbs in VERBS_BY_MODULE.values())
            else ""
        )


def main(argv: Sequence[str] | None = None, *, program: str = "") -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None:  # run as a process, not from tests
        gc.set_threshold(*GC_THRESHOLDS)
    _replace_closed_streams()
    code = EXIT_OK
    try:
        if os.path.basename(program or sys.argv[0]) == ARGOCD or COMPAT in arguments:
            from argosy.features.argocd_cli import cli  # late: only for argocd commands

            code = cli.run_as_argocd([word for word in arguments if word != COMPAT], _dispatch)
        elif argv is None:
            from argosy.cli.sigterm_shutdown import raise_on_sigterm

            with raise_on_sigterm():
                code = copy_context().run(_dispatch, arguments)
        else:  # several commands in one process do not share context variables
            code = copy_context().run(_dispatch, arguments)
        sys.stdout.flush()
    except OutputClosed as gone:
        code = gone.code
        _discard_output()
    except BrokenPipeError:
        _discard_output()
    if argv is None:
        gc.freeze()  # skips the collection at process exit
    return code


def _replace_closed_streams() -> None:
    """Replace streams that were closed before the start, so that printing does not fail."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an unsupported character must not end a command


def _discard_output() -> None:
    """Discard buffered output of closed pipes, so that it does not raise again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _dispatch(arguments: list[str], *, is_compat: bool = False, server: NamedServer | None = None) -> int:
    """Run a command. `server`: value of `argocd --server`; None: use the cluster directly."""
    if not arguments or arguments in (["help"], ["--help"], ["-h"]):
        print(OVERVIEW, end="")
        return EXIT_OK
    try:
        if os.environ.get("ARGOSY_CONFINE"):
            from argosy.isolation.confinement_requirement import describe_invalid_mode

            if refusal := describe_invalid_mode():
                raise UserError(refusal)
        if arguments[0].startswith("-") and not is_compat:
            # late: most commands start with their name
            from argosy.cli.leading_flags import drop_flags_without_cluster, move_leading_flags

            command, *verbs = move_leading_flags(arguments)
            if command in COMMANDS and command not in PASSTHROUGH_COMMANDS:
                arguments = drop_flags_without_cluster(arguments, build_parser(command, subcommand="".join(verbs[:1])))
            if arguments[0].startswith("-"):
                arguments = move_leading_flags(arguments)
        if arguments[0] in PASSTHROUGH_COMMANDS and not is_compat and arguments[1:2] not in (["--help"], ["-h"]):
            from argosy.features.kubectl import cli as kubectl  # late: only for kubectl commands

            return kubectl.run_command(arguments[0], arguments[1:])
        return _run_command(arguments, is_compat=is_compat, server=server)
    except KeyboardInterrupt:
        print("argosy: interrupted; completed steps are kept, run the same command to continue", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        raise
    except ArgosyError as error:
        return report_error(error)
    except OSError as error:  # a full disk, an unreadable file
        problem = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return report_error(UserError(f"{problem}; check the path, its permissions and the free disk space"))


def build_parser(*names: str, subcommand: str = "") -> CommandParser:
    """Build the parser of all commands, or of the named ones, by command or by module.

    `subcommand`: the typed one; a command with many subcommands builds only that one.
    """
    parser = RootParser(
        prog="argosy", add_help=True, description=OVERVIEW, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"argosy {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=CommandParser, required=True)
    for module in _list_command_modules(names):
        add_commands = importlib.import_module(module).add_commands
        add_commands(commands, *([subcommand] if module == COMMANDS[APP_COMMAND] else []))
    return parser


def _list_command_modules(names: Sequence[str]) -> list[str]:
    return [COMMANDS.get(name, name) for name in names or COMMANDS]


def _run_command(arguments: list[str], *, is_compat: bool, server: NamedServer | None = None) -> int:
    parser = build_parser(*_find_command_modules(arguments[0], is_compat), subcommand="".join(arguments[1:2]))
    if arguments[0] in ("app", "proj"):
        from argosy.cli.subcommand_flags_and_runner import normalize_go_flags

        arguments = normalize_go_flags(parser, arguments)
    args, unknown_arguments = parser.parse_known_args(arguments)
    if unknown_arguments:
        from argosy.cli.flag_suggestions import suggest_flag  # late: only needed for errors

        parser.error(
            f"unrecognized arguments: {' '.join(unknown_arguments)}{suggest_flag(parser, arguments, unknown_arguments)}"
        )
    args.compat, args.is_direct = is_compat, server is None
    if server is not None and server.address and arguments[0] != "logout":
        from argosy.features.argocd_cli.server_flag_cluster_match import (
            check_server_of_cluster,  # late: only for argocd --server
        )

        check_server_of_cluster(args, server)
    if not is_compat:
        from argosy.cli.cluster_flags import remember_target_flags

        remember_target_flags(args)
    exit_code: int = args.run(args)
    return exit_code


def _find_command_modules(command: str, is_compat: bool) -> tuple[str, ...]:
    if is_compat:
        from argosy.features.argocd_cli.cli import MODULE_BY_COMMAND

        return (MODULE_BY_COMMAND[command],)
    return (command,) if command in COMMANDS else ()
