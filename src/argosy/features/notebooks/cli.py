"""`argosy notebook …`: run, validate and compare notebook files; manage notebook jobs of a cluster."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from argosy.cli.cluster_flags import add_target_flags
from argosy.cli.error_messages import report_error
from argosy.errors import ArgosyError

SubParsers = argparse._SubParsersAction  # argparse has no public name for this type
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
RUN_MODULE, READ_MODULE, JOBS_MODULE = (
    "argosy.features.notebooks.files.run_and_validate_cli",
    "argosy.features.notebooks.files.cli",
    "argosy.features.notebooks.jobs_cli",
)
COMMAND_MODULES = {
    **dict.fromkeys(("run", "validate"), RUN_MODULE),
    **dict.fromkeys(("lint", "diff", "accept", "report", "params"), READ_MODULE),
    **dict.fromkeys(("list", "get", "cells", "logs", "trigger"), JOBS_MODULE),
}


def add_commands(commands: SubParsers[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "notebook",
        help="run, validate and compare notebooks",
        description="list, get, cells, logs and trigger work on notebook jobs of a cluster; others need no cluster.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subparsers = parser.add_subparsers(dest="part", metavar="|".join(COMMAND_MODULES), required=True)
    _add_run(subparsers)
    _add_validate(subparsers)
    _add_lint(subparsers)
    _add_diff(subparsers)
    _add_accept(subparsers)
    _add_report(subparsers)
    _add_params(subparsers)
    _add_job_commands(subparsers)


def _add_command(
    subparsers: SubParsers[argparse.ArgumentParser],
    name: str,
    description: str,
    examples: list[str],
    formats: tuple[str, ...] = (),
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name,
        help=description,
        description=description[0].upper() + description[1:] + ".",
        epilog="Examples:\n" + "".join(f"  argosy notebook {line}\n" for line in examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if formats:
        parser.add_argument("-o", "--output", choices=formats, default=formats[0], help=f"{', '.join(formats)}")
    parser.set_defaults(run=_run_command)
    return parser


def _run_command(args: argparse.Namespace) -> int:
    """Run the subcommand from its module, which is imported only when needed."""
    try:
        command = getattr(importlib.import_module(COMMAND_MODULES[args.part]), args.part)
        code: int = command(args)
        return code
    except ArgosyError as error:
        return report_error(error)


def _add_run(subparsers: SubParsers[argparse.ArgumentParser]) -> None:
    examples = ["run train.ipynb -p alpha 0.6", "run train.ipynb --level production --golden golden/train.ipynb"]
    parser = _add_command(subparsers, "run", "run a notebook cell by cell and validate it", examples, ("text", "json"))
    parser.add_argument("file", type=Path, metavar="FILE.ipynb", help="the notebook")
    add = parser.add_argument
    pair = {"nargs": 2, "action": "append", "default": [], "metavar": ("NAME", "VALUE")}
    add("-p", "--param", help="parameter: number, true, null, JSON or string; repeatable", **pair)  # type: ignore[arg-type]
    add("-r", "--raw-param", help="a parameter that is always a string; repeatable", **pair)  # type: ignore[arg-type]
    description = "a YAML file with a line `name: value` for each parameter; repeatable"
    add("-f", "--params-file", action="append", default=[], type=Path, metavar="FILE", help=description)
    add("--golden", type=Path, metavar="FILE", help="compare its outputs with this notebook")
    add("--junit", type=Path, metavar="FILE", help="write the JUnit file here (default: beside the report)")
    add("--report", type=Path, metavar="FILE", help="write the HTML report here (default: in the runs folder)")
    _add_run_flags(parser)


def _add_validate(subparsers: SubParsers[argparse.ArgumentParser]) -> None:
    description = "run notebooks and compare their outputs with the saved outputs"
    examples = ["validate train.ipynb", "validate notebooks/*.ipynb --ignore image/png --junit out.xml"]
    parser = _add_command(subparsers, "validate", description, examples, ("text", "json"))
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE.ipynb", help="notebooks to run, one after another")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write one JUnit file for all notebooks")
    _add_run_flags(parser)


def _add_run_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--timeout", default="30m", metavar="DURATION", help="for the whole notebook (default: 30m)")
    add("--cell-timeout", default="", metavar="DURATION", help="for each cell (default: only --timeout applies)")
    add("--kernel", default="", metavar="NAME", help="a Jupyter kernel (default: the Python that runs argosy)")
    description = "folder for the executed notebook, the report and the results (default: .argosy/runs)"
    add("--runs", type=Path, metavar="DIR", help=description)
    add("--quiet", action="store_true", help="do not print a line for each cell")
    _add_validation_flags(parser)
    _add_comparison_flags(parser)


def _add_validation_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    description = "how strict: " + ", ".join(LEVELS) + " (default: development)"
    add("--level", choices=LEVELS, default="development", help=description)
    add("--strict", action="store_true", help="fail on every finding, whatever the level")
    add("--fail-on-stderr", action="store_true", help="fail when a cell writes to standard error")
    add("--fail-on-warnings", action="store_true", help="fail when a cell emits a warning")
    add("--no-silent-failures", action="store_true", help="do not check for NaN, None, empty frames and others")
    add("--require-exit-codes", action="store_true", help="fail when the exit code of a command is not checked")
    add("--check-output-types", action="store_true", help="fail when outputs have other types than the saved outputs")
    add("--verify-assertions", action="store_true", help="fail when no cell asserts anything")


def _add_comparison_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--strategy", choices=STRATEGIES, default="normalized", help="normalized (default), or exact")
    description = "tolerance for numbers, relative and absolute (default: 0.0001)"
    add("--tolerance", default="0.0001", metavar="X", help=description)
    description = "ignore these outputs: stderr, stream, image/png, image/*, display_data; repeatable"
    add("--ignore", action="append", default=[], metavar="TYPE", help=description)
    description = "ignore text that matches this regular expression; repeatable"
    add("--ignore-pattern", action="append", default=[], metavar="REGEX", help=description)
    add("--compare-times", action="store_true", help="compare times and durations too")
    add("--compare-counts", action="store_true", help="compare execution counts too")


def _add_lint(subparsers: SubParsers[argparse.ArgumentParser]) -> None:
    description = "check notebooks without running them"
    examples = ["lint train.ipynb", "lint notebooks/*.ipynb --level production -o json"]
    parser = _add_command(subparsers, "lint", description, examples, ("text", "json"))
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE.ipynb|DIR", help="notebooks, or folders")
    description = "a parameter that will be set; repeatable"
    parser.add_argument("-p", "--param", action="append", default=[], metavar="NAME", help=description)
    description = "which severity fails: learning error, development and staging warning (default), production info"
    parser.add_argument("--level", choices=LEVELS, default="development", help=description)
    parser.add_argument("--require-exit-codes", action="store_true", help="exit codes of commands must be checked")
    parser.add_argument("--verify-assertions", action="store_true", help="a cell must assert something")


def _add_diff(subparsers: SubParsers[argparse.ArgumentParser]) -> None:
    description = "compare the outputs of two notebooks"
    parser = _add_command(subparsers, "diff", description, ["diff golden/train.ipynb train.ipynb"], ("text", "json"))
    parser.add_argument("golden", type=Path, metavar="GOLDEN.ipynb", help="the golden notebook")
    parser.add_argument("executed", type=Path, metavar="FILE.ipynb", help="the notebook to compare")
    _add_comparison_flags(parser)


def _add_accept(subparsers: SubParsers[argparse.ArgumentParser]) -> None:
    description = "accept the outputs of the last run as the new golden outputs"
    parser = _add_command(subparsers, "accept", description, ["accept train", "accept train --cells 29,31 -y"])
    parser.add_argument("name", metavar="NAME", help="the notebook, or a file of a run")
    description = "only these cells, by their index; repeatable"
    parser.add_argument("--cells", action="append", default=[], metavar="N,N", help=description)
    description = "the golden notebook (default: the one used by the run, else the notebook itself)"
    parser.add_argument("--golden", type=Path, metavar="FILE", help=description)
    parser.add_argument("--runs", type=Path, metavar="DIR", help="where runs are kept (default: .argosy/runs)")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    description = "also accept outputs of a failed run, including its tracebacks"
    parser.add_argument("--force", action="store_true", help=description)
    _add_comparison_flags(parser)


def _add_report(subparsers: SubParsers[argparse.ArgumentParser]) -> None:
    description = "write the HTML report or the JUnit file of a run again"
    parser = _add_command(
        subparsers, "report", description, ["report train", "report train --html out.html --junit out.xml"]
    )
    parser.add_argument("name", metavar="NAME", help="the notebook, or a file of a run")
    description = "where to write the report (default: in the runs folder)"
    parser.add_argument("--html", type=Path, metavar="FILE", help=description)
    parser.add_argument("--junit", type=Path, metavar="FILE", help="also write a JUnit file")
    parser.add_argument("--runs", type=Path, metavar="DIR", help="where runs are kept (default: .argosy/runs)")


def _add_params(subparsers: SubParsers[argparse.ArgumentParser]) -> None:
    description = "list the parameters of a notebook"
    parser = _add_command(subparsers, "params", description, ["params train.ipynb"], ("text", "json"))
    parser.add_argument("file", type=Path, metavar="FILE.ipynb", help="the notebook")


def _add_job_commands(subparsers: SubParsers[argparse.ArgumentParser]) -> None:
    formats = ("text", "json", "yaml")
    _add_job_flags(
        _add_command(subparsers, "list", "list the notebook jobs of a cluster", ["list", "list -n ml -o json"], formats)
    )
    examples = ["get model-training"]
    _add_job_flags(
        _add_command(subparsers, "get", "show a job: its runs, artefacts and triggers", examples, formats),
        has_name=True,
    )
    _add_job_flags(
        _add_command(subparsers, "cells", "list the cells of a job's last run", ["cells model-training"], formats),
        has_name=True,
    )
    logs_parser = _add_command(subparsers, "logs", "print the outputs of a job's last run", ["logs model-training -f"])
    description = "follow until the run has ended"
    logs_parser.add_argument("-f", "--follow", action="store_true", help=description)
    _add_job_flags(logs_parser, has_name=True)
    trigger_parser = _add_command(
        subparsers, "trigger", "run the notebook of a job again", ["trigger model-training --wait"]
    )
    description = "follow the run until it has ended; exit code 1 if it failed"
    trigger_parser.add_argument("--wait", action="store_true", help=description)
    _add_job_flags(trigger_parser, has_name=True)


def _add_job_flags(parser: argparse.ArgumentParser, *, has_name: bool = False) -> None:
    if has_name:
        parser.add_argument("name", metavar="NAME", help="the NotebookValidationJob, as NAME or NAMESPACE/NAME")
    description = "namespace of the job (default: all namespaces)"
    parser.add_argument("-n", "--namespace", default="", metavar="NS", help=description)
    add_target_flags(parser)
