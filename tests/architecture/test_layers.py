"""Check the source tree against ARCHITECTURE.md: layers, pure packages, library owners, names and sizes.

Each rule is a function from a module to messages. The second half of this file tests each rule with a small source
tree that breaks it.
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

# From the bottom up: a package may import packages of lower layers only. The longest name that fits a module wins.
STEPS = "gitops.source gitops.render gitops.policy gitops.live gitops.diff gitops.sync gitops.health gitops.status"
LAYERS: tuple[frozenset[str], ...] = tuple(
    frozenset(layer.split())
    for layer in (
        "annotations fair_share command_modules kube.resource_key languages.cron languages.go_regexp",
        "errors kube.well_known_kinds",
        "kube.objects",
        "isolation http_client grpc_client observability kube.patch kube.schema",
        "languages kube.client",
        "kube.controller",
        "gitops.application",
        "gitops.clusters",
        f"{STEPS} sandbox",
        "gitops.reconciler",
        "gitops.delivery_file gitops.applicationset gitops.coexistence",
        "gitops.analysis",
        "gitops.workspace",
        "gitops.application_client",
        "gitops.cluster_view gitops.redaction",
        "gitops.engine",
        "web cli",
        "features",
        "main testing",
        "__main__",
    )
)
LAYER_OF = {package: number for number, layer in enumerate(LAYERS) for package in layer}
ADDONS_MAY_IMPORT = frozenset().union(*LAYERS[:8]) | {"gitops.source"}
ADDONS = ("features.notebooks.addon", "features.notifications.addon")
MAY_IMPORT_THE_SANDBOX = ("features.demo", "features.local_sandbox", "features.serve", "testing")
RUNNER = "features.notebooks.runner"
RUNNER_SHIPS_WITH = "observability.redaction.text_redaction"
RUNNER_NEEDS = {"nbclient", "nbformat", "jupyter_client"}
# A feature may import the features that are listed behind it. Each of those has its own line further up.
FEATURE_IMPORTS: dict[str, frozenset[str]] = {}
for line in """
    accounts backup controller health_checks init local_sandbox models notebooks notifications preview render \
    repositories search align_git version
    setup: health_checks
    install: setup
    generate: notifications
    kubectl: local_sandbox
    clusters: repositories
    projects: clusters repositories
    check: health_checks notebooks preview
    promote: check
    activity: promote
    doctor: align_git health_checks models setup
    explain: doctor
    applications: doctor
    applicationsets: applications
    serve: accounts activity applications applicationsets clusters controller doctor explain health_checks \
    models notebooks notifications projects promote repositories search
    demo: init kubectl local_sandbox serve
    argocd_cli: accounts clusters serve
""".strip().splitlines():
    names, _, others = line.partition(":")
    assert set(others.split()) <= set(FEATURE_IMPORTS), f"{names}: features that are imported come first"
    FEATURE_IMPORTS |= dict.fromkeys(names.split(), frozenset(others.split()))

# What answers requests, below the middleware; only what builds the server puts both together.
PAGES = ("features", "web.api", "web.live_updates", "web.display_preference_form", "web.settings_overview_page",
         "web.static_files")  # fmt: skip
BUILDS_THE_SERVER = "features.serve"

PARTS_OF_SYNC = """auto_sync_decision client_side_apply_patch_builder health_gate_annotations
    managed_fields_migration effective_apply_and_prune_options sync_options retry rollback_request sync_plan
    task_order task_states task_validation"""
PARTS_OF_PROMOTE = """classified_manifest_fields edit_verification file_edits gates promotion_changes
    promotion_log_trailers promotion_pipeline"""
PURE = {f"gitops.sync.{part}" for part in PARTS_OF_SYNC.split()}
PURE |= {f"features.promote.{part}" for part in PARTS_OF_PROMOTE.split()} | {"features.models.lineage"}
PURE |= {"annotations", "errors", "fair_share", "languages"}
PURE |= {f"kube.{part}" for part in ("objects", "patch", "resource_key", "schema")}
PURE |= {f"gitops.{step}" for step in ("application", "policy", "live", "diff", "health", "status", "render")}
IMPURE = (
    *("asyncio", "subprocess", "socket", "ssl", "http", "urllib.request", "aiohttp", "uvicorn"),
    "argosy.kube.client",
)

OWNERS = {
    "_gojsonnet": {"gitops.render.jsonnet.engine"},
    "aiohttp": {"kube.client", "http_client"},
    "apsw": {"sandbox.store"},
    "bcrypt": {"web.auth.passwords"},
    "cel": {"kube.schema"},
    "re2": {"languages.go_regexp"},
    "cryptography": {
        "features.repositories.certificate_subject",
        "http_client.github_app_jwt",
        "kube.client.tls",
        "sandbox",
        "web.auth",
    },
    "h2": {"features.serve.http2.connection", "gitops.source.git.ask_pass_server", "grpc_client"},
    "helm_python": {"gitops.render.helm.worker"},
    "http.client": {
        "features.local_sandbox.storage_error_from_readyz",
        f"{RUNNER}.progress_config_map_report",
        "kube.client",
        "http_client",
    },
    "httptools": {"sandbox.apiserver.http.protocol_limits"},
    "joblib": {"sandbox.simulators.model_server.model_file"},
    "jq": {"languages.jq_worker"},
    "jupyter_client": {RUNNER},
    "jwt": {"web.auth"},
    "lupa": {"gitops.health.lua"},
    "minijinja": {"web.page_templates", "web.template_filters"},
    "multidict": {"kube.client", "http_client"},
    "nbclient": {RUNNER},
    "nbformat": {RUNNER},
    "orjson": {""},
    "pytest": {"testing"},
    "sqlite3": set(),
    "starlette": {"web.middleware.asgi_request_pipeline"},
    "urllib.request": {"kube.client", "http_client"},
    "uvicorn": {"sandbox.apiserver.http.protocol_limits", "sandbox.apiserver.https_server", "features"},
    "uvloop": {"sandbox.apiserver.https_server", "features"},
    "yaml": {"kube.objects", "gitops.render"},
    "yarl": {"kube.client", "http_client"},
}
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "base", "manager"}
FORBIDDEN_ENDINGS = ("Manager", "Helper", "Impl", "Base")
ALLOWED_CLASSES = {
    "Manager",  # k8s: the wire name of the owner of a field
    "RemoteBase",  # kustomize: a base in another repository
    "_SingleKernelSpecManager",  # Jupyter's own name for the class that it extends
    "_UninterruptedKernelManager",  # as above
}
MAX_LINES, MAX_FUNCTION_LINES = 400, 60
FUNCTION_BY_NAME = re.compile(r"(argosy(?:\.[a-z_]+)+):[a-z_]+")  # how confined functions are named
MAY_IMPORT_BY_NAME = re.compile(rf"import_module|__import__|{FUNCTION_BY_NAME.pattern}")


def find_package(name: str) -> str | None:
    """The entry of LAYERS that a dotted name (without `argosy`) belongs to."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        if (package := ".".join(parts[:end])) in LAYER_OF:
            return package
    return None


@dataclass(frozen=True)
class Module:
    """A module by its dotted name within the package, such as `kube.client.http`; a package by its own name."""

    name: str
    lines: int
    has_docstring: bool
    imports: tuple[str, ...]  # including those in functions, for types only, and by name
    classes: tuple[str, ...]
    functions: tuple[tuple[str, int], ...]  # name and number of lines

    @property
    def top(self) -> str:
        return self.name.partition(".")[0]

    @property
    def package(self) -> str | None:
        return find_package(self.name)

    def packages_imported(self) -> Iterator[tuple[str, str]]:
        """Other packages of LAYERS, each with the import that names it."""
        for imported in self.imports:
            package = find_package(imported.removeprefix("argosy.")) if imported.startswith("argosy.") else None
            if package is not None and package != self.package:
                yield package, imported


def read_module(name: str, text: str, is_package: bool) -> Module:
    """Walk the syntax tree once for all rules, and do not keep it: the trees of all modules are large."""
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
    has_docstring = bool(ast.get_docstring(tree))
    return Module(name, text.count("\n"), has_docstring, tuple(imports), tuple(classes), tuple(functions))


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield all statements but no expressions, of which there are many more."""
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
    base_parts = package[: len(package) - node.level + is_package]
    return ".".join([*base_parts, node.module] if node.module else base_parts)


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def list_modules(source: Path) -> list[Module]:
    listed = []
    for file in sorted(source.rglob("*.py")):
        parts = list(file.relative_to(source).with_suffix("").parts)
        if is_package := parts[-1] == "__init__":
            parts.pop()
        listed.append(read_module(".".join(parts), file.read_text(), is_package))
    return listed


def is_within(name: str, package: str) -> bool:
    """True if the dotted name is the package or inside it. Everything is inside ""."""
    return not package or name == package or name.startswith(f"{package}.")


# -- the rules: each maps a module to messages ---------------------------------------------------------------------


def imports_go_down_only(module: Module) -> Iterator[str]:
    if not module.name or any(is_within(package, module.name) and package != module.name for package in LAYER_OF):
        return  # a package that only holds packages
    if module.package is None:
        yield f"{module.name} has no layer; give it one in ARCHITECTURE.md and here"
        return
    for package, imported in module.packages_imported():
        if LAYER_OF[package] > LAYER_OF[module.package]:
            yield f"imports {imported}, which is in a higher layer"
        elif LAYER_OF[package] == LAYER_OF[module.package]:
            yield f"imports {imported}, another package of the same layer"


def pure_packages_do_no_io(module: Module) -> Iterator[str]:
    if any(is_within(module.name, package) for package in PURE):
        for imported in module.imports:
            for library in IMPURE:
                if is_within(imported, library):
                    yield f"imports {imported}, but its package is pure"


def features_import_the_features_listed_for_them(module: Module) -> Iterator[str]:
    if module.top != "features" or module.name == "features":
        return
    feature = module.name.split(".")[1]
    if feature not in FEATURE_IMPORTS:
        yield f"{feature} has no line in FEATURE_IMPORTS"
        return
    for imported in module.imports:
        other = imported.removeprefix("argosy.features.").partition(".")[0]
        is_listed = other == feature or other in FEATURE_IMPORTS[feature]
        if imported.startswith("argosy.features.") and not is_listed:
            yield f"imports {imported}; FEATURE_IMPORTS does not let {feature} import {other}"


def the_notebook_runner_can_be_shipped_alone(module: Module) -> Iterator[str]:
    if not is_within(module.name, RUNNER) and module.name != RUNNER_SHIPS_WITH:
        return
    shipped = (f"argosy.{RUNNER}", f"argosy.{RUNNER_SHIPS_WITH}")
    for imported in module.imports:
        is_shipped = any(is_within(imported, package) for package in shipped)
        if imported.partition(".")[0] not in (sys.stdlib_module_names | RUNNER_NEEDS) and not is_shipped:
            yield f"imports {imported}, which a Pod does not have"


def few_packages_know_the_sandbox(module: Module) -> Iterator[str]:
    if not any(is_within(module.name, package) for package in MAY_IMPORT_THE_SANDBOX):
        for package, imported in module.packages_imported():
            if package == "sandbox":
                yield f"imports {imported}; only {', '.join(MAY_IMPORT_THE_SANDBOX)} and tests may"


def pages_and_the_api_do_not_know_each_other(module: Module) -> Iterator[str]:
    if module.top != "features":
        return
    adapter = find_adapter(module.name)
    for imported in module.imports:
        if adapter and find_adapter(imported) not in ("", adapter) and imported.startswith("argosy.features."):
            yield f"imports {imported}; code that both need belongs into a module of its own"


def find_adapter(name: str) -> str:
    """Return `api` or `page` for a module that is one, by its name."""
    words = {word for part in name.removeprefix("argosy.").split(".")[2:] for word in part.split("_")}
    return next((kind for kind in ("api", "page") if kind in words), "")


def middleware_and_pages_do_not_know_each_other(module: Module) -> Iterator[str]:
    is_middleware = is_within(module.name, "web.middleware")
    is_page = any(is_within(module.name, page) for page in PAGES) and not is_within(module.name, BUILDS_THE_SERVER)
    for imported in module.imports:
        name = imported.removeprefix("argosy.")
        if is_page and is_within(name, "web.middleware"):
            yield f"imports {imported}, which is middleware; what both need belongs into a module of its own"
        elif is_middleware and any(is_within(name, page) for page in PAGES):
            yield f"imports {imported}, which answers requests; the middleware serves any routes"


def libraries_have_one_owner(module: Module) -> Iterator[str]:
    for imported in module.imports:
        library = next((library for library in OWNERS if is_within(imported, library)), None)
        top = imported.partition(".")[0]
        if library is None and top not in sys.stdlib_module_names and top not in ("argosy", ""):
            yield f"imports {imported}, a library without an owner"
        elif library is not None and not any(is_within(module.name, owner) for owner in OWNERS[library]):
            yield f"imports {imported}, which belongs to {', '.join(sorted(OWNERS[library])) or 'nobody'}"


def names_say_what_is_inside(module: Module) -> Iterator[str]:
    for part in module.name.split("."):
        if bad := FORBIDDEN_NAMES & set(part.split("_")):
            yield f"{part}: {bad.pop()!r} does not say what is inside"
    for name in module.classes:
        if name.endswith(FORBIDDEN_ENDINGS) and name not in ALLOWED_CLASSES:
            yield f"class {name}: name what it is"


def files_and_functions_are_short(module: Module) -> Iterator[str]:
    if module.lines > MAX_LINES:
        yield f"has {module.lines} lines, more than {MAX_LINES}: split it"
    for name, length in module.functions:
        if length > MAX_FUNCTION_LINES:
            yield f"{name} has {length} lines, more than {MAX_FUNCTION_LINES}"


def modules_say_what_they_are(module: Module) -> Iterator[str]:
    if not module.has_docstring:
        yield "has no docstring"


RULES: tuple[Callable[[Module], Iterator[str]], ...] = (
    imports_go_down_only,
    pure_packages_do_no_io,
    features_import_the_features_listed_for_them,
    the_notebook_runner_can_be_shipped_alone,
    few_packages_know_the_sandbox,
    pages_and_the_api_do_not_know_each_other,
    middleware_and_pages_do_not_know_each_other,
    libraries_have_one_owner,
    names_say_what_is_inside,
    files_and_functions_are_short,
    modules_say_what_they_are,
)


def find_circles(modules: list[Module]) -> list[list[str]]:
    """Groups of modules that import each other, directly or not (Tarjan's algorithm)."""
    names = {module.name for module in modules}
    edges = {module.name: sorted(list_imported_modules(module, names)) for module in modules}
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    circles: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for imported in edges[name]:
            if imported not in number:
                visit(imported)
            if imported in stack:
                lowest[name] = min(lowest[name], lowest[imported])
        if lowest[name] == number[name]:
            start = stack.index(name)
            if len(stack) - start > 1:
                circles.append(sorted(stack[start:]))
            del stack[start:]

    for name in sorted(names):
        if name not in number:
            visit(name)
    return circles


def list_imported_modules(module: Module, names: set[str]) -> set[str]:
    """Imported modules and their parent packages, whose `__init__` runs first if the importing module is outside."""
    imported_modules = set()
    for imported in module.imports:
        name = imported.removeprefix("argosy.")
        if imported.startswith("argosy.") and (name in names or (name := name.rpartition(".")[0]) in names):
            while name and not is_within(module.name, name):
                imported_modules.add(name)
                name = name.rpartition(".")[0]
    return imported_modules & names - {module.name, ""}


@pytest.fixture(scope="module")
def tree() -> list[Module]:
    return list_modules(SOURCE)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_source_tree_follows_the_rule(tree: list[Module], rule: Callable[[Module], Iterator[str]]) -> None:
    assert len(tree) > 50, "the source tree was not found"
    broken = [f"{module.name or '__init__'}: {sentence}" for module in tree for sentence in rule(module)]
    assert not broken, "\n" + "\n".join(broken)


def test_listed_modules_exist(tree: list[Module]) -> None:
    listed = {
        *PURE,
        *PAGES,
        *MAY_IMPORT_THE_SANDBOX,
        *(owner for owners in OWNERS.values() for owner in owners if owner),
    }
    assert [name for name in sorted(listed) if not any(is_within(module.name, name) for module in tree)] == []


def test_source_tree_has_no_import_cycles(tree: list[Module]) -> None:
    circles = find_circles(tree)
    assert not circles, "\n".join(" → ".join(circle) for circle in circles)


def test_addons_import_only_the_public_api(tree: list[Module]) -> None:
    """Built-in add-ons import only what a third-party add-on could: their own feature, and ADDONS_MAY_IMPORT."""
    assert find_private_imports(tree, ADDONS) == []


def find_private_imports(tree: list[Module], addons: tuple[str, ...]) -> list[str]:
    modules = {module.name: module for module in tree}
    sentences = []
    for addon in addons:
        feature = addon.rpartition(".")[0]
        waiting, visited = [addon], {addon}
        while waiting:
            module = modules[waiting.pop()]
            for imported in sorted(list_imported_modules(module, set(modules))):
                if not is_within(imported, feature):
                    package = find_package(imported)
                    if package is not None and package not in ADDONS_MAY_IMPORT:
                        sentences.append(f"{module.name} imports {imported}, which a third-party add-on could not")
                elif imported not in visited:
                    visited.add(imported)
                    waiting.append(imported)
    return sentences


def test_longest_txt_names_existing_test_files() -> None:
    tests = Path(__file__).parents[1]
    names = (tests / "longest.txt").read_text().split()
    assert [name for name in names if not (tests / name).is_file()] == []


def test_architecture_md_draws_the_enforced_layers() -> None:
    drawn = re.findall(r"^\d+ +([a-z_. |]+)", PLAN.read_text(), re.MULTILINE)
    assert [frozenset(layer.replace("|", " ").split()) for layer in reversed(drawn)] == list(LAYERS)


def test_architecture_md_names_every_package() -> None:
    plan = PLAN.read_text()
    packages = {package for package in LAYER_OF if package != "__main__"}
    assert {name for name in packages if f"`{name}`" not in plan and f"`{name}/`" not in plan} == set()


# -- tests of the rules: each with a tree that breaks it, and one that does not ------------------------------------


def apply_rule(tmp_path: Path, rule: Callable[[Module], Iterator[str]], files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return [sentence for module in list_modules(tmp_path) for sentence in rule(module)]


TYPES_ONLY = (
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from argosy.kube.controller import InformerCache\n"
)
BY_NAME = "import importlib\nimportlib.import_module('argosy.kube.controller')"
LONG_FUNCTION = "def f():\n" + "    pass\n" * 60

BROKEN = [
    (imports_go_down_only, "kube/resource_key.py", "from argosy.kube.patch import json_pointer", "higher"),
    (imports_go_down_only, "kube/resource_key.py", "def f():\n    import argosy.kube.controller.work_queue", "higher"),
    (imports_go_down_only, "kube/resource_key.py", TYPES_ONLY, "higher"),
    (imports_go_down_only, "kube/resource_key.py", BY_NAME, "higher"),
    (imports_go_down_only, "kube/resource_key.py", "CALL = 'argosy.kube.schema.cel:evaluate'", "higher"),
    (imports_go_down_only, "kube/objects/deep.py", "from ..patch import json_pointer", "higher"),
    (imports_go_down_only, "kube/objects/__init__.py", "from .. import patch", "higher"),
    (imports_go_down_only, "kube/schema/builtin_go_struct_fields.py", "from argosy.kube import patch", "same layer"),
    (imports_go_down_only, "kube/patch/strategic_merge.py", "from argosy.kube.client import Cluster", "higher"),
    (imports_go_down_only, "gitops/render/tool_dispatch.py", "from argosy.sandbox.store import Store", "same layer"),
    (imports_go_down_only, "kube/client/cluster_client.py", "from argosy.languages import globs", "same layer"),
    (imports_go_down_only, "attic/boxes.py", "", "no layer"),
    (pure_packages_do_no_io, "kube/patch/strategic_merge.py", "import asyncio", "pure"),
    (pure_packages_do_no_io, "gitops/diff/diff.py", "from argosy.kube.client import Cluster", "pure"),
    (pure_packages_do_no_io, "gitops/sync/sync_plan.py", "from http import client", "pure"),
    (pure_packages_do_no_io, "kube/resource_key.py", "import urllib.request", "pure"),
    (
        features_import_the_features_listed_for_them,
        "features/check/a.py",
        "from argosy.features.promote import gates",
        "does not let check import promote",
    ),
    (features_import_the_features_listed_for_them, "features/attic/a.py", "", "no line"),
    (the_notebook_runner_can_be_shipped_alone, "features/notebooks/runner/a.py", "import argosy.errors", "a Pod"),
    (
        the_notebook_runner_can_be_shipped_alone,
        "observability/redaction/text_redaction.py",
        "import orjson",
        "a Pod",
    ),
    (
        few_packages_know_the_sandbox,
        "cli/cluster_target.py",
        "import argosy.sandbox.apiserver.control_plane",
        "only features",
    ),
    (
        pages_and_the_api_do_not_know_each_other,
        "features/models/list_page.py",
        "from argosy.features.models.api import x",
        "both need",
    ),
    (
        pages_and_the_api_do_not_know_each_other,
        "features/models/api.py",
        "import argosy.features.models.list_page",
        "both need",
    ),
    (
        middleware_and_pages_do_not_know_each_other,
        "features/models/list_page.py",
        "from argosy.web.middleware.audit import x",
        "is middleware",
    ),
    (
        middleware_and_pages_do_not_know_each_other,
        "web/api/a.py",
        "import argosy.web.middleware.asgi_request_pipeline",
        "is middleware",
    ),
    (
        middleware_and_pages_do_not_know_each_other,
        "web/middleware/a.py",
        "from argosy.web.live_updates import hub",
        "any routes",
    ),
    (libraries_have_one_owner, "kube/controller/informer.py", "import aiohttp", "belongs to http_client, kube.client"),
    (libraries_have_one_owner, "kube/schema/x.py", "from yaml import CParser", "to gitops.render, kube.objects"),
    (libraries_have_one_owner, "sandbox/store/sqlite_setup.py", "import sqlite3", "belongs to nobody"),
    (libraries_have_one_owner, "sandbox/apiserver/http/asgi.py", "import tornado", "without an owner"),
    (names_say_what_is_inside, "kube/patch/json_utils.py", "", "json_utils"),
    (names_say_what_is_inside, "common/__init__.py", "", "common"),
    (names_say_what_is_inside, "kube/controller/work_queue.py", "class QueueManager: ...", "QueueManager"),
    (files_and_functions_are_short, "kube/patch/a.py", "pass\n" * 401, "401 lines"),
    (files_and_functions_are_short, "kube/patch/a.py", LONG_FUNCTION, "61 lines"),
    (modules_say_what_they_are, "kube/patch/a.py", "x = 1", "no docstring"),
]


@pytest.mark.parametrize(("rule", "file", "text", "words"), BROKEN)
def test_rule_reports_a_violation(
    tmp_path: Path, rule: Callable[[Module], Iterator[str]], file: str, text: str, words: str
) -> None:
    (sentence,) = apply_rule(tmp_path, rule, {file: text})
    assert words in sentence


SOUND = [
    ("kube/client/cluster_client.py", '"""HTTP."""\nimport aiohttp\nimport argosy.kube.patch.json_pointer'),
    ("languages/jq_path_expressions.py", '"""jq."""\nfrom argosy.isolation import WorkerPool'),
    (
        "features/local_sandbox/sandbox.py",
        '"""Sandbox."""\nimport uvloop\nfrom argosy.sandbox.apiserver.control_plane import ControlPlane',
    ),
    ("features/promote/a.py", '"""A."""\nimport argosy.features.check.service\nimport argosy.web.route'),
    ("features/serve/a.py", '"""A."""\nfrom argosy.web.middleware.asgi_request_pipeline import WebApplication'),
    ("web/middleware/a.py", '"""A."""\nimport argosy.web.request\nimport argosy.web.page_templates'),
    (
        "sandbox/store/sqlite_setup.py",
        '"""Disk."""\nimport apsw\nimport orjson\nfrom argosy.sandbox.apiserver import status_errors',
    ),
    ("kube/objects/reader.py", '"""Reader."""\nimport yaml\nfrom . import limits\nfrom .names import ResourceKey'),
    ("kube/patch/a.py", '"""Sixty lines."""\ndef f():\n' + "    pass\n" * 59),
]


@pytest.mark.parametrize(("file", "text"), SOUND)
def test_rules_report_nothing_for_a_valid_module(tmp_path: Path, file: str, text: str) -> None:
    assert [sentence for rule in RULES for sentence in apply_rule(tmp_path, rule, {file: text})] == []


def test_private_import_of_an_addon_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "features" / "mine"
    folder.mkdir(parents=True)
    (folder / "addon.py").write_text("from argosy.features.mine import deep\nfrom argosy.kube.controller import AddOn")
    (folder / "deep.py").write_text("from argosy.gitops.diff import diff")
    engine = tmp_path / "gitops" / "diff"
    engine.mkdir(parents=True)
    (engine / "diff.py").write_text("")
    (sentence,) = find_private_imports(list_modules(tmp_path), ("features.mine.addon",))
    assert "features.mine.deep imports gitops.diff.diff" in sentence


def test_import_cycle_is_found(tmp_path: Path) -> None:
    files = {"a.py": "import argosy.b", "b.py": "def f():\n    from argosy.c import d", "c.py": "import argosy.a"}
    files["d.py"] = "import argosy.a"
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert find_circles(list_modules(tmp_path)) == [["a", "b", "c"]]
