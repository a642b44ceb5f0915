"""`argosy notebook lint|diff|accept|report|params`: commands that read notebooks without running them."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.error_messages import keep_exit_code, print_failure
from argosy.cli.exit_codes import EXIT_ERROR, EXIT_NEGATIVE, EXIT_OK
from argosy.cli.subcommand_flags_and_runner import confirm, is_interactive, print_document, print_message
from argosy.cli.tables import TerminalOutput, drop_control_characters, format_count
from argosy.errors import UserError
from argosy.kube.well_known_kinds import CLI_API_VERSION

if TYPE_CHECKING:
    from argosy.features.notebooks.files.lint import LintRemark
    from argosy.features.notebooks.runner.run_request import ComparisonConfig


def comparison_to_wire(args: argparse.Namespace) -> dict[str, Any]:
    """Comparison settings in the format of the job spec."""
    return {
        "strategy": args.strategy,
        "floatingPointTolerance": args.tolerance,
        "ignoreTimestamps": not args.compare_times,
        "ignoreExecutionCount": not args.compare_counts,
        "customTimestampPatterns": args.ignore_pattern,
        "ignoreOutputTypes": args.ignore,
    }


def read_comparison(args: argparse.Namespace) -> ComparisonConfig:
    """Raises UserError if a setting is invalid."""
    from argosy.features.notebooks.runner.golden_notebook_comparison import build_normalizer
    from argosy.features.notebooks.runner.run_request import ComparisonConfig

    try:
        config = ComparisonConfig.from_wire(comparison_to_wire(args))
        build_normalizer(config)
    except ValueError as error:
        message = str(error).replace("floatingPointTolerance", "--tolerance")
        raise UserError(message.replace("customTimestampPatterns", "--ignore-pattern")) from None
    return config


def lint(args: argparse.Namespace) -> int:
    from argosy.features.notebooks.files import lint as linting
    from argosy.features.notebooks.files.notebook_file import list_notebooks, load_notebook
    from argosy.features.notebooks.runner.run_request import ValidationConfig

    validation_fields = {"level": args.level, "verifyAssertions": args.verify_assertions}
    validation_fields |= {"requireExplicitExitCodes": args.require_exit_codes}
    validation = ValidationConfig.from_wire(validation_fields)
    remarks: list[LintRemark] = []
    errors_by_path: dict[Path, UserError] = {}
    readable: list[Path] = []
    paths: list[Path] = []
    for path in args.paths:
        try:
            paths += list_notebooks(path) if path.is_dir() else [path]
        except UserError as error:
            errors_by_path[path] = error
    for path in dict.fromkeys(paths):
        try:
            remarks += linting.lint_notebook(str(path), load_notebook(path), validation, args.param)
            readable.append(path)
        except UserError as error:  # the other notebooks are still linted
            errors_by_path[path] = error
    if not readable:
        raise next(iter(errors_by_path.values()))
    failing_remarks = linting.list_failing_remarks(remarks, args.level)
    with keep_exit_code(EXIT_ERROR if errors_by_path else EXIT_NEGATIVE if failing_remarks else EXIT_OK) as code:
        if args.output == "json":
            print_document(_lint_report_to_wire(remarks, failing_remarks, readable, errors_by_path), "json")
        else:
            screen = TerminalOutput(sys.stdout)
            for remark in remarks:
                print(_render_remark(remark, screen, is_bad=remark in failing_remarks))
            for path in readable if len(paths) > 1 else ():
                remarked, failing = (
                    format_count(_count_remarks(remarks, path), "remark"),
                    _count_remarks(failing_remarks, path),
                )
                print(f"{drop_control_characters(str(path))}: {remarked}, {failing} that fail")
            notebooks = format_count(len(readable), "notebook")
            print(f"{notebooks}, {format_count(len(remarks), 'remark')}, {len(failing_remarks)} that fail")
        if failing_remarks:
            sys.stdout.flush()
            _print_failing_notebooks(failing_remarks)
        if errors_by_path:
            sys.stdout.flush()
            summary_text = f"{format_count(len(errors_by_path), 'notebook')} could not be linted"
            reasons = [drop_control_characters(str(error)) for error in errors_by_path.values()]
            print_failure(summary_text, reasons, "fix or exclude these files, and lint again")
    return code


def _lint_report_to_wire(
    remarks: Sequence[LintRemark],
    failing_remarks: Sequence[LintRemark],
    readable: Sequence[Path],
    errors_by_path: Mapping[Path, UserError],
) -> dict[str, Any]:
    counts = [
        {
            "file": str(path),
            "remarks": _count_remarks(remarks, path),
            "failing": _count_remarks(failing_remarks, path),
        }
        for path in readable
    ]
    return {
        "apiVersion": CLI_API_VERSION,
        "kind": "LintReport",
        "remarks": [remark.to_wire() for remark in remarks],
        "notebooks": counts,
        "unreadable": [{"file": str(path), "message": error.message} for path, error in errors_by_path.items()],
    }


def _count_remarks(remarks: Sequence[LintRemark], path: Path) -> int:
    return sum(remark.file == str(path) for remark in remarks)


def _print_failing_notebooks(failing_remarks: Sequence[LintRemark]) -> None:
    """Print the number of faults of each notebook."""
    counts = Counter(fault.file for fault in failing_remarks)
    notebook_texts = [
        f"{drop_control_characters(file)} has {format_count(count, 'fault')}" for file, count in counts.items()
    ]
    first_finding = failing_remarks[0].finding
    if len(counts) == 1:
        print_failure(notebook_texts[0], first_finding.message, first_finding.suggestion)
    else:
        print_failure(f"{format_count(len(counts), 'notebook')} have faults", notebook_texts, first_finding.suggestion)


def _render_remark(remark: LintRemark, screen: TerminalOutput, *, is_bad: bool) -> str:
    finding = remark.finding
    location = (
        f"{remark.file}"
        + (f" cell {finding.cell}" if finding.cell >= 0 else "")
        + (f":{finding.line}" if finding.line else "")
    )
    text = drop_control_characters(
        f"{remark.rule} {finding.severity} {location}: {finding.message}; {finding.suggestion}".rstrip("; ")
    )
    return screen.format_failure(text) if is_bad else f"  {text}"


def diff(args: argparse.Namespace) -> int:
    from argosy.features.notebooks.files.notebook_file import load_notebook
    from argosy.features.notebooks.runner.golden_notebook_comparison import compare_notebooks

    result = compare_notebooks(load_notebook(args.executed), load_notebook(args.golden), read_comparison(args))
    with keep_exit_code(EXIT_NEGATIVE if result.differences else EXIT_OK) as code:
        if args.output == "json":
            data = {"apiVersion": CLI_API_VERSION, "kind": "NotebookDiff", **result.to_wire()}
            print_document(
                {
                    **data,
                    "withinTolerance": result.matched_within_tolerance,
                    "leftOut": result.excluded,
                    "note": result.note,
                },
                "json",
            )
            return code
        screen = TerminalOutput(sys.stdout)
        for difference in result.differences:
            kind = difference.kind.replace("_", " ")
            print(
                screen.format_failure(f"cell {difference.cell} ({difference.cell_type}) {kind}, {difference.severity}")
            )
            for line in difference.to_wire()["diff"].splitlines():
                print(f"  {screen.format_diff_line(drop_control_characters(line))}")
        counts = [f"{result.matched} of {result.total} cells match"]
        counts += [f"{result.matched_within_tolerance} within the tolerance"] if result.matched_within_tolerance else []
        counts += [f"{result.excluded} left out"] if result.excluded else []
        print(", ".join(counts))
        if result.note:
            print_message(f"note: {result.note}")
    return code


def accept(args: argparse.Namespace) -> int:
    from argosy.features.notebooks.files import run_records as records
    from argosy.features.notebooks.files.golden_update import accept_outputs, list_differences
    from argosy.features.notebooks.files.notebook_file import dump_notebook, load_notebook, write_atomically
    from argosy.features.notebooks.files.per_cell_run_summary import describe_change

    run = records.find_last_run(args.runs or records.DEFAULT_FOLDER, args.name)
    record = records.load_record(run)
    if (error := records.find_reason_not_to_accept(record)) and not args.force:
        next_step = "fix and run it again, or accept it anyway with --force"
        print_failure(
            f"{args.name}: its last run failed, so no outputs were accepted", drop_control_characters(error), next_step
        )
        return EXIT_ERROR
    target = args.golden or Path(record.get("golden") or record.get("notebook") or args.name)
    executed, golden = load_notebook(run.executed), load_notebook(target)
    differences = list_differences(executed, golden, read_comparison(args))
    if not differences:
        print(f"{target}: unchanged; it has the same outputs as {run.executed}")
        return EXIT_OK
    cells = _parse_cell_numbers(args.cells)
    new_golden = accept_outputs(executed, golden, cells, differences)
    for difference in differences:
        if not cells or difference.cell in cells:
            print(f"  cell {difference.cell}: {drop_control_characters(describe_change(difference))}")
    if not args.yes and not (is_interactive() and confirm(f"write this to {target}?")):
        print_failure(f"{target} was not changed", "not confirmed", "run it again with -y")
        return EXIT_ERROR
    write_atomically(target, dump_notebook(new_golden))
    print(f"{target}: written")
    return EXIT_OK


def _parse_cell_numbers(texts: list[str]) -> set[int]:
    words = [word for text in texts for word in text.split(",") if word.strip()]
    try:
        return {int(word) for word in words}
    except ValueError:
        raise UserError("is not a list of cells; use comma-separated numbers such as 3,7", where="--cells") from None


def report(args: argparse.Namespace) -> int:
    from argosy.features.notebooks.files import html_report as page
    from argosy.features.notebooks.files import run_records as records
    from argosy.features.notebooks.files.junit import render_junit
    from argosy.features.notebooks.files.notebook_file import load_notebook, write_atomically
    from argosy.features.notebooks.files.notebook_file_run import load_summary

    run = records.find_last_run(args.runs or records.DEFAULT_FOLDER, args.name)
    summary = load_summary(run)
    report_path = args.html or run.report
    write_atomically(report_path, page.render_report(summary, load_notebook(run.executed)))
    print(report_path)
    if args.junit:
        write_atomically(args.junit, render_junit([summary]))
        print(args.junit)
    return EXIT_OK


def params(args: argparse.Namespace) -> int:
    from argosy.features.notebooks.files.notebook_file import load_notebook
    from argosy.features.notebooks.runner.parameters import read_declared_parameters

    parameters = read_declared_parameters(load_notebook(args.file))
    if args.output == "json":
        items = [
            {"name": item.name, "type": item.type, "default": item.default, "about": item.about} for item in parameters
        ]
        print_document({"apiVersion": CLI_API_VERSION, "kind": "NotebookParameters", "parameters": items}, "json")
    elif parameters:
        rows = [[parameter.name, parameter.type or "-", parameter.default, parameter.about] for parameter in parameters]
        print("\n".join(TerminalOutput(sys.stdout).format_table(["NAME", "TYPE", "DEFAULT", "ABOUT"], rows)))
    else:
        print_message(f"{args.file}: has no parameters; tag a cell that assigns names with `parameters`")
    return EXIT_OK
