"""Evaluates expressions on one execution path, and splits paths at tests.

In: an expression and a state. Out: the states after it, each with the value of the expression. Never: runs a script.
"""

from __future__ import annotations

from argosy.gitops.health.lint.analysis_context import MAX_CALL_DEPTH, PURE_FUNCTIONS, CallFrame, ScriptAnalysis
from argosy.gitops.health.lint.flow_state import UNKNOWN_RESULT, ExpressionResult, FlowState, Location
from argosy.gitops.health.lint.flow_state_splits import (
    EQUALITY_OPERATORS,
    ORDER_OPERATORS,
    split_by_equality,
    split_by_order,
    split_by_truth,
)
from argosy.gitops.health.lint.possible_value_set import (
    FALSE,
    FALSY,
    FUNCTION,
    NIL,
    ONLY_NIL,
    TABLE,
    TRUE,
    TRUTHY,
    UNKNOWN,
    PossibleValues,
    string_atom,
    values_of,
)
from argosy.gitops.health.lua.syntax.scopes import LuaVariable
from argosy.gitops.health.lua.syntax.tree import (
    BinaryExpression,
    ConcatExpression,
    FunctionCall,
    FunctionExpression,
    IndexExpression,
    LogicalExpression,
    LuaBlock,
    LuaConstant,
    LuaExpression,
    MethodCall,
    NameReference,
    StringLiteral,
    TableConstructor,
    UnaryExpression,
    Vararg,
)

ValuePaths = list[tuple[FlowState, ExpressionResult]]
MultiValuePaths = list[tuple[FlowState, list[ExpressionResult], bool]]  # the bool says that there may be more values
StateSplit = tuple[list[FlowState], list[FlowState]]
_POSITIONAL_KEY = "[1]"  # represents all entries of a table without a name


class ExpressionEvaluator(ScriptAnalysis):
    def follow_block(self, block: LuaBlock, states: list[FlowState]) -> list[FlowState]:
        raise NotImplementedError  # implemented by the statement analysis

    # -- variables --

    def bind_variable(self, state: FlowState, variable: LuaVariable, result: ExpressionResult) -> FlowState:
        if variable in self.untracked or variable is self.subject:
            return state.forget((variable,))
        location = result.location
        if location is not None and self.is_part_of_object(location, state) and location[0] is not variable:
            return state.add_alias(variable, location)
        return self.assign_location(state, (variable,), result)

    def assign_location(self, state: FlowState, location: Location, result: ExpressionResult) -> FlowState:
        if (
            result.location is not None
            and result.value.may_be(TABLE)
            and not self.is_part_of_object(result.location, state)
        ):
            state = state.forget_fields(result.location)  # from now on, two names refer to one table
            result = ExpressionResult(result.value)
        return state.assign(location, result)

    def _evaluate_name(self, node: NameReference, state: FlowState) -> ExpressionResult:
        variable = self.scopes.variables[node]
        if variable in self.untracked:
            return UNKNOWN_RESULT
        if variable in self.missing_globals:
            return ExpressionResult(values_of(NIL))
        if variable.is_global and not variable.values:
            return ExpressionResult(UNKNOWN, (variable,)) if node.name == "obj" else UNKNOWN_RESULT
        location = state.location_of(variable)
        return ExpressionResult(state.value_at(location), location)

    # -- expressions --

    def evaluate(self, node: LuaExpression, state: FlowState) -> ValuePaths:
        self.count_step(state)
        match node:
            case StringLiteral():
                return [(state, ExpressionResult(values_of(string_atom(node.value))))]
            case LuaConstant():
                return [(state, ExpressionResult(_evaluate_constant(node)))]
            case NameReference():
                return [(state, self._evaluate_name(node, state))]
            case IndexExpression():
                return [
                    (next_state, _evaluate_field(next_state, base, key))
                    for next_state, base, key in self.evaluate_index(node, state)
                ]
            case LogicalExpression():
                return self._evaluate_logical(node, state)
            case FunctionCall() | MethodCall():
                return [
                    (next_state, results[0] if results else _missing_result(is_open))
                    for next_state, results, is_open in self.evaluate_call(node, state)
                ]
            case BinaryExpression(operator=operator) if operator in EQUALITY_OPERATORS or operator in ORDER_OPERATORS:
                return self._evaluate_boolean(node, state)
            case UnaryExpression(operator="not"):
                return self._evaluate_boolean(node, state)
            case BinaryExpression():
                return [
                    (last_state, ExpressionResult(TRUTHY))
                    for next_state, _ in self.evaluate(node.left, state)
                    for last_state, _ in self.evaluate(node.right, next_state)
                ]
            case UnaryExpression():
                paths = self.evaluate(node.operand, state)
                use = "counted" if node.operator == "#" else ""
                return [
                    (
                        self.record_nil_use(operand, next_state, node.line, use) if use else next_state,
                        ExpressionResult(TRUTHY),
                    )
                    for next_state, operand in paths
                ]
            case ConcatExpression():
                return self._evaluate_concat(node, state)
            case TableConstructor():
                return self._evaluate_table(node, state)
            case FunctionExpression():
                return [(state, ExpressionResult(values_of(FUNCTION)))]
        return [(state, UNKNOWN_RESULT)]

    def evaluate_all(self, nodes: tuple[LuaExpression, ...], state: FlowState) -> MultiValuePaths:
        """Evaluate a list of expressions; a call at the end may return several values."""
        paths: MultiValuePaths = [(state, [], False)]
        for position, node in enumerate(nodes):
            is_last = position == len(nodes) - 1
            next_paths: MultiValuePaths = []
            for path_state, results, _ in paths:
                if is_last and isinstance(node, FunctionCall | MethodCall):
                    next_paths += [
                        (next_state, results + more_results, is_open)
                        for next_state, more_results, is_open in self.evaluate_call(node, path_state)
                    ]
                else:
                    is_open = is_last and isinstance(node, Vararg)
                    next_paths += [
                        (next_state, [*results, result], is_open)
                        for next_state, result in self.evaluate(node, path_state)
                    ]
            paths = next_paths
        return paths

    def evaluate_index(
        self, node: IndexExpression, state: FlowState
    ) -> list[tuple[FlowState, ExpressionResult, str | None]]:
        """Return the base, and the key if it is a single string."""
        paths = []
        for base_state, base in self.evaluate(node.base, state):
            base_state = self.record_nil_use(base, base_state, node.line, "indexed")
            for key_state, key in self.evaluate(node.key, base_state):
                atom = key.value.only_literal
                paths.append((key_state, base, str(atom[1]) if atom is not None and atom[0] == "string" else None))
        return paths

    def _evaluate_logical(self, node: LogicalExpression, state: FlowState) -> ValuePaths:
        decided: ValuePaths = []
        undecided: ValuePaths = self.evaluate(node.operands[0], state)
        for operand in node.operands[1:]:
            next_paths: ValuePaths = []
            for path_state, result in undecided:
                truthy, falsy = split_by_truth(path_state, result)
                decided_state, undecided_state = (falsy, truthy) if node.operator == "and" else (truthy, falsy)
                if decided_state is not None:
                    narrowed = result.value.intersect(FALSY) if node.operator == "and" else result.value.exclude(FALSY)
                    decided_result = ExpressionResult(narrowed, result.location, result.fields, result.has_all_fields)
                    decided.append((decided_state, decided_result))
                if undecided_state is not None:
                    next_paths += self.evaluate(operand, undecided_state)
            undecided = next_paths
        return decided + undecided

    def _evaluate_boolean(self, node: LuaExpression, state: FlowState) -> ValuePaths:
        truthy, falsy = self.split_by_condition(node, state)
        true_result, false_result = ExpressionResult(values_of(TRUE)), ExpressionResult(values_of(FALSE))
        return [(path_state, true_result) for path_state in truthy] + [
            (path_state, false_result) for path_state in falsy
        ]

    def _evaluate_concat(self, node: ConcatExpression, state: FlowState) -> ValuePaths:
        states = [state]
        for part in node.parts:
            states = [
                self.record_nil_use(operand, next_state, part.line, "joined")
                for previous in states
                for next_state, operand in self.evaluate(part, previous)
            ]
        return [(next_state, ExpressionResult(TRUTHY)) for next_state in states]

    def _evaluate_table(self, node: TableConstructor, state: FlowState) -> ValuePaths:
        paths: list[tuple[FlowState, dict[str, ExpressionResult]]] = [(state, {})]
        has_all = True
        for entry in node.fields:
            key = entry.key
            name = _POSITIONAL_KEY if key is None else key.value if isinstance(key, StringLiteral) else None
            has_all = has_all and name is not None
            next_paths = []
            for previous, fields in paths:
                for next_state, entry_result in self.evaluate(entry.value, previous):
                    location = entry_result.location
                    if location is not None and not self.is_part_of_object(location, next_state):
                        next_state = next_state.forget_fields(location)
                    next_paths.append((next_state, fields if name is None else {**fields, name: entry_result}))
            paths = next_paths
        return [(next_state, ExpressionResult(values_of(TABLE), None, fields, has_all)) for next_state, fields in paths]

    # -- calls --

    def evaluate_call(self, node: FunctionCall | MethodCall, state: FlowState) -> MultiValuePaths:
        if isinstance(node, MethodCall):
            return self._evaluate_method(node, state)
        function = node.function
        variable = self.scopes.variables[function] if isinstance(function, NameReference) else None
        start_states = (
            [state]
            if isinstance(function, NameReference)
            else [next_state for next_state, _ in self.evaluate(function, state)]
        )
        paths: MultiValuePaths = []
        for start_state in start_states:
            for next_state, results, _ in self.evaluate_all(node.arguments, start_state):
                if variable is not None and variable in self.functions:
                    paths += self._call_script_function(self.functions[variable], next_state, results)
                else:
                    paths += self._call_library(node, next_state, results)
        return paths

    def _evaluate_method(self, node: MethodCall, state: FlowState) -> MultiValuePaths:
        paths: MultiValuePaths = []
        for base_state, base in self.evaluate(node.base, state):
            base_state = self.record_nil_use(base, base_state, node.line, "indexed")
            for next_state, results, _ in self.evaluate_all(node.arguments, base_state):
                paths.append((self._forget_arguments(next_state, [base, *results]), [], True))
        return paths

    def _forget_arguments(self, state: FlowState, results: list[ExpressionResult]) -> FlowState:
        for result in results:
            if result.location is not None:
                state = state.forget_fields(result.location)
        return state

    def _call_library(self, node: FunctionCall, state: FlowState, results: list[ExpressionResult]) -> MultiValuePaths:
        name = self.find_builtin(node.function)
        if name == "error":
            return []  # execution ends here
        if name in ("ipairs", "pairs") and results:
            state = self.record_nil_use(results[0], state, node.line, "iterated")
            return [(state, [ExpressionResult(TRUTHY, source=results[0])], True)]
        if name == "tonumber" and results:
            return _evaluate_tonumber(state, results[0])
        if name == "type" and results:
            return [(state, [ExpressionResult(TRUTHY, type_of=results[0].location)], False)]
        if name == "tostring":
            return [(state, [ExpressionResult(TRUTHY)], False)]
        return [(state if name in PURE_FUNCTIONS else self._forget_arguments(state, results), [], True)]

    def _call_script_function(
        self, function: FunctionExpression, state: FlowState, results: list[ExpressionResult]
    ) -> MultiValuePaths:
        """Follow a call into a function of the script, with these arguments."""
        if len(self.frames) > MAX_CALL_DEPTH or any(frame.function is function for frame in self.frames):
            for variable in self.list_changed_variables(function):
                state = state.forget((variable,))
            return [(self._forget_arguments(state, results), [], True)]
        frame = CallFrame(function)
        self.frames.append(frame)
        parameters = [self.scopes.variables[name] for name in function.parameters]
        for position, variable in enumerate(parameters):
            argument = results[position] if position < len(results) else ExpressionResult(values_of(NIL))
            state = self.bind_variable(state, variable, argument)
        end_states = self.follow_block(function.body, [state])
        self.frames.pop()
        if frame.goto_states:
            self.abort()
        paths: MultiValuePaths = [(path_state, [], False) for path_state in end_states]
        for _, path_state, returned_results, is_open in frame.returned_results:
            detached = [self._detach_result(path_state, returned) for returned in returned_results]
            paths.append((path_state, detached, is_open))
        next_paths = [
            (path_state.forget_variables(self.inner_variables[function]), returned_results, is_open)
            for path_state, returned_results, is_open in paths
        ]
        return _drop_duplicate_paths(next_paths)

    def _detach_result(self, state: FlowState, result: ExpressionResult) -> ExpressionResult:
        """Detach a result from the local variable of the function that returned it."""
        location = result.location
        if location is None or (location[0] is self.subject):
            return result
        fields = {key[-1]: ExpressionResult(value) for key, value in state.values.items() if key[:-1] == location}
        is_closed = location in state.complete_tables
        return ExpressionResult(result.value, None, fields if fields or is_closed else None, is_closed)

    # -- tests --

    def split_by_condition(self, node: LuaExpression, state: FlowState) -> StateSplit:
        """Return the states in which the expression is true, and those in which it is false."""
        self.count_step(state)
        match node:
            case LogicalExpression():
                return self._split_by_logical(node, state)
            case UnaryExpression(operator="not"):
                truthy, falsy = self.split_by_condition(node.operand, state)
                return falsy, truthy
            case BinaryExpression(operator=operator) if operator in EQUALITY_OPERATORS or operator in ORDER_OPERATORS:
                return self._split_by_comparison(node, state)
        splits = [split_by_truth(path_state, result) for path_state, result in self.evaluate(node, state)]
        return [true_state for true_state, _ in splits if true_state is not None], [
            false_state for _, false_state in splits if false_state is not None
        ]

    def _split_by_logical(self, node: LogicalExpression, state: FlowState) -> StateSplit:
        undecided, decided = [state], []
        for operand in node.operands:
            next_states = []
            for path_state in undecided:
                truthy, falsy = self.split_by_condition(operand, path_state)
                continuing, finished = (truthy, falsy) if node.operator == "and" else (falsy, truthy)
                next_states += continuing
                decided += finished
            undecided = next_states
        return (undecided, decided) if node.operator == "and" else (decided, undecided)

    def _split_by_comparison(self, node: BinaryExpression, state: FlowState) -> StateSplit:
        truthy: list[FlowState] = []
        falsy: list[FlowState] = []
        for left_state, left in self.evaluate(node.left, state):
            for right_state, right in self.evaluate(node.right, left_state):
                if node.operator in EQUALITY_OPERATORS:
                    true_state, false_state = split_by_equality(right_state, left, right)
                    if node.operator == "~=":
                        true_state, false_state = false_state, true_state
                else:
                    true_state, false_state = split_by_order(node.operator, right_state, left, right)
                truthy += [true_state] if true_state is not None else []
                falsy += [false_state] if false_state is not None else []
        return truthy, falsy


def _evaluate_constant(node: LuaConstant) -> PossibleValues:
    if node.is_number:
        return values_of(("number", node.value)) if node.value is not None else TRUTHY
    return values_of(NIL if node.value is None else TRUE if node.value else FALSE)


def _evaluate_tonumber(state: FlowState, argument: ExpressionResult) -> MultiValuePaths:
    """Evaluate `tonumber(argument)`: nil for nil, unknown for anything else."""
    nil, not_nil = argument.value.intersect(ONLY_NIL), argument.value.exclude(ONLY_NIL)
    paths: MultiValuePaths = []
    for value, result in ((nil, ExpressionResult(values_of(NIL))), (not_nil, UNKNOWN_RESULT)):
        narrowed = state.narrow(argument.location, value)
        if narrowed is not None:
            paths.append((narrowed, [result], False))
    return paths


def _drop_duplicate_paths(paths: MultiValuePaths) -> MultiValuePaths:
    """Remove duplicate paths."""
    paths_by_key = {}
    for path in paths:
        state, results, is_open = path
        paths_by_key[state.key, tuple([result.key() for result in results]), is_open] = path
    return list(paths_by_key.values())


def _missing_result(is_open: bool) -> ExpressionResult:
    return UNKNOWN_RESULT if is_open else ExpressionResult(values_of(NIL))


def _evaluate_field(state: FlowState, base: ExpressionResult, key: str | None) -> ExpressionResult:
    if key is None:
        return UNKNOWN_RESULT
    if base.location is not None:
        return ExpressionResult(state.value_at((*base.location, key)), (*base.location, key))
    if base.fields is not None and (key in base.fields or base.has_all_fields):
        return base.fields.get(key, ExpressionResult(values_of(NIL)))
    return UNKNOWN_RESULT
