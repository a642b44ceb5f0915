"""`argosy sandbox …`: the embedded cluster, from the command line."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from argosy.cli.cluster_flags import parse_path
from argosy.cli.port_validation import check_port
from argosy.cli.prompts import read_line
from argosy.cli.sandbox_data_folder_and_lock import DEFAULT_NAME, DEMO_NAME, DataFolder, RunningInstance
from argosy.errors import UserError

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy sandbox start
  argosy sandbox start --ephemeral --port 0
  argosy sandbox load -f manifests/
  argosy sandbox user add alice --group devs > alice.kubeconfig

See also: argosy version, docs/guides/sandbox.md
"""


COMMAND_EXAMPLES = {
    "start": [
        "argosy sandbox start",
        "argosy sandbox start --ephemeral --port 0",
        "argosy sandbox start --rbac",
        "argosy sandbox start --addons argocd_operator",
    ],
    "stop": ["argosy sandbox stop", "argosy sandbox stop --data-dir ./cluster"],
    "status": ["argosy sandbox status", "argosy sandbox status -o json"],
    "reset": ["argosy sandbox reset", "argosy sandbox reset -y --data-dir ./cluster"],
    "kubeconfig": ["argosy sandbox kubeconfig > sandbox.kubeconfig"],
    "load": ["argosy sandbox load -f examples/sandbox", "kubectl kustomize overlays/dev | argosy sandbox load -f -"],
    "add": ["argosy sandbox user add alice --group devs > alice.kubeconfig"],
}


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "sandbox",
        help="run and manage the embedded cluster",
        description="Runs a Kubernetes API server in one process, with its data in one folder. Use it with kubectl.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="start|stop|status|reset|kubeconfig|load|user", required=True)
    _add_start(parts)
    _add_command(parts, "stop", "stop the running sandbox and keep its data", run_stop)
    status_parser = _add_command(parts, "status", "show whether the sandbox is running", run_status)
    status_parser.add_argument("-o", "--output", choices=["text", "json"], default="text", help="text or json")
    reset_parser = _add_command(parts, "reset", "delete all data of the sandbox", run_reset)
    reset_parser.add_argument("-y", "--yes", action="store_true", help="skip the confirmation prompt")
    _add_command(parts, "kubeconfig", "print the administrator's kubeconfig", run_kubeconfig)
    load_parser = _add_command(parts, "load", "apply manifests to the sandbox", run_load)
    help_text = "file or folder with manifests, - is standard input; repeatable"
    load_parser.add_argument("-f", "--filename", action="append", required=True, metavar="FILE|DIR|-", help=help_text)
    _add_user(parts)


def _add_command(
    parts: Commands[argparse.ArgumentParser], name: str, summary: str, run: object
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = parts.add_parser(
        name,
        help=summary,
        description=summary.capitalize() + ".",
        epilog="Examples:\n" + "".join(f"  {line}\n" for line in COMMAND_EXAMPLES[name]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default_folder = "$XDG_STATE_HOME/argosy/sandbox, or ~/.local/state/argosy/sandbox"
    parser.add_argument(
        "--data-dir", type=parse_path, metavar="DIR", help=f"data folder of the sandbox (default: {default_folder})"
    )
    parser.set_defaults(run=run)
    return parser


def _add_start(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add_command(parts, "start", "run the sandbox in the foreground until Ctrl-C", run_start)
    parser.add_argument(
        "--port", type=int, metavar="N", help="port of the API (0: any free port; default: the last one)"
    )
    parser.add_argument("--kubeconfig", type=parse_path, metavar="FILE", help="kubeconfig file to create or extend")
    parser.add_argument("--ephemeral", action="store_true", help="keep all data in memory and delete it at the end")
    parser.add_argument(
        "--addons", default="", metavar="NAME[=VARIANT],…", help="controllers to run in it, such as argocd_operator"
    )
    parser.add_argument(
        "--rbac",
        action=argparse.BooleanOptionalAction,
        help="enforce RBAC, or allow everything (default: as last time, at first --no-rbac)",
    )
    parser.add_argument(
        "--max-watches-per-user",
        type=int,
        metavar="N",
        help="maximum number of open watches per user (default: 5000; no limit for system:masters)",
    )


def _add_user(parts: Commands[argparse.ArgumentParser]) -> None:
    summary = "manage users of the sandbox"
    parser = parts.add_parser("user", help=summary, description=summary.capitalize() + ".")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_parser = _add_command(actions, "add", "add a user and print a kubeconfig", run_add_user)
    add_parser.add_argument("name", help="name of the user, as in RBAC subjects")
    add_parser.add_argument("--group", action="append", default=[], metavar="G", help="group of the user; repeatable")


def run_start(args: argparse.Namespace) -> int:
    from argosy.features.local_sandbox.sandbox import SandboxOptions, run_sandbox

    check_port("--port", args.port)
    max_watches = args.max_watches_per_user
    if max_watches is not None and max_watches < 1:
        raise UserError(f"invalid number {max_watches}: expected 1 or more", where="--max-watches-per-user")
    options = SandboxOptions(
        args.data_dir,
        args.port,
        args.kubeconfig,
        args.ephemeral,
        args.rbac,
        args.addons,
        max_watches_per_user=max_watches,
    )
    run_sandbox(options, _print_ready)
    data_note = "its data was deleted" if args.ephemeral else "your data is kept"
    print(f"sandbox stopped; {data_note}", file=sys.stderr)
    return 0


def _print_ready(run: RunningInstance) -> None:
    rbac = " with RBAC" if run.rbac else ""
    context = f" --context {run.context}" if run.context else ""
    command = f"kubectl --kubeconfig {shlex.quote(run.kubeconfig)}{context} get namespaces"
    print(f"sandbox ready{rbac} at {run.api}; try: {command}", flush=True)


def _find_folder(args: argparse.Namespace) -> DataFolder:
    from argosy.cli.running_sandbox_selection import select_folder  # late: to start one needs no kubeconfig

    return select_folder(args.data_dir, DEFAULT_NAME)


def run_stop(args: argparse.Namespace) -> int:
    folder = _find_folder(args)
    run = folder.find_running_instance()
    if run is not None and run.name == DEMO_NAME:
        raise UserError(
            "a demo is running there, not a sandbox; stop it with: argosy demo stop", where=str(folder.root)
        )
    was_stopped = folder.stop()
    print("sandbox stopped" if was_stopped else f"no sandbox is running in {folder.root}", file=sys.stderr)
    folder.remove_if_empty(was_stopped=was_stopped)
    return 0


def run_status(args: argparse.Namespace) -> int:
    """Print the state of the sandbox; exit code 1 if it is not running."""
    from argosy.features.local_sandbox.storage_error_from_readyz import (
        find_storage_problem,  # late: HTTP and TLS are needed here only
    )

    folder = _find_folder(args)
    state = folder.status_to_wire()
    problem = find_storage_problem(folder, state["api"]) if state["ready"] else ""
    if args.output == "json":
        print(json.dumps({**state, "readOnly": problem or None}, indent=2))
    elif state["ready"]:
        rbac = "RBAC enforced" if state["rbac"] else "RBAC not enforced"
        print(f"running  pid {state['pid']}  {state['api']}  {rbac}")
        print(f"kubeconfig {state['kubeconfig']}\ndata {state['dataDir']}")
        if problem:
            print(f"read-only  {problem}")
    else:
        start_command = ["argosy", "sandbox", "start", *(["--data-dir", str(args.data_dir)] if args.data_dir else [])]
        print(f"not running  data {state['dataDir']}\nstart it with: {shlex.join(start_command)}")
    return 0 if state["ready"] else 1


def run_reset(args: argparse.Namespace) -> int:
    folder = DataFolder(args.data_dir)
    if not folder.root.is_dir():
        print(f"nothing to remove: {folder.root} does not exist", file=sys.stderr)
        return 0
    if not args.yes:
        _confirm(f"Remove everything in {folder.root}?")
    with folder.lock_for_this_process():
        folder.remove_sandbox_files()
    print(f"removed everything in {folder.root}", file=sys.stderr)
    return 0


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise UserError("cannot ask for confirmation without a terminal; pass -y to delete the data")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if read_line().strip().lower() not in ("y", "yes"):
        raise UserError("cancelled; nothing was removed")


def run_kubeconfig(args: argparse.Namespace) -> int:
    folder = _find_folder(args)
    if not folder.kubeconfig.exists():
        raise UserError("no sandbox was started here yet; start one with: argosy sandbox start", where=str(folder.root))
    _print_target(folder)
    print(folder.kubeconfig.read_text(), end="")
    return 0


def _print_target(folder: DataFolder) -> None:
    """Print to stderr whose kubeconfig it is, and which other cluster the environment selects."""
    from argosy.cli.cluster_target import describe_other_selected_cluster, describe_run

    run = folder.find_running_instance()
    target_name = describe_run(folder, run) if run else f"the sandbox in {folder.root}, which is not running"
    print(f"target: {target_name}", file=sys.stderr, flush=True)
    if other_target := describe_other_selected_cluster(folder):
        print(f"note: {other_target}", file=sys.stderr, flush=True)


def _find_running_sandbox(args: argparse.Namespace) -> DataFolder:
    """Return the folder of the running sandbox, and print its name to stderr."""
    from argosy.cli.cluster_target import describe_run, find_sandbox

    folder, run = find_sandbox(args.data_dir)
    print(f"target: {describe_run(folder, run)}", file=sys.stderr, flush=True)
    return folder


def run_load(args: argparse.Namespace) -> int:
    from argosy.features.local_sandbox.sandbox_manifest_apply import apply_manifest_files

    for line in apply_manifest_files(_find_running_sandbox(args), [Path(name) for name in args.filename]):
        print(line, flush=True)
    return 0


def run_add_user(args: argparse.Namespace) -> int:
    from argosy.features.local_sandbox.sandbox_user_creation import add_user

    print(add_user(_find_running_sandbox(args), args.name, args.group), end="")
    return 0
