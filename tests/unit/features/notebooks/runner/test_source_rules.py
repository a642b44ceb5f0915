"""Source rules for notebooks: silent failures, risky operations, missing assertions and unchecked exit codes."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.features.notebooks.runner.cell_syntax_tree import parse_cell
from argosy.features.notebooks.runner.finding_collector import RunObserver
from argosy.features.notebooks.runner.findings_that_fail_validation import list_blocking_findings
from argosy.features.notebooks.runner.run_request import ValidationConfig
from argosy.features.notebooks.runner.source_rules import check_notebook_source

ASSERTED = "assert x == 1"


def notebook(*sources: str, **metadata: Any) -> dict[str, Any]:
    cells = [{"cell_type": "code", "source": source, "metadata": {}, "outputs": []} for source in sources]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}


def list_findings(*sources: str, **validation: Any) -> list[tuple[int, str, str]]:
    """Return cell, severity and category of every finding."""
    read = check_notebook_source(notebook(*sources), ValidationConfig.from_wire(validation))
    return [(finding.cell, finding.severity, finding.category) for finding in read]


# -- the original operator blocks all of these at development level ----------------------------------------------------

HARMLESS = [
    "def show(frame):\n    print(frame.shape)\n\nshow(df)",
    "def plot(ax):\n    if ax is None:\n        return\n    ax.plot([1])\n\nplot(None)",
    "def save(model, path):\n    with open(path, 'wb') as file:\n        file.write(model)\n\nsave(b'', 'x')",
    "class Net:\n    def train(self):\n        self.x = 1\nnet = Net()\nnet.train()",
    "def numbers():\n    for i in range(3):\n        yield i\n\nx = list(numbers())",
    "def todo():\n    raise NotImplementedError\n\nx = todo()",
    "def pick(a) -> 'int | None':\n    if a:\n        return 1\n\nx = pick(0)",
    "def find(a):\n    if a:\n        return 1\n    return None\n\nx = find(0)",
    "def sign(a):\n    if a > 0:\n        return 1\n    else:\n        return 0\n\nx = sign(1)",
    "def read():\n    try:\n        return 1\n    except OSError:\n        raise SystemExit(1)\nx = read()",
    "def loop():\n    while True:\n        if 1:\n            return 2\nx = loop()",
    "def f():\n    print(1)\n\n_ = f()\n[f() for _ in range(2)]\nf() if True else None\ng = lambda: f()",
    "def f():\n    print(1)\ndef main():\n    return f()\nmain()",
    "from functools import cache\n@cache\ndef f():\n    pass\nx = f()",
    "def log(m):\n    print(m)\nlog = print\nx = log(1)",
    "def f():\n    print(1)\ndef g():\n    def f():\n        return 1\n    return f() + 1\nx = g()",
    "def load():\n    print(1)\nfrom lib import load\nx = load()",
    "async def f():\n    print(1)\nawait f()",
    "model.eval()\ndf.eval('a + b')",
    "def eval(model):\n    return 1\nx = eval(2)",
    "import ast\nx = ast.literal_eval('1')",
    "try:\n    import torch\nexcept ImportError:\n    pass",
    "try:\n    run()\nexcept Exception as error:\n    log(error)\n    raise",
    "try:\n    run()\nexcept:\n    cleanup()\n    raise",
    "import pandas as pd\ndf = pd.read_csv('x.csv')",  # a missing file raises an error
    "import requests\nr = requests.get('u')\nr.raise_for_status()",
    "import requests\nassert requests.get('u').status_code == 200",
    "%matplotlib inline\n!ls\n%timeit 1 + 1\nx = !ls\npd.read_csv?",
    "%%bash\nrm -rf x",
    "%%time\nx = 1",
]


@pytest.mark.parametrize("source", HARMLESS)
def test_harmless_code_has_no_blocking_findings_at_development_level(source: str) -> None:
    assert list_blocking_findings(check_notebook_source(notebook(source), ValidationConfig()), "development") == []


HARMFUL = [
    ("def load():\n    print(1)\n\ndata = load()", "silent-failure"),
    ("def load():\n    print(1)\n\nprint(load())", "silent-failure"),
    ("def load():\n    print(1)\n\nif load():\n    pass", "silent-failure"),
    ("def load(a):\n    if a:\n        return 1\n\ndata = load(0)", "silent-failure"),
    (
        "def load(a):\n    try:\n        return open(a)\n    except OSError:\n        print('x')\n\ndata = load(0)",
        "silent-failure",
    ),
    ("def load():\n    print(1)\n\nrows = [load() for _ in range(2)]", "silent-failure"),
    ("async def f():\n    print(1)\nx = await f()", "silent-failure"),
    ("try:\n    run()\nexcept:\n    print('oh')", "silent-failure"),
    ("try:\n    run()\nexcept Exception:\n    pass", "silent-failure"),
    ("try:\n    run()\nexcept (ValueError, Exception):\n    ...", "silent-failure"),
    ("import contextlib\nwith contextlib.suppress(Exception):\n    run()", "silent-failure"),
    ("assert (x == 1, 'x')", "silent-failure"),
    ("assert True", "silent-failure"),
    ("eval('1')", "risky-operation"),
    ("exec('1')", "risky-operation"),
    ("__import__('os')", "risky-operation"),
    ("import os\nos.system('x')", "risky-operation"),
    ("from os import system\nsystem('x')", "risky-operation"),
    ("import subprocess as sp\nsp.run(['x'])", "risky-operation"),
    ("import subprocess\np = subprocess.Popen(['x'])", "risky-operation"),
    ("import requests\ndata = requests.get('u').json()", "missing-error-handling"),
    ("import requests\nr = requests.get('u')\ndata = r.json()", "missing-error-handling"),
]


@pytest.mark.parametrize(("source", "category"), HARMFUL)
def test_harmful_code_blocks_at_every_level_except_learning(source: str, category: str) -> None:
    for level, blocks in (("learning", False), ("development", True), ("staging", True), ("production", True)):
        read = check_notebook_source(notebook(source, ASSERTED), ValidationConfig(level=level))
        assert category in {finding.category for finding in read}
        assert bool(list_blocking_findings(read, level)) is blocks


def test_function_defined_in_one_cell_is_known_in_other_cells() -> None:
    assert list_findings("def f():\n    print(1)", "1 + 1", "x = f()") == [(2, "warning", "silent-failure")]


def test_subprocess_call_with_handled_exit_code_is_only_an_info_finding() -> None:
    for source in (
        "import subprocess\nsubprocess.run(['x'], check=True)",
        "import subprocess\nsubprocess.check_output(['x'])",
        "import subprocess\nr = subprocess.run(['x'])\nprint(r.returncode)",
        "import os\ncode = os.system('x')",
    ):
        assert list_findings(source) == [(0, "info", "risky-operation")]
    assert list_findings("import subprocess\ntry:\n    f()\nexcept subprocess.CalledProcessError:\n    raise") == []


def test_missing_assertions_are_reported_at_every_level_except_development() -> None:
    for level in ("learning", "staging", "production"):
        assert (-1, "info", "missing-assertion") in list_findings("x = 1", level=level)
    assert list_findings("x = 1") == []
    for asserting in (ASSERTED, "np.testing.assert_allclose(a, b)", "if x < 1:\n    raise ValueError(x)"):
        assert list_findings(asserting, level="production") == []


def test_missing_assertions_are_an_error_with_verify_assertions() -> None:
    assert list_findings("x = 1", verifyAssertions=True) == [(-1, "error", "missing-assertion")]
    assert list_findings("x = 1", "assert True", verifyAssertions=True)[0] == (-1, "error", "missing-assertion")
    assert list_findings(ASSERTED, verifyAssertions=True) == []


def test_loaded_data_without_a_check_is_an_info_finding_in_production() -> None:
    source = "import pandas as pd\ndf = pd.read_csv('x.csv')"
    assert list_findings(source, ASSERTED, level="production") == [(0, "info", "missing-error-handling")]
    assert list_findings(source, "assert len(df) > 3", level="production") == []


@pytest.mark.parametrize(
    "source",
    ["!false", "x = !false", "import os\nos.system('x')", "import subprocess\nsubprocess.run('x')",
     "%%bash --no-raise-error\nfalse"],
)  # fmt: skip
def test_unchecked_exit_codes_are_reported_only_when_required(source: str) -> None:
    assert "missing-exit-code" in {category for _, _, category in list_findings(source, requireExplicitExitCodes=True)}
    assert "missing-exit-code" not in {category for _, _, category in list_findings(source)}


def test_checked_exit_code_has_no_finding() -> None:
    assert list_findings("!false\nassert _exit_code == 0", requireExplicitExitCodes=True) == []


def test_skipped_cells_and_non_python_notebooks_are_not_checked() -> None:
    bad = "eval('1')"
    assert check_notebook_source(notebook(f"# NBVAL_SKIP\n{bad}"), ValidationConfig()) == []
    assert check_notebook_source(notebook(bad, kernelspec={"language": "R", "name": "ir"}), ValidationConfig()) == []
    assert check_notebook_source(
        notebook(bad, kernelspec={"language": "python"}, language_info={"name": "python"}), ValidationConfig()
    )


def test_detect_silent_failures_false_disables_source_findings() -> None:
    assert list_findings("eval('1')", level="production", detectSilentFailures=False) == []


@pytest.mark.parametrize(
    "source", ["x = (", "def f(:\n  pass", "\x00", "(" * 5000, "x = 1\n" * 3 + "%%nope", "?", "!", "%", "a b c"]
)
def test_invalid_cell_source_does_not_raise(source: str) -> None:
    check_notebook_source(notebook(source, "eval('1')"), ValidationConfig(level="production", require_exit_codes=True))


DEEP = ["x = f" + "()" * 3000, "assert a" + ".b" * 900, "x = " + "-" * 900 + "1", "x = " + "+".join(["a"] * 5000)]


@pytest.mark.parametrize(
    "source", [*DEEP, "if 1:\n" + "".join(" " * depth + "if 1:\n" for depth in range(1, 95)), "x=" * 999]
)
def test_deeply_nested_code_does_not_stop_the_check_of_other_cells(source: str) -> None:
    cells = notebook("def f():\n    print(1)", source, "y = f()")
    watch = RunObserver(cells, ValidationConfig(level="production"))
    assert 2 in {finding.cell for finding in watch.check_source()}
    watch.build_question(1)


def test_parse_cell_removes_magics_and_keeps_line_numbers() -> None:
    cell = parse_cell("%load_ext x\n!pip install \\\n  y\nif True:\n    !ls\nz = 1")
    assert cell.tree is not None
    assert cell.tree.body[-1].lineno == 6
    assert cell.shell_lines == (2, 5)
    assert parse_cell("s = '''\n%not a magic\n'''").tree is not None


def test_findings_include_a_suggestion_and_a_code_example() -> None:
    finding = check_notebook_source(notebook("def f():\n    print(1)\nx = f()"), ValidationConfig())[0]
    assert finding.to_wire() == {
        "cell": 0,
        "severity": "warning",
        "category": "silent-failure",
        "message": "f() never returns a value, but its result is used here",
        "suggestion": "return a result at the end of f(), or raise an error if there is none",
        "codeExample": "def f(…):\n    …\n    return result",
    }
    assert "codeExample" not in finding.to_wire(with_example=False)
