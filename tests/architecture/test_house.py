"""The house stays as drawn in ARCHITECTURE.md: floors, pure rooms, one owner for each library, names and sizes.

The rules are plain functions from a source tree to sentences, so that the second half of this file can show each of
them a small house that breaks it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "argosy"
PLAN = Path(__file__).parents[2] / "ARCHITECTURE.md"

FLOORS: tuple[frozenset[str], ...] = tuple(
    frozenset(floor.split())
    for floor in (
        "model",
        "patch schema language confine outbound cluster",
        "source render generate policy live compare sync health report runtime apiserver",
        "pipeline",
        "controllers addons setup advise models",
        "promote",
        "desk",
        "server",
        "app",
        "cli testing",
        "__main__",
    )
)
FLOOR_OF = {room: number for number, floor in enumerate(FLOORS) for room in floor}
MAY_USE_BESIDE = {"language": {"confine"}, "cluster": {"patch", "schema"}}
ADDONS_MAY_USE = FLOORS[0] | FLOORS[1] | {"runtime", "source"}
WIRING = {"app"}
RUNNER = "addons.notebooks.runner"
RUNNER_NEEDS = {"nbclient", "nbformat", "jupyter_client"}

PARTS_OF_SYNC = "automatic checks gates images migration options order patching plan retry rollback states terms"
PURE_PARTS_OF_SYNC = {f"sync.{part}" for part in PARTS_OF_SYNC.split()}
PURE = {"model", "patch", "schema", "language", "generate", "policy", "live", "compare", "health", "report", "render"}
PURE |= PURE_PARTS_OF_SYNC
IMPURE = ("asyncio", "subprocess", "socket", "ssl", "http", "urllib.request", "aiohttp", "uvicorn", "argosy.cluster")
FENCED: dict[str, set[str]] = {}  # module of a pure room → the one impure library it may use

OWNERS = {
    "_gojsonnet": {"render.jsonnet.engine"},
    "aiohttp": {"cluster", "outbound"},
    "apsw": {"apiserver.store"},
    "bcrypt": {"desk.accounts.passwords"},
    "cel": {"schema"},
    "re2": {"schema"},
    "cryptography": {"apiserver", "cluster.tls", "outbound.github_app", "server.identity"},
    "helm_python": {"render.helm.worker"},
    "http.client": {"addons.notebooks.runner.reporting", "cli", "cluster", "outbound"},
    "httptools": {"apiserver.http.protocol"},
    "joblib": {"addons.simulators.answering.artefact"},
    "jq": {"language.jq_worker"},
    "jupyter_client": {"addons.notebooks.runner"},
    "jwt": {"desk.accounts.tokens", "server.identity"},
    "lupa": {"health.lua"},
    "minijinja": {"server.pages.filters", "server.pages.rendering"},
    "multidict": {"cluster", "outbound"},
    "nbclient": {"addons.notebooks.runner"},
    "nbformat": {"addons.notebooks.runner"},
    "orjson": {""},
    "pytest": {"testing"},
    "sqlite3": set(),
    "starlette": {"server.doors.entry"},
    "urllib.request": {"cluster", "outbound"},
    "uvicorn": {"apiserver.http.protocol", "apiserver.server", "app"},
    "uvloop": {"apiserver.server", "app"},
    "yaml": {"model.manifest", "render"},
    "yarl": {"cluster", "outbound"},
}
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "base", "manager"}
FORBIDDEN_ENDINGS = ("Manager", "Handler", "Helper", "Impl", "Base")
ALLOWED_CLASSES = {"Manager"}  # k8s: who owns a field is called so on the wire
MOST_LINES, MOST_FUNCTION_LINES = 400, 60
FUNCTION_BY_NAME = re.compile(r"(argosy(?:\.[a-z_]+)+):[a-z_]+")  # how confined functions are named
MAY_IMPORT_BY_NAME = re.compile(rf"import_module|__import__|{FUNCTION_BY_NAME.pattern}")


@dataclass(frozen=True)
class Module:
    """A module by its dotted name within the package, such as `cluster.kube`; a package by its own name."""

    name: str
    lines: int
    has_docstring: bool
    imports: tuple[str, ...]  # wherever the import stands: in functions, for types only, or by name
    classes: tuple[str, ...]
    functions: tuple[tuple[str, int], ...]  # each with its lines

    @property
    def room(self) -> str:
        return self.name.partition(".")[0]

    def rooms_used(self) -> Iterator[tuple[str, str]]:
        """Other rooms, each with the import that names it."""
        for found in self.imports:
            parts = found.split(".")
            if parts[0] == "argosy" and len(parts) > 1 and parts[1] in FLOOR_OF and parts[1] != self.room:
                yield parts[1], found


def module_of(name: str, text: str, is_package: bool) -> Module:
    """Its tree is walked once, for all rules, and not kept: the trees of all modules are large."""
    tree = ast.parse(text)
    imports: list[str] = []
    classes: list[str] = []
    functions: list[tuple[str, int]] = []
    for node in ast.walk(tree) if MAY_IMPORT_BY_NAME.search(text) else statements(tree):
        kind = type(node)
        if kind is ast.Import:
            imports += [alias.name for alias in node.names]
        elif kind is ast.ImportFrom:
            source = _absolute(name, is_package, node)
            imports += [f"{source}.{alias.name}" for alias in node.names]
        elif kind is ast.Call and _called(node) in ("import_module", "__import__") and node.args:
            if isinstance(node.args[0], ast.Constant):
                imports.append(str(node.args[0].value))
        elif kind is ast.Constant and isinstance(node.value, str) and (named := FUNCTION_BY_NAME.fullmatch(node.value)):
            imports.append(named[1])
        elif kind is ast.ClassDef:
            classes.append(node.name)
        elif kind in (ast.FunctionDef, ast.AsyncFunctionDef):
            functions.append((node.name, (node.end_lineno or node.lineno) - node.lineno + 1))
    told = (tuple(imports), tuple(classes), tuple(functions))
    return Module(name, text.count("\n"), bool(ast.get_docstring(tree)), *told)


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements, and no expressions, of which there are many more."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            below = getattr(node, name, None)
            if isinstance(below, list):
                waiting += below


def _absolute(name: str, is_package: bool, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = ["argosy", *name.split(".")]
    kept = package[: len(package) - node.level + is_package]
    return ".".join([*kept, node.module] if node.module else kept)


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def modules(source: Path) -> list[Module]:
    found = []
    for file in sorted(source.rglob("*.py")):
        parts = list(file.relative_to(source).with_suffix("").parts)
        if is_package := parts[-1] == "__init__":
            parts.pop()
        found.append(module_of(".".join(parts), file.read_text(), is_package))
    return found


def within(name: str, place: str) -> bool:
    """Is the dotted name this place, or inside it? Everything is inside ""."""
    return not place or name == place or name.startswith(f"{place}.")


# -- the rules: a module in, sentences out -------------------------------------------------------------------------


def imports_go_down_only(module: Module) -> Iterator[str]:
    if not module.name:
        return
    if module.room not in FLOOR_OF:
        yield f"{module.room} has no floor; give it one in ARCHITECTURE.md and here"
        return
    for room, found in module.rooms_used():
        if FLOOR_OF[room] > FLOOR_OF[module.room]:
            yield f"imports {found}, which is upstairs"
        elif FLOOR_OF[room] == FLOOR_OF[module.room] and room not in MAY_USE_BESIDE.get(module.room, ()):
            yield f"imports {found}, a room of the same floor"


def pure_rooms_do_nothing(module: Module) -> Iterator[str]:
    if any(within(module.name, place) for place in PURE):
        for found in module.imports:
            for library in IMPURE:
                if within(found, library) and library not in FENCED.get(module.name, ()):
                    yield f"imports {found}, but its room is pure"


def addons_use_what_a_stranger_could(module: Module) -> Iterator[str]:
    if module.room != "addons":
        return
    for room, found in module.rooms_used():
        if room not in ADDONS_MAY_USE:
            yield f"imports {found}, which an add-on of a stranger could not"
    mine = ".".join(["argosy", *module.name.split(".")[:2]])
    for found in module.imports:
        if found.startswith("argosy.addons.") and not within(found, mine):
            yield f"imports {found}, another add-on"


def the_notebook_runner_can_be_shipped_alone(module: Module) -> Iterator[str]:
    if not within(module.name, RUNNER):
        return
    for found in module.imports:
        top = found.partition(".")[0]
        if top not in (sys.stdlib_module_names | RUNNER_NEEDS) and not within(found, f"argosy.{RUNNER}"):
            yield f"imports {found}, which a Pod does not have"


def only_the_wiring_knows_the_embedded_cluster(module: Module) -> Iterator[str]:
    if module.room not in WIRING:
        for room, found in module.rooms_used():
            if room == "apiserver":
                yield f"imports {found}; only app and tests may"


def pages_and_the_api_do_not_know_each_other(module: Module) -> Iterator[str]:
    for here, there in (("server.api", "argosy.server.pages"), ("server.pages", "argosy.server.api")):
        for found in module.imports:
            if within(module.name, here) and within(found, there):
                yield f"imports {found}; what both need is in server/looking"


def libraries_have_one_owner(module: Module) -> Iterator[str]:
    for found in module.imports:
        owned = next((library for library in OWNERS if within(found, library)), None)
        top = found.partition(".")[0]
        if owned is None and top not in sys.stdlib_module_names and top not in ("argosy", ""):
            yield f"imports {found}, a library without an owner"
        elif owned is not None and not any(within(module.name, place) for place in OWNERS[owned]):
            yield f"imports {found}, which belongs to {', '.join(sorted(OWNERS[owned])) or 'nobody'}"


def names_say_what_is_inside(module: Module) -> Iterator[str]:
    for part in module.name.split("."):
        if bad := FORBIDDEN_NAMES & set(part.split("_")):
            yield f"{part}: {bad.pop()!r} does not say what is inside"
    for name in module.classes:
        if name.endswith(FORBIDDEN_ENDINGS) and name not in ALLOWED_CLASSES:
            yield f"class {name}: name what it is"


def files_and_functions_are_short(module: Module) -> Iterator[str]:
    if module.lines > MOST_LINES:
        yield f"has {module.lines} lines, more than {MOST_LINES}: it is two rooms"
    for name, length in module.functions:
        if length > MOST_FUNCTION_LINES:
            yield f"{name} has {length} lines, more than {MOST_FUNCTION_LINES}"


def modules_say_what_they_are(module: Module) -> Iterator[str]:
    if not module.has_docstring:
        yield "has no docstring"


RULES: tuple[Callable[[Module], Iterator[str]], ...] = (
    imports_go_down_only,
    pure_rooms_do_nothing,
    addons_use_what_a_stranger_could,
    the_notebook_runner_can_be_shipped_alone,
    only_the_wiring_knows_the_embedded_cluster,
    pages_and_the_api_do_not_know_each_other,
    libraries_have_one_owner,
    names_say_what_is_inside,
    files_and_functions_are_short,
    modules_say_what_they_are,
)


@pytest.fixture(scope="module")
def house() -> list[Module]:
    return modules(SOURCE)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_keeps_the_rule(house: list[Module], rule: Callable[[Module], Iterator[str]]) -> None:
    assert len(house) > 50, "the source tree was not found"
    broken = [f"{module.name or '__init__'}: {sentence}" for module in house for sentence in rule(module)]
    assert not broken, "\n" + "\n".join(broken)


def test_the_tests_that_begin_first_exist() -> None:
    tests = Path(__file__).parents[1]
    names = (tests / "longest.txt").read_text().split()
    assert [name for name in names if not (tests / name).is_file()] == []


def test_the_plan_draws_the_floors_that_are_kept() -> None:
    drawn = re.findall(r"^\d+ +([a-z_ |]+)", PLAN.read_text(), re.MULTILINE)
    assert [frozenset(floor.replace("|", " ").split()) for floor in reversed(drawn)] == list(FLOORS)


def test_the_plan_names_every_room_and_every_part_of_the_embedded_cluster(house: list[Module]) -> None:
    plan = PLAN.read_text()
    rooms = {module.room for module in house if module.name and module.room != "__main__"}
    parts = {module.name.split(".")[1] for module in house if module.name.startswith("apiserver.")}
    assert {name for name in rooms | parts if f"`{name}`" not in plan and f"`{name}/`" not in plan} == set()


# -- the rules themselves: each is shown a house that breaks it, and one that does not ------------------------------


def sentences(tmp_path: Path, rule: Callable[[Module], Iterator[str]], house: dict[str, str]) -> list[str]:
    for name, text in house.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return [sentence for module in modules(tmp_path) for sentence in rule(module)]


TYPES_ONLY = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from argosy.runtime import Cache\n"
LONG_FUNCTION = "def f():\n" + "    pass\n" * 60

BROKEN = [
    (imports_go_down_only, "model/names.py", "from argosy.patch import pointer", "upstairs"),
    (imports_go_down_only, "model/names.py", "def f():\n    import argosy.runtime.queue", "upstairs"),
    (imports_go_down_only, "model/names.py", TYPES_ONLY, "upstairs"),
    (imports_go_down_only, "model/names.py", "import importlib\nimportlib.import_module('argosy.runtime')", "upstairs"),
    (imports_go_down_only, "model/names.py", "CALL = 'argosy.schema.cel:evaluate'", "upstairs"),
    (imports_go_down_only, "model/manifest/deep.py", "from ...patch import pointer", "upstairs"),
    (imports_go_down_only, "model/manifest/__init__.py", "from ... import patch", "upstairs"),
    (imports_go_down_only, "schema/types.py", "from argosy import patch", "same floor"),
    (imports_go_down_only, "patch/strategic.py", "from argosy.cluster import Cluster", "same floor"),
    (imports_go_down_only, "runtime/queue.py", "from argosy.apiserver.store import Store", "same floor"),
    (imports_go_down_only, "cluster/kube.py", "from argosy.confine import Pool", "same floor"),
    (imports_go_down_only, "attic/boxes.py", "", "no floor"),
    (pure_rooms_do_nothing, "patch/strategic.py", "import asyncio", "pure"),
    (pure_rooms_do_nothing, "compare/diff.py", "from argosy.cluster import Cluster", "pure"),
    (pure_rooms_do_nothing, "sync/plan.py", "from http import client", "pure"),
    (pure_rooms_do_nothing, "model/names.py", "import urllib.request", "pure"),
    (addons_use_what_a_stranger_could, "addons/notebooks/run.py", "from argosy.compare import diff", "stranger"),
    (addons_use_what_a_stranger_could, "addons/notebooks/run.py", "from argosy.addons.simulators import x", "another"),
    (the_notebook_runner_can_be_shipped_alone, "addons/notebooks/runner/a.py", "import argosy.model.names", "a Pod"),
    (only_the_wiring_knows_the_embedded_cluster, "cli/sandbox.py", "import argosy.apiserver.plane", "only app"),
    (pages_and_the_api_do_not_know_each_other, "server/api/a.py", "from argosy.server.pages.b import c", "looking"),
    (pages_and_the_api_do_not_know_each_other, "server/pages/a.py", "import argosy.server.api.paging", "looking"),
    (libraries_have_one_owner, "runtime/informer.py", "import aiohttp", "belongs to cluster, outbound"),
    (libraries_have_one_owner, "schema/types.py", "from yaml import CParser", "belongs to model.manifest, render"),
    (libraries_have_one_owner, "apiserver/store/database.py", "import sqlite3", "belongs to nobody"),
    (libraries_have_one_owner, "apiserver/http/app.py", "import tornado", "without an owner"),
    (names_say_what_is_inside, "patch/json_utils.py", "", "json_utils"),
    (names_say_what_is_inside, "common/__init__.py", "", "common"),
    (names_say_what_is_inside, "runtime/queue.py", "class QueueManager: ...", "QueueManager"),
    (files_and_functions_are_short, "patch/a.py", "pass\n" * 401, "401 lines"),
    (files_and_functions_are_short, "patch/a.py", LONG_FUNCTION, "61 lines"),
    (modules_say_what_they_are, "patch/a.py", "x = 1", "no docstring"),
]


@pytest.mark.parametrize(("rule", "file", "text", "said"), BROKEN)
def test_a_broken_house_is_noticed(
    tmp_path: Path, rule: Callable[[Module], Iterator[str]], file: str, text: str, said: str
) -> None:
    found = sentences(tmp_path, rule, {file: text})
    assert len(found) == 1
    assert said in found[0]


SOUND = [
    ("cluster/kube.py", '"""Kube."""\nimport aiohttp\nimport argosy.patch.pointer\nfrom argosy.schema import kinds'),
    ("language/jq.py", '"""jq."""\nfrom argosy.confine import Pool'),
    ("app/sandbox.py", '"""Sandbox."""\nimport uvloop\nfrom argosy.apiserver.plane import Plane'),
    ("addons/notebooks/run.py", '"""Run."""\nimport argosy.addons.notebooks.cells\nfrom argosy.runtime import Cache'),
    ("apiserver/store/database.py", '"""Disk."""\nimport apsw\nimport orjson\nfrom argosy.apiserver import refusals'),
    ("model/manifest/reader.py", '"""Reader."""\nimport yaml\nfrom . import limits\nfrom ..names import ResourceKey'),
    ("patch/a.py", '"""Sixty lines."""\ndef f():\n' + "    pass\n" * 59),
]


@pytest.mark.parametrize(("file", "text"), SOUND)
def test_a_sound_house_is_left_alone(tmp_path: Path, file: str, text: str) -> None:
    assert [sentence for rule in RULES for sentence in sentences(tmp_path, rule, {file: text})] == []
