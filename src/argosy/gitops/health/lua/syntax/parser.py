"""Parses Lua 5.1 with `goto` and labels, which both Argo CD's engine and LuaJIT 2.1 accept.

In: text. Out: its `LuaBlock`. Never: raises anything but LuaSyntaxError; takes more than linear time.
"""

from __future__ import annotations

from argosy.gitops.health.lua.syntax.expressions import ExpressionReader, is_end
from argosy.gitops.health.lua.syntax.jumps import Jumps
from argosy.gitops.health.lua.syntax.lexer import END, NAME, LuaSyntaxError, tokenize
from argosy.gitops.health.lua.syntax.tree import (
    Assign,
    Block,
    Break,
    Call,
    Clause,
    Do,
    Expression,
    For,
    ForIn,
    Goto,
    If,
    Index,
    Label,
    Local,
    LocalFunction,
    Method,
    Name,
    Repeat,
    Return,
    Scope,
    Statement,
    String,
    While,
)


def parse(text: str) -> Block:
    try:
        return _Parser(tokenize(text)).script()
    except RecursionError:  # the stack of the caller was nearly full
        raise LuaSyntaxError(1, "nested too deeply to parse; split it up") from None


class _Parser(ExpressionReader):
    def script(self) -> Block:
        self.jumps = Jumps()
        body = self.block(is_function=True)
        if self.kind != END:
            self.fail("'<eof>' expected")
        return body

    def function_body(self, opener: str, line: int) -> Block:
        body = self.block(is_function=True)
        self.expect_closing("end", opener, line)
        return body

    def block(self, *, is_function: bool = False, is_loop: bool = False) -> Block:
        self.go_down(1)
        line, statements = self.line, []
        self.jumps.enter(is_function=is_function, is_loop=is_loop)
        while not is_end(self.kind):
            statement = self.statement()
            statements.append(statement)
            self.accept(";")
            if isinstance(statement, Return | Break):
                break  # both engines require them at the end of a block
        self.jumps.leave()
        self.depth -= 1
        return Block(line, tuple(statements), self.line)

    def statement(self) -> Statement:
        line, kind = self.line, self.kind
        read = _READERS.get(kind)
        if read is None:
            return self._assignment_or_call(line)
        self.place += 1
        return read(self, line)

    def body_until_end(self, opener: str, line: int, *, is_loop: bool = True) -> Block:
        body = self.block(is_loop=is_loop)
        self.expect_closing("end", opener, line)
        return body

    def _assignment_or_call(self, line: int) -> Statement:
        node = self.suffixed()
        if self.kind not in ("=", ","):
            if self.in_parentheses or not isinstance(node, Call | Method):
                self.fail("syntax error" if self.in_parentheses else "'=' expected")
            return Do(line, node)
        targets = [self._target(node)]
        while self.accept(","):
            targets.append(self._target(self.suffixed()))
        self.expect("=")
        return Assign(line, tuple(targets), self.expressions())

    def _target(self, node: Expression) -> Name | Index:
        if self.in_parentheses or not isinstance(node, Name | Index):
            self.fail("syntax error")
        return node

    def read_if(self, line: int) -> Statement:
        clauses = [self._clause(line)]
        otherwise = None
        while self.kind in ("elseif", "else"):
            begin = self.line
            if self.accept("elseif"):
                clauses.append(self._clause(begin))
                continue
            self.place += 1
            otherwise = self.block()
            break
        self.expect_closing("end", "if", line)
        return If(line, tuple(clauses), otherwise)

    def _clause(self, line: int) -> Clause:
        condition = self.expression()
        self.expect("then")
        return Clause(line, condition, self.block())

    def read_while(self, line: int) -> Statement:
        condition = self.expression()
        self.expect("do")
        return While(line, condition, self.body_until_end("while", line))

    def read_do(self, line: int) -> Statement:
        return Scope(line, self.body_until_end("do", line, is_loop=False))

    def read_repeat(self, line: int) -> Statement:
        body = self.block(is_loop=True)
        self.expect_closing("until", "repeat", line)
        return Repeat(line, body, self.expression())

    def read_for(self, line: int) -> Statement:
        first = self.name()
        if self.accept("="):
            bounds = self.expressions()
            if not 2 <= len(bounds) <= 3:
                self.fail("',' expected" if len(bounds) < 2 else "'do' expected")
            self.expect("do")
            return For(line, first, bounds, self.body_until_end("for", line))
        names = [first]
        while self.accept(","):
            names.append(self.name())
        if self.kind != "in":
            self.fail("'=' or 'in' expected" if len(names) == 1 else "'in' expected")
        self.place += 1
        values = self.expressions()
        self.expect("do")
        return ForIn(line, tuple(names), values, self.body_until_end("for", line))

    def read_function(self, line: int) -> Statement:
        target: Name | Index = self.name()
        is_method = False
        while self.kind in (".", ":") and not is_method:
            is_method = self.kind == ":"
            self.place += 1
            self.go_down(1)
            target = Index(self.line, target, String(self.line, self.expect(NAME)))
        function = self.function(line, is_method=is_method)
        self.depth -= _levels(target)
        return Assign(line, (target,), (function,))

    def read_local(self, line: int) -> Statement:
        if self.accept("function"):
            name = self.name()
            self.jumps.declare(name.name)
            return LocalFunction(line, name, self.function(line))
        names = [self.name()]
        while self.accept(","):
            names.append(self.name())
        values = self.expressions() if self.accept("=") else ()
        for name in names:
            self.jumps.declare(name.name)
        return Local(line, tuple(names), values)

    def read_return(self, line: int) -> Statement:
        if is_end(self.kind) or self.kind == ";":
            return Return(line, ())
        return Return(line, self.expressions())

    def read_break(self, line: int) -> Statement:
        self.jumps.leave_loop(line)
        return Break(line)

    def read_goto(self, line: int) -> Statement:
        label = self.expect(NAME)
        self.jumps.jump(label, line)
        return Goto(line, label)

    def read_label(self, line: int) -> Statement:
        name = self.expect(NAME)
        self.expect("::")
        place = self.place
        last = len(self.kinds) - 1  # the end of the text: a truncated label must not pass it
        while self.kinds[place] in (";", "::"):  # a label followed by no statement is at the end of its block
            place = min(place + (3 if self.kinds[place] == "::" else 1), last)
        behind = self.kinds[place]
        self.jumps.land(name, line, is_last=is_end(behind) and behind != "until")  # its condition can see the locals
        return Label(line, name)


def _levels(target: Name | Index) -> int:
    levels, node = 0, target
    while isinstance(node, Index):
        levels += 1
        node = node.base  # type: ignore[assignment]
    return levels


_READERS = {
    "if": _Parser.read_if,
    "while": _Parser.read_while,
    "do": _Parser.read_do,
    "for": _Parser.read_for,
    "repeat": _Parser.read_repeat,
    "function": _Parser.read_function,
    "local": _Parser.read_local,
    "return": _Parser.read_return,
    "break": _Parser.read_break,
    "goto": _Parser.read_goto,
    "::": _Parser.read_label,
}
