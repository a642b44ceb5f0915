"""`argosy demo …`: run the demo, and start or undo failure drills."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from argosy.cli.cluster_flags import parse_path
from argosy.cli.log_flags import add_log_flags, print_line
from argosy.cli.port_validation import check_port
from argosy.cli.sandbox_data_folder_and_lock import DEMO_NAME, DataFolder, RunningInstance, get_state_folder
from argosy.errors import UserError

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy demo
  argosy demo --data-dir ./demo --api-port 0
  argosy demo --example=stages
  argosy demo break model
  argosy demo fix

See also: argosy app list, docs/guides/demo.md
"""
EXAMPLE_NAMES = ("llmops", "stages")
DRILL_NAMES = ("model", "image", "drift", "branch", "lua")


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo",
        help="run a complete demo on this machine: Git, cluster, engine, a model",
        description="Runs three environments of a model, deployed from a local Git repository. Ctrl-C stops it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_start_flags(parser)
    parser.set_defaults(run=run_start)
    parts = parser.add_subparsers(dest="part", metavar="status|break|fix|stop")
    status_parser = _add_command(
        parts, "status", "show whether the demo is running", run_status, ["argosy demo status -o json"]
    )
    status_parser.add_argument("-o", "--output", choices=["text", "json"], default="text", help="text or json")
    break_parser = _add_command(parts, "break", "start a failure drill", run_break, ["argosy demo break drift"])
    break_parser.add_argument(
        "story", choices=DRILL_NAMES, metavar="|".join(DRILL_NAMES), help="the failure to simulate"
    )
    _add_command(parts, "fix", "undo all failure drills", run_fix, ["argosy demo fix"])
    _add_command(parts, "stop", "stop the running demo", run_stop, ["argosy demo stop"])


def _add_start_flags(parser: argparse.ArgumentParser) -> None:
    help_text = "keep all data in this folder, and continue from it"
    parser.add_argument("--data-dir", type=parse_path, metavar="DIR", help=help_text)
    help_text = "llmops: three environments of a model; stages: eight applications, most OutOfSync (default: llmops)"
    parser.add_argument("--example", choices=EXAMPLE_NAMES, help=help_text)
    help_text = "port of the web UI (0: any free port; default: 8484, or a free port if it is taken)"
    parser.add_argument("--port", type=int, metavar="N", help=help_text)
    help_text = "port of the Kubernetes API (0: any free port; default: the last one)"
    parser.add_argument("--api-port", type=int, metavar="N", help=help_text)
    parser.add_argument("--kubeconfig", type=parse_path, metavar="FILE", help="kubeconfig file to create or extend")
    help_text = "openshift: with the operator; plain: Argo CD without it (default: as in the folder, else openshift)"
    parser.add_argument("--argocd", choices=["openshift", "plain"], help=help_text)
    help_text = "do not run argosy's engine: Applications get no status"
    parser.add_argument("--no-engine", action="store_true", help=help_text)
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    add_log_flags(parser, default_format="", default_level="warn")


def _add_command(
    parts: Commands[argparse.ArgumentParser], name: str, summary: str, run: object, examples: list[str]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = parts.add_parser(
        name,
        help=summary,
        description=summary.capitalize() + ".",
        epilog="Examples:\n" + "".join(f"  {line}\n" for line in examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--data-dir", type=parse_path, metavar="DIR", help="data folder of the demo, if it was started with one"
    )
    parser.set_defaults(run=run)
    return parser


def run_start(args: argparse.Namespace) -> int:
    from argosy.features.demo.in_process_demo_stack import DemoOptions, run_demo

    for flag, port in (("--api-port", args.api_port), ("--port", args.port)):
        check_port(flag, port)
    options = DemoOptions(
        data_dir=args.data_dir,
        api_port=args.api_port,
        kubeconfig=args.kubeconfig,
        argocd={"openshift": "", None: None}.get(args.argocd, args.argocd),
        has_engine=not args.no_engine,
        example=args.example,
        port=args.port,
        log_format=args.log_format,
        log_level=args.log_level,
    )
    started_at = time.monotonic()
    is_continued = args.data_dir is not None and DataFolder(args.data_dir).database.exists()

    def announce(running_demo: RunningInstance) -> None:
        print(
            "\n".join(_render_banner(running_demo, time.monotonic() - started_at, not args.no_engine, is_continued)),
            flush=True,
        )
        if not args.no_browser:
            _open_web_ui(running_demo)

    run_demo(options, announce, lambda stage: print_line(args, f"… {stage}"))
    kept = f"your data is kept in {args.data_dir}" if args.data_dir else "its cluster and repository were deleted"
    print_line(args, f"demo stopped; {kept}; start it again with: {_render_start_command(args)}")
    return 0


def _open_web_ui(run: RunningInstance) -> None:
    from argosy.features.demo.page_server import create_login_url, web_server_folder
    from argosy.features.serve.cli import open_browser

    open_browser(create_login_url(run), web_server_folder(run))


def _render_banner(run: RunningInstance, seconds: float, has_engine: bool, is_continued: bool) -> list[str]:
    from argosy.features.demo.examples import find_example
    from argosy.features.demo.in_process_demo_stack import gitops_product_name
    from argosy.features.demo.notebook import find_runnable_notebook
    from argosy.features.demo.page_server import create_login_url

    example = find_example(run.repository)
    delivery = example.ready_description if not is_continued else f"continued from {run.data_dir}"
    delivery = delivery if has_engine else f"{example.applications} applications, and no engine"
    context_note = f"   # kubectl needs --context {run.context}, unless it is current"
    context = f" ARGOSY_CONTEXT={shlex.quote(run.context)}{context_note}" if run.context else ""
    notebook = find_runnable_notebook(Path(run.data_dir))
    bin_folder = shlex.quote(str(Path(run.data_dir) / "bin"))
    return [
        f"demo ready in {seconds:.1f} s: {delivery}; {gitops_product_name(run.addons)}, KServe and Pods are simulated",
        f"  page        {create_login_url(run)}   (one-time login link, valid for a minute; later: argosy open)",
        f"  API         {run.api}",
        f"  repository  {run.repository}   (clone it, push to it)",
        *([f'  model       query it: argosy model try {example.model} "Hello"'] if has_engine else []),
        *([f"  notebook    run it: argosy notebook run {shlex.quote(notebook)} -p alpha 0.6"] if notebook else []),
        "",
        "In a second shell:",
        f'  export KUBECONFIG={shlex.quote(run.kubeconfig)} PATH="$PATH":{bin_folder}{context}',
        "next:",
        *(f"  {line}" for line in _list_next_commands(example.first_commands, has_engine, is_continued)),
        "Ctrl-C stops it and deletes its data." if run.ephemeral else f"Ctrl-C stops it; data stays in {run.data_dir}.",
    ]


def _list_next_commands(commands: Sequence[str], has_engine: bool, is_continued: bool) -> list[str]:
    if not has_engine:  # nothing compares or syncs
        return ["argosy controller   # run the engine in another shell; until then Applications get no status",
                "argosy app list"]  # fmt: skip
    if is_continued:
        return ["argosy app list", "argosy demo status"]
    return list(commands)


def _find_folder(args: argparse.Namespace) -> DataFolder:
    """Data folder of the selected demo; a running sandbox is not a demo."""
    from argosy.cli.running_sandbox_selection import select_folder

    folder = select_folder(args.data_dir, DEMO_NAME)
    run = folder.find_running_instance()
    return folder if args.data_dir or (run and run.name == DEMO_NAME) else DataFolder(get_state_folder() / DEMO_NAME)


def _get_running_demo(args: argparse.Namespace) -> RunningInstance:
    folder = _find_folder(args)
    run = folder.find_running_instance()
    if run is None or run.name != DEMO_NAME:
        where = str(folder.root) if args.data_dir else ""
        raise UserError(f"no demo is running; start one with: {_render_start_command(args)}", where=where)
    return run


def _render_start_command(args: argparse.Namespace) -> str:
    return f"argosy demo --data-dir {shlex.quote(str(args.data_dir))}" if args.data_dir else "argosy demo"


def run_status(args: argparse.Namespace) -> int:
    """Print the state of the demo; exit code 1 if none is running."""
    from argosy.features.local_sandbox.storage_error_from_readyz import (
        find_storage_problem,  # late: HTTP and TLS are needed here only
    )

    folder = _find_folder(args)
    state = folder.status_to_wire()
    problem = find_storage_problem(folder, state["api"]) if state["ready"] else ""
    if args.output == "json":
        print(json.dumps({**state, "readOnly": problem or None}, indent=2))
    elif state["ready"]:
        print(f"running  pid {state['pid']}  {state['api']}")
        print(f"page {state['url']}   (argosy open)")
        print(f"repository {state['repository']}\nkubeconfig {state['kubeconfig']}\ndata {state['dataDir']}")
        if problem:
            print(f"read-only  {problem}")
        _print_active_drills(_get_running_demo(args))
    else:
        print(f"not running\nstart it with: {_render_start_command(args)}")
    return 0 if state["ready"] else 1


def _print_active_drills(run: RunningInstance) -> None:
    from argosy.features.demo.failure_drills import list_active_drills

    if names := list_active_drills(run):
        print(f"failure drills  {', '.join(names)} (undo them with: argosy demo fix)")


def run_break(args: argparse.Namespace) -> int:
    from argosy.features.demo.failure_drills import start_drill

    for line in start_drill(_get_running_demo(args), args.story):
        print(line, flush=True)
    return 0


def run_fix(args: argparse.Namespace) -> int:
    from argosy.features.demo.failure_drills import undo_all_drills

    for line in undo_all_drills(_get_running_demo(args)):
        print(line, flush=True)
    return 0


def run_stop(args: argparse.Namespace) -> int:
    folder = _find_folder(args)
    was_stopped = folder.stop()
    print("demo stopped" if was_stopped else "no demo is running", file=sys.stderr)
    folder.remove_if_empty(was_stopped=was_stopped)
    return 0
