"""Notebook files: HTML report, JUnit, lint, accepting outputs, run records and parameters."""

from __future__ import annotations

import base64
import json
import os
import struct
import time
import zlib
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from argosy.errors import UserError
from argosy.features.notebooks.files import run_records
from argosy.features.notebooks.files.golden_update import accept_outputs, list_differences
from argosy.features.notebooks.files.html_report import render_report
from argosy.features.notebooks.files.junit import render_junit
from argosy.features.notebooks.files.lint import lint_notebook, list_failing_remarks
from argosy.features.notebooks.files.notebook_file import load_notebook, write_atomically
from argosy.features.notebooks.files.parameter_flags import collect_parameters, parse_value
from argosy.features.notebooks.files.per_cell_run_summary import (
    NotebookRunSummary,
    build_title,
    list_failing_lines,
    summarize,
)
from argosy.features.notebooks.runner.run_request import ComparisonConfig, ValidationConfig

Cell = dict[str, Any]


def code(source: str, *outputs: dict[str, Any], **more: Any) -> Cell:
    return {"cell_type": "code", "source": source, "outputs": list(outputs), "metadata": {}, **more}


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def build_display_output(**data: Any) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {name.replace("__", "/"): content for name, content in data.items()}}


def notebook(*cells: Cell) -> dict[str, Any]:
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)}


def summary(executed: dict[str, Any], golden: dict[str, Any] | None = None, **more: Any) -> NotebookRunSummary:
    """Summary of a run; by default it succeeded."""
    cells = [
        {"cell_index": number, "cell_type": cell["cell_type"], "status": "succeeded", "seconds": 0.5}
        for number, cell in enumerate(executed["cells"])
    ]
    for number, changed in more.pop("cells", {}).items():
        cells[number] |= changed
    results = {
        "status": "succeeded", "error": "", "notebook_path": "n.ipynb", "execution_duration_seconds": 1.5,
        "cells": cells, "findings": [], "statistics": {"code_cells": len(cells), "succeeded_cells": len(cells)},
    }  # fmt: skip
    return summarize({**results, **more}, executed, golden, ComparisonConfig(), {"level": "development"})


# -- the report ------------------------------------------------------------------------------------------------------

PIXELS = zlib.compress(b"\0\7")
PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0) + PIXELS
ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</pre><svg onload=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    '" onmouseover="alert(1)',
    "]]><script>x</script>",
]


class Tags(HTMLParser):
    """All tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def tags_of(page: str) -> list[tuple[str, dict[str, str | None]]]:
    reader = Tags()
    reader.feed(page)
    reader.close()
    return reader.tags


@pytest.mark.parametrize("attack", ATTACKS)
def test_html_report_escapes_notebook_content(attack: str) -> None:
    finding = {"cell": 0, "severity": "warning", "category": "x", "message": attack, "suggestion": attack}
    outputs = [stream(attack), stream(attack, "stderr"), {"output_type": "error", "ename": attack, "evalue": attack}]
    outputs += [
        build_display_output(**{mime: attack}) for mime in ("text__plain", "text__html", "image__svg", "image__png")
    ]
    executed = notebook(code(attack, *outputs), {"cell_type": "markdown", "source": attack})
    executed["metadata"]["papermill"] = {"parameters": {attack: attack}}
    failed = {0: {"status": "failed", "error": attack, "traceback": attack}}
    page = render_report(
        summary(executed, notebook(code("x")), findings=[finding, {**finding, "cell": -1}], error=attack,
                notebook_path=attack, remarks=[attack], cells=failed), executed,
    )  # fmt: skip
    for tag, attributes in tags_of(page):
        assert tag in {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "strong", "table", "tr", "th",
                       "td", "ul", "li", "nav", "a", "section", "pre", "span"}  # fmt: skip
        assert not any(name.startswith("on") for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")


def test_html_report_csp_allows_only_its_style_and_data_images() -> None:
    executed = notebook(
        code("plot()", build_display_output(image__png=base64.b64encode(PNG).decode(), text__plain="<Figure>"))
    )
    tags = tags_of(render_report(summary(executed), executed))
    policy = next(
        attributes["content"] for tag, attributes in tags if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in policy
    assert [attributes["src"] for tag, attributes in tags if tag == "img"] == [
        f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    ]


@pytest.mark.parametrize("content", ["no base64!", base64.b64encode(b"<svg onload=alert(1)>").decode(), 7, None])
def test_invalid_image_output_is_not_rendered_as_an_image(content: Any) -> None:
    executed = notebook(code("plot()", build_display_output(image__png=content)))
    assert [tag for tag, _ in tags_of(render_report(summary(executed), executed)) if tag == "img"] == []


def test_html_report_shows_the_failed_cell() -> None:
    executed = notebook(code("1 / 0"), code("print(2)", stream("2")))
    failed = {0: {"status": "failed", "error": "ZeroDivisionError: x", "traceback": "\x1b[31mZeroDivisionError\x1b[0m"}}
    page = render_report(
        summary(executed, status="failed", error="cell 0: ZeroDivisionError: x", cells=failed), executed
    )
    assert "✖ failed" in page
    assert '<pre class="out err">ZeroDivisionError</pre>' in page


# -- JUnit -----------------------------------------------------------------------------------------------------------


def test_junit_has_one_case_per_cell_and_fails_blocking_findings() -> None:
    executed = notebook(
        code("# load\nx", stream("1")), code("fit()"), code("skip()"), code("print(0.5)", stream("0.5"))
    )
    golden = notebook(code("# load\nx", stream("1")), code("fit()"), code("skip()"), code("print(0.5)", stream("0.9")))
    findings = [
        {"cell": 0, "severity": "info", "category": "stderr-output", "message": "odd \x00 <text>"},
        {"cell": 1, "severity": "warning", "category": "nan-detected", "message": "loss is NaN"},
        {"cell": -1, "severity": "info", "category": "missing-assertion", "message": "none"},
    ]
    run_summary = summary(executed, golden, findings=findings, status="failed", cells={2: {"status": "skipped"}})
    suite = ElementTree.fromstring(render_junit([run_summary]).encode()).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("5", "2", "1")
    names = {case.get("name"): [child.tag for child in case] for case in suite}
    assert names == {
        "cell[0] load": ["system-out"],
        "cell[1] fit()": ["failure"],
        "cell[2] skip()": ["skipped"],
        "cell[3] print(0.5)": ["failure"],
        "notebook": [],
    }


def test_junit_reports_a_failure_without_a_cell() -> None:
    suite = ElementTree.fromstring(
        render_junit([summary(notebook(code("x")), status="failed", error="no kernel")]).encode()
    )
    assert [failure.get("message") for failure in suite.iter("failure")] == ["no kernel"]


def test_cell_title_is_the_first_meaningful_line() -> None:
    assert build_title(code("\n# Load the data\nx = 1")) == "Load the data"
    assert build_title(code("#NBVAL_SKIP\nmodel.fit(X, y)")) == "model.fit(X, y)"
    assert build_title(code("x" * 90)) == "x" * 39 + "…"
    assert build_title(code("")) == "(empty)"
    assert build_title(code("%matplotlib inline")) == "%matplotlib inline"
    assert build_title(code("# %% Plot")) == "Plot"


def test_nbformat_3_and_utf_8_bom_files_are_read(tmp_path: Path) -> None:
    pytest.importorskip("nbformat")
    cell = {"cell_type": "code", "input": ["1 + 1"], "language": "python", "metadata": {}, "outputs": []}
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": [cell], "metadata": {}}]}
    (tmp_path / "old.ipynb").write_text(json.dumps(old))
    (tmp_path / "bom.ipynb").write_text(json.dumps(notebook(code("1"))), encoding="utf-8-sig")
    assert build_title(load_notebook(tmp_path / "old.ipynb")["cells"][0]) == "1 + 1"
    assert build_title(load_notebook(tmp_path / "bom.ipynb")["cells"][0]) == "1"


def test_failing_line_is_marked_in_the_source_excerpt() -> None:
    cell = code("\n".join(f"line {number}" for number in range(1, 21)), execution_count=4)
    traceback = "Cell In[4], line 9\n...\nCell In[1], line 3, in f(x)"
    lines = list_failing_lines(cell, traceback)
    assert [line for line in lines if line.startswith("→")] == ["→   9  line 9"]
    assert (lines[0], lines[-1]) == ("    6  line 6", "   12  line 12")
    assert list_failing_lines(cell, "no line")[0] == "    1  line 1"
    assert list_failing_lines(code("", execution_count=4), traceback) == []


# -- lint ------------------------------------------------------------------------------------------------------------


def linted(
    *cells: Cell, level: str = "development", parameter_names: tuple[str, ...] = ()
) -> list[tuple[int, str, str]]:
    remarks = lint_notebook("n.ipynb", notebook(*cells), ValidationConfig(level=level), parameter_names)
    return [(remark.finding.cell, remark.finding.severity, remark.rule) for remark in remarks]


def test_lint_accepts_a_clean_notebook() -> None:
    assert linted(code("x = 1", execution_count=1), code("print(x)", stream("1"), execution_count=2)) == []


@pytest.mark.parametrize(
    ("cells", "remark"),
    [
        ([code("a", execution_count=5), code("b", execution_count=2)], (1, "info", "AGY303")),
        ([code("a = (")], (0, "error", "AGY303")),
        ([code("a", {"output_type": "error", "ename": "KeyError", "evalue": "x"})], (0, "warning", "AGY304")),
        ([code("print(key)", stream("AKIA" + "ABCDEFGHIJKLMNOP"))], (0, "error", "AGY304")),
        ([code("u = 'postgres://me:geheim123@db/x'")], (0, "error", "AGY304")),
        ([code("x", build_display_output(text__plain="-----BEGIN RSA PRIVATE KEY-----"))], (0, "error", "AGY304")),
        ([code("import random\nrandom.random()", build_display_output(text__plain="0.3"))], (0, "info", "AGY305")),
        ([code("def f():\n    print(1)\nx = f()")], (0, "warning", "AGY306")),
    ],
)
def test_lint_finds_notebook_defects(cells: list[Cell], remark: tuple[int, str, str]) -> None:
    assert linted(*cells) == [remark]


def test_lint_findings_do_not_contain_the_secret() -> None:
    secret = "ghp_" + "a1B2" * 9
    remarks = lint_notebook("n.ipynb", notebook(code(f"t = '{secret}'")), ValidationConfig())
    assert remarks
    assert secret not in json.dumps([remark.to_wire() for remark in remarks])


def test_lint_accepts_a_url_with_a_password_variable() -> None:
    assert linted(code("u = f'postgres://{user}:{password}@db/x'")) == []


def test_lint_accepts_randomness_with_a_seed_or_ignore_tag() -> None:
    by_chance = code("import random\nrandom.random()", build_display_output(text__plain="0.3"))
    assert linted(code("random.seed(1)"), by_chance) == []
    assert linted({**by_chance, "metadata": {"tags": ["nbval-ignore-output"]}}) == []


def test_lint_reports_undeclared_parameters() -> None:
    cell = code("alpha = 1", metadata={"tags": ["parameters"]})
    assert linted(cell, parameter_names=("alpha", "beta")) == [(-1, "warning", "AGY303")]


def test_lint_level_decides_which_findings_fail() -> None:
    remarks = lint_notebook(
        "n.ipynb", notebook(code("a", execution_count=5), code("b", execution_count=2)), ValidationConfig()
    )
    assert list_failing_remarks(remarks, "development") == []
    assert list_failing_remarks(remarks, "production") == remarks


# -- accept ----------------------------------------------------------------------------------------------------------


def test_accept_replaces_only_outputs_of_selected_cells() -> None:
    golden = notebook(code("a", stream("1")), code("b", stream("1")), code("c = 1"))
    executed = notebook(code("a", stream("2")), code("b", stream("2")), code("c = 2"))
    differences = list_differences(executed, golden, ComparisonConfig())
    accepted_notebook = accept_outputs(executed, golden, {1}, differences)
    assert [cell["outputs"] for cell in accepted_notebook["cells"]] == [[stream("1")], [stream("2")], []]
    assert [cell["source"] for cell in accepted_notebook["cells"]] == ["a", "b", "c = 1"]
    assert golden["cells"][1]["outputs"] == [stream("1")]
    with pytest.raises(UserError, match="cell 2: does not differ"):
        accept_outputs(executed, golden, {2}, differences)


def test_new_cells_are_accepted_only_together_with_all_cells() -> None:
    golden, executed = notebook(code("a", stream("1"))), notebook(code("new"), code("a", stream("2")))
    executed["metadata"]["papermill"] = {"parameters": {"x": 1}}
    differences = list_differences(executed, golden, ComparisonConfig())
    accepted_notebook = accept_outputs(executed, golden, (), differences)
    assert accepted_notebook["cells"] == executed["cells"]
    assert "papermill" not in accepted_notebook["metadata"]
    with pytest.raises(UserError, match="without --cells"):
        accept_outputs(executed, golden, {differences[0].cell}, differences)


# -- files, records, parameters --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"cells": 1}', '{"cells": [1]}', '{"worksheets": []}', "\xff", "[" * 90_000]
)
def test_file_that_is_not_a_notebook_is_rejected_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "n.ipynb").write_text(text, encoding="latin-1")
    with pytest.raises(UserError, match=r"n\.ipynb: .*; save it again"):
        load_notebook(tmp_path / "n.ipynb")


def test_failed_write_keeps_the_previous_file(tmp_path: Path) -> None:
    write_atomically(tmp_path / "deep" / "a.txt", "one")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(tmp_path / "deep" / "a.txt", "\ud800")
    assert [(path.name, path.read_text()) for path in (tmp_path / "deep").iterdir()] == [("a.txt", "one")]


def test_run_folders_are_unique_and_the_last_run_is_found(tmp_path: Path) -> None:
    now = datetime(2026, 1, 2, 3, 4, 5)
    runs = [run_records.create_run(tmp_path, Path("a/my.train.ipynb"), now) for _ in range(3)]
    assert [run.path_prefix.name for run in runs] == [f"my.train-20260102-030405{end}" for end in ("", "-2", "-3")]
    for run in runs[:2]:
        run.executed.write_text("{}")
        run_records.save_record(run, {"results": {}})
    os.utime(runs[0].record, (time.time() + 5,) * 2)
    for named in ("my.train", "my.train.ipynb", "x/my.train.ipynb"):
        assert run_records.find_last_run(tmp_path, named) == runs[0]
    assert run_records.find_last_run(tmp_path, str(runs[1].report)) == runs[1]
    with pytest.raises(UserError, match="argosy notebook run other"):
        run_records.find_last_run(tmp_path, "other")


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.6", 0.6), ("7", 7), ("true", True), ("True", True), ("None", None), ("null", None), ("[1, 2]", [1, 2]),
     ("(1, 2)", [1, 2]), ("{'a': 1}", {"a": 1}), ("a b", "a b"), ("", ""), ("[x", "[x"), ("1e400", float("inf")),
     ("'7'", "'7'"), ('"7"', "7"), ("{1, 2}", "{1, 2}"), ("[b'x']", "[b'x']")],
)  # fmt: skip
def test_parameter_values_are_parsed_as_literals(text: str, value: Any) -> None:
    assert parse_value(text) == value


def test_command_line_parameters_override_parameter_files(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("alpha: 1\nname: x\n")
    assert collect_parameters([("alpha", "2")], [("raw", "7")], [tmp_path / "p.yaml"]) == {
        "alpha": 2,
        "name": "x",
        "raw": "7",
    }
    with pytest.raises(UserError, match="is not a parameter name"):
        collect_parameters([("a-b", "1")])
    with pytest.raises(UserError, match="class: is not a parameter name"):
        collect_parameters([("class", "1")])
    (tmp_path / "p.yaml").write_text("- 1\n")
    with pytest.raises(UserError, match="has no parameters"):
        collect_parameters([], [], [tmp_path / "p.yaml"])


def test_git_lfs_pointer_is_rejected_with_advice(tmp_path: Path) -> None:
    file = tmp_path / "train.ipynb"
    file.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12345\n")
    with pytest.raises(UserError, match="is a Git LFS pointer, and not the file itself; fetch it first: git lfs pull"):
        load_notebook(file)
