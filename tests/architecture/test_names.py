"""Check names in the source tree: forbidden words, and one definition for each class name.

A name is the word that a Kubernetes or Argo CD engineer would search for. Each rule maps a name to a message, which is
empty if the name is allowed; the second half of this file tests each rule with a name that breaks it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "argosy"


# A variable says what it holds: `condition`, `pods`. These say nothing.
VARIABLES = frozenset(
    [
        "another",
        "asked",
        "each",
        "found",
        "given",
        "it",
        "known",
        "made",
        "mine",
        "said",
        "shown",
        "somebody",
        "theirs",
        "told",
        "wanted",
        "whoever",
        "which",
        "whose",
    ]
)
# A function is a verb phrase: `render_sources`, `find_orphans`, `is_healthy`. These are participles and particles.
FUNCTIONS = frozenset(
    [
        "above",
        "asked",
        "at",
        "begun",
        "below",
        "beside",
        "brought",
        "done",
        "found",
        "given",
        "gone",
        "here",
        "held",
        "hidden",
        "judged",
        "kept",
        "known",
        "left",
        "looked",
        "made",
        "meant",
        "noted",
        "of",
        "only",
        "passed",
        "placed",
        "said",
        "shaped",
        "shown",
        "spelled",
        "taken",
        "telling",
        "there",
        "told",
        "tried",
        "understood",
        "wanted",
        "within",
        "without",
        "whose",
    ]
)
# A class is a noun of the field. These were metaphors, or stood for several things.
CLASSES = frozenset(
    [
        "Asked",
        "Crew",
        "Deed",
        "Desk",
        "Doings",
        "Doorway",
        "Found",
        "Given",
        "Ground",
        "Grounds",
        "Known",
        "Late",
        "Lavish",
        "Look",
        "Looker",
        "Lookout",
        "Made",
        "Passed",
        "Place",
        "Said",
        "Shut",
        "Sight",
        "Spot",
        "Standing",
        "Survey",
        "Thrift",
        "Told",
        "Verdict",
        "Wanted",
    ]
)
# The name of a test is a sentence about the program. These words hide who does what.
TEST_WORDS = frozenset(["anew", "judged", "meant", "somebody", "told", "whoever"])
# A constant says what it is and its unit: `MAX_HISTORY_ENTRIES`, `RELIST_INTERVAL_SECONDS`.
CONSTANTS = frozenset(["LATER", "LONGEST", "MOST", "PATIENCE", "SOON", "USUAL"])
# A module is a noun. These technical terms end in -ing.
NOUNS_IN_ING = frozenset(
    [
        "autoscaling",
        "binding",
        "decoding",
        "encoding",
        "finding",
        "gating",
        "listing",
        "logging",
        "masking",
        "paging",
        "pruning",
        "rendering",
        "ring",
        "routing",
        "serving",
        "sharding",
        "streaming",
        "string",
        "testing",
        "tracking",
    ]
)
# Name → why it is exempt from the rules.
EXCEPTIONS = {
    "done": "the word of client-go for the work queue",
    "here": "pages use it in templates",
    "of": "argosy.testing: documented, and written in the tests of users",
    "said": "pages use it in templates",
    "shown": "pages use it in templates",
    "told": "pages use it in templates",
}


class Name(NamedTuple):
    kind: str  # "class", "function", "variable", "constant" or "module"
    text: str
    module: str
    line: int
    is_parameter: bool = False

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.kind} {self.text}"


def read_names(module: str, text: str) -> Iterator[Name]:
    yield Name("module", module.rpartition(".")[2], module, 1)
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ClassDef(name=name):
                yield Name("class", name, module, node.lineno)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield Name("function", name, module, node.lineno)
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                kind = "constant" if name.isupper() else "variable"
                yield Name(kind, name, module, node.lineno, is_parameter=isinstance(node, ast.arg))


@cache
def list_names(source: Path) -> list[Name]:
    listed: list[Name] = []
    for file in sorted(source.rglob("*.py")):
        module = ".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        listed += read_names(module, file.read_text())
    return listed


# -- the rules: each maps a name to a message, or to "" if the name is allowed -------------------------------------


def variables_say_what_they_hold(name: Name) -> str:
    return "say what it holds" if name.kind == "variable" and name.text in VARIABLES else ""


def functions_are_verb_phrases(name: Name) -> str:
    return "say what it does" if name.kind == "function" and name.text.strip("_") in FUNCTIONS else ""


def classes_are_nouns_of_the_field(name: Name) -> str:
    return "say what it is" if name.kind == "class" and name.text.strip("_") in CLASSES else ""


def constants_say_what_they_limit(name: Name) -> str:
    return "say what it is, and its unit" if name.kind == "constant" and name.text.strip("_") in CONSTANTS else ""


def names_of_tests_are_sentences(name: Name) -> str:
    words = name.text.split("_")
    is_riddle = words[0] == "test" and (words[1:2] == ["what"] or not TEST_WORDS.isdisjoint(words))
    return "say what the program does" if name.kind == "function" and is_riddle else ""


def modules_are_nouns(name: Name) -> str:
    word = name.text.rpartition("_")[2]
    is_verb = word.endswith("ing") and word not in NOUNS_IN_ING
    return "a module is a noun" if name.kind == "module" and is_verb else ""


RULES: tuple[Callable[[Name], str], ...] = (
    variables_say_what_they_hold,
    functions_are_verb_phrases,
    classes_are_nouns_of_the_field,
    constants_say_what_they_limit,
    modules_are_nouns,
)


def find_double_classes(names: list[Name]) -> list[str]:
    """Find class names with more than one definition. Private classes are not checked."""
    modules: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        if name.kind == "class" and not name.text.startswith("_"):
            modules[name.text].append(name.module)
    return [f"class {text}: {', '.join(where)}" for text, where in sorted(modules.items()) if len(where) > 1]


@pytest.fixture(scope="module")
def names() -> list[Name]:
    listed = [name for name in list_names(SOURCE) if name.text not in EXCEPTIONS]
    assert len(listed) > 10_000, "the source tree was not found"
    return listed


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_source_tree_follows_the_rule(names: list[Name], rule: Callable[[Name], str]) -> None:
    broken = [f"{name}: {sentence}" for name in names if (sentence := rule(name))]
    assert not broken, f"{len(broken)} names\n" + "\n".join(broken[:200])


@pytest.mark.parametrize("folder", ["tests", "tools", "bench"])
def test_local_variables_of_tests_tools_and_benchmarks_follow_the_rule(folder: str) -> None:
    """Parameters and functions of tests are not checked: many are named after fixtures."""
    names = [name for name in list_names(ROOT / folder) if not name.is_parameter]
    assert names
    assert [str(name) for name in names if variables_say_what_they_hold(name)] == []


def test_names_of_tests_follow_the_rule() -> None:
    names = [name for name in list_names(ROOT / "tests") if name.text.startswith("test_")]
    assert len(names) > 5_000
    assert [str(name) for name in names if names_of_tests_are_sentences(name)] == []


def test_no_class_name_has_two_definitions(names: list[Name]) -> None:
    double = find_double_classes(names)
    assert not double, f"{len(double)} names\n" + "\n".join(double)


# -- tests of the rules: each with a name that breaks it, and names that do not ------------------------------------


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("for each in pods: pass", "a:1: variable each: say what it holds"),
        ("[found for found in pods]", "a:1: variable found: say what it holds"),
        ("def f(told): pass", "a:1: variable told: say what it holds"),
        ("def _of(pod): pass", "a:1: function _of: say what it does"),
        ("class Place: pass", "a:1: class Place: say what it is"),
        ("MOST = 3", "a:1: constant MOST: say what it is, and its unit"),
    ],
)
def test_rule_reports_a_bad_name(text: str, sentence: str) -> None:
    assert [f"{name}: {words}" for name in read_names("a", text) for rule in RULES if (words := rule(name))] == [
        sentence
    ]


def test_module_name_that_is_a_verb_is_reported() -> None:
    (name,) = read_names("gitops.sync.applying", "")
    assert modules_are_nouns(name) and not modules_are_nouns(name._replace(text="log_streaming"))


def test_name_of_a_test_that_hides_the_subject_is_reported() -> None:
    text = "def test_whoever_asks_is_told(): ...\ndef test_login_is_rate_limited(): ..."
    assert [name.text for name in read_names("a", text) if names_of_tests_are_sentences(name)] == [
        "test_whoever_asks_is_told"
    ]


def test_rules_report_nothing_for_plain_names() -> None:
    text = "MAX_PODS = 3\nclass Reconciler:\n    def find_pods(self, key):\n        return [pod for pod in key]"
    assert [name for name in read_names("a", text) for rule in RULES if rule(name)] == []


def test_class_name_with_two_definitions_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Pod: ...\nclass _Inner: ...")
    (tmp_path / "b.py").write_text("class Pod: ...\nclass _Inner: ...")
    assert find_double_classes(list_names(tmp_path)) == ["class Pod: a, b"]
