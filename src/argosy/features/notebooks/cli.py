"""`argosy notebook …`: run, validate and compare notebook files; manage notebook jobs of a cluster."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from argosy.cli.error_messages import failed
from argosy.cli.target_flags import add_target_flags
from argosy.errors import ArgosyError

Commands = argparse._SubParsersAction  # argparse has no public name for this type
LEVELS = ("learning", "development", "staging", "production")
STRATEGIES = ("normalized", "exact")
EXAMPLES = """\
Examples:
  argosy notebook run train.ipynb -p alpha 0.6
  argosy notebook run train.ipynb --level production --golden golden/train.ipynb
  argosy notebook lint notebooks/*.ipynb
  argosy notebook list
  argosy notebook logs model-training -f

See also: docs/reference/notebooks.md
"""
RUNNING, READING, JOBS = (
    "argosy.features.notebooks.files.run_cli",
    "argosy.features.notebooks.files.read_cli",
    "argosy.features.notebooks.jobs_cli",
)
MODULES = {
    **dict.fromkeys(("run", "validate"), RUNNING),
    **dict.fromkeys(("lint", "diff", "accept", "report", "params"), READING),
    **dict.fromkeys(("list", "get", "cells", "logs", "trigger"), JOBS),
}


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "notebook",
        help="run, validate and compare notebooks",
        description="list, get, cells, logs and trigger work on notebook jobs of a cluster; others need no cluster.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="|".join(MODULES), required=True)
    _add_run(parts)
    _add_validate(parts)
    _add_lint(parts)
    _add_diff(parts)
    _add_accept(parts)
    _add_report(parts)
    _add_params(parts)
    _add_jobs(parts)


def _add(
    parts: Commands[argparse.ArgumentParser], name: str, about: str, shown: list[str], forms: tuple[str, ...] = ()
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = parts.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog="Examples:\n" + "".join(f"  argosy notebook {line}\n" for line in shown),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if forms:
        parser.add_argument("-o", "--output", choices=forms, default=forms[0], help=f"{', '.join(forms)}")
    parser.set_defaults(run=_run)
    return parser


def _run(chosen: argparse.Namespace) -> int:
    """Run the subcommand from its module, which is imported only when needed."""
    try:
        verb = getattr(importlib.import_module(MODULES[chosen.part]), chosen.part)
        code: int = verb(chosen)
        return code
    except ArgosyError as error:
        return failed(error)


def _add_run(parts: Commands[argparse.ArgumentParser]) -> None:
    shown = ["run train.ipynb -p alpha 0.6", "run train.ipynb --level production --golden golden/train.ipynb"]
    parser = _add(parts, "run", "run a notebook cell by cell and validate it", shown, ("text", "json"))
    parser.add_argument("file", type=Path, metavar="FILE.ipynb", help="the notebook")
    add = parser.add_argument
    pair = {"nargs": 2, "action": "append", "default": [], "metavar": ("NAME", "VALUE")}
    add("-p", "--param", help="parameter: number, true, null, JSON or string; repeatable", **pair)  # type: ignore[arg-type]
    add("-r", "--raw-param", help="a parameter that is always a string; repeatable", **pair)  # type: ignore[arg-type]
    about = "a YAML file with a line `name: value` for each parameter; repeatable"
    add("-f", "--params-file", action="append", default=[], type=Path, metavar="FILE", help=about)
    add("--golden", type=Path, metavar="FILE", help="compare its outputs with this notebook")
    add("--junit", type=Path, metavar="FILE", help="write the JUnit file here (default: beside the report)")
    add("--report", type=Path, metavar="FILE", help="write the HTML report here (default: in the runs folder)")
    _add_running(parser)


def _add_validate(parts: Commands[argparse.ArgumentParser]) -> None:
    about = "run notebooks and compare their outputs with the saved outputs"
    shown = ["validate train.ipynb", "validate notebooks/*.ipynb --ignore image/png --junit out.xml"]
    parser = _add(parts, "validate", about, shown, ("text", "json"))
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE.ipynb", help="notebooks to run, one after another")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write one JUnit file for all notebooks")
    _add_running(parser)


def _add_running(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--timeout", default="30m", metavar="DURATION", help="for the whole notebook (default: 30m)")
    add("--cell-timeout", default="", metavar="DURATION", help="for each cell (default: only --timeout applies)")
    add("--kernel", default="", metavar="NAME", help="a Jupyter kernel (default: the Python that runs argosy)")
    about = "folder for the executed notebook, the report and the results (default: .argosy/runs)"
    add("--runs", type=Path, metavar="DIR", help=about)
    add("--quiet", action="store_true", help="do not print a line for each cell")
    _add_judging(parser)
    _add_comparing(parser)


def _add_judging(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    about = "how strict: " + ", ".join(LEVELS) + " (default: development)"
    add("--level", choices=LEVELS, default="development", help=about)
    add("--strict", action="store_true", help="fail on every finding, whatever the level")
    add("--fail-on-stderr", action="store_true", help="fail when a cell writes to standard error")
    add("--fail-on-warnings", action="store_true", help="fail when a cell emits a warning")
    add("--no-silent-failures", action="store_true", help="do not check for NaN, None, empty frames and others")
    add("--require-exit-codes", action="store_true", help="fail when the exit code of a command is not checked")
    add("--check-output-types", action="store_true", help="fail when outputs have other types than the saved outputs")
    add("--verify-assertions", action="store_true", help="fail when no cell asserts anything")


def _add_comparing(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--strategy", choices=STRATEGIES, default="normalized", help="normalized (default), or exact")
    about = "tolerance for numbers, relative and absolute (default: 0.0001)"
    add("--tolerance", default="0.0001", metavar="X", help=about)
    about = "ignore these outputs: stderr, stream, image/png, image/*, display_data; repeatable"
    add("--ignore", action="append", default=[], metavar="TYPE", help=about)
    about = "ignore text that matches this regular expression; repeatable"
    add("--ignore-pattern", action="append", default=[], metavar="REGEX", help=about)
    add("--compare-times", action="store_true", help="compare times and durations too")
    add("--compare-counts", action="store_true", help="compare execution counts too")


def _add_lint(parts: Commands[argparse.ArgumentParser]) -> None:
    about = "check notebooks without running them"
    shown = ["lint train.ipynb", "lint notebooks/*.ipynb --level production -o json"]
    parser = _add(parts, "lint", about, shown, ("text", "json"))
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE.ipynb|DIR", help="notebooks, or folders")
    about = "a parameter that will be set; repeatable"
    parser.add_argument("-p", "--param", action="append", default=[], metavar="NAME", help=about)
    about = "which severity fails: learning error, development and staging warning (default), production info"
    parser.add_argument("--level", choices=LEVELS, default="development", help=about)
    parser.add_argument("--require-exit-codes", action="store_true", help="exit codes of commands must be checked")
    parser.add_argument("--verify-assertions", action="store_true", help="a cell must assert something")


def _add_diff(parts: Commands[argparse.ArgumentParser]) -> None:
    about = "compare the outputs of two notebooks"
    parser = _add(parts, "diff", about, ["diff golden/train.ipynb train.ipynb"], ("text", "json"))
    parser.add_argument("golden", type=Path, metavar="GOLDEN.ipynb", help="the golden notebook")
    parser.add_argument("executed", type=Path, metavar="FILE.ipynb", help="the notebook to compare")
    _add_comparing(parser)


def _add_accept(parts: Commands[argparse.ArgumentParser]) -> None:
    about = "accept the outputs of the last run as the new golden outputs"
    parser = _add(parts, "accept", about, ["accept train", "accept train --cells 29,31 -y"])
    parser.add_argument("name", metavar="NAME", help="the notebook, or a file of a run")
    about = "only these cells, by their index; repeatable"
    parser.add_argument("--cells", action="append", default=[], metavar="N,N", help=about)
    about = "the golden notebook (default: the one used by the run, else the notebook itself)"
    parser.add_argument("--golden", type=Path, metavar="FILE", help=about)
    parser.add_argument("--runs", type=Path, metavar="DIR", help="where runs are kept (default: .argosy/runs)")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    about = "also accept outputs of a failed run, including its tracebacks"
    parser.add_argument("--force", action="store_true", help=about)
    _add_comparing(parser)


def _add_report(parts: Commands[argparse.ArgumentParser]) -> None:
    about = "write the HTML report or the JUnit file of a run again"
    parser = _add(parts, "report", about, ["report train", "report train --html out.html --junit out.xml"])
    parser.add_argument("name", metavar="NAME", help="the notebook, or a file of a run")
    about = "where to write the report (default: in the runs folder)"
    parser.add_argument("--html", type=Path, metavar="FILE", help=about)
    parser.add_argument("--junit", type=Path, metavar="FILE", help="also write a JUnit file")
    parser.add_argument("--runs", type=Path, metavar="DIR", help="where runs are kept (default: .argosy/runs)")


def _add_params(parts: Commands[argparse.ArgumentParser]) -> None:
    about = "list the parameters of a notebook"
    parser = _add(parts, "params", about, ["params train.ipynb"], ("text", "json"))
    parser.add_argument("file", type=Path, metavar="FILE.ipynb", help="the notebook")


def _add_jobs(parts: Commands[argparse.ArgumentParser]) -> None:
    data = ("text", "json", "yaml")
    _about_jobs(_add(parts, "list", "list the notebook jobs of a cluster", ["list", "list -n ml -o json"], data))
    shown = ["get model-training"]
    _about_jobs(_add(parts, "get", "show a job: its runs, artefacts and triggers", shown, data), named=True)
    _about_jobs(_add(parts, "cells", "list the cells of a job's last run", ["cells model-training"], data), named=True)
    following = _add(parts, "logs", "print the outputs of a job's last run", ["logs model-training -f"])
    about = "follow until the run has ended"
    following.add_argument("-f", "--follow", action="store_true", help=about)
    _about_jobs(following, named=True)
    again = _add(parts, "trigger", "run the notebook of a job again", ["trigger model-training --wait"])
    about = "follow the run until it has ended; exit code 1 if it failed"
    again.add_argument("--wait", action="store_true", help=about)
    _about_jobs(again, named=True)


def _about_jobs(parser: argparse.ArgumentParser, *, named: bool = False) -> None:
    if named:
        parser.add_argument("name", metavar="NAME", help="the NotebookValidationJob, as NAME or NAMESPACE/NAME")
    about = "namespace of the job (default: all namespaces)"
    parser.add_argument("-n", "--namespace", default="", metavar="NS", help=about)
    add_target_flags(parser)
