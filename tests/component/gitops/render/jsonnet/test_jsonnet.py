"""Jsonnet evaluation: variables, imports, manifests, error locations and limits."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from argosy.errors import LimitError, RenderError
from argosy.gitops.application import JsonnetOptions, ToolVariable
from argosy.gitops.render import jsonnet
from argosy.gitops.render.jsonnet import evaluate_files
from argosy.gitops.render.jsonnet.imports import ImportClosure, list_imports
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from support.file_trees import TextTree
from support.tiers import IN_TEST_ALL

needs_engine = pytest.mark.skipif(find_spec("_gojsonnet") is None, reason="gojsonnet is not installed")
NOTHING = JsonnetOptions()
OUTSIDE_IN_MAKE_TEST = {("../../../etc/passwd", "importstr"), ("/etc/passwd", "import"), ("link", "importbin")}


def one(text: str, files: dict[str, str] | None = None, options=NOTHING, environment=None, **limits):
    """Evaluate `app/a.jsonnet` with this text and return its documents."""
    tree = TextTree({"app/a.jsonnet": text, **(files or {})}, {"app/link": "/etc/passwd"})
    bounds = {"limits": ProgramLimits(**limits)} if limits else {}
    return evaluate_files(tree, "app", ["app/a.jsonnet"], options, environment or {}, **bounds)["app/a.jsonnet"]


@needs_engine
def test_object_yields_one_manifest_and_array_yields_many():
    assert one("{kind: 'A', n: 1 + 1}") == [{"kind": "A", "n": 2}]
    assert one("[{kind: 'A'}, {kind: 'B'}]") == [{"kind": "A"}, {"kind": "B"}]
    assert one("[]") == []


@needs_engine
@pytest.mark.parametrize(
    "text", ["1", *(pytest.param(text, marks=IN_TEST_ALL) for text in ("'text'", "null", "[1]")), "[[{}]]"]
)
def test_result_that_is_not_a_manifest_is_rejected(text):
    with pytest.raises(RenderError, match=r"^app/a\.jsonnet: evaluates to .*, not to a manifest"):
        one(text)


@needs_engine
def test_all_jsonnet_files_of_a_source_are_evaluated():
    tree = TextTree({"a.jsonnet": "{kind: 'A'}", "b/b.jsonnet": "[{kind: 'B'}]"})
    documents_by_file = evaluate_files(tree, "", ["a.jsonnet", "b/b.jsonnet"], NOTHING, {})
    assert documents_by_file == {"a.jsonnet": [{"kind": "A"}], "b/b.jsonnet": [{"kind": "B"}]}


@needs_engine
def test_ext_vars_and_tlas_are_strings_or_code_with_build_variables():
    options = JsonnetOptions(
        external=(ToolVariable("e", "$ARGOCD_APP_NAME"), ToolVariable("c", "1 + $N", True)),
        top_level=(ToolVariable("t", "${ARGOCD_APP_NAME}!"), ToolVariable("l", "[1, 2]", True)),
    )
    text = "function(t, l) {kind: 'A', it: [std.extVar('e'), std.extVar('c'), t, l]}"
    documents = one(text, options=options, environment={"ARGOCD_APP_NAME": "demo", "N": "2"})
    assert documents == [{"kind": "A", "it": ["demo", 3, "demo!", [1, 2]]}]


@needs_engine
def test_import_importstr_and_importbin_read_files():
    text = "{kind: 'A', it: [import 'x.libsonnet', importstr '../y.txt', importbin @'../y.txt']}"
    documents = one(text, {"app/x.libsonnet": "import 'deep/z'", "app/deep/z": "40 + 2", "y.txt": "hi"})
    assert documents == [{"kind": "A", "it": [42, "hi", [104, 105]]}]


@needs_engine
@pytest.mark.parametrize(
    ("there", "won"),
    [
        (["app/sub", "one", "two", "app"], "app/sub"),
        pytest.param(["one", "two", "app"], "two", marks=IN_TEST_ALL),
        (["one", "app"], "one"),
        pytest.param(["app"], "app", marks=IN_TEST_ALL),
    ],
)
def test_import_search_order_is_file_folder_libs_last_first_source_folder(there, won):
    files = {f"{folder}/x.libsonnet": f"'{folder}'" for folder in there}
    files["app/sub/y.libsonnet"] = "{kind: 'A', it: import 'x.libsonnet'}"
    documents = one("import 'sub/y.libsonnet'", files, JsonnetOptions(libs=("one", "/two/")))
    assert documents == [{"kind": "A", "it": won}]


@needs_engine
@pytest.mark.parametrize(
    ("name", "how"),
    [
        pytest.param(name, how, marks=() if (name, how) in OUTSIDE_IN_MAKE_TEST else pytest.mark.tier("all"))
        for how in ("import", "importstr", "importbin")
        for name in ("../../../etc/passwd", "/etc/passwd", "none.libsonnet", "link")
    ],
)
def test_import_of_file_outside_the_repository_is_rejected(name, how):
    with pytest.raises(RenderError, match=r"^app/a\.jsonnet:2: imports .*, which is not in the repository"):
        one(f"{{\n  it: {how} '{name}' }}")


@needs_engine
def test_unevaluated_import_may_be_missing():
    assert one("{kind: 'A', it: if false then import 'none' else 1}") == [{"kind": "A", "it": 1}]


def test_libs_path_outside_the_repository_is_rejected():
    with pytest.raises(RenderError, match="leads out of the repository"):
        ImportClosure(TextTree({}), "", ("../lib",))


@needs_engine
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{\n  a: 1,\n  b: error 'no ' + 'luck' }", r"^app/a\.jsonnet:3: no luck$"),
        ("{\n  a: \n}", r"^app/a\.jsonnet:3: Unexpected: .*"),
        pytest.param("{\n  a: x\n}", r"^app/a\.jsonnet:2: Unknown variable: x", marks=IN_TEST_ALL),
        pytest.param("\n\nfunction(a) {}", r"Missing argument: a", marks=IN_TEST_ALL),
        ("{ a: import 'lib.libsonnet' }", r"^app/lib\.libsonnet:2: Field does not exist: b"),
        pytest.param("std.extVar('none')", r"^app/a\.jsonnet:1: Undefined external variable: none", marks=IN_TEST_ALL),
        pytest.param("std.parseJson('{')", r"^app/a\.jsonnet:1: .*", marks=IN_TEST_ALL),
        pytest.param("import 'a.jsonnet'", r"^app/a\.jsonnet:1: max stack frames exceeded", marks=IN_TEST_ALL),
        pytest.param("local f(x) = 1 + f(x); f(1)", r"^app/a\.jsonnet:1: max stack frames exceeded", marks=IN_TEST_ALL),
        pytest.param("\n\nimport 'x' + 'y'", r"^app/a\.jsonnet:3: Computed imports are not allowed", marks=IN_TEST_ALL),
        pytest.param("error '\x1b[1mbold'", r"^app/a\.jsonnet:1: \[1mbold$", marks=IN_TEST_ALL),
        pytest.param("{\n  a:\n  (1\n  + {}.b) }", r"^app/a\.jsonnet:4: Field does not exist: b", marks=IN_TEST_ALL),
    ],
)
def test_jsonnet_error_names_file_and_line(text, said):
    with pytest.raises(RenderError, match=said):
        one(text, {"app/lib.libsonnet": "\n{a: 1}.b"})


@needs_engine
@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("local f(n) = if n == 0 then 0 else f(n - 1) tailstrict; f(1e15)", {"wall": 1}),
        pytest.param("std.repeat('aaaaaaaaaaaaaaaa', 1e9)", {"memory": 128 << 20}, marks=pytest.mark.tier("all")),
        pytest.param("std.repeat('a', 3e6)", {"output": 1 << 20}, marks=pytest.mark.tier("all")),
    ],
)
def test_resource_bomb_raises_limit_error(text, limits):
    with pytest.raises(LimitError, match=r"^app/a\.jsonnet: evaluating Jsonnet"):
        one(text, **limits)


@needs_engine
def test_proc_environ_cannot_be_imported(monkeypatch):
    monkeypatch.setenv("CANARY", "sparrow")
    with pytest.raises(RenderError):
        one("importstr '/proc/self/environ'")


def test_missing_gojsonnet_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(jsonnet, "find_spec", lambda name: None)
    with pytest.raises(RenderError, match=r"^app/a\.jsonnet: .*pip install 'argosy\[jsonnet\]'"):
        one("{}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import 'a' + import\n\"b\"", ["a", "b"]),
        ("import /* c */ 'a' // import 'no'\n# import 'no'", ["a"]),
        ("'import \"no\"' + \"import 'no'\"", []),
        ("|||\n  import 'no'\n||| + import 'a'", ["a"]),
        ("|||-\n  import 'no'\n  ||| 'x'", []),
        (r"import 'it\'s\u0041\n'", ["it's" + "A\n"]),
        ("import @'it''s\\n'", ["it's\\n"]),
        ("importx 'no' + ximport 'no' + {import_: 'no'}", []),
        ("import ('no')", []),
        ("import 'unfinished", []),
        ("importstr 'a' + importbin 'b'", ["a", "b"]),
    ],
)
def test_list_imports_finds_import_literals(text, expected):
    assert [name for name, _ in list_imports(text)] == expected


def test_importstr_content_is_not_scanned_for_imports():
    closure = ImportClosure(TextTree({"a": "importstr 'b'", "b": "import 'c'", "c": "1"}), "", ())
    closure.add_file("a")
    assert sorted(closure.contents) == ["a", "b"]


def test_circular_imports_terminate():
    closure = ImportClosure(TextTree({"a": "import 'b'", "b": "import 'a'"}), "", ())
    closure.add_file("a")
    assert sorted(closure.contents) == ["a", "b"]


def test_engine_module_has_no_open_call_and_no_argosy_import():
    text = Path(jsonnet.__file__).with_name("engine.py").read_text()
    assert "open(" not in text and "argosy" not in text
