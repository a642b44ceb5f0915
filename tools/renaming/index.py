"""Connect each identifier of the tree with its definition, and definitions that must share a name.

In: parsed files and mypy's answers. Out: for each file, places with definitions; groups of definitions; the definitions
that an entry of a table means. Never: decides whether a rename is possible.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import http.client
import io
import subprocess
import threading
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from renaming.scopes import ATTRIBUTE_CALLS, Occurrence, Place, Scope, SourceFile
from renaming.tables import Entry
from renaming.types import Definition, TypeIndex

# Attributes of these are met everywhere; an attribute of an unknown object with such a name is left alone.
COMMON_CLASSES: tuple[type, ...] = (
    *(str, bytes, dict, list, set, int, float, tuple, Path, BaseException, OSError, io.TextIOWrapper, ast.AST),
    *(
        argparse.ArgumentParser,
        subprocess.Popen,
        asyncio.Task,
        asyncio.Queue,
        threading.Thread,
        http.client.HTTPResponse,
    ),
)
COMMON_ATTRIBUTES = frozenset(name for kind in COMMON_CLASSES for name in dir(kind))


@dataclass
class Unknown:
    """A use whose owner is not known."""

    path: str
    place: Place
    name: str
    what: str


@dataclass
class Index:
    files: dict[str, SourceFile]  # by path
    types: TypeIndex
    places: dict[str, dict[Place, Definition]] = field(default_factory=dict)
    unknown: list[Unknown] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)
    _parents: dict[Definition, Definition] = field(default_factory=dict)
    _lazy: set[Definition] = field(default_factory=set)

    def __post_init__(self) -> None:
        for found in self.types.key_texts.values():
            self.join(found)
        self.modules = {file.module: file for file in self.files.values()}
        for links in self.types.links:
            self.join(links)
        for file in self.files.values():
            self._link_imports(file)
        for file in self.files.values():
            self.places[str(file.path)] = {}
            self._place_names(file)
            self._place_attributes(file)
            self._place_keywords(file)
            self._place_patterns(file)
            self._place_texts(file)

    # -- groups

    def find(self, definition: Definition) -> Definition:
        root = definition
        while (parent := self._parents.get(root, root)) != root:
            root = parent
        while (parent := self._parents.get(definition, root)) != root:
            self._parents[definition] = root
            definition = parent
        return root

    def join(self, definitions: Iterable[Definition]) -> None:
        first, *others = map(self.find, definitions)
        for other in others:
            if other != first:
                self._parents[other] = first

    # -- definitions

    def define(self, file: SourceFile, scope: Scope, name: str) -> Definition:
        """The definition of a name that is bound in a scope."""
        if scope.kind == "module":
            return ("global", file.module, name)
        if scope.kind == "class":
            owner = self.types.class_names.get((str(file.path), scope.line), f"{file.path}:{scope.line}")
            return ("attribute", owner, name)
        return ("local", str(file.path), scope.key, name)

    def resolve(self, file: SourceFile, occurrence: Occurrence) -> Definition | None:
        owner = occurrence.scope.find_binding(occurrence.name, occurrence.place)
        return None if owner is None else self.define(file, owner, occurrence.name)

    def _link_imports(self, file: SourceFile) -> None:
        for scope, module, name, _, is_bound in file.imported:
            if is_bound and self._is_global(module, name):
                owner = scope.module if name in scope.global_names else scope
                self.join([("global", module, name), self.define(file, owner, name)])
        if file.has_lazy_exports:
            texts = {text.value for text in file.exported_texts}
            homes = [home for text in texts if (home := self.modules.get(f"{file.module}.{text}"))]
            for name in texts - file.root.bindings:
                for home in homes:
                    if name in home.root.bindings and name not in home.root.imports:
                        self.join([("global", file.module, name), ("global", home.module, name)])
                        self._lazy.add(("global", file.module, name))

    def _is_global(self, module: str, name: str) -> bool:
        """True if an import gets a name of the module, not a module below it of the same name."""
        home = self.modules.get(module)
        return home is not None and (name in home.root.bindings or f"{module}.{name}" not in self.modules)

    # -- places

    def _put(self, file: SourceFile, place: Place, definition: Definition) -> None:
        if file.holds(place, definition[-1]):
            self.places[str(file.path)][place] = definition
        elif definition[-1] in self.types.wanted:
            self.unknown.append(Unknown(str(file.path), place, definition[-1], "not at its place"))

    def _place_names(self, file: SourceFile) -> None:
        for occurrence in file.names:
            if (definition := self.resolve(file, occurrence)) is not None:
                self._put(file, occurrence.place, definition)
        for _, module, name, place, _ in file.imported:
            if self._is_global(module, name):
                self._put(file, place, ("global", module, name))

    def _place_attributes(self, file: SourceFile) -> None:
        for scope, node in file.attributes:
            if node.attr not in self.types.wanted:
                continue
            end = (node.end_lineno or 0, node.end_col_offset or 0)
            place = (end[0], end[1] - len(node.attr.encode()))
            found = self.types.attributes.get((str(file.path), *end, node.attr))
            if found is None:
                found = self._find_statically(file, scope, node)
            if found:
                self._put(file, place, min(found))
            elif found is None:
                self.unknown.append(Unknown(str(file.path), place, node.attr, "attribute of an unknown object"))

    def _find_statically(self, file: SourceFile, scope: Scope, node: ast.Attribute) -> set[Definition] | None:
        """The definition of an attribute of a module, a class or `self`, without types; empty if foreign."""
        if (prefix := _imported_prefix(node.value)) is not None:
            return self._find_in_modules(prefix, node.attr)
        owner = self._evaluate(file, scope, node.value)
        match owner:
            case ("module", module):
                return {("global", module, node.attr)} if module in self.modules else set()
            case ("class", name):
                return self.types.find_attribute(self.types.infos[name], node.attr)
        return None

    def _find_in_modules(self, prefix: str, name: str) -> set[Definition]:
        """A name of modules that are imported by a computed name; it stays the same in all of them."""
        found: set[Definition] = {
            ("global", module, name)
            for module, file in self.modules.items()
            if module.startswith(prefix) and "." not in module[len(prefix) :] and name in file.root.bindings
        }
        if found:
            self.join(found)
        return found

    def _evaluate(self, file: SourceFile, scope: Scope, node: ast.expr, depth: int = 0) -> tuple[str, str] | None:
        """("module", name) or ("class", full name) of an expression, if it is plain to see."""
        match node:
            case ast.Name(id=name):
                owner = scope.find_binding(name)
                return None if owner is None or depth > 9 else self._evaluate_binding(file, owner, name, depth + 1)
            case ast.Attribute(value=value, attr=name):
                match self._evaluate(file, scope, value, depth + 1):
                    case ("module", module):
                        return self._evaluate_global(module, name, depth + 1)
                    case ("class", full) if (inner := f"{full}.{name}") in self.types.infos:
                        return ("class", inner)
        return None

    def _evaluate_binding(self, file: SourceFile, owner: Scope, name: str, depth: int) -> tuple[str, str] | None:
        if imported := owner.imports.get(name):
            module, attribute = imported
            return self._evaluate_global(module, attribute, depth) if attribute else ("module", module)
        around = owner.parent
        if owner.kind == "function" and around and around.kind == "class" and owner.parameters[:1] == [name]:
            return self._class(file, around) if name in ("self", "cls") else None
        for child in owner.children:
            if child.kind == "class" and child.name == name:
                return self._class(file, child)
        return None

    def _class(self, file: SourceFile, scope: Scope) -> tuple[str, str] | None:
        name = self.types.class_names.get((str(file.path), scope.line), "")
        return ("class", name) if name in self.types.infos else None

    def _evaluate_global(self, module: str, name: str, depth: int) -> tuple[str, str] | None:
        if not self._is_global(module, name):
            return ("module", f"{module}.{name}")
        home = self.modules[module]
        return None if depth > 9 else self._evaluate_binding(home, home.root, name, depth + 1)

    def _place_keywords(self, file: SourceFile) -> None:
        path = str(file.path)
        for scope, call in file.calls:
            position = (path, call.lineno, call.col_offset, call.end_lineno or 0, call.end_col_offset or 0)
            known = self.types.keywords.get(position, {})
            for keyword in call.keywords:
                if keyword.arg is None or keyword.arg not in self.types.wanted:
                    continue
                place = (keyword.lineno, keyword.col_offset)
                found = known.get(keyword.arg)
                if isinstance(call.func, ast.Name) and call.func.id == "SimpleNamespace":
                    self.unknown.append(Unknown(path, place, keyword.arg, "attribute of a SimpleNamespace"))
                elif found:
                    self._put(file, place, min(found))
                elif found is None:
                    self.unknown.append(Unknown(path, place, keyword.arg, "keyword of an unknown function"))
            self._place_named_attribute(file, scope, call, position)

    def _place_named_attribute(
        self, file: SourceFile, scope: Scope, call: ast.Call, position: tuple[str, int, int, int, int]
    ) -> None:
        """`setattr(owner, "name", …)` and the like."""
        called = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        match call.args:
            case [owner, ast.Constant(value=str(name)) as text, *_] if called in ATTRIBUTE_CALLS:
                if name not in self.types.wanted:
                    return
                place = (text.lineno, text.col_offset + 1)
                found = self.types.named_attributes.get(position)
                if not found:
                    attribute = ast.Attribute(value=owner, attr=name)
                    found = self._find_statically(file, scope, attribute) or found
                if found:
                    self._put(file, place, min(found))
                elif found is None:
                    self.unknown.append(Unknown(str(file.path), place, name, f"{called}() of an unknown object"))
            case [_, ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]) as text, *_] if called == "getattr":
                names = ", ".join(sorted(name for name in self.types.wanted if name.startswith(start)))
                if names and len(start.strip("_")) > 1:
                    self.computed.append(f"{file.path}:{text.lineno}: computed name {start}…; could be {names}")
            case [*texts] if called == "attrgetter":
                for text in texts:
                    if isinstance(text, ast.Constant) and text.value in self.types.wanted:
                        place = (text.lineno, text.col_offset + 1)
                        self.unknown.append(Unknown(str(file.path), place, str(text.value), "attrgetter()"))

    def _place_patterns(self, file: SourceFile) -> None:
        for _, node in file.patterns:
            if not self.types.wanted.intersection(node.kwd_attrs):
                continue
            end = (node.end_lineno or 0, node.end_col_offset or 0)
            known = self.types.patterns.get((str(file.path), node.lineno, node.col_offset, *end), {})
            for name, place in _keyword_places(file, node):
                if found := known.get(name):
                    self._put(file, place, min(found))
                elif name in self.types.wanted and name not in known:
                    self.unknown.append(Unknown(str(file.path), place, name, "pattern of an unknown class"))

    def _place_texts(self, file: SourceFile) -> None:
        for text in file.exported_texts:
            definition = ("global", file.module, text.value)
            if definition in self._lazy or text.value in file.root.bindings:
                self._put(file, (text.lineno, text.col_offset + 1), definition)
        for scope, text in file.slot_texts:
            self._put(file, (text.lineno, text.col_offset + 1), self.define(file, scope, text.value))
        for (path, line, column), found in self.types.key_texts.items():
            if path == str(file.path):
                self._put(file, (line, column + 1), min(found))
        for scope, name, place in file.name_texts:
            self._put(file, place, self.define(file, scope, name))

    # -- entries of tables

    def find_meant(self, entry: Entry) -> list[Definition]:
        """The definitions that an entry renames; empty if there is none."""
        file = self.modules.get(entry.module) or self.files.get(entry.module)
        if file is None:
            return []
        if entry.kind == "name":
            if len(entry.path) == 1:
                return [("global", file.module, entry.old)] if entry.old in file.root.bindings else []
            return [
                found for scope in _descend(file.root, entry.path[:-1]) for found in self._member(file, scope, entry)
            ]
        scopes = list(_descend(file.root, entry.path))
        if entry.kind == "parameter":
            return self._parameters(file, scopes, entry.old)
        found = [
            self.define(file, inner, entry.old)
            for scope in scopes
            for inner in _inner_scopes(scope)
            if entry.old in inner.bindings and entry.old not in inner.nonlocal_names | inner.global_names
        ]
        return list(dict.fromkeys(found))

    def _member(self, file: SourceFile, scope: Scope, entry: Entry) -> Iterator[Definition]:
        if scope.kind == "class":
            match self._class(file, scope):
                case ("class", name) if found := self.types.find_attribute(self.types.infos[name], entry.old):
                    yield from found
                    return
        if entry.old in scope.bindings:
            yield self.define(file, scope, entry.old)

    def _parameters(self, file: SourceFile, scopes: list[Scope], name: str) -> list[Definition]:
        found: list[Definition] = []
        for scope in scopes:
            if scope.kind == "class":
                own = [child for child in scope.children if child.name in ("__init__", "__new__")]
                inner = self._parameters(file, own, name)
                match self._class(file, scope):
                    case ("class", full) if not inner:
                        inner = list(self.types.find_attribute(self.types.infos[full], name) or ())
                found += inner
            elif name in scope.bindings:
                found.append(self.define(file, scope, name))
        return found


def _descend(scope: Scope, path: tuple[str, ...]) -> Iterator[Scope]:
    """The scopes of a dotted path of classes and functions, also of functions inside functions."""
    if not path:
        yield scope
        return
    children = [child for child in scope.children if child.name == path[0]]
    if not children and scope.kind != "module":
        inner = [each for each in scope.walk() if each is not scope and each.name == path[0]]
        children = inner
    for child in children:
        yield from _descend(child, path[1:])


def _inner_scopes(scope: Scope) -> Iterator[Scope]:
    """A function with all that is inside it; a module or class with its comprehensions and lambdas."""
    if scope.kind != "class":
        yield scope
    for child in scope.children:
        if scope.kind in ("module", "class"):
            if child.kind in ("comprehension", "lambda"):
                yield from (each for each in child.walk() if each.kind != "class")
        else:
            yield from (each for each in child.walk() if each.kind != "class")


def _imported_prefix(node: ast.expr) -> str | None:
    """How the argument of `import_module()` begins; None for another expression."""
    match node:
        case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="import_module"), args=[argument, *_]):
            match argument:
                case ast.Constant(value=str(text)) | ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
                    return text
    return None


def _keyword_places(file: SourceFile, node: ast.MatchClass) -> Iterator[tuple[str, Place]]:
    """The keywords of a class pattern itself, not of patterns in it."""
    inner = [(part.lineno, part.col_offset, part.end_lineno, part.end_col_offset) for part in node.kwd_patterns]
    inner += [(part.lineno, part.col_offset, part.end_lineno, part.end_col_offset) for part in node.patterns]
    tokens = list(file.tokens_within(node))
    for token, after in pairwise(tokens):
        if token.type == tokenize.NAME and after.string == "=" and token.string in node.kwd_attrs:
            place = file.place_of(token)
            if not any(place >= part[:2] and place < part[2:] for part in inner):
                yield token.string, place
