"""Silent failures: values and outputs of cells that raise no error; intended values are not reported."""

from __future__ import annotations

import json
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from argosy.features.notebooks.runner import assigned_value_probe
from argosy.features.notebooks.runner.finding_collector import RunObserver
from argosy.features.notebooks.runner.findings_that_fail_validation import (
    NotebookFinding,
    describe_failure,
    list_blocking_findings,
)
from argosy.features.notebooks.runner.run_request import ValidationConfig

ERRORS = "stderr"
FRAMES = '''
class Column(list):
    dtype = type("Kind", (), {"kind": "f"})
    def sum(self):
        return sum(self)
    def min(self):
        return min([each for each in self if each == each], default=float("nan"))
    def max(self):
        return max([each for each in self if each == each], default=float("nan"))
class DataFrame:
    """Answers as a frame of a library would, which is not needed for a test."""
    def __init__(self, **columns):
        self.columns, self._columns = list(columns), columns
    @property
    def shape(self):
        return max(map(len, self._columns.values()), default=0), len(self._columns)
    def isna(self):
        return DataFrame(**{name: [each != each for each in column] for name, column in self._columns.items()})
    def sum(self):
        return Column(map(sum, self._columns.values()))
    def select_dtypes(self, kind):
        return self
    def min(self):
        return Column(Column(each).min() for each in self._columns.values())
    def max(self):
        return Column(Column(each).max() for each in self._columns.values())
    def keep(self, test):
        return DataFrame(**{name: list(filter(test, column)) for name, column in self._columns.items()})
    def sort(self):
        self._columns = {name: sorted(column) for name, column in self._columns.items()}
def read_csv(path):
    return DataFrame(auc=[1.0, float("nan")], n=[1, 2])
'''


@pytest.fixture
def shell() -> Any:
    """A shell without a history file, which it would write at process exit."""
    return InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))


def played(
    shell: Any, *sources: str, outputs: dict[int, list[dict[str, Any]]] | None = None, **validation: Any
) -> RunObserver:
    """Run cells in a shell of this process and validate them like the runner; outputs are given."""
    cells = [{"cell_type": "code", "source": source, "metadata": {}, "outputs": []} for source in sources]
    judge = RunObserver({"cells": cells, "metadata": {}}, ValidationConfig.from_wire(validation))
    judge.check_source()
    shell.run_cell(FRAMES)
    for index, cell in enumerate(cells):
        shell.run_cell(cell["source"], store_history=True)
        question = judge.build_question(index)
        answer = shell.user_expressions({"q": question})["q"].get("data", {}).get("text/plain", "") if question else ""
        judge.check_cell(index, {**cell, "outputs": (outputs or {}).get(index, [])}, answer)
    judge.finish()
    return judge


def list_findings(judge: RunObserver) -> list[tuple[int, str, str]]:
    return [(finding.cell, finding.severity, finding.message) for finding in judge.findings]


def test_nan_infinite_none_and_empty_values_are_reported(shell: Any) -> None:
    judge = played(
        shell,
        "frame = DataFrame(auc=[0.9, float('nan') * 0, float('nan')], n=[1, 2, 3])\nframe = frame.keep(lambda x: True)",
        "loss = 1e308 * 10 - 1e308 * 10\nscores = {'auc': loss, 'n': 3}",
        "frame = frame.sort()",
        "losses = [each * 1e308 * 10 for each in (1, 2)]",
        "rows = DataFrame(a=[1, 2]).keep(lambda x: x > 5)",
    )
    assert list_findings(judge) == [
        (0, "warning", 'frame: column "auc" has 2 NaN of 3'),
        (1, "warning", "loss is NaN"),
        (1, "warning", "scores has no number for auc"),
        (2, "warning", "frame is None: frame.sort() returned nothing"),
        (3, "warning", "losses has 2 infinite of 2"),
        (4, "warning", "rows is an empty DataFrame (0 x 1)"),
    ]


@pytest.mark.parametrize(
    "source",
    [
        "best = None",  # the original operator reports any None
        "best, model = None, {}",
        "found = {}.get('x')",
        "import re\nfound = re.match('a', 'b')",
        "from re import match\nfound = match('a', 'b')",
        "shown = print(1)",
        "lowest = float('inf')",
        "import math\nunset = math.nan",
        "import numpy as np\nfilled = np.full(3, np.nan)",
        "results = []\nseen = {}",
        "empty = DataFrame()",
        "def f():\n    return None\nx = f()\nif x is None:\n    x = 1",
        "bad = DataFrame(a=[1]).keep(lambda x: x > 5)\nprint(len(bad))",
        "frame = DataFrame(a=[0.0 * 1e999])\nframe.isna()",
        "_private = float('1e999') - float('1e999')",
        "import numpy as np\nwhere = np.where(np.array([1, 2]) > 5)[0]",
        "def f():\n    hidden = 1e999 * 0\n    return 1\nx = f()",
        "text, flag, number = 'nan', True, 10**400",
    ],
)
def test_intended_none_nan_and_empty_values_are_not_blocking(shell: Any, source: str) -> None:
    assert list_blocking_findings(played(shell, source).findings, "development") == []


ORDINARY = (
    "import warnings\nwarnings.filterwarnings('ignore')\nimport numpy as np\nfrom sklearn.datasets import load_iris",
    "SEED = 7\nbest_score, best_model = -np.inf, None\nhistory = {'loss': [], 'accuracy': []}",
    "data = load_iris()\nX, y = data.data, data.target\nprint(X.shape, data.target_names)",
    "from sklearn.linear_model import LogisticRegression",
    "from sklearn.model_selection import cross_val_score, train_test_split",
    "X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=SEED)",
    "def report(name, scores):\n    print(f'{name}: {scores.mean():.3f} +- {scores.std():.3f}')\n\n"
    "def remember(loss, accuracy):\n    history['loss'].append(loss)\n    history['accuracy'].append(accuracy)",
    "for C in (0.1, 1.0):\n    model = LogisticRegression(C=C, max_iter=500)\n"
    "    scores = cross_val_score(model, X_train, y_train, cv=3)\n    report(f'C={C}', scores)\n"
    "    remember(1 - scores.mean(), scores.mean())\n"
    "    if scores.mean() > best_score:\n        best_score, best_model = scores.mean(), model",
    "best_model.fit(X_train, y_train)\naccuracy = best_model.score(X_test, y_test)\nprint('accuracy', accuracy)",
    "errors = X_test[best_model.predict(X_test) != y_test]\ncm = np.zeros((3, 3), dtype=int)\n"
    "for t, p in zip(y_test, best_model.predict(X_test)):\n    cm[t, p] += 1\ncm",
    "import pickle, pathlib, tempfile\npath = pathlib.Path(tempfile.mkdtemp()) / 'model.pkl'\n"
    "with open(path, 'wb') as file:\n    pickle.dump(best_model, file)\npath.stat().st_size > 0",
)


@pytest.mark.tier("all")  # importing scikit-learn takes seconds
def test_ordinary_notebook_has_no_findings(shell: Any) -> None:
    pytest.importorskip("sklearn")
    judge = played(shell, *ORDINARY)
    assert list_findings(judge) == []
    for level in ("learning", "development", "staging"):
        assert (
            list_blocking_findings(RunObserver(_cells(*ORDINARY), ValidationConfig(level=level)).check_source(), level)
            == []
        )


def _cells(*sources: str) -> dict[str, Any]:
    return {"cells": [{"cell_type": "code", "source": source, "outputs": []} for source in sources]}


def test_function_that_returns_none_after_an_error_is_reported(shell: Any) -> None:
    load = "def load(path):\n    try:\n        return open(path)\n    except OSError:\n        return None"
    judge = played(shell, load, "data = load('/no/such/file')")
    assert list_findings(judge) == [(1, "warning", "data is None: load() returned nothing")]


def test_missing_values_in_loaded_data_are_only_info(shell: Any) -> None:
    judge = played(shell, "data = read_csv('x')", "part = data.keep(lambda x: True)", "data['x'] = 1")
    assert {severity for _, severity, _ in list_findings(judge)} == {"info"}


def test_nan_in_numpy_values_is_reported(shell: Any) -> None:
    judge = played(
        shell,
        "import numpy as np\na = np.array([1.0, 2.0]) * np.array([1.0, 0.0])\nb = np.zeros(2) / np.zeros(2)",
        "c = np.float32(0) / np.float32(0)",
        "d = np.arange(6).reshape(2, 3)",
    )
    assert list_findings(judge) == [(0, "warning", "b has 2 NaN of 2"), (1, "warning", "c is NaN")]


def test_probe_module_is_reinstalled_if_removed(shell: Any) -> None:
    forget = "import sys\nsys.modules.pop('argosy_probe')"
    judge = played(shell, "a = 1e308 * 10", forget, "b = a * 1", "c = a * 1")
    assert [cell for cell, _, _ in list_findings(judge)] == [0, 3]


def test_probe_leaves_namespace_and_execution_count_unchanged(shell: Any) -> None:
    shell.run_cell("x = 1", store_history=True)
    before, count = set(shell.user_ns), shell.execution_count
    played_names = {name for name in before if not name.startswith("_")}
    judge = RunObserver({"cells": [{"cell_type": "code", "source": "x = 1"}]}, ValidationConfig())
    shell.user_expressions({"q": judge.build_question(0)})
    assert {name for name in shell.user_ns if not name.startswith("_")} == played_names
    assert shell.execution_count == count


def test_value_whose_attributes_raise_is_described_with_the_error() -> None:
    class Mine:
        @property
        def shape(self) -> tuple[int, ...]:
            raise RuntimeError("no")

    assert assigned_value_probe.describe_value(Mine())["unasked"] == "RuntimeError"


@pytest.mark.parametrize("said", ["", "x", "'1'", "1", "[" * 5000, "'{}'"])
def test_malformed_probe_answer_is_not_a_finding(said: Any) -> None:
    judge = RunObserver({"cells": [{"cell_type": "code", "source": "x = f()"}]}, ValidationConfig())
    assert judge.check_cell(0, {"cell_type": "code", "source": "x = f()"}, said) == []


# -- outputs of a cell -----------------------------------------------------------------------------------------------


def check_cell(
    source: str, *outputs: tuple[str, str], answered: int | None = None, **validation: Any
) -> list[tuple[str, str]]:
    """Severity and category of the findings from a cell's outputs."""
    streams = [{"output_type": "stream", "name": name, "text": text} for name, text in outputs]
    cell = {"cell_type": "code", "source": source, "outputs": streams, "metadata": {}}
    judge = RunObserver({"cells": [cell]}, ValidationConfig.from_wire(validation))
    answer = repr(json.dumps({"exit": answered})) if answered is not None else ""
    return [(finding.severity, finding.category) for finding in judge.check_cell(0, cell, answer)]


@pytest.mark.parametrize(
    ("source", "text", "finding"),
    [
        ("%nope", "UsageError: Line magic function `%nope` not found.\n", ("warning", "failed-magic")),
        ("%pip install x", "ERROR: Could not find a version that satisfies x\n", ("warning", "failed-magic")),
        ("fit()", "/tmp/x.py:1: RuntimeWarning: invalid value encountered\n  x\n", ("warning", "warning-output")),
        ("fit()", "/tmp/x.py:1: ConvergenceWarning: did not converge\n", ("warning", "warning-output")),
        ("fit()", "/tmp/x.py:1: DeprecationWarning: old\n  f()\n", ("info", "warning-output")),
        ("go()", "Exception in thread T:\nTraceback (most recent call last):\n  x\n", ("warning", "stderr-output")),
        ("go()", "2026-01-01 ERROR db: connection refused\n", ("warning", "stderr-output")),
        ("go()", "something odd\n", ("info", "stderr-output")),
    ],
)
def test_stderr_output_is_classified_by_severity(source: str, text: str, finding: tuple[str, str]) -> None:
    assert check_cell(source, (ERRORS, text)) == [finding]


@pytest.mark.parametrize(
    "text", ["100%|████| 10/10 [00:01<00:00,  9it/s]", "INFO:root:ready\n", "  0%|    | 0/3 [00:00<?, ?it/s]\r\n"]
)
def test_progress_and_info_on_stderr_are_not_findings(text: str) -> None:
    assert check_cell("go()", (ERRORS, text), level="production") == []


@pytest.mark.parametrize("line", ["!false", "if True:\n    !false", "%pip install nope"])
def test_failed_shell_command_is_reported(line: str) -> None:
    assert check_cell(line, answered=1) == [("warning", "failed-magic")]
    assert check_cell(line, answered=0) == []
    assert check_cell(line + "\nprint(_exit_code)", answered=1) == []


def test_exit_code_of_an_earlier_cell_is_ignored() -> None:
    for source in ("x = 1", "out = !ls", "!!ls"):
        assert check_cell(source, answered=1) == []


@pytest.mark.parametrize("text", ["loss: nan\n", "epoch 1 - acc=nan\n", "nan\n", '{"auc": NaN}', "rmse = -inf"])
def test_nan_or_infinite_metric_in_output_is_reported(text: str) -> None:
    assert check_cell("report()", ("stdout", text)) == [("warning", "nan-detected")]


@pytest.mark.parametrize("text", ["banana: 1\n", "nan values: 0\n", "     a    b\n0  1.0  NaN\n", "finance = info"])
def test_other_text_and_tables_are_not_metrics(text: str) -> None:
    assert check_cell("report()", ("stdout", text)) == []


def test_cell_that_handles_nan_may_print_nan() -> None:
    assert check_cell("print('mean:', np.nanmean(x), x.isna())", ("stdout", "mean: nan")) == []


def test_fail_on_stderr_and_warnings_make_findings_errors() -> None:
    text = "x.py:1: DeprecationWarning: old\n"
    assert check_cell("go()", (ERRORS, "hello"), failOnStderr=True) == [("error", "stderr-output")]
    assert ("error", "warning-output") in check_cell("go()", (ERRORS, text), failOnWarnings=True)
    assert check_cell("go()", (ERRORS, "hello"), detectSilentFailures=False) == []


# -- expected outputs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "expected", "category"),
    [
        ("DataFrame(a=[1, 2], b=[3, 4])", {"type": "DataFrame", "shape": "2,2", "notEmpty": True}, ""),
        (
            "DataFrame(a=[1, 2], b=[3, 4])",
            {"type": "pandas.DataFrame", "shape": "-1,2", "minValue": "1", "maxValue": "4"},
            "",
        ),
        ("frame = DataFrame(a=[1, 2])", {"shape": "2,1"}, ""),  # no final expression: the assigned value is checked
        ("0.93", {"type": "float", "minValue": "0.9", "maxValue": "1"}, ""),
        ("[1, 2, 3]", {"type": "list", "shape": "3"}, ""),
        ("'text'", {"type": "string", "notEmpty": True}, ""),
        ("DataFrame(a=[1, 2])", {"shape": "3,1"}, "shape-mismatch"),
        ("DataFrame(a=[1, 2])", {"shape": "2"}, "shape-mismatch"),
        ("DataFrame(a=[])", {"notEmpty": True}, "empty-output"),
        ("None", {"notEmpty": True}, "empty-output"),
        ("0.5", {"minValue": "0.9"}, "out-of-range"),
        ("7", {"maxValue": "-1.5"}, "out-of-range"),
        ("'high'", {"minValue": "0"}, "out-of-range"),
        ("1e999 - 1e999", {"minValue": "0"}, "nan-detected"),
        ("1", {"type": "DataFrame"}, "type-mismatch"),
        ("1", {"shape": "a,b"}, "invalid-spec"),
    ],
)
def test_expected_outputs_are_checked(shell: Any, source: str, expected: dict[str, Any], category: str) -> None:
    judge = played(shell, source, expectedOutputs=[{"cell": 0, **expected}])
    errors = [finding for finding in judge.findings if finding.severity == "error"]
    assert ([error.category for error in errors] or [""])[0] == category
    assert bool(judge.failure[0]) is bool(category)


def test_expected_output_of_a_missing_cell_is_an_error() -> None:
    judge = RunObserver({"cells": []}, ValidationConfig.from_wire({"expectedOutputs": [{"cell": 3}]}))
    assert [(finding.cell, finding.severity, finding.category) for finding in judge.check_source()] == [
        (3, "error", "invalid-spec")
    ]


def test_cell_that_did_not_run_fails_its_expected_output() -> None:
    judge = RunObserver(
        {"cells": [{"cell_type": "code", "source": "1"}]},
        ValidationConfig.from_wire({"expectedOutputs": [{"cell": 0}]}),
    )
    assert [finding.category for finding in judge.finish()] == ["empty-output"]


def test_shape_is_read_from_output_text_without_a_kernel_answer() -> None:
    table = {"output_type": "execute_result", "data": {"text/plain": "  a\n\n[5 rows x 3 columns]"}}
    cell = {"cell_type": "code", "source": "%%R\ndf", "outputs": [table]}
    for shape, categories in (("5,3", []), ("4,3", ["shape-mismatch"])):
        judge = RunObserver(
            {"cells": [cell]}, ValidationConfig.from_wire({"expectedOutputs": [{"cell": 0, "shape": shape}]})
        )
        assert [finding.category for finding in judge.check_cell(0, cell, "")] == categories


def test_changed_output_types_are_reported_if_checked() -> None:
    saved = {
        "cell_type": "code",
        "source": "x",
        "outputs": [{"output_type": "display_data", "data": {"image/png": ""}}],
    }
    plain = {**saved, "outputs": [{"output_type": "stream", "name": "stdout", "text": "x"}]}
    judge = RunObserver({"cells": [saved]}, ValidationConfig.from_wire({"checkOutputTypes": True}))
    assert judge.check_cell(0, saved, "") == []
    messages = [finding.message for finding in judge.check_cell(0, plain, "")]
    assert messages == ["has output types stdout; it was saved with image/png"]


# -- levels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "blocks"),
    [("learning", ["error"]), ("development", ["error", "warning"]), ("staging", ["error", "warning"]),
     ("production", ["error", "warning", "info"])],
)  # fmt: skip
def test_level_blocks_findings_from_its_severity_up(level: str, blocks: list[str]) -> None:
    findings = [NotebookFinding(0, severity, "x", severity) for severity in ("info", "warning", "error")]  # type: ignore[arg-type]
    assert [finding.severity for finding in list_blocking_findings(findings, level)] == blocks


def test_failure_has_a_message_and_a_category() -> None:
    warning, stderr = (
        NotebookFinding(2, "warning", "nan-detected", "x is NaN"),
        NotebookFinding(1, "error", "stderr-output", "oh"),
    )
    assert describe_failure([warning], "development") == ("cell 2: x is NaN", "validation_findings")
    assert describe_failure([warning, stderr], "development") == (
        "cell 1: oh (and 1 more)",
        "validation_stderr_failure",
    )
    assert describe_failure([warning], "learning") == ("", "")
    assert describe_failure([warning], "learning", strict=True)[1] == "validation_strict_mode_failure"
    assert describe_failure([NotebookFinding(-1, "error", "warning-output", "w")], "learning") == (
        "w",
        "validation_warning_failure",
    )


def test_code_examples_are_included_only_at_level_learning() -> None:
    for level, taught in (("learning", True), ("development", False)):
        judge = RunObserver(
            {"cells": [{"cell_type": "code", "source": "def f():\n    print(1)\nx = f()"}]},
            ValidationConfig.from_wire({"level": level}),
        )
        judge.check_source()
        assert ("codeExample" in judge.to_wire()[-1]) is taught


def test_findings_in_the_status_are_limited_and_truncated() -> None:
    sources = ["def f():\n    print(1)", *["x = f()"] * 150, "# NBVAL_IGNORE_OUTPUT\neval('1')"]
    watch = RunObserver({"cells": [{"cell_type": "code", "source": source} for source in sources]}, ValidationConfig())
    watch.check_source()
    watch.findings.append(NotebookFinding(99, "error", "x", "y" * 5000))
    wire = watch.to_wire()
    assert len(watch.findings) == 152
    assert len(wire) == 100
    assert [len(finding["message"]) for finding in wire if finding["severity"] == "error"] == [501]
