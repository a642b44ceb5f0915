"""`argosy notebook lint|diff|accept|report|params`: commands that read notebooks without running them."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.error_messages import answering, say
from argosy.cli.exit_codes import CANNOT, DONE, NO
from argosy.cli.tables import Screen, counted, plain
from argosy.cli.verbs import asked, can_ask, print_data, talk
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.features.notebooks.files.lint import Remark
    from argosy.features.notebooks.runner.order import Comparison


def comparison_of(chosen: argparse.Namespace) -> dict[str, Any]:
    """Comparison settings in the format of the job spec."""
    return {
        "strategy": chosen.strategy,
        "floatingPointTolerance": chosen.tolerance,
        "ignoreTimestamps": not chosen.compare_times,
        "ignoreExecutionCount": not chosen.compare_counts,
        "customTimestampPatterns": chosen.ignore_pattern,
        "ignoreOutputTypes": chosen.ignore,
    }


def comparison(chosen: argparse.Namespace) -> Comparison:
    """Raises UserError if a setting is invalid."""
    from argosy.features.notebooks.runner.golden import normalizer
    from argosy.features.notebooks.runner.order import Comparison

    try:
        found = Comparison.of(comparison_of(chosen))
        normalizer(found)
    except ValueError as error:
        said = str(error).replace("floatingPointTolerance", "--tolerance")
        raise UserError(said.replace("customTimestampPatterns", "--ignore-pattern")) from None
    return found


def lint(chosen: argparse.Namespace) -> int:
    from argosy.features.notebooks.files import lint as linting
    from argosy.features.notebooks.files.notebook_file import list_notebooks, read
    from argosy.features.notebooks.runner.order import Validation

    wanted = {"level": chosen.level, "verifyAssertions": chosen.verify_assertions}
    wanted |= {"requireExplicitExitCodes": chosen.require_exit_codes}
    validation = Validation.of(wanted)
    remarks: list[Remark] = []
    unread: dict[Path, UserError] = {}
    readable: list[Path] = []
    paths: list[Path] = []
    for path in chosen.paths:
        try:
            paths += list_notebooks(path) if path.is_dir() else [path]
        except UserError as error:
            unread[path] = error
    for path in dict.fromkeys(paths):
        try:
            remarks += linting.lint(str(path), read(path), validation, chosen.param)
            readable.append(path)
        except UserError as error:  # the other notebooks are still linted
            unread[path] = error
    if not readable:
        raise next(iter(unread.values()))
    bad = linting.fails(remarks, chosen.level)
    with answering(CANNOT if unread else NO if bad else DONE) as code:
        if chosen.output == "json":
            items = [each.as_data() for each in remarks]
            counts = [
                {"file": str(path), "remarks": _count(remarks, path), "failing": _count(bad, path)} for path in readable
            ]
            unreadable = [{"file": str(path), "message": error.message} for path, error in unread.items()]
            data = {"apiVersion": "cli.argosy.dev/v1", "kind": "LintReport", "remarks": items, "notebooks": counts}
            print_data({**data, "unreadable": unreadable}, "json")
        else:
            screen = Screen(sys.stdout)
            for each in remarks:
                print(_remark_line(each, screen, is_bad=each in bad))
            for path in readable if len(paths) > 1 else ():
                remarked, failing = counted(_count(remarks, path), "remark"), _count(bad, path)
                print(f"{plain(str(path))}: {remarked}, {failing} that fail")
            notebooks = counted(len(readable), "notebook")
            print(f"{notebooks}, {counted(len(remarks), 'remark')}, {len(bad)} that fail")
        if bad:
            sys.stdout.flush()
            _say_faults(bad)
        if unread:
            sys.stdout.flush()
            whole = f"{counted(len(unread), 'notebook')} could not be linted"
            reasons = [plain(str(error)) for error in unread.values()]
            say(whole, reasons, "fix or exclude these files, and lint again")
    return code


def _count(remarks: Sequence[Remark], path: Path) -> int:
    return sum(remark.file == str(path) for remark in remarks)


def _say_faults(faults: Sequence[Remark]) -> None:
    """Print the number of faults of each notebook."""
    counts = Counter(fault.file for fault in faults)
    told = [f"{plain(file)} has {counted(count, 'fault')}" for file, count in counts.items()]
    first = faults[0].finding
    if len(counts) == 1:
        say(told[0], first.message, first.suggestion)
    else:
        say(f"{counted(len(counts), 'notebook')} have faults", told, first.suggestion)


def _remark_line(remark: Remark, screen: Screen, *, is_bad: bool) -> str:
    found = remark.finding
    place = (
        f"{remark.file}" + (f" cell {found.cell}" if found.cell >= 0 else "") + (f":{found.line}" if found.line else "")
    )
    text = plain(f"{remark.rule} {found.severity} {place}: {found.message}; {found.suggestion}".rstrip("; "))
    return screen.bad(text) if is_bad else f"  {text}"


def diff(chosen: argparse.Namespace) -> int:
    from argosy.features.notebooks.files.notebook_file import read
    from argosy.features.notebooks.runner.golden import compared

    found = compared(read(chosen.executed), read(chosen.golden), comparison(chosen))
    with answering(NO if found.differences else DONE) as code:
        if chosen.output == "json":
            data = {"apiVersion": "cli.argosy.dev/v1", "kind": "NotebookDiff", **found.as_wire()}
            print_data({**data, "withinTolerance": found.near, "leftOut": found.left_out, "note": found.note}, "json")
            return code
        screen = Screen(sys.stdout)
        for each in found.differences:
            kind = each.kind.replace("_", " ")
            print(screen.bad(f"cell {each.cell} ({each.cell_type}) {kind}, {each.severity}"))
            for line in each.as_wire()["diff"].splitlines():
                print(f"  {screen.difference(plain(line))}")
        counts = [f"{found.matched} of {found.total} cells match"]
        counts += [f"{found.near} within the tolerance"] if found.near else []
        counts += [f"{found.left_out} left out"] if found.left_out else []
        print(", ".join(counts))
        if found.note:
            talk(f"note: {found.note}")
    return code


def accept(chosen: argparse.Namespace) -> int:
    from argosy.features.notebooks.files import run_folder as records
    from argosy.features.notebooks.files.accept import accepted, waiting
    from argosy.features.notebooks.files.notebook_file import dumped, read, write
    from argosy.features.notebooks.files.summary import change_of

    run = records.last(chosen.runs or records.FOLDER, chosen.name)
    record = records.recorded(run)
    if (error := records.failure(record)) and not chosen.force:
        next_step = "fix and run it again, or accept it anyway with --force"
        say(f"{chosen.name}: its last run failed, so no outputs were accepted", plain(error), next_step)
        return CANNOT
    target = chosen.golden or Path(record.get("golden") or record.get("notebook") or chosen.name)
    executed, golden = read(run.executed), read(target)
    differences = waiting(executed, golden, comparison(chosen))
    if not differences:
        print(f"{target}: unchanged; it has the same outputs as {run.executed}")
        return DONE
    cells = _cells(chosen.cells)
    made = accepted(executed, golden, cells, differences)
    for each in differences:
        if not cells or each.cell in cells:
            print(f"  cell {each.cell}: {plain(change_of(each))}")
    if not chosen.yes and not (can_ask() and asked(f"write this to {target}?")):
        say(f"{target} was not changed", "not confirmed", "run it again with -y")
        return CANNOT
    write(target, dumped(made))
    print(f"{target}: written")
    return DONE


def _cells(texts: list[str]) -> set[int]:
    words = [word for text in texts for word in text.split(",") if word.strip()]
    try:
        return {int(word) for word in words}
    except ValueError:
        raise UserError("is not a list of cells; use comma-separated numbers such as 3,7", where="--cells") from None


def report(chosen: argparse.Namespace) -> int:
    from argosy.features.notebooks.files import html_report as page
    from argosy.features.notebooks.files import run_folder as records
    from argosy.features.notebooks.files.junit import junit
    from argosy.features.notebooks.files.notebook_file import read, write
    from argosy.features.notebooks.files.service import summary_of

    run = records.last(chosen.runs or records.FOLDER, chosen.name)
    summary = summary_of(run)
    place = chosen.html or run.report
    write(place, page.report(summary, read(run.executed)))
    print(place)
    if chosen.junit:
        write(chosen.junit, junit([summary]))
        print(chosen.junit)
    return DONE


def params(chosen: argparse.Namespace) -> int:
    from argosy.features.notebooks.files.notebook_file import read
    from argosy.features.notebooks.runner.parameters import declared

    found = declared(read(chosen.file))
    if chosen.output == "json":
        items = [{"name": e.name, "type": e.type, "default": e.default, "about": e.about} for e in found]
        print_data({"apiVersion": "cli.argosy.dev/v1", "kind": "NotebookParameters", "parameters": items}, "json")
    elif found:
        rows = [[each.name, each.type or "-", each.default, each.about] for each in found]
        print("\n".join(Screen(sys.stdout).table(["NAME", "TYPE", "DEFAULT", "ABOUT"], rows)))
    else:
        talk(f"{chosen.file}: has no parameters; tag a cell that assigns names with `parameters`")
    return DONE
