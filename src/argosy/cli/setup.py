"""`argosy setup …`: environments, permissions and Applications for an Argo CD that runs in a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.screen import Screen
from argosy.model.errors import UserError

if TYPE_CHECKING:
    from argosy.app.setup.delivering import Change, Planned, Request, Talk
    from argosy.app.setup.preparing import Said

Commands = argparse._SubParsersAction  # the type argparse gives no public name
Run = Callable[[argparse.Namespace], int]

FILE = Path("argosy.yaml")
EXAMPLES = """\
Examples:
  argosy setup plan -f argosy.yaml
  argosy setup apply -f argosy.yaml
  argosy setup status -f argosy.yaml
  argosy setup destroy -f argosy.yaml --dry-run
  argosy setup argocd --apps argocd-apps
  argosy setup apps argocd-apps
  argosy setup credentials gitea --namespace llmops-dev

See also: docs/guides/environments.md, docs/reference/argosy-yaml.md
"""


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    about = "environments, permissions and Applications for an Argo CD"
    parser = _described(commands, "setup", about)
    parts = parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser))
    _add_delivering(parts)
    _add_preparing(parts)


def _described(commands: Commands[argparse.ArgumentParser], name: str, about: str) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_delivering(parts: Commands[argparse.ArgumentParser]) -> None:
    _add(parts, "plan", "what setting up argosy.yaml would change", plan)
    parser = _add(parts, "apply", "set up what argosy.yaml asks for", apply)
    _add_writing(parser)
    about = "wait for the operator to take settings over, at most (default: 120)"
    parser.add_argument("--timeout", type=_seconds, default=120.0, metavar="S", help=about)
    _add(parts, "status", "is everything there that argosy.yaml asks for", status)
    parser = _add(parts, "destroy", "remove what setup made, and nothing else", destroy)
    _add_writing(parser)
    about = "remove the namespaces that setup made, too, with all that is in them; needs -y"
    parser.add_argument("--namespaces", action="store_true", help=about)
    about = "wait for each Application to be gone, at most (default: 60)"
    parser.add_argument("--timeout", type=_seconds, default=60.0, metavar="S", help=about)


def _add(parts: Commands[argparse.ArgumentParser], name: str, about: str, run: Run) -> argparse.ArgumentParser:
    parser = _described(parts, name, about)
    parser.add_argument("-f", "--file", type=Path, default=FILE, metavar="FILE", help="default: argosy.yaml")
    parser.add_argument("-o", "--output", choices=["text", "json", "yaml"], default="text", help="text, json or yaml")
    _finish(parser, run)
    return parser


def _add_writing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="show the plan, and write nothing")


def _add_preparing(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _described(parts, "argocd", "prepare namespaces and permissions with OpenShift GitOps")
    about = "folder of dev-, staging- and production-application.yaml"
    parser.add_argument("--apps", type=Path, required=True, metavar="DIR", help=about)
    about = "print the admin password, and not only the command that reads it"
    parser.add_argument("--show-password", action="store_true", help=about)
    about = "wait for Argo CD's server, at most (default: 300; for its namespace never more than 60)"
    parser.add_argument("--timeout", type=_seconds, default=300.0, metavar="S", help=about)
    _finish(parser, prepare)

    parser = _described(parts, "apps", "apply the three Applications of a folder, and list them")
    about = "folder of dev-, staging- and production-application.yaml"
    parser.add_argument("folder", type=Path, metavar="DIR", help=about)
    _finish(parser, apply_apps)

    parser = _described(parts, "credentials", "write Secrets with credentials that the cluster knows")
    sources = parser.add_subparsers(dest="source", metavar="SOURCE", required=True, parser_class=type(parser))
    parser = _described(sources, "gitea", "those of the Gitea that its operator installed")
    about = "where the Secrets go (default: the namespace of the context)"
    parser.add_argument("-n", "--namespace", default="", metavar="NS", help=about)
    _finish(parser, write_gitea)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 86400:
        raise ValueError
    return seconds


_seconds.__name__ = "number of seconds"  # what argparse calls it where it is none


def _finish(parser: argparse.ArgumentParser, run: Run) -> None:
    from argosy.cli.target_flags import add_target_flags

    add_target_flags(parser)
    parser.set_defaults(run=run)


# -- argosy.yaml -----------------------------------------------------------------------------------------------------


def plan(chosen: argparse.Namespace) -> int:
    from argosy.app.setup import delivering
    from argosy.cli.target_flags import target_options

    def run() -> int:
        planned = delivering.plan(target_options(chosen), _request(chosen))
        _show_plan(chosen, planned, f"argosy setup apply -f {chosen.file}")
        return 1 if planned.plan.problems else 0

    return _answered(run)


def apply(chosen: argparse.Namespace) -> int:
    from argosy.app.setup import delivering
    from argosy.cli.setup_screen import plan_data
    from argosy.cli.target_flags import target_options

    if chosen.dry_run:
        return plan(chosen)

    def run() -> int:
        done = delivering.apply(target_options(chosen), _request(chosen), _talk(chosen), chosen.timeout)
        if chosen.output != "text":
            _print_data(chosen, plan_data(done, "SetupResult"))
        return 0

    return _answered(run)


def status(chosen: argparse.Namespace) -> int:
    from argosy.app.setup import delivering
    from argosy.cli.setup_screen import status_data, status_lines
    from argosy.cli.target_flags import target_options

    def run() -> int:
        found = delivering.status(target_options(chosen), _request(chosen))
        if chosen.output == "text":
            print("\n".join(status_lines(found)))
        else:
            _print_data(chosen, status_data(found))
        return 0 if found.is_complete else 1

    return _answered(run)


def destroy(chosen: argparse.Namespace) -> int:
    from argosy.app.setup import delivering
    from argosy.cli.setup_screen import plan_data
    from argosy.cli.target_flags import target_options

    if chosen.namespaces and not (chosen.yes or chosen.dry_run):
        raise UserError("--namespaces removes all that is in them; add -y if that is what you want")

    def run() -> int:
        talk, options = _talk(chosen), target_options(chosen)
        try:
            done = delivering.destroy(
                options, _request(chosen), talk, chosen.timeout, with_namespaces=chosen.namespaces
            )
        except _Rehearsed as rehearsed:
            done = rehearsed.planned
        if chosen.output != "text":
            _print_data(chosen, plan_data(done, "SetupPlan" if chosen.dry_run else "SetupResult"))
        return 0

    return _answered(run)


class _Rehearsed(UserError):
    """Stopped before the first write, as asked."""

    def __init__(self, planned: Planned) -> None:
        super().__init__("nothing was written")
        self.planned = planned


def _request(chosen: argparse.Namespace) -> Request:
    from argosy.app.setup.requesting import read_request

    return read_request(chosen.file)


def _talk(chosen: argparse.Namespace) -> Talk:
    from argosy.app.setup.delivering import Talk
    from argosy.cli.setup_screen import done_line

    def confirm(planned: Planned) -> None:
        if chosen.dry_run:
            raise _Rehearsed(planned)
        if planned.plan.problems:
            raise UserError(planned.plan.problems[0])
        print(f"target: {planned.where}", file=sys.stderr, flush=True)
        if not chosen.yes:
            _confirm()

    def done(change: Change, verb: str) -> None:
        if chosen.output == "text":
            print(done_line(change, verb), flush=True)

    def show(planned: Planned) -> None:
        if chosen.output == "text":
            _show_plan(chosen, planned)

    return Talk(show, confirm, done)


def _confirm() -> None:
    if not sys.stdin.isatty():
        raise UserError("this changes the cluster and nobody is here to ask; add -y to do it all the same")
    print("Do it? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("nothing was changed; run it again and answer y to go on")


def _show_plan(chosen: argparse.Namespace, planned: Planned, command: str = "") -> None:
    from argosy.cli.setup_screen import closing_lines, plan_data, plan_lines

    if chosen.output != "text":
        _print_data(chosen, plan_data(planned))
        return
    for line in (*plan_lines(planned), *closing_lines(planned, command)):
        print(line)


def _print_data(chosen: argparse.Namespace, data: dict[str, Any]) -> None:
    from argosy.cli.health import print_data

    print_data(data, chosen.output)


# -- what scripts call -----------------------------------------------------------------------------------------------


def prepare(chosen: argparse.Namespace) -> int:
    from argosy.app.setup.preparing import prepare_argocd
    from argosy.cli.target_flags import target_options

    def run() -> int:
        prepare_argocd(
            target_options(chosen), chosen.apps, _tell, _tell_target,
            shows_password=chosen.show_password, timeout=chosen.timeout,
        )  # fmt: skip
        return 0

    return _answered(run)


def apply_apps(chosen: argparse.Namespace) -> int:
    from argosy.app.setup.preparing import apply_applications
    from argosy.cli.target_flags import target_options

    def run() -> int:
        apply_applications(target_options(chosen), chosen.folder, _tell, _tell_target)
        return 0

    return _answered(run)


def write_gitea(chosen: argparse.Namespace) -> int:
    from argosy.app.setup.preparing import write_gitea_credentials
    from argosy.cli.target_flags import target_options

    def run() -> int:
        write_gitea_credentials(target_options(chosen), chosen.namespace, _tell, _tell_target)
        return 0

    return _answered(run)


def _tell(said: Said) -> None:
    """At once: the next step may take long."""
    for line in [said] if isinstance(said, str) else Screen(sys.stdout).table(said.headings, said.rows):
        print(line, flush=True)


def _tell_target(where: Said) -> None:
    print(f"target: {where}", file=sys.stderr, flush=True)


def _answered(run: Callable[[], int]) -> int:
    """The exit code; what is missing is an answer, and what is late another."""
    from argosy.app.setup.delivering import TooLate
    from argosy.app.setup.preparing import Missing, NotInstalled, NotReady

    try:
        return run()
    except (TooLate, NotReady) as error:
        return _error(error, 4)
    except (Missing, NotInstalled) as error:
        return _error(error, 1)


def _error(error: UserError, code: int) -> int:
    what, _, advice = str(error).partition("; ")
    print(f"Error: {what}\nnext: {advice}", file=sys.stderr)
    return code
