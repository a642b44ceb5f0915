"""Mutates random places of src, one at a time, and says which mutations the tests notice.

In: a seed and a count. Out: a line for each mutation: caught, survived, or unclear. Never: a change
in the checkout: everything happens in a copy.
Development only. Run: python tools/mutation_check.py --seed 19 --count 40

Only the tests of the mutated package (tests/unit, tests/component) run, then, where they notice nothing, the scenarios
of `make test`. A test that fails is run again without the mutation, and all of them are where none is named (a run that
hangs, crashes or cannot be collected): only if they pass then has the mutation been caught.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/argosy")
HANG_SECONDS = 900.0
WAIT_SCALE = "0.25"  # shorter waits: a mutation may well make a test wait in vain
COMPARED = {ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.In: "not in",
            ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is"}  # fmt: skip
COMPUTED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Div: "*"}


@dataclass(frozen=True)
class Mutation:
    """`old` at a place of a file becomes `new`."""

    path: Path
    line: int
    start: int  # in bytes of the file
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.old!r} -> {self.new!r}"


class Finder(ast.NodeVisitor):
    """Every mutation of one file."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.data = path, text.encode()
        self.found: list[Mutation] = []
        self.starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def offer(self, node: ast.expr | ast.stmt, new: str) -> None:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self.starts[node.lineno - 1] + node.col_offset
        end = self.starts[node.end_lineno - 1] + node.end_col_offset
        self.found.append(Mutation(self.path, node.lineno, start, end, self.data[start:end].decode(), new))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for statement in node.body:  # not its annotations and defaults
            self.visit(statement)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self.offer(node.test, f"not ({ast.unparse(node.test)})")
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        if len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
            left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
            self.offer(node, f"({left} {COMPARED[type(node.ops[0])]} {right})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = " or " if isinstance(node.op, ast.And) else " and "
        self.offer(node, "(" + other.join(f"({ast.unparse(value)})" for value in node.values) + ")")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        is_text = any(isinstance(side, ast.Constant | ast.JoinedStr) and not _is_number(side)
                      for side in (node.left, node.right))  # fmt: skip
        if type(node.op) in COMPUTED and not is_text:
            self.offer(node, f"({ast.unparse(node.left)} {COMPUTED[type(node.op)]} {ast.unparse(node.right)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.offer(node, str(not node.value))
        elif _is_number(node):
            self.offer(node, f"{node.value!r} + 1")

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call | ast.Await):
            self.offer(node, "pass")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and ast.unparse(node.value) != "None":
            self.offer(node.value, "None")
        self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts are not mutated."""


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def all_mutations(root: Path) -> Iterator[Mutation]:
    for path in sorted((root / SOURCE).rglob("*.py")):
        finder = Finder(path.relative_to(root), path.read_text())
        finder.visit(ast.parse(path.read_text()))
        yield from finder.found


def draw_mutations(root: Path, seed: int, count: int) -> list[Mutation]:
    """Lines first, then one mutation of each: a long line is not likelier than a short one."""
    by_line: dict[tuple[Path, int], list[Mutation]] = {}
    for mutation in all_mutations(root):
        by_line.setdefault((mutation.path, mutation.line), []).append(mutation)
    rng = random.Random(seed)
    return [rng.choice(by_line[line]) for line in rng.sample(sorted(by_line), count)]


def apply_mutation(mutation: Mutation, data: bytes) -> bytes:
    return data[: mutation.start] + mutation.new.encode() + data[mutation.end :]


def test_folders(mutation: Mutation, copy: Path) -> list[str]:
    """Of the mutated package, as deep as there are tests for it."""
    parts = mutation.path.relative_to(SOURCE).parts[:-1]
    folders = []
    for kind in ("unit", "component"):
        for depth in range(len(parts), 0, -1):
            folder = Path("tests", kind, *parts[:depth])
            if (copy / folder).is_dir():
                folders.append(str(folder))
                break
    return folders


def find_failing_test(copy: Path, tests: list[str], workers: int) -> str:
    """The first test that fails, or another reason why the run does not pass; empty if it passes."""
    if not tests:
        return ""
    command = [sys.executable, "-m", "pytest", "--tier", "test", "-x", "-n", str(workers), "--dist", "loadfile"]
    env = {"ARGOSY_TEST_PATIENCE": WAIT_SCALE, **os.environ, "PYTHONPATH": str(copy / "src")}
    try:
        done = subprocess.run(
            [*command, *tests], cwd=copy, env=env, capture_output=True, text=True, check=False, timeout=HANG_SECONDS
        )
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode == 0:
        return ""
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED tests/", "ERROR tests/"))]
    return failed[0] if failed else f"exit code {done.returncode}"


def rerun_without_mutation(copy: Path, failure: str, tests: list[str], workers: int) -> str:
    """The same without the mutation: the test that failed or, where none is named, all of the run."""
    test = failure.partition(" ")[2].partition(" - ")[0]
    return find_failing_test(copy, [test], 0) if "::" in test else find_failing_test(copy, tests, workers)


def judge(mutation: Mutation, copy: Path, workers: int) -> tuple[str, str]:
    path = copy / mutation.path
    before = path.read_bytes()
    verdict, by = "survived", ""
    for tests in (test_folders(mutation, copy), ["tests/scenarios"]):
        path.write_bytes(apply_mutation(mutation, before))
        try:
            failure = find_failing_test(copy, tests, workers)
        finally:
            path.write_bytes(before)
        if not failure:
            continue
        if not rerun_without_mutation(copy, failure, tests, workers):
            return "caught", failure
        verdict, by = "unclear", f"fails without it too: {failure}"
    return verdict, by


def main() -> None:
    parser = argparse.ArgumentParser(description="which random mutations of src the tests notice")
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--from", dest="first", type=int, default=1, help="go on with this one of them")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only print the mutations")
    parser.add_argument("--report", type=Path, help="a file that gets one JSON line for each")
    chosen = parser.parse_args()
    mutations = draw_mutations(ROOT, chosen.seed, chosen.count)
    if chosen.list:
        print("\n".join(map(str, mutations)))
        return
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".venv", ".git", "__pycache__", "coverage"))
        (copy / ".venv").symlink_to(ROOT / ".venv")
        for number, mutation in enumerate(mutations[chosen.first - 1 :], chosen.first):
            began = time.monotonic()
            verdict, by = judge(mutation, copy, chosen.workers)
            print(f"{number:3d} {verdict:8} {time.monotonic() - began:5.0f} s  {mutation}  {by[:160]}", flush=True)
            if chosen.report:
                with chosen.report.open("a") as report:
                    line = {"number": number, "verdict": verdict, "mutation": str(mutation), "by": by}
                    report.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
