"""`argosy sandbox …`: the embedded cluster, from the command line."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from argosy.cli.data_folder import DEFAULT_NAME, DEMO_NAME, DataFolder, Run
from argosy.cli.ports import check_port
from argosy.cli.prompts import read_line
from argosy.cli.target_flags import named_path
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


SHOWN = {
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


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "sandbox",
        help="run and manage the embedded cluster",
        description="Runs a Kubernetes API server in one process, with its data in one folder. Use it with kubectl.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="start|stop|status|reset|kubeconfig|load|user", required=True)
    _add_start(parts)
    _add_simple(parts, "stop", "stop the running sandbox and keep its data", stop)
    status_parser = _add_simple(parts, "status", "show whether the sandbox is running", status)
    status_parser.add_argument("-o", "--output", choices=["text", "json"], default="text", help="text or json")
    reset_parser = _add_simple(parts, "reset", "delete all data of the sandbox", reset)
    reset_parser.add_argument("-y", "--yes", action="store_true", help="skip the confirmation prompt")
    _add_simple(parts, "kubeconfig", "print the administrator's kubeconfig", show_kubeconfig)
    load_parser = _add_simple(parts, "load", "apply manifests to the sandbox", load)
    about = "file or folder with manifests, - is standard input; repeatable"
    load_parser.add_argument("-f", "--filename", action="append", required=True, metavar="FILE|DIR|-", help=about)
    _add_user(parts)


def _add_simple(
    parts: Commands[argparse.ArgumentParser], name: str, about: str, run: object
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = parts.add_parser(
        name,
        help=about,
        description=about.capitalize() + ".",
        epilog="Examples:\n" + "".join(f"  {line}\n" for line in SHOWN[name]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    usual = "$XDG_STATE_HOME/argosy/sandbox, or ~/.local/state/argosy/sandbox"
    parser.add_argument(
        "--data-dir", type=named_path, metavar="DIR", help=f"data folder of the sandbox (default: {usual})"
    )
    parser.set_defaults(run=run)
    return parser


def _add_start(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add_simple(parts, "start", "run the sandbox in the foreground until Ctrl-C", start)
    parser.add_argument(
        "--port", type=int, metavar="N", help="port of the API (0: any free port; default: the last one)"
    )
    parser.add_argument("--kubeconfig", type=named_path, metavar="FILE", help="kubeconfig file to create or extend")
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
    about = "manage users of the sandbox"
    parser = parts.add_parser("user", help=about, description=about.capitalize() + ".")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = _add_simple(actions, "add", "add a user and print a kubeconfig", add_user)
    add.add_argument("name", help="name of the user, as in RBAC subjects")
    add.add_argument("--group", action="append", default=[], metavar="G", help="group of the user; repeatable")


def start(chosen: argparse.Namespace) -> int:
    from argosy.features.local.sandbox import SandboxOptions, run

    check_port("--port", chosen.port)
    most = chosen.max_watches_per_user
    if most is not None and most < 1:
        raise UserError(f"invalid number {most}: expected 1 or more", where="--max-watches-per-user")
    options = SandboxOptions(
        chosen.data_dir,
        chosen.port,
        chosen.kubeconfig,
        chosen.ephemeral,
        chosen.rbac,
        chosen.addons,
        max_watches_per_user=most,
    )
    run(options, _announce)
    kept = "its data was deleted" if chosen.ephemeral else "your data is kept"
    print(f"sandbox stopped; {kept}", file=sys.stderr)
    return 0


def _announce(run: Run) -> None:
    rbac = " with RBAC" if run.rbac else ""
    context = f" --context {run.context}" if run.context else ""
    command = f"kubectl --kubeconfig {shlex.quote(run.kubeconfig)}{context} get namespaces"
    print(f"sandbox ready{rbac} at {run.api}; try: {command}", flush=True)


def _folder(chosen: argparse.Namespace) -> DataFolder:
    from argosy.cli.running_instances import chosen_folder  # late: to start one needs no kubeconfig

    return chosen_folder(chosen.data_dir, DEFAULT_NAME)


def stop(chosen: argparse.Namespace) -> int:
    folder = _folder(chosen)
    run = folder.running()
    if run is not None and run.name == DEMO_NAME:
        raise UserError(
            "a demo is running there, not a sandbox; stop it with: argosy demo stop", where=str(folder.root)
        )
    was_stopped = folder.stop()
    print("sandbox stopped" if was_stopped else f"no sandbox is running in {folder.root}", file=sys.stderr)
    folder.remove_if_empty(was_stopped=was_stopped)
    return 0


def status(chosen: argparse.Namespace) -> int:
    """Print the state of the sandbox; exit code 1 if it is not running."""
    from argosy.features.local.readiness import find_storage_problem  # late: HTTP and TLS are needed here only

    folder = _folder(chosen)
    found = folder.status()
    problem = find_storage_problem(folder, found["api"]) if found["ready"] else ""
    if chosen.output == "json":
        print(json.dumps({**found, "readOnly": problem or None}, indent=2))
    elif found["ready"]:
        rbac = "RBAC enforced" if found["rbac"] else "RBAC not enforced"
        print(f"running  pid {found['pid']}  {found['api']}  {rbac}")
        print(f"kubeconfig {found['kubeconfig']}\ndata {found['dataDir']}")
        if problem:
            print(f"read-only  {problem}")
    else:
        start = ["argosy", "sandbox", "start", *(["--data-dir", str(chosen.data_dir)] if chosen.data_dir else [])]
        print(f"not running  data {found['dataDir']}\nstart it with: {shlex.join(start)}")
    return 0 if found["ready"] else 1


def reset(chosen: argparse.Namespace) -> int:
    folder = DataFolder(chosen.data_dir)
    if not folder.root.is_dir():
        print(f"nothing to remove: {folder.root} does not exist", file=sys.stderr)
        return 0
    if not chosen.yes:
        _confirm(f"Remove everything in {folder.root}?")
    with folder.owned():
        folder.clear()
    print(f"removed everything in {folder.root}", file=sys.stderr)
    return 0


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise UserError("cannot ask for confirmation without a terminal; pass -y to delete the data")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if read_line().strip().lower() not in ("y", "yes"):
        raise UserError("cancelled; nothing was removed")


def show_kubeconfig(chosen: argparse.Namespace) -> int:
    folder = _folder(chosen)
    if not folder.kubeconfig.exists():
        raise UserError("no sandbox was started here yet; start one with: argosy sandbox start", where=str(folder.root))
    _tell_folder(folder)
    print(folder.kubeconfig.read_text(), end="")
    return 0


def _tell_folder(folder: DataFolder) -> None:
    """Print to stderr whose kubeconfig it is, and which other cluster the environment selects."""
    from argosy.cli.target import describe_other_target, name_of_run

    run = folder.running()
    where = name_of_run(folder, run) if run else f"the sandbox in {folder.root}, which is not running"
    print(f"target: {where}", file=sys.stderr, flush=True)
    if other := describe_other_target(folder):
        print(f"note: {other}", file=sys.stderr, flush=True)


def _running_sandbox(chosen: argparse.Namespace) -> DataFolder:
    """Return the folder of the running sandbox, and print its name to stderr."""
    from argosy.cli.target import find_sandbox, name_of_run

    folder, run = find_sandbox(chosen.data_dir)
    print(f"target: {name_of_run(folder, run)}", file=sys.stderr, flush=True)
    return folder


def load(chosen: argparse.Namespace) -> int:
    from argosy.features.local.manifest_loader import load_manifests

    for line in load_manifests(_running_sandbox(chosen), [Path(name) for name in chosen.filename]):
        print(line, flush=True)
    return 0


def add_user(chosen: argparse.Namespace) -> int:
    from argosy.features.local.users import add

    print(add(_running_sandbox(chosen), chosen.name, chosen.group), end="")
    return 0
