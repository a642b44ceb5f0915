"""Find the scope and the exact place of each identifier in one Python file.

In: the text of a file. Out: a tree of scopes with their bindings, and lists of occurrences (names, attributes, keyword
arguments, class patterns, names in strings) with line and column in UTF-8 bytes. Never: knows types or other files.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

# Calls whose second argument is the name of an attribute of the first.
ATTRIBUTE_CALLS = frozenset({"getattr", "setattr", "hasattr", "delattr", "object", "__setattr__"})
NAMED_BY_TEXT = frozenset({"NewType", "TypeVar", "ParamSpec", "NamedTuple", "namedtuple", "TypedDict", "ContextVar"})
GENERIC_BUILTINS = frozenset({"dict", "list", "tuple", "type", "set", "frozenset"})

Place = tuple[int, int]


@dataclass(eq=False)
class Scope:
    kind: str  # module, class, function, lambda, comprehension
    name: str
    key: str
    line: int
    parent: Scope | None
    bindings: set[str] = field(default_factory=set)
    parameters: list[str] = field(default_factory=list)
    global_names: set[str] = field(default_factory=set)
    nonlocal_names: set[str] = field(default_factory=set)
    children: list[Scope] = field(default_factory=list)
    first_bound: dict[str, Place] = field(default_factory=dict)
    # name → (module, attribute), where the attribute is "" for a module
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)

    def find_binding(self, name: str, place: Place | None = None) -> Scope | None:
        """The scope that a name belongs to; None for builtins.

        With a place: a class has a name only after the line that binds it.
        """
        scope: Scope | None = self
        if place is not None and self.kind == "class":
            bound = self.first_bound.get(name, place)
            if place < bound or (place[0] == bound[0] and place != bound):
                scope = self.parent
        while scope is not None:
            if scope is self or scope.kind != "class":
                if name in scope.global_names:
                    return scope.module
                if name in scope.bindings and name not in scope.nonlocal_names:
                    return scope
            scope = scope.parent
        return None

    @property
    def module(self) -> Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def walk(self) -> Iterator[Scope]:
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class Occurrence:
    scope: Scope
    name: str
    place: Place


class SourceFile:
    """One parsed file."""

    def __init__(self, path: Path, module: str) -> None:
        self.path, self.module = path, module
        self.text = path.read_text()
        self.lines = self.text.encode().split(b"\n")
        self.is_package = path.name == "__init__.py"
        self.tree = ast.parse(self.text)
        self.root = Scope("module", module, "", 0, None)
        self.names: list[Occurrence] = []
        self.attributes: list[tuple[Scope, ast.Attribute]] = []
        self.calls: list[tuple[Scope, ast.Call]] = []
        self.patterns: list[tuple[Scope, ast.MatchClass]] = []
        self.imported: list[tuple[Scope, str, str, Place, bool]] = []  # module, name, place, is bound by that name
        self.exported_texts: list[ast.Constant] = []
        self.slot_texts: list[tuple[Scope, ast.Constant]] = []
        self.name_texts: list[tuple[Scope, str, Place]] = []
        self.classes: dict[int, Scope] = {}
        _Collector(self).visit_body(self.tree.body, self.root)
        self.has_lazy_exports = "__getattr__" in self.root.bindings
        self._collect_exports()

    def holds(self, place: Place, name: str) -> bool:
        line, column = place
        data = name.encode()
        return column >= 0 and self.lines[line - 1][column : column + len(data)] == data

    @cached_property
    def tokens(self) -> list[tokenize.TokenInfo]:
        return list(tokenize.generate_tokens(io.StringIO(self.text).readline))

    def place_of(self, token: tokenize.TokenInfo) -> Place:
        line, column = token.start
        text = self.lines[line - 1]
        return line, column if text.isascii() else len(text.decode()[:column].encode())

    def tokens_within(self, node: ast.AST) -> Iterator[tokenize.TokenInfo]:
        start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        for token in self.tokens:
            if node.lineno <= token.start[0] <= node.end_lineno and start <= self.place_of(token) < end:  # type: ignore[attr-defined]
                yield token

    def _collect_exports(self) -> None:
        for node in self.tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                    if name == "__all__" or (self.has_lazy_exports and node.value):
                        self._take_texts(node)
                case ast.FunctionDef(name="__getattr__"):
                    self._take_texts(node)

    def _take_texts(self, node: ast.AST) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.isidentifier():
                self.exported_texts.append(part)


class _Collector:
    """Fills the lists of a SourceFile."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file

    def visit_body(self, body: list[ast.stmt], scope: Scope) -> None:
        for node in body:
            self.visit(node, scope)

    def visit(self, node: ast.AST | None, scope: Scope) -> None:
        if node is None:
            return
        method = getattr(self, f"visit_{type(node).__name__.lower()}", None)
        if method is not None:
            method(node, scope)
        else:
            self._visit_children(node, scope)

    def _visit_children(self, node: ast.AST, scope: Scope) -> None:
        for child in ast.iter_child_nodes(node):
            self.visit(child, scope)

    def _add(self, scope: Scope, name: str, place: Place, binds: bool = False) -> None:
        if binds:
            scope.bindings.add(name)
            scope.first_bound.setdefault(name, place)
        self._file.names.append(Occurrence(scope, name, place))

    def _open(self, kind: str, name: str, node: ast.expr | ast.stmt, parent: Scope) -> Scope:
        key = str(node.lineno) if kind in ("function", "class") else f"{node.lineno}:{node.col_offset}:{kind}"
        scope = Scope(kind, name, key, node.lineno, parent)
        parent.children.append(scope)
        return scope

    def visit_name(self, node: ast.Name, scope: Scope) -> None:
        self._add(scope, node.id, (node.lineno, node.col_offset), not isinstance(node.ctx, ast.Load))

    def visit_attribute(self, node: ast.Attribute, scope: Scope) -> None:
        self._file.attributes.append((scope, node))
        self.visit(node.value, scope)

    def visit_subscript(self, node: ast.Subscript, scope: Scope) -> None:
        """A type outside annotations, such as an alias, may quote names."""
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        owner = scope.find_binding(name)
        origin = owner.imports.get(name, ("", ""))[0] if owner is not None else ""
        if name in GENERIC_BUILTINS or (origin in ("typing", "collections.abc") and name != "Literal"):
            self.visit(node.value, scope)
            self._visit_annotation(node.slice, scope)
        else:
            self._visit_children(node, scope)

    def visit_namedexpr(self, node: ast.NamedExpr, scope: Scope) -> None:
        self.visit(node.value, scope)
        owner = scope
        while owner.kind == "comprehension" and owner.parent is not None:
            owner = owner.parent
        self._add(owner, node.target.id, (node.target.lineno, node.target.col_offset), True)

    def visit_call(self, node: ast.Call, scope: Scope) -> None:
        self._file.calls.append((scope, node))
        called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        rest = node.args
        if called == "cast" and node.args:
            self._visit_annotation(node.args[0], scope)
            rest = node.args[1:]
        self.visit(node.func, scope)
        for argument in rest:
            self.visit(argument, scope)
        for keyword in node.keywords:
            if called == "TypeVar" and keyword.arg == "bound":
                self._visit_annotation(keyword.value, scope)
            else:
                self.visit(keyword.value, scope)

    def visit_assign(self, node: ast.Assign, scope: Scope) -> None:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Name(id=called), args=[ast.Constant(value=text), *_]),
            ) if called in NAMED_BY_TEXT and text == name:
                self._file.name_texts.append((scope, name, _inside(node.value.args[0])))  # type: ignore[attr-defined]
            case ast.Assign(targets=[ast.Name(id="__slots__" | "__match_args__")]) if scope.kind == "class":
                for part in ast.walk(node.value):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        self._file.slot_texts.append((scope, part))
        self._visit_children(node, scope)

    def visit_annassign(self, node: ast.AnnAssign, scope: Scope) -> None:
        self.visit(node.target, scope)
        self._visit_annotation(node.annotation, scope)
        if isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias":
            self._visit_annotation(node.value, scope)
        else:
            self.visit(node.value, scope)

    def visit_functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator, scope)
        self._add(scope, node.name, self._name_after_keyword(node), True)
        inner = self._open("function", node.name, node, scope)
        self._visit_parameters(node.args, scope, inner)
        self._visit_annotation(node.returns, scope)
        self.visit_body(node.body, inner)

    visit_asyncfunctiondef = visit_functiondef

    def _visit_parameters(self, arguments: ast.arguments, outer: Scope, inner: Scope) -> None:
        for default in (*arguments.defaults, *arguments.kw_defaults):
            self.visit(default, outer)
        every = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
        for argument in every:
            if argument is not None:
                self._visit_annotation(argument.annotation, outer)
                inner.parameters.append(argument.arg)
                self._add(inner, argument.arg, (argument.lineno, argument.col_offset), True)

    def visit_lambda(self, node: ast.Lambda, scope: Scope) -> None:
        inner = self._open("lambda", "<lambda>", node, scope)
        self._visit_parameters(node.args, scope, inner)
        self.visit(node.body, inner)

    def visit_classdef(self, node: ast.ClassDef, scope: Scope) -> None:
        for part in (*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)):
            self.visit(part, scope)
        self._add(scope, node.name, self._name_after_keyword(node), True)
        inner = self._open("class", node.name, node, scope)
        self._file.classes[node.lineno] = inner
        self.visit_body(node.body, inner)

    def _visit_comprehension(self, node: ast.ListComp | ast.DictComp, scope: Scope) -> None:
        inner = self._open("comprehension", "<comprehension>", node, scope)
        for index, generator in enumerate(node.generators):
            self.visit(generator.iter, scope if index == 0 else inner)
            self.visit(generator.target, inner)
            for condition in generator.ifs:
                self.visit(condition, inner)
        for part in ("elt", "key", "value"):
            self.visit(getattr(node, part, None), inner)

    visit_listcomp = visit_setcomp = visit_generatorexp = visit_dictcomp = _visit_comprehension

    def visit_import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            if alias.asname:
                self._add(scope, alias.asname, _last(alias, alias.asname), True)
                scope.imports[alias.asname] = (alias.name, "")
            else:
                first = alias.name.partition(".")[0]
                self._add(scope, first, (alias.lineno, alias.col_offset), True)
                scope.imports[first] = (first, "")

    def visit_importfrom(self, node: ast.ImportFrom, scope: Scope) -> None:
        module = node.module or ""
        if node.level:
            parts = self._file.module.split(".")
            parts = parts[: len(parts) - node.level + self._file.is_package]
            module = ".".join([*parts, *([module] if module else [])])
        for alias in node.names:
            if alias.name == "*":
                continue
            place = (alias.lineno, alias.col_offset)
            bound = alias.asname or alias.name
            self._file.imported.append((scope, module, alias.name, place, alias.asname is None))
            scope.bindings.add(bound)
            scope.imports[bound] = (module, alias.name)
            if alias.asname:
                self._add(scope, bound, _last(alias, bound), True)

    def visit_excepthandler(self, node: ast.ExceptHandler, scope: Scope) -> None:
        self.visit(node.type, scope)
        if node.name and node.type:
            after = (node.type.end_lineno or 0, node.type.end_col_offset or 0)
            names = (token for token in self._file.tokens_within(node) if token.type == tokenize.NAME)
            place = next(
                self._file.place_of(token)
                for token in names
                if token.string == node.name and self._file.place_of(token) >= after
            )
            self._add(scope, node.name, place, True)
        self.visit_body(node.body, scope)

    def visit_global(self, node: ast.Global | ast.Nonlocal, scope: Scope) -> None:
        is_global = isinstance(node, ast.Global)
        (scope.global_names if is_global else scope.nonlocal_names).update(node.names)
        if is_global:
            scope.module.bindings.update(node.names)
        for token in self._file.tokens_within(node):
            if token.type == tokenize.NAME and token.string in node.names:
                self._add(scope, token.string, self._file.place_of(token))

    visit_nonlocal = visit_global

    def visit_matchas(self, node: ast.MatchAs | ast.MatchStar, scope: Scope) -> None:
        self._visit_children(node, scope)
        if node.name:
            self._add(scope, node.name, _last(node, node.name), True)

    visit_matchstar = visit_matchas

    def visit_matchmapping(self, node: ast.MatchMapping, scope: Scope) -> None:
        self._visit_children(node, scope)
        if node.rest:
            tokens = list(self._file.tokens_within(node))
            for before, token in pairwise(tokens):
                if before.string == "**" and token.string == node.rest:
                    self._add(scope, node.rest, self._file.place_of(token), True)

    def visit_matchclass(self, node: ast.MatchClass, scope: Scope) -> None:
        self._file.patterns.append((scope, node))
        self._visit_children(node, scope)

    def _visit_annotation(self, node: ast.expr | None, scope: Scope) -> None:
        """As code, and the text of quoted types too."""
        match node:
            case None:
                return
            case ast.Constant(value=str(text)):
                self._visit_quoted(node, text, scope)
            case ast.Subscript(value=ast.Name(id="Literal") | ast.Attribute(attr="Literal")):
                self._visit_children(node, scope)
            case ast.Attribute() | ast.Name() | ast.Call():
                self.visit(node, scope)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._visit_annotation(child, scope)

    def _visit_quoted(self, node: ast.Constant, text: str, scope: Scope) -> None:
        line, column = _inside(node)
        if not self._file.holds((line, column), text):
            return
        try:
            inner = ast.parse(text, mode="eval").body
        except SyntaxError:
            return
        for part in ast.walk(inner):
            if isinstance(part, ast.expr):
                part.lineno = part.end_lineno = line
                part.col_offset += column
                part.end_col_offset = (part.end_col_offset or 0) + column
        self._visit_annotation(inner, scope)

    def _name_after_keyword(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Place:
        line = self._file.lines[node.lineno - 1]
        column = node.col_offset
        for word in (b"async", b"def", b"class"):
            if line[column : column + len(word) + 1] == word + b" ":
                column += len(word)
                while line[column : column + 1] == b" ":
                    column += 1
        return node.lineno, column


def _last(node: ast.alias | ast.pattern, name: str) -> Place:
    """The place of a name that a node ends with."""
    return node.end_lineno or 0, (node.end_col_offset or 0) - len(name.encode())


def _inside(node: ast.expr) -> Place:
    """The place of the first character of a quoted text."""
    return node.lineno, node.col_offset + 1
