"""Ask mypy which class, function or module an attribute, a keyword argument or a class pattern belongs to.

In: all source files, and the names that a table renames. Out: definitions by the place of each use, and definitions
that must keep one name because of inheritance, protocols or unions. Never: reads or writes mypy's cache.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from mypy import build, nodes, types
from mypy.argmap import map_actuals_to_formals
from mypy.config_parser import parse_config_file
from mypy.modulefinder import BuildSource
from mypy.options import Options
from mypy.patterns import ClassPattern, Pattern
from mypy.state import state
from mypy.subtypes import is_subtype
from mypy.typestate import type_state
from mypy.typevars import fill_typevars_with_any

from renaming.scopes import ATTRIBUTE_CALLS, SourceFile

# A definition: ("global", module, name), ("attribute", class, name), or ("local", path, key of the scope, name).
Definition = tuple[str, ...]
Position = tuple[str, int, int, int, int]

INCOMPATIBLE = re.compile(r'([^:]+):\d+: error: .* incompatible type "(\w+)"; expected "(\w+)')
REPLACERS = frozenset({"dataclasses.replace", "copy.replace"})


def run_mypy(files: Iterable[SourceFile], folders: list[str]) -> build.BuildResult:
    options = Options()
    parse_config_file(options, lambda: None, "pyproject.toml", sys.stdout, sys.stderr)
    options.check_untyped_defs = options.preserve_asts = options.export_types = True
    options.incremental = options.native_parser = options.warn_unreachable = False
    options.namespace_packages = options.explicit_package_bases = True
    options.cache_dir = "/dev/null"
    options.mypy_path = folders
    # A wrong "type: ignore" in a test ends the whole run; the text keeps its length.
    sources = [
        BuildSource(str(file.path), file.module, file.text.replace("# type: ignore", "# type; ignore"))
        for file in files
    ]
    return build.build(sources, options)


class TypeIndex:
    """Everything that mypy knows about uses of the wanted names."""

    def __init__(self, files: list[SourceFile], folders: list[str], wanted: frozenset[str]) -> None:
        self.wanted = wanted
        result = run_mypy(files, folders)
        self._types, self._own = result.types, {file.module for file in files}
        self.errors, self._trees = result.errors, result.files
        self._modules_by_path = {str(file.path): file.module for file in files}
        self.class_names: dict[tuple[str, int], str] = {}
        self.infos: dict[str, nodes.TypeInfo] = {}
        self.function_paths: dict[nodes.FuncDef, str] = {}
        self.attributes: dict[tuple[str, int, int, str], set[Definition]] = {}
        self.keywords: dict[Position, dict[str, set[Definition]]] = {}
        self.patterns: dict[Position, dict[str, set[Definition]]] = {}
        self.named_attributes: dict[Position, set[Definition]] = {}
        self.foreign: dict[Definition, str] = {}
        self.links: list[set[Definition]] = []
        self._calls: list[tuple[str, nodes.CallExpr]] = []
        self._unpacking: list[tuple[str, nodes.CallExpr]] = []
        self._calls_of_tests: list[nodes.CallExpr] = []
        self.casts: list[nodes.CastExpr] = []
        self.dictionaries: dict[nodes.Node, nodes.DictExpr] = {}
        self.key_texts: dict[tuple[str, int, int], set[Definition]] = {}
        self.stand_ins: dict[nodes.Node, nodes.TypeInfo] = {}
        self._members: list[tuple[str, nodes.MemberExpr | nodes.SuperExpr]] = []
        self._class_patterns: list[tuple[str, ClassPattern]] = []
        self.forwarding: dict[nodes.FuncDef, list[nodes.CallExpr]] = {}
        for file in files:
            if (tree := result.files.get(file.module)) is not None:
                walker = _Walker(self, str(file.path))
                for statement in tree.defs:
                    walker.walk(statement, None)
        self._resolve_all()
        self._link_overrides()
        self._link_protocols()
        self._link_runtime_protocols()
        self._link_incompatible()
        self._link_stand_ins()

    # -- gathering, by the walker

    def add_class(self, path: str, node: nodes.ClassDef) -> None:
        if node.info:
            self.class_names[path, node.line] = node.info.fullname
            self.infos[node.info.fullname] = node.info

    def add_call(self, path: str, node: nodes.CallExpr, function: nodes.FuncDef | None) -> None:
        if function is not None and nodes.ARG_STAR2 in node.arg_kinds:
            self.forwarding.setdefault(function, []).append(node)
        if path.startswith("tests") and node.args:
            self._calls_of_tests.append(node)
        by_text = len(node.args) > 1 and isinstance(node.args[1], nodes.StrExpr) and node.args[1].value in self.wanted
        if nodes.ARG_STAR2 in node.arg_kinds:
            self._unpacking.append((path, node))
        if by_text or any(name in self.wanted for name in node.arg_names if name):
            self._calls.append((path, node))

    def add_stand_in(self, target: Any, value: nodes.Expression | None) -> None:
        """A variable or function of a test whose declared type does not tell the class of its value."""
        match value:
            case nodes.CallExpr(callee=nodes.NameExpr(node=nodes.TypeInfo() as info)) if target is not None:
                if not info.fullname.startswith("argosy."):
                    self.stand_ins[target] = info

    def add_member(self, path: str, node: nodes.MemberExpr | nodes.SuperExpr) -> None:
        if node.name in self.wanted:
            self._members.append((path, node))

    def add_pattern(self, path: str, node: ClassPattern) -> None:
        if any(name in self.wanted for name in node.keyword_keys):
            self._class_patterns.append((path, node))

    # -- resolving

    def _resolve_all(self) -> None:
        for path, member in self._members:
            found = self._resolve_member(member)
            if found is not None:
                place = (path, member.end_line or 0, member.end_column or 0, member.name)
                self.attributes.setdefault(place, set()).update(found)
        for path, call in self._calls:
            self._resolve_call(path, call)
        for path, call in self._unpacking:
            self._resolve_keys(path, call)
        for path, pattern in self._class_patterns:
            info = pattern.class_ref.node
            if isinstance(info, nodes.TypeAlias):
                target = types.get_proper_type(info.target)
                info = target.type if isinstance(target, types.Instance) else None
            if isinstance(info, nodes.TypeInfo):
                keys = {name: self.find_attribute(info, name) or set() for name in pattern.keyword_keys}
                self.patterns[_position(path, pattern)] = keys
        every = [*self.attributes.values(), *self.named_attributes.values()]
        every += [found for by_name in self.keywords.values() for found in by_name.values()]
        self.links += [found for found in every if len(found) > 1]

    def _resolve_member(self, node: nodes.MemberExpr | nodes.SuperExpr) -> set[Definition] | None:
        if isinstance(node, nodes.SuperExpr):
            return self._find_in(node.info.mro[1:], node.name) if node.info else None
        return self.find_owners(node.expr, node.name)

    def find_owners(self, expression: nodes.Expression, name: str) -> set[Definition] | None:
        """The definitions of an attribute of an expression; empty if foreign, None if unknown."""
        if isinstance(expression, nodes.RefExpr):
            if isinstance(expression.node, nodes.MypyFile):
                module = expression.node.fullname
                return {("global", module, name)} if module in self._own else set()
            if isinstance(expression.node, nodes.TypeInfo):
                return self.find_attribute(expression.node, name)
        return self._find_by_type(self._types.get(expression), name)

    def _find_by_type(self, kind: types.Type | None, name: str) -> set[Definition] | None:
        kind = types.get_proper_type(kind)
        match kind:
            case types.UnionType():
                parts = [self._find_by_type(item, name) for item in kind.items]
                known = [part for part in parts if part is not None]
                return set().union(*known) if any(known) else None
            case types.Instance():
                return self.find_attribute(kind.type, name)
            case types.TupleType():
                return self.find_attribute(kind.partial_fallback.type, name)
            case types.CallableType():
                if kind.is_type_obj():
                    return self.find_attribute(kind.type_object(), name)
                return self.find_attribute(kind.fallback.type, name)
            case types.Overloaded():
                return self._find_by_type(kind.items[0], name)
            case types.TypeType():
                return self._find_by_type(kind.item, name)
            case types.TypeVarType():
                return self._find_by_type(kind.upper_bound, name)
            case types.LiteralType():
                return self.find_attribute(kind.fallback.type, name)
            case types.NoneType() | types.TypedDictType():
                return set()
        return None

    def find_attribute(self, info: nodes.TypeInfo, name: str) -> set[Definition] | None:
        if info.fullname == "argparse.Namespace":
            return set()
        found = self._find_in(info.mro, name)
        if found is None and info.metaclass_type is not None:
            found = self._find_in(info.metaclass_type.type.mro, name)
        return found

    def _find_in(self, classes: Iterable[nodes.TypeInfo], name: str) -> set[Definition] | None:
        for info in classes:
            if name in info.names:
                return {("attribute", info.fullname, name)} if info.fullname in self.infos else set()
        return None

    def _resolve_call(self, path: str, call: nodes.CallExpr) -> None:
        place = _position(path, call)
        for name in call.arg_names:
            if name in self.wanted:
                found = self._find_parameter(call.callee, name, call, 0)
                if found is not None:
                    self.keywords.setdefault(place, {}).setdefault(name, set()).update(found)
        called = getattr(call.callee, "name", "")
        if called in ATTRIBUTE_CALLS and len(call.args) > 1 and isinstance(call.args[1], nodes.StrExpr):
            found = self.find_owners(call.args[0], call.args[1].value)
            if found is not None:
                self.named_attributes[place] = found

    def _resolve_keys(self, path: str, call: nodes.CallExpr) -> None:
        """Keys of a dictionary that a call unpacks, written there or assigned to a variable before."""
        for argument, kind in zip(call.args, call.arg_kinds):
            if kind == nodes.ARG_STAR2:
                if isinstance(argument, nodes.NameExpr) and argument.node is not None:
                    argument = self.dictionaries.get(argument.node, argument)
                for key, _ in argument.items if isinstance(argument, nodes.DictExpr) else ():
                    name = key.value if isinstance(key, nodes.StrExpr) else ""
                    if key and name in self.wanted and (found := self._find_parameter(call.callee, name, call, 1)):
                        self.key_texts.setdefault((path, key.line, key.column), set()).update(found)

    def _find_parameter(
        self, callee: nodes.Expression, name: str, call: nodes.CallExpr, depth: int
    ) -> set[Definition] | None:
        """Who takes a keyword argument of a call: parameters or fields; empty if foreign, None if unknown."""
        if depth > 4:
            return None
        if isinstance(callee, nodes.RefExpr):
            if callee.fullname in REPLACERS and call.args:
                return self.find_owners(call.args[0], name)
            if isinstance(callee, nodes.MemberExpr) and callee.name == "_replace":
                return self.find_owners(callee.expr, name)
        found: set[Definition] | None = None
        for target in self._find_callees(callee):
            part = self._find_in_callee(target, name, depth)
            if part is not None:
                found = (found or set()) | part
        if found:
            return found
        for argument in call.args:  # partial, to_thread and the like pass it on
            if isinstance(argument, nodes.RefExpr) and (part := self._find_parameter(argument, name, call, depth + 3)):
                return part
        return found

    def _find_callees(self, callee: nodes.Expression) -> Iterator[Any]:
        if isinstance(callee, nodes.RefExpr) and isinstance(
            callee.node, nodes.FuncDef | nodes.Decorator | nodes.OverloadedFuncDef | nodes.TypeInfo
        ):
            yield callee.node
            return
        if isinstance(callee, nodes.MemberExpr | nodes.SuperExpr):
            owners = self._resolve_member(callee) or set()
            symbols = [
                self.infos[owner[1]].names[callee.name].node
                for owner in owners
                if owner[0] == "attribute" and callee.name in self.infos[owner[1]].names
            ]
            symbols = [node for node in symbols if not isinstance(node, nodes.Var)]
            if symbols:
                yield from symbols
                return
        yield from self._callees_of_type(self._types.get(callee))

    def _callees_of_type(self, kind: types.Type | None) -> Iterator[Any]:
        kind = types.get_proper_type(kind)
        match kind:
            case types.CallableType():
                if kind.is_type_obj():
                    yield kind.type_object()
                elif kind.definition is not None:
                    yield kind.definition
                else:
                    yield kind
            case types.Overloaded():
                for item in kind.items:
                    yield from self._callees_of_type(item)
            case types.UnionType():
                for item in kind.items:
                    yield from self._callees_of_type(item)
            case types.TypeType():
                item = types.get_proper_type(kind.item)
                item = types.get_proper_type(item.upper_bound) if isinstance(item, types.TypeVarType) else item
                if isinstance(item, types.Instance):
                    yield item.type
            case types.Instance() if kind.type.fullname in self.infos:
                symbol = kind.type.get("__call__")
                if symbol is not None and symbol.node is not None:
                    yield symbol.node

    def _find_in_callee(self, target: Any, name: str, depth: int) -> set[Definition] | None:
        match target:
            case nodes.TypeInfo():
                return self._find_in_constructor(target, name, depth)
            case nodes.Decorator():
                return self._find_in_callee(target.func, name, depth)
            case nodes.OverloadedFuncDef():
                items = [*target.items, *([target.impl] if target.impl else [])]
                parts = [self._find_in_callee(item, name, depth) for item in items]
                known = [part for part in parts if part is not None]
                return set().union(*known) if known else None
            case nodes.FuncDef():
                path = self.function_paths.get(target)
                if path is None:
                    return set()
                if name in target.arg_names:
                    return {("local", path, str(target.line), name)}
                return self._follow_forwarding(target, name, depth) or set()
        return None

    def _find_in_constructor(self, info: nodes.TypeInfo, name: str, depth: int) -> set[Definition] | None:
        for base in info.mro:
            if base.is_named_tuple:
                return self.find_attribute(info, name)
            symbol = base.names.get("__init__")
            if symbol is None or base.fullname == "builtins.object":
                symbol = base.names.get("__new__")
            if symbol is None or base.fullname == "builtins.object":
                continue
            if symbol.plugin_generated:
                return self.find_attribute(info, name)
            return self._find_in_callee(symbol.node, name, depth)
        return None

    def _follow_forwarding(self, function: nodes.FuncDef, name: str, depth: int) -> set[Definition] | None:
        """Where `**options` of a function goes."""
        found: set[Definition] | None = None
        for call in self.forwarding.get(function, ()):
            if name in call.arg_names:
                continue
            part = self._find_parameter(call.callee, name, call, depth + 1)
            found = found if part is None else (found or set()) | part
        return found

    # -- definitions that share a name

    def _link_overrides(self) -> None:
        for info in self.infos.values():
            for name in {name for base in info.mro for name in base.names if name in self.wanted}:
                owners = [base for base in info.mro if name in base.names]
                self._link(name, owners)
            for name, symbol in info.names.items():
                if not name.startswith("__"):
                    self._link_parameters(info, name, symbol.node)

    def _link(self, name: str, owners: list[nodes.TypeInfo]) -> None:
        own: set[Definition] = {("attribute", info.fullname, name) for info in owners if info.fullname in self.infos}
        if len(own) > 1:
            self.links.append(own)
        for info in owners:
            if info.fullname not in self.infos:
                self.foreign.update((definition, info.fullname) for definition in own)

    def _link_parameters(self, info: nodes.TypeInfo, name: str, node: Any) -> None:
        mine = list(self._functions(node))
        for base in info.mro[1:]:
            if base.fullname in self.infos and name in base.names:
                self._link_functions(mine, list(self._functions(base.names[name].node)))

    def _link_functions(self, one: list[nodes.FuncDef], other: list[nodes.FuncDef]) -> None:
        for left in one:
            for right in other:
                for name in set(left.arg_names) & set(right.arg_names) & self.wanted:
                    self.links.append({self._parameter(left, name), self._parameter(right, name)})

    def _parameter(self, function: nodes.FuncDef, name: str | None) -> Definition:
        return ("local", self.function_paths[function], str(function.line), name or "")

    def _functions(self, node: Any) -> Iterator[nodes.FuncDef]:
        match node:
            case nodes.Decorator():
                yield from self._functions(node.func)
            case nodes.OverloadedFuncDef():
                for item in (*node.items, *([node.impl] if node.impl else [])):
                    yield from self._functions(item)
            case nodes.FuncDef() if node in self.function_paths:
                yield node

    def _link_protocols(self) -> None:
        attempted = {name: list(others) for name, others in type_state._attempted_protocols.items()}
        for name, protocols in attempted.items():
            left = self.infos.get(name) or self._find_foreign(name)
            for protocol in (self.infos[other] for other in protocols if other in self.infos):
                if left is None:
                    continue
                members = protocol.protocol_members
                is_test = name in self.infos and not name.startswith("argosy.")
                if not is_test and not all(left.get(member) for member in members):
                    continue
                if name not in self.infos and not _is_accepted(left, protocol):
                    continue
                for member in members:
                    self._link_member(left, protocol, member)

    def _link_runtime_protocols(self) -> None:
        """isinstance() accepts every class that has all members, whatever mypy saw."""
        for protocol in [info for info in self.infos.values() if info.is_protocol and info.runtime_protocol]:
            members = protocol.protocol_members
            for info in self.infos.values() if self.wanted.intersection(members) else ():
                if info is not protocol and all(info.get(member) for member in members):
                    for member in members:
                        self._link_member(info, protocol, member)

    def _link_stand_ins(self) -> None:
        """`x: Any = Fake()` that a call passes where a class of the package is expected."""
        for cast in self.casts:
            if (fake := self._find_stand_in(cast.expr)) is not None:
                self._link_to_type(fake, cast.type)
        for call in self._calls_of_tests:
            kind = types.get_proper_type(self._types.get(call.callee))
            if isinstance(kind, types.Overloaded):
                kind = kind.items[0]
            if not isinstance(kind, types.CallableType):
                continue
            formals = map_actuals_to_formals(
                call.arg_kinds,
                call.arg_names,
                kind.arg_kinds,
                kind.arg_names,
                lambda _: types.AnyType(types.TypeOfAny.special_form),
            )
            for formal, actuals in enumerate(formals):
                for fake in (self._find_stand_in(call.args[actual]) for actual in actuals):
                    if fake is not None:
                        self._link_to_type(fake, kind.arg_types[formal])

    def _link_to_type(self, fake: nodes.TypeInfo, kind: types.Type) -> None:
        expected = types.get_proper_type(kind)
        if isinstance(expected, types.UnionType):
            for item in expected.items:
                self._link_to_type(fake, item)
        elif isinstance(expected, types.Instance) and expected.type.fullname in self.infos:
            for name in self.wanted.intersection(fake.names):
                self._link_member(fake, expected.type, name)

    def _find_stand_in(self, node: nodes.Expression) -> nodes.TypeInfo | None:
        match node:
            case nodes.NameExpr():
                return self.stand_ins.get(node.node) if node.node is not None else None
            case nodes.CastExpr():
                return self._find_stand_in(node.expr)
            case nodes.CallExpr(callee=nodes.NameExpr(node=nodes.TypeInfo() as info)):
                return info if info.fullname in self.infos and not info.fullname.startswith("argosy.") else None
            case nodes.CallExpr(callee=nodes.NameExpr() as called):
                return self.stand_ins.get(called.node) if called.node is not None else None
            case nodes.OpExpr():
                return self._find_stand_in(node.right)
        return None

    def _find_foreign(self, name: str) -> nodes.TypeInfo | None:
        module, _, short = name.rpartition(".")
        tree = self._trees.get(module)
        symbol = tree.names.get(short) if tree is not None else None
        return symbol.node if symbol is not None and isinstance(symbol.node, nodes.TypeInfo) else None

    def _link_incompatible(self) -> None:
        """A class of a test that mypy refuses where one of the package is expected stands in for it."""
        by_short: dict[str, list[nodes.TypeInfo]] = {}
        for info in self.infos.values():
            by_short.setdefault(info.name, []).append(info)
        for error in self.errors:
            if match := INCOMPATIBLE.match(error):
                module = self._modules_by_path.get(match[1], "")
                fakes = [info for info in by_short.get(match[2], ()) if info.module_name == module]
                fakes = fakes or [
                    info for info in by_short.get(match[2], ()) if not info.fullname.startswith("argosy.")
                ]
                real = [info for info in by_short.get(match[3], ()) if info.fullname.startswith("argosy.")]
                if len(fakes) == len(real) == 1:
                    for name in self.wanted.intersection(fakes[0].names):
                        self._link_member(fakes[0], real[0], name)

    def _link_member(self, left: nodes.TypeInfo, protocol: nodes.TypeInfo, member: str) -> None:
        mine = next((info for info in left.mro if member in info.names), None)
        theirs = next((info for info in protocol.mro if member in info.names), None)
        if mine is None or theirs is None or mine.fullname == "builtins.object":
            return
        if member in self.wanted:
            self._link(member, [mine, theirs])
        pair = [list(self._functions(info.names[member].node)) for info in (mine, theirs)]
        self._link_functions(*pair)


# Where mypy's nodes keep the nodes below them. Its own visitors are compiled and allow no subclass.
CHILDREN = (
    *("analyzed", "args", "arguments", "assignments", "base", "base_type_exprs", "begin_index", "bodies", "body"),
    *("call", "callee", "capture", "class_ref", "cond", "condlists", "decorators", "defs", "else_body", "else_expr"),
    *("end_index", "expr", "finally_body", "from_expr", "func", "generator", "guards", "handlers", "if_expr", "impl"),
    *("index", "indices", "initializer", "items", "key", "keys", "keyword_values", "keywords", "left", "left_expr"),
    *("lvalue", "lvalues", "metaclass", "msg", "name", "operands", "pattern", "patterns", "positionals", "rest"),
    *("right", "rvalue", "sequences", "stride", "subject", "target", "types", "unanalyzed_items", "value", "values"),
    "vars",
)
FOLLOWED = (nodes.Expression, nodes.Statement, Pattern, nodes.Argument, nodes.Block)


class _Walker:
    """Finds the uses of one file."""

    _fields: ClassVar[dict[type, tuple[str, ...]]] = {}

    def __init__(self, index: TypeIndex, path: str) -> None:
        self._index, self._path = index, path
        self._seen: set[int] = set()

    def walk(self, node: Any, function: nodes.FuncDef | None) -> None:
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        match node:
            case nodes.MemberExpr() | nodes.SuperExpr():
                self._index.add_member(self._path, node)
            case nodes.CallExpr():
                self._index.add_call(self._path, node, function)
            case nodes.FuncDef():
                self._index.function_paths[node] = self._path
                function = node
            case nodes.AssignmentStmt(lvalues=[nodes.NameExpr(node=nodes.Var() as target)], rvalue=value):
                self._index.add_stand_in(target, value)
                if isinstance(value, nodes.DictExpr):
                    self._index.dictionaries[target] = value
            case nodes.CastExpr():
                self._index.casts.append(node)
            case nodes.ReturnStmt(expr=value) if function is not None:
                self._index.add_stand_in(function, value)
            case nodes.ClassDef():
                self._index.add_class(self._path, node)
            case ClassPattern():
                self._index.add_pattern(self._path, node)
        kind = type(node)
        fields = self._fields.get(kind)
        if fields is None:
            fields = self._fields[kind] = tuple(name for name in CHILDREN if hasattr(kind, name))
        for name in fields:
            self._walk_value(getattr(node, name), function)

    def _walk_value(self, value: Any, function: nodes.FuncDef | None) -> None:
        if isinstance(value, FOLLOWED):
            self.walk(value, function)
        elif isinstance(value, dict):
            for part in value.values():
                self._walk_value(part, function)
        elif isinstance(value, list | tuple):
            for part in value:
                self._walk_value(part, function)


def _is_accepted(left: nodes.TypeInfo, protocol: nodes.TypeInfo) -> bool:
    with state.strict_optional_set(True):
        return is_subtype(fill_typevars_with_any(left), fill_typevars_with_any(protocol))


def _position(path: str, node: nodes.Node) -> Position:
    return path, node.line, node.column, node.end_line or 0, node.end_column or 0


def list_source_files(folders: Iterable[str]) -> Iterator[tuple[Path, str]]:
    """Each Python file with its module name below its folder."""
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            yield path, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
