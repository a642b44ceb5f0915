"""The command `argosy`: the table of its commands, and what holds for all of them.

In: argv. Out: an exit code; data on stdout, messages on stderr. Never: imports a command that was not typed:
`argosy --help` must be quick.
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


COLLECTED = (10_000, 20, 20)  # the usual would look for cycles dozens of times during imports, and find none
PASSED_ON = ("kubectl", "oc")  # whose words are not ours
LARGE = "app"  # the group of many verbs
OVERVIEW = """\
argosy takes models and notebooks from Git to Kubernetes, and speaks Argo CD's language.

Try it:
  argosy demo                          a whole delivery: Git, a cluster, three environments of a model
  argosy app list                      in a second terminal: what is delivered, and why it is not as it should be
  argosy sandbox start                 a Kubernetes API on this machine, nothing else needed
  kubectl --kubeconfig … get ns        the line that start prints, with the path filled in
  argosy sandbox status                is it running, and where
  argosy health test model.yaml        how an object is judged, and by which rule

Commands:
  account    accounts, their tokens and passwords, and what they may
  admin      the first password of admin
  align      the smallest changes in Git that make Applications Synced, proven
  app        list, sync, compare and change Applications
  check      find what is wrong in Git, before anything is deployed
  cluster    add, list, rotate and remove clusters that Applications go to
  controller deliver the Applications of a cluster
  demo       a whole delivery on this machine: Git, cluster, engine, a model
  doctor     what is wrong with an installation and its Applications, why, and what helps
  explain    why an object, a field or an Application is as it is, or what a rule means
  generate   print manifests that hold up a sync, and settings for notifications
  health     list, test, lint and compare health checks
  init       make a repository with a model, three environments and checks
  install    run argosy itself in a cluster; uninstall: take it out again
  kubectl    kubectl, and a small one where there is none; oc: the same with its own verbs
  model      list, ask, probe and restart served models
  notebook   run, judge and compare notebooks; list, follow and repeat notebook jobs
  notifications  list, try and trace messages about Applications and notebooks
  open       the page of what runs on this machine, in a browser
  preview    what a branch would change, before it is merged
  proj       list and change projects
  promote    take a release from one environment to the next, through gates
  render     print the manifests of folders and Applications
  sandbox    start, stop and fill the embedded cluster
  serve      the page and the REST API of a cluster
  setup      environments, permissions and Applications for an Argo CD
  trace      which commit, notebook run and file a served model comes from
  version    this version, and what is simulated

Run `argosy COMMAND --help` for its flags and examples.
"""


class RootParser(Parser):
    """The parser above all commands."""

    def name_command(self) -> str:
        """Return the command that was meant: this parser reports what no other understood, whatever came first."""
        words = list(itertools.takewhile(lambda word: not word.startswith("-"), sys.argv[1:]))
        return " ".join(["argosy", *words]) if words and words[0] in COMMANDS else self.prog

    def suggest(self, word: str) -> str:
        """Name argocd's commands, or a verb of the large group: people leave `app` out."""
        if sys.argv[1:2] != [word]:
            return ""
        if word == ARGOCD:
            return f"; its commands are typed as: argosy {COMPAT} {' '.join(sys.argv[2:]) or 'app list'}"
        from argosy.features.applications.cli import MODULES  # late: it is for mistakes

        return f"; did you mean 'argosy {LARGE} {word}'?" if any(word in verbs for verbs in MODULES.values()) else ""


def main(argv: Sequence[str] | None = None, *, program: str = "") -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None:  # a process of its own
        gc.set_threshold(*COLLECTED)
    _prepare_streams()
    code = DONE
    try:
        if os.path.basename(program or sys.argv[0]) == ARGOCD or COMPAT in arguments:
            from argosy.features.argocd_cli import cli  # late: it is for those who type argocd

            code = cli.answer([word for word in arguments if word != COMPAT], _answer)
        elif argv is None:
            from argosy.cli.termination import closed_on_sigterm

            with closed_on_sigterm():
                code = copy_context().run(_answer, arguments)
        else:  # several commands in one process: what one remembers is not for the next
            code = copy_context().run(_answer, arguments)
        sys.stdout.flush()
    except Unread as gone:
        code = gone.code
        _silence()
    except BrokenPipeError:
        _silence()
    if argv is None:
        gc.freeze()  # else the end of the process looks at everything once more
    return code


def _prepare_streams() -> None:
    """A stream that was closed before the start is None; what is told there is lost, and ends nothing."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a character must not end a command


def _silence() -> None:
    """Nobody reads any more; what is left in buffers must not raise again at the end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _answer(arguments: list[str], *, is_compat: bool = False, server: NamedServer | None = None) -> int:
    """`server` is the one that `argocd --server` names; None: the cluster is asked directly."""
    if not arguments or arguments in (["help"], ["--help"], ["-h"]):
        print(OVERVIEW, end="")
        return DONE
    try:
        if os.environ.get("ARGOSY_CONFINE"):
            from argosy.isolation.requirement import find_invalid_mode

            if refusal := find_invalid_mode():
                raise UserError(refusal)
        if arguments[0].startswith("-") and not is_compat:
            # late: most commands begin with their name
            from argosy.cli.leading_flags import drop_flags_without_cluster, move_leading_flags

            command, *verbs = move_leading_flags(arguments)
            if command in COMMANDS and command not in PASSED_ON:
                arguments = drop_flags_without_cluster(arguments, command_line(command, typed="".join(verbs[:1])))
            if arguments[0].startswith("-"):
                arguments = move_leading_flags(arguments)
        if arguments[0] in PASSED_ON and not is_compat and arguments[1:2] not in (["--help"], ["-h"]):
            from argosy.features.kubectl import cli as kubectl  # late: it is for those who type it

            return kubectl.answer(arguments[0], arguments[1:])
        return _run(arguments, is_compat=is_compat, server=server)
    except KeyboardInterrupt:
        print("argosy: interrupted; what is done stays, the same command goes on from there", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except ArgosyError as error:
        return failed(error)
    except OSError as error:  # a full disk, a file that may not be read
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return failed(UserError(f"{what}; check the path, its permissions and the space on the disk"))


def command_line(*names: str, typed: str = "") -> Parser:
    """Build the parser of all commands, or of those that are named, by command or by module.

    `typed` is the verb after the command: a command with many verbs builds only that one.
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
        from argosy.cli.flag_suggestions import meant  # late: it is for mistakes

        parser.error(f"unrecognized arguments: {' '.join(left)}{meant(parser, arguments, left)}")
    chosen.compat, chosen.is_direct = is_compat, server is None
    if server is not None and server.address and arguments[0] != "logout":
        from argosy.features.argocd_cli.named_server import (
            check_server,  # late: it is for those who type argocd --server
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
