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
from argosy.cli.error_messages import Unread, failed
from argosy.cli.exit_codes import DONE, INTERRUPTED
from argosy.cli.parser import ARGOCD, COMPAT, Parser
from argosy.errors import ArgosyError, UserError
from argosy.feature_table import COMMANDS

if TYPE_CHECKING:
    from argosy.features.argocd_cli.named_server import NamedServer


COLLECTED = (10_000, 20, 20)  # the default thresholds would collect dozens of times during imports, and find nothing
PASSED_ON = ("kubectl", "oc")  # their arguments are passed on
LARGE = "app"  # the group with many subcommands
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


class RootParser(Parser):
    """Parser of the top-level command."""

    def name_command(self) -> str:
        """Return the typed command: this parser also reports errors that no subparser understood."""
        words = list(itertools.takewhile(lambda word: not word.startswith("-"), sys.argv[1:]))
        return " ".join(["argosy", *words]) if words and words[0] in COMMANDS else self.prog

    def suggest(self, word: str) -> str:
        """Suggest the argocd mode, or a subcommand of `app`, which people often omit."""
        if sys.argv[1:2] != [word]:
            return ""
        if word == ARGOCD:
            return f"; run argocd commands as: argosy {COMPAT} {' '.join(sys.argv[2:]) or 'app list'}"
        from argosy.features.applications.cli import MODULES  # late: only needed for errors

        return f"; did you mean 'argosy {LARGE} {word}'?" if any(word in verbs for verbs in MODULES.values()) else ""


def main(argv: Sequence[str] | None = None, *, program: str = "") -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None:  # run as a process, not from tests
        gc.set_threshold(*COLLECTED)
    _prepare_streams()
    code = DONE
    try:
        if os.path.basename(program or sys.argv[0]) == ARGOCD or COMPAT in arguments:
            from argosy.features.argocd_cli import cli  # late: only for argocd commands

            code = cli.answer([word for word in arguments if word != COMPAT], _answer)
        elif argv is None:
            from argosy.cli.termination import closed_on_sigterm

            with closed_on_sigterm():
                code = copy_context().run(_answer, arguments)
        else:  # several commands in one process do not share context variables
            code = copy_context().run(_answer, arguments)
        sys.stdout.flush()
    except Unread as gone:
        code = gone.code
        _silence()
    except BrokenPipeError:
        _silence()
    if argv is None:
        gc.freeze()  # skips the collection at process exit
    return code


def _prepare_streams() -> None:
    """Replace streams that were closed before the start, so that printing does not fail."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an unsupported character must not end a command


def _silence() -> None:
    """Discard buffered output of closed pipes, so that it does not raise again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _answer(arguments: list[str], *, is_compat: bool = False, server: NamedServer | None = None) -> int:
    """Run a command. `server`: value of `argocd --server`; None: use the cluster directly."""
    if not arguments or arguments in (["help"], ["--help"], ["-h"]):
        print(OVERVIEW, end="")
        return DONE
    try:
        if os.environ.get("ARGOSY_CONFINE"):
            from argosy.isolation.requirement import find_invalid_mode

            if refusal := find_invalid_mode():
                raise UserError(refusal)
        if arguments[0].startswith("-") and not is_compat:
            # late: most commands start with their name
            from argosy.cli.leading_flags import drop_flags_without_cluster, move_leading_flags

            command, *verbs = move_leading_flags(arguments)
            if command in COMMANDS and command not in PASSED_ON:
                arguments = drop_flags_without_cluster(arguments, command_line(command, typed="".join(verbs[:1])))
            if arguments[0].startswith("-"):
                arguments = move_leading_flags(arguments)
        if arguments[0] in PASSED_ON and not is_compat and arguments[1:2] not in (["--help"], ["-h"]):
            from argosy.features.kubectl import cli as kubectl  # late: only for kubectl commands

            return kubectl.answer(arguments[0], arguments[1:])
        return _run(arguments, is_compat=is_compat, server=server)
    except KeyboardInterrupt:
        print("argosy: interrupted; completed steps are kept, run the same command to continue", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except ArgosyError as error:
        return failed(error)
    except OSError as error:  # a full disk, an unreadable file
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return failed(UserError(f"{what}; check the path, its permissions and the free disk space"))


def command_line(*names: str, typed: str = "") -> Parser:
    """Build the parser of all commands, or of the named ones, by command or by module.

    `subcommand`: the typed one; a command with many subcommands builds only that one.
    """
    parser = RootParser(
        prog="argosy", add_help=True, description=OVERVIEW, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"argosy {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser, required=True)
    for module in _find_modules(names):
        add_to = importlib.import_module(module).add_to
        add_to(commands, *([typed] if module == COMMANDS[LARGE] else []))
    return parser


def _find_modules(names: Sequence[str]) -> list[str]:
    return [COMMANDS.get(name, name) for name in names or COMMANDS]


def _run(arguments: list[str], *, is_compat: bool, server: NamedServer | None = None) -> int:
    parser = command_line(*_modules(arguments[0], is_compat), typed="".join(arguments[1:2]))
    if arguments[0] in ("app", "proj"):
        from argosy.cli.verbs import spelled

        arguments = spelled(parser, arguments)
    chosen, left = parser.parse_known_args(arguments)
    if left:
        from argosy.cli.flag_suggestions import meant  # late: only needed for errors

        parser.error(f"unrecognized arguments: {' '.join(left)}{meant(parser, arguments, left)}")
    chosen.compat, chosen.is_direct = is_compat, server is None
    if server is not None and server.address and arguments[0] != "logout":
        from argosy.features.argocd_cli.named_server import (
            check_server,  # late: only for argocd --server
        )

        check_server(chosen, server)
    if not is_compat:
        from argosy.cli.target_flags import remember_target

        remember_target(chosen)
    answer: int = chosen.run(chosen)
    return answer


def _modules(command: str, is_compat: bool) -> tuple[str, ...]:
    if is_compat:
        from argosy.features.argocd_cli.cli import MODULES

        return (MODULES[command],)
    return (command,) if command in COMMANDS else ()
