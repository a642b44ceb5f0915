"""Parses Lua 5.1 with `goto` and labels, which both Argo CD's engine and LuaJIT 2.1 accept.

In: text. Out: its `LuaBlock`. Never: raises anything but LuaSyntaxError; takes more than linear time.
"""

from __future__ import annotations

from argosy.gitops.health.lua.syntax.expression_parser import ExpressionParser, ends_block
from argosy.gitops.health.lua.syntax.goto_and_break_checks import JumpChecker
from argosy.gitops.health.lua.syntax.lexer import END_TOKEN, NAME_TOKEN, LuaSyntaxError, tokenize
from argosy.gitops.health.lua.syntax.tree import (
    AssignStatement,
    BreakStatement,
    CallStatement,
    DoBlock,
    FunctionCall,
    GenericFor,
    GotoStatement,
    IfClause,
    IfStatement,
    IndexExpression,
    LabelStatement,
    LocalFunction,
    LocalStatement,
    LuaBlock,
    LuaExpression,
    LuaStatement,
    MethodCall,
    NameReference,
    NumericFor,
    RepeatLoop,
    ReturnStatement,
    StringLiteral,
    WhileLoop,
)


def parse(text: str) -> LuaBlock:
    try:
        return _LuaParser(tokenize(text)).parse_script()
    except RecursionError:  # the stack of the caller was nearly full
        raise LuaSyntaxError(1, "nested too deeply to parse; split it up") from None


class _LuaParser(ExpressionParser):
    def parse_script(self) -> LuaBlock:
        self.jumps = JumpChecker()
        body = self.parse_block(is_function=True)
        if self.kind != END_TOKEN:
            self.fail("'<eof>' expected")
        return body

    def parse_function_body(self, opener: str, line: int) -> LuaBlock:
        body = self.parse_block(is_function=True)
        self.expect_closing("end", opener, line)
        return body

    def parse_block(self, *, is_function: bool = False, is_loop: bool = False) -> LuaBlock:
        self.add_depth(1)
        line, statements = self.line, []
        self.jumps.enter_block(is_function=is_function, is_loop=is_loop)
        while not ends_block(self.kind):
            statement = self.parse_statement()
            statements.append(statement)
            self.accept(";")
            if isinstance(statement, ReturnStatement | BreakStatement):
                break  # both engines require them at the end of a block
        self.jumps.leave_block()
        self.depth -= 1
        return LuaBlock(line, tuple(statements), self.line)

    def parse_statement(self) -> LuaStatement:
        line, kind = self.line, self.kind
        read = _STATEMENT_PARSERS.get(kind)
        if read is None:
            return self._parse_assignment_or_call(line)
        self.position += 1
        return read(self, line)

    def parse_body_until_end(self, opener: str, line: int, *, is_loop: bool = True) -> LuaBlock:
        body = self.parse_block(is_loop=is_loop)
        self.expect_closing("end", opener, line)
        return body

    def _parse_assignment_or_call(self, line: int) -> LuaStatement:
        node = self.parse_suffixed()
        if self.kind not in ("=", ","):
            if self.in_parentheses or not isinstance(node, FunctionCall | MethodCall):
                self.fail("syntax error" if self.in_parentheses else "'=' expected")
            return CallStatement(line, node)
        targets = [self._check_target(node)]
        while self.accept(","):
            targets.append(self._check_target(self.parse_suffixed()))
        self.expect("=")
        return AssignStatement(line, tuple(targets), self.parse_expressions())

    def _check_target(self, node: LuaExpression) -> NameReference | IndexExpression:
        if self.in_parentheses or not isinstance(node, NameReference | IndexExpression):
            self.fail("syntax error")
        return node

    def parse_if(self, line: int) -> LuaStatement:
        clauses = [self._parse_clause(line)]
        otherwise = None
        while self.kind in ("elseif", "else"):
            begin = self.line
            if self.accept("elseif"):
                clauses.append(self._parse_clause(begin))
                continue
            self.position += 1
            otherwise = self.parse_block()
            break
        self.expect_closing("end", "if", line)
        return IfStatement(line, tuple(clauses), otherwise)

    def _parse_clause(self, line: int) -> IfClause:
        condition = self.parse_expression()
        self.expect("then")
        return IfClause(line, condition, self.parse_block())

    def parse_while(self, line: int) -> LuaStatement:
        condition = self.parse_expression()
        self.expect("do")
        return WhileLoop(line, condition, self.parse_body_until_end("while", line))

    def parse_do(self, line: int) -> LuaStatement:
        return DoBlock(line, self.parse_body_until_end("do", line, is_loop=False))

    def parse_repeat(self, line: int) -> LuaStatement:
        body = self.parse_block(is_loop=True)
        self.expect_closing("until", "repeat", line)
        return RepeatLoop(line, body, self.parse_expression())

    def parse_for(self, line: int) -> LuaStatement:
        first_name = self.parse_name()
        if self.accept("="):
            bounds = self.parse_expressions()
            if not 2 <= len(bounds) <= 3:
                self.fail("',' expected" if len(bounds) < 2 else "'do' expected")
            self.expect("do")
            return NumericFor(line, first_name, bounds, self.parse_body_until_end("for", line))
        names = [first_name]
        while self.accept(","):
            names.append(self.parse_name())
        if self.kind != "in":
            self.fail("'=' or 'in' expected" if len(names) == 1 else "'in' expected")
        self.position += 1
        values = self.parse_expressions()
        self.expect("do")
        return GenericFor(line, tuple(names), values, self.parse_body_until_end("for", line))

    def parse_function_statement(self, line: int) -> LuaStatement:
        target: NameReference | IndexExpression = self.parse_name()
        is_method = False
        while self.kind in (".", ":") and not is_method:
            is_method = self.kind == ":"
            self.position += 1
            self.add_depth(1)
            target = IndexExpression(self.line, target, StringLiteral(self.line, self.expect(NAME_TOKEN)))
        function = self.parse_function(line, is_method=is_method)
        self.depth -= _count_levels(target)
        return AssignStatement(line, (target,), (function,))

    def parse_local(self, line: int) -> LuaStatement:
        if self.accept("function"):
            name = self.parse_name()
            self.jumps.declare_local(name.name)
            return LocalFunction(line, name, self.parse_function(line))
        names = [self.parse_name()]
        while self.accept(","):
            names.append(self.parse_name())
        values = self.parse_expressions() if self.accept("=") else ()
        for name in names:
            self.jumps.declare_local(name.name)
        return LocalStatement(line, tuple(names), values)

    def parse_return(self, line: int) -> LuaStatement:
        if ends_block(self.kind) or self.kind == ";":
            return ReturnStatement(line, ())
        return ReturnStatement(line, self.parse_expressions())

    def parse_break(self, line: int) -> LuaStatement:
        self.jumps.check_break(line)
        return BreakStatement(line)

    def parse_goto(self, line: int) -> LuaStatement:
        label = self.expect(NAME_TOKEN)
        self.jumps.add_goto(label, line)
        return GotoStatement(line, label)

    def parse_label(self, line: int) -> LuaStatement:
        name = self.expect(NAME_TOKEN)
        self.expect("::")
        position = self.position
        last_position = len(self.kinds) - 1  # the end of the text: a truncated label must not pass it
        while self.kinds[position] in (";", "::"):  # a label followed by no statement is at the end of its block
            position = min(position + (3 if self.kinds[position] == "::" else 1), last_position)
        next_kind = self.kinds[position]
        self.jumps.add_label(
            name, line, is_last=ends_block(next_kind) and next_kind != "until"
        )  # its condition can see the locals
        return LabelStatement(line, name)


def _count_levels(target: NameReference | IndexExpression) -> int:
    levels, node = 0, target
    while isinstance(node, IndexExpression):
        levels += 1
        node = node.base  # type: ignore[assignment]
    return levels


_STATEMENT_PARSERS = {
    "if": _LuaParser.parse_if,
    "while": _LuaParser.parse_while,
    "do": _LuaParser.parse_do,
    "for": _LuaParser.parse_for,
    "repeat": _LuaParser.parse_repeat,
    "function": _LuaParser.parse_function_statement,
    "local": _LuaParser.parse_local,
    "return": _LuaParser.parse_return,
    "break": _LuaParser.parse_break,
    "goto": _LuaParser.parse_goto,
    "::": _LuaParser.parse_label,
}
