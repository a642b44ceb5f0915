"""`argosy demo …`: run the demo, and start or undo failure drills."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from argosy.cli.data_folder import DEMO_NAME, DataFolder, Run, state_home
from argosy.cli.log_flags import add_log_flags, say
from argosy.cli.ports import check_port
from argosy.cli.target_flags import named_path
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
EXAMPLES_SHOWN = ("llmops", "stages")
STORIES = ("model", "image", "drift", "branch", "lua")


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo",
        help="run a complete demo on this machine: Git, cluster, engine, a model",
        description="Runs three environments of a model, deployed from a local Git repository. Ctrl-C stops it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_start_flags(parser)
    parser.set_defaults(run=start)
    parts = parser.add_subparsers(dest="part", metavar="status|break|fix|stop")
    shown = _add_part(parts, "status", "show whether the demo is running", status, ["argosy demo status -o json"])
    shown.add_argument("-o", "--output", choices=["text", "json"], default="text", help="text or json")
    breaking = _add_part(parts, "break", "start a failure drill", break_something, ["argosy demo break drift"])
    breaking.add_argument("story", choices=STORIES, metavar="|".join(STORIES), help="the failure to simulate")
    _add_part(parts, "fix", "undo all failure drills", fix, ["argosy demo fix"])
    _add_part(parts, "stop", "stop the running demo", stop, ["argosy demo stop"])


def _add_start_flags(parser: argparse.ArgumentParser) -> None:
    about = "keep all data in this folder, and continue from it"
    parser.add_argument("--data-dir", type=named_path, metavar="DIR", help=about)
    about = "llmops: three environments of a model; stages: eight applications, most OutOfSync (default: llmops)"
    parser.add_argument("--example", choices=EXAMPLES_SHOWN, help=about)
    about = "port of the web UI (0: any free port; default: 8484, or a free port if it is taken)"
    parser.add_argument("--port", type=int, metavar="N", help=about)
    about = "port of the Kubernetes API (0: any free port; default: the last one)"
    parser.add_argument("--api-port", type=int, metavar="N", help=about)
    parser.add_argument("--kubeconfig", type=named_path, metavar="FILE", help="kubeconfig file to create or extend")
    about = "openshift: with the operator; plain: Argo CD without it (default: as in the folder, else openshift)"
    parser.add_argument("--argocd", choices=["openshift", "plain"], help=about)
    about = "do not run argosy's engine: Applications get no status"
    parser.add_argument("--no-engine", action="store_true", help=about)
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    add_log_flags(parser, form="", level="warn")


def _add_part(
    parts: Commands[argparse.ArgumentParser], name: str, about: str, run: object, shown: list[str]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = parts.add_parser(
        name,
        help=about,
        description=about.capitalize() + ".",
        epilog="Examples:\n" + "".join(f"  {line}\n" for line in shown),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--data-dir", type=named_path, metavar="DIR", help="data folder of the demo, if it was started with one"
    )
    parser.set_defaults(run=run)
    return parser


def start(chosen: argparse.Namespace) -> int:
    from argosy.features.demo.process import DemoOptions, run

    for flag, port in (("--api-port", chosen.api_port), ("--port", chosen.port)):
        check_port(flag, port)
    options = DemoOptions(
        data_dir=chosen.data_dir,
        api_port=chosen.api_port,
        kubeconfig=chosen.kubeconfig,
        argocd={"openshift": "", None: None}.get(chosen.argocd, chosen.argocd),
        has_engine=not chosen.no_engine,
        example=chosen.example,
        port=chosen.port,
        log_format=chosen.log_format,
        log_level=chosen.log_level,
    )
    began = time.monotonic()
    goes_on = chosen.data_dir is not None and DataFolder(chosen.data_dir).database.exists()

    def announce(found: Run) -> None:
        print("\n".join(_banner(found, time.monotonic() - began, not chosen.no_engine, goes_on)), flush=True)
        if not chosen.no_browser:
            _open_page(found)

    run(options, announce, lambda stage: say(chosen, f"… {stage}"))
    kept = f"your data is kept in {chosen.data_dir}" if chosen.data_dir else "its cluster and repository were deleted"
    say(chosen, f"demo stopped; {kept}; start it again with: {_start_command(chosen)}")
    return 0


def _open_page(run: Run) -> None:
    from argosy.features.demo.page_server import entrance_of, page_folder
    from argosy.features.serve.cli import open_browser

    open_browser(entrance_of(run), page_folder(run))


def _banner(run: Run, seconds: float, has_engine: bool, goes_on: bool) -> list[str]:
    from argosy.features.demo.examples import example_of
    from argosy.features.demo.notebook import notebook_to_try
    from argosy.features.demo.page_server import entrance_of
    from argosy.features.demo.process import played

    example = example_of(run.repository)
    delivery = example.delivered if not goes_on else f"continued from {run.data_dir}"
    delivery = delivery if has_engine else f"{example.applications} applications, and no engine"
    needed = f"   # kubectl needs --context {run.context}, unless it is current"
    context = f" ARGOSY_CONTEXT={shlex.quote(run.context)}{needed}" if run.context else ""
    notebook = notebook_to_try(Path(run.data_dir))
    bin_folder = shlex.quote(str(Path(run.data_dir) / "bin"))
    return [
        f"demo ready in {seconds:.1f} s: {delivery}; {played(run.addons)}, KServe and Pods are simulated",
        f"  page        {entrance_of(run)}   (one-time login link, valid for a minute; later: argosy open)",
        f"  API         {run.api}",
        f"  repository  {run.repository}   (clone it, push to it)",
        *([f'  model       query it: argosy model try {example.model} "Hello"'] if has_engine else []),
        *([f"  notebook    run it: argosy notebook run {shlex.quote(notebook)} -p alpha 0.6"] if notebook else []),
        "",
        "In a second shell:",
        f'  export KUBECONFIG={shlex.quote(run.kubeconfig)} PATH="$PATH":{bin_folder}{context}',
        "next:",
        *(f"  {line}" for line in _next(example.looks, has_engine, goes_on)),
        "Ctrl-C stops it and deletes its data." if run.ephemeral else f"Ctrl-C stops it; data stays in {run.data_dir}.",
    ]


def _next(looks: Sequence[str], has_engine: bool, goes_on: bool) -> list[str]:
    if not has_engine:  # nothing compares or syncs
        return ["argosy controller   # run the engine in another shell; until then Applications get no status",
                "argosy app list"]  # fmt: skip
    if goes_on:
        return ["argosy app list", "argosy demo status"]
    return list(looks)


def _folder(chosen: argparse.Namespace) -> DataFolder:
    """Data folder of the selected demo; a running sandbox is not a demo."""
    from argosy.cli.running_instances import chosen_folder

    folder = chosen_folder(chosen.data_dir, DEMO_NAME)
    run = folder.running()
    return folder if chosen.data_dir or (run and run.name == DEMO_NAME) else DataFolder(state_home() / DEMO_NAME)


def _running(chosen: argparse.Namespace) -> Run:
    folder = _folder(chosen)
    run = folder.running()
    if run is None or run.name != DEMO_NAME:
        where = str(folder.root) if chosen.data_dir else ""
        raise UserError(f"no demo is running; start one with: {_start_command(chosen)}", where=where)
    return run


def _start_command(chosen: argparse.Namespace) -> str:
    return f"argosy demo --data-dir {shlex.quote(str(chosen.data_dir))}" if chosen.data_dir else "argosy demo"


def status(chosen: argparse.Namespace) -> int:
    """Print the state of the demo; exit code 1 if none is running."""
    from argosy.features.local.readiness import find_storage_problem  # late: HTTP and TLS are needed here only

    folder = _folder(chosen)
    found = folder.status()
    problem = find_storage_problem(folder, found["api"]) if found["ready"] else ""
    if chosen.output == "json":
        print(json.dumps({**found, "readOnly": problem or None}, indent=2))
    elif found["ready"]:
        print(f"running  pid {found['pid']}  {found['api']}")
        print(f"page {found['url']}   (argosy open)")
        print(f"repository {found['repository']}\nkubeconfig {found['kubeconfig']}\ndata {found['dataDir']}")
        if problem:
            print(f"read-only  {problem}")
        _print_accidents(_running(chosen))
    else:
        print(f"not running\nstart it with: {_start_command(chosen)}")
    return 0 if found["ready"] else 1


def _print_accidents(run: Run) -> None:
    from argosy.features.demo.failure_drills import staged_now

    if names := staged_now(run):
        print(f"failure drills  {', '.join(names)} (undo them with: argosy demo fix)")


def break_something(chosen: argparse.Namespace) -> int:
    from argosy.features.demo.failure_drills import break_story

    for line in break_story(_running(chosen), chosen.story):
        print(line, flush=True)
    return 0


def fix(chosen: argparse.Namespace) -> int:
    from argosy.features.demo.failure_drills import fix_all

    for line in fix_all(_running(chosen)):
        print(line, flush=True)
    return 0


def stop(chosen: argparse.Namespace) -> int:
    folder = _folder(chosen)
    was_stopped = folder.stop()
    print("demo stopped" if was_stopped else "no demo is running", file=sys.stderr)
    folder.remove_if_empty(was_stopped=was_stopped)
    return 0
