"""`argosy notebook lint` of several notebooks and folders: counts, errors and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argosy.cli.exit_codes import EXIT_ERROR, EXIT_NEGATIVE, EXIT_OK
from argosy.main import main


def write(folder: Path, name: str, *sources: str) -> str:
    cells = [
        {"cell_type": "code", "id": f"c{at}", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
        for at, source in enumerate(sources)
    ]
    (folder / name).write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return name


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    return [
        write(tmp_path, "one.ipynb", "x = ("),
        write(tmp_path, "two.ipynb", "y = (", "z = ("),
        write(tmp_path, "good.ipynb", "x = 1"),
    ]


def test_each_notebook_is_reported_with_its_own_counts(names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["notebook", "lint", *names]) == EXIT_NEGATIVE
    captured = capsys.readouterr()
    assert captured.out.splitlines()[-4:] == [
        "one.ipynb: 1 remark, 1 that fail",
        "two.ipynb: 2 remarks, 2 that fail",
        "good.ipynb: 0 remarks, 0 that fail",
        "3 notebooks, 3 remarks, 3 that fail",
    ]
    assert captured.err.splitlines()[:3] == [
        "argosy: 2 notebooks have faults",
        "why: one.ipynb has 1 fault",
        "     two.ipynb has 2 faults",
    ]


def test_error_names_only_the_notebook_with_faults(names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["notebook", "lint", "good.ipynb", "two.ipynb"]) == EXIT_NEGATIVE
    assert capsys.readouterr().err.startswith("argosy: two.ipynb has 2 faults\n")


def test_json_output_has_counts_per_notebook(names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["notebook", "lint", *names, "one.ipynb", "-o", "json"]) == EXIT_NEGATIVE
    assert json.loads(capsys.readouterr().out)["notebooks"] == [
        {"file": "one.ipynb", "remarks": 1, "failing": 1},
        {"file": "two.ipynb", "remarks": 2, "failing": 2},
        {"file": "good.ipynb", "remarks": 0, "failing": 0},
    ]


def test_unreadable_notebook_is_listed_separately_and_not_counted(
    names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    typed = ["notebook", "lint", "good.ipynb", "missing.ipynb"]
    assert main(typed) == EXIT_ERROR
    captured = capsys.readouterr()
    assert captured.out.splitlines()[-1] == "1 notebook, 0 remarks, 0 that fail"
    assert captured.err.startswith("argosy: 1 notebook could not be linted\n")
    assert main([*typed, "-o", "json"]) == EXIT_ERROR
    report = json.loads(capsys.readouterr().out)
    assert [notebook["file"] for notebook in report["notebooks"]] == ["good.ipynb"]
    (unreadable,) = report["unreadable"]
    assert unreadable["file"] == "missing.ipynb"
    assert "No such file" in unreadable["message"] and "missing.ipynb" not in unreadable["message"]


def test_json_unreadable_list_is_empty_when_all_notebooks_are_readable(
    names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["notebook", "lint", "good.ipynb", "-o", "json"]) == EXIT_OK
    assert json.loads(capsys.readouterr().out)["unreadable"] == []


def test_folder_argument_lints_the_notebooks_below_it(
    names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sub" / ".ipynb_checkpoints").mkdir(parents=True)
    write(tmp_path / "sub", "three.ipynb", "x = 3")
    write(tmp_path / "sub" / ".ipynb_checkpoints", "three-checkpoint.ipynb", "x = (")
    assert main(["notebook", "lint", "sub"]) == EXIT_OK
    assert capsys.readouterr().out.splitlines()[-1] == "1 notebook, 0 remarks, 0 that fail"
    assert main(["notebook", "lint", ".", "one.ipynb"]) == EXIT_NEGATIVE
    assert capsys.readouterr().out.splitlines()[-1] == "4 notebooks, 3 remarks, 3 that fail"


def test_folder_without_notebooks_is_an_error(
    names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "none").mkdir()
    assert main(["notebook", "lint", "none"]) == EXIT_ERROR
    assert capsys.readouterr().err == (
        "argosy: none: contains no notebook\nnext: use an .ipynb file, or another folder\n"
    )
    assert main(["notebook", "lint", "none", "good.ipynb"]) == EXIT_ERROR
    assert "1 notebook, 0 remarks" in capsys.readouterr().out
