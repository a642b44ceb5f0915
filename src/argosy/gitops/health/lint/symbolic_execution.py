"""Follows every execution path of a script, and tracks tests and assignments on each.

In: the tree of a script. Out: results, reached branches, and uses of values that may be nil. Never: runs the script;
takes more than the allowed steps: then it raises `AnalysisAborted`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import reduce

from argosy.gitops.health.lint.analysis_context import AnalysisLimits, CallFrame
from argosy.gitops.health.lint.expression_evaluation import ExpressionEvaluator
from argosy.gitops.health.lint.flow_state import ExpressionResult, FlowState, limit_states
from argosy.gitops.health.lint.possible_value_set import NIL, TRUTHY, UNKNOWN, values_of
from argosy.gitops.health.lua.syntax.scopes import LuaScopes, LuaVariable
from argosy.gitops.health.lua.syntax.tree import (
    AssignStatement,
    BreakStatement,
    CallStatement,
    DoBlock,
    FunctionExpression,
    GenericFor,
    GotoStatement,
    IfStatement,
    IndexExpression,
    LabelStatement,
    LocalFunction,
    LocalStatement,
    LuaBlock,
    LuaExpression,
    LuaNode,
    LuaStatement,
    NameReference,
    NumericFor,
    RepeatLoop,
    ReturnStatement,
    WhileLoop,
)

MAX_LOOP_ROUNDS = 12
_Split = Callable[[FlowState], tuple[list[FlowState], list[FlowState]]]


class ControlFlow(ExpressionEvaluator):
    """`reached` has every statement, clause and else-block that some path reaches; `entered` the clauses taken."""

    def __init__(
        self, script: LuaBlock, scopes: LuaScopes, limits: AnalysisLimits, missing: Collection[LuaVariable] = ()
    ) -> None:
        super().__init__(script, scopes, limits, missing)
        self.script = script
        self.reached_nodes: set[LuaNode] = set()
        self.entered_clauses: set[LuaNode] = set()
        self.end_states: list[FlowState] = []
        self.script_results: list[tuple[ReturnStatement, FlowState, list[ExpressionResult], bool]] = []

    def run(self) -> None:
        frame = self.frames[-1]
        self.end_states = self.follow_block(self.script, [FlowState()])
        self._check_pending_jumps(frame)
        self.script_results = frame.returned_results

    def run_function(self, function: FunctionExpression) -> None:
        """Follow the paths of a function whose callers are unknown."""
        self.frames.append(CallFrame(function))
        self.follow_block(function.body, [FlowState()])
        self._check_pending_jumps(self.frames.pop())

    def _check_pending_jumps(self, frame: CallFrame) -> None:
        if frame.goto_states:
            self.abort()  # a backward jump

    def limit_states(self, states: list[FlowState]) -> list[FlowState]:
        is_in_loop = any(frame.break_states for frame in self.frames)
        return limit_states(
            states, self.subject, self.limits.max_paths_in_loops if is_in_loop else self.limits.max_paths
        )

    # -- blocks --

    def follow_block(self, block: LuaBlock, states: list[FlowState]) -> list[FlowState]:
        declared: list[LuaVariable] = []
        for statement in block.statements:
            if isinstance(statement, LabelStatement):
                states = states + self.frames[-1].goto_states.pop(statement.name, [])
            if not states:
                continue
            self.reached_nodes.add(statement)
            if isinstance(statement, LocalStatement | LocalFunction):
                names = statement.names if isinstance(statement, LocalStatement) else (statement.name,)
                declared.extend(self.scopes.variables[name] for name in names)
            states = self.limit_states(self.follow_statement(statement, states))
        return [state.forget_variables(declared) for state in states]

    def follow_statement(self, node: LuaStatement, states: list[FlowState]) -> list[FlowState]:
        for state in states:
            self.count_step(state)
        match node:
            case LocalStatement():
                return self._follow_assignment(
                    node.values, [self.scopes.variables[name] for name in node.names], states
                )
            case LocalFunction():
                return self._follow_assignment((node.function,), [self.scopes.variables[node.name]], states)
            case AssignStatement():
                return self._follow_assign_statement(node, states)
            case CallStatement():
                return [next_state for state in states for next_state, _ in self.evaluate(node.call, state)]
            case DoBlock():
                return self.follow_block(node.body, states)
            case IfStatement():
                return self._follow_if(node, states)
            case ReturnStatement():
                for state in states:
                    for next_state, results, is_open in self.evaluate_all(node.values, state):
                        self.frames[-1].returned_results.append((node, next_state, results, is_open))
            case BreakStatement():
                self.frames[-1].break_states[-1].extend(states)
            case GotoStatement():
                self.frames[-1].goto_states.setdefault(node.label, []).extend(states)
            case LabelStatement():
                return states
            case _:
                return self._follow_loop(node, states)
        return []

    def _follow_if(self, node: IfStatement, states: list[FlowState]) -> list[FlowState]:
        next_states: list[FlowState] = []
        for clause in node.clauses:
            if not states:
                break
            self.reached_nodes.add(clause)
            taken, skipped = self._split_states(clause.condition, states)
            if taken:
                self.entered_clauses.add(clause)
                next_states += self.follow_block(clause.body, taken)
            states = skipped
        if node.otherwise is not None and states:
            self.reached_nodes.add(node.otherwise)
            states = self.follow_block(node.otherwise, states)
        return next_states + states

    def _split_states(
        self, condition: LuaExpression, states: list[FlowState]
    ) -> tuple[list[FlowState], list[FlowState]]:
        taken: list[FlowState] = []
        skipped: list[FlowState] = []
        for state in states:
            true_states, false_states = self.split_by_condition(condition, state)
            taken += true_states
            skipped += false_states
        return self.limit_states(taken), self.limit_states(skipped)

    # -- loops --

    def _follow_loop(self, node: LuaStatement, states: list[FlowState]) -> list[FlowState]:
        match node:
            case WhileLoop():
                return self._iterate_loop(
                    node.body, states, lambda state: self.split_by_condition(node.condition, state)
                )
            case RepeatLoop():
                return self._follow_repeat(node, states)
            case NumericFor():
                for bound in node.bounds:
                    states = [next_state for state in states for next_state, _ in self.evaluate(bound, state)]
                variable = self.scopes.variables[node.name]
                return self._iterate_loop(
                    node.body, states, lambda state: ([state.assign((variable,), ExpressionResult(TRUTHY))], [state])
                )
            case GenericFor():
                return self._follow_generic_for(node, states)
        return states

    def _follow_repeat(self, node: RepeatLoop, states: list[FlowState]) -> list[FlowState]:
        entered = self.limit_states(states)
        exit_states: list[FlowState] = []

        def test_condition(state: FlowState) -> tuple[list[FlowState], list[FlowState]]:
            exits, repeats = self.split_by_condition(node.condition, state)
            exit_states.extend(exits)
            return repeats, []

        def enter_body(state: FlowState) -> tuple[list[FlowState], list[FlowState]]:
            return [state], []

        next_states = self._iterate_loop(node.body, entered, enter_body, test_condition)
        return next_states + self.limit_states(exit_states)

    def _follow_generic_for(self, node: GenericFor, states: list[FlowState]) -> list[FlowState]:
        variables = [self.scopes.variables[name] for name in node.names]
        next_states: list[FlowState] = []
        entering: dict[LuaVariable | None, list[FlowState]] = {}  # by the loop variable that holds a part of `obj`
        for state in states:
            for start_state, results, _ in self.evaluate_all(node.values, state):
                source = results[0].source if results else None
                if source is not None and start_state.is_empty(source):
                    next_states.append(start_state)
                    continue
                iterates_subject = (
                    source is not None
                    and source.location is not None
                    and self.is_part_of_object(source.location, start_state)
                )
                element = variables[1] if iterates_subject and len(variables) > 1 else None
                entering.setdefault(element, []).append(start_state)
        for element, group in entering.items():
            next_states += self._follow_iteration(node.body, self.limit_states(group), variables, element)
        return next_states

    def _follow_iteration(
        self, body: LuaBlock, states: list[FlowState], variables: list[LuaVariable], element: LuaVariable | None
    ) -> list[FlowState]:
        next_states = self._iterate_loop(
            body,
            states,
            lambda current: ([_enter_iteration(current, variables, element)], [current]),
            lambda current: ([current.forget_variables(variables)], []),
        )
        return [state.forget_variables(variables) for state in next_states]

    def _iterate_loop(
        self, body: LuaBlock, states: list[FlowState], head: _Split, tail: _Split | None = None
    ) -> list[FlowState]:
        """Iterate the loop until no new state appears; return the states that leave it."""
        self.frames[-1].break_states.append([])
        exit_states: list[FlowState] = []
        seen: set[object] = set()
        widest: FlowState | None = None
        for round_number in range(MAX_LOOP_ROUNDS):
            entering: list[FlowState] = []
            for state in states:
                entered, exited = head(state)
                entering += entered
                exit_states += exited
            next_states = self.follow_block(body, self.limit_states(entering))
            if tail is not None:
                next_states = [repeated for state in next_states for repeated in tail(state)[0]]
            states = [state for state in self.limit_states(next_states) if state.key not in seen]
            seen.update(state.key for state in states)
            if round_number > 2 and states:
                joined = reduce(FlowState.join, states if widest is None else [widest, *states])
                states = [joined] if widest is None or joined.key != widest.key else []
                widest = joined
            if not states:
                return self.limit_states(exit_states + self.frames[-1].break_states.pop())
        self.abort()

    # -- assignments --

    def _follow_assignment(
        self, values: tuple[LuaExpression, ...], variables: list[LuaVariable], states: list[FlowState]
    ) -> list[FlowState]:
        next_states = []
        for state in states:
            for next_state, results, is_open in self.evaluate_all(values, state):
                for position, variable in enumerate(variables):
                    next_state = self.bind_variable(next_state, variable, find_result(results, position, is_open))
                next_states.append(next_state)
        return next_states

    def _follow_assign_statement(self, node: AssignStatement, states: list[FlowState]) -> list[FlowState]:
        next_states = []
        for state in states:
            for start_state, results, is_open in self.evaluate_all(node.values, state):
                paths = [start_state]
                for position, target in enumerate(node.targets):
                    result = find_result(results, position, is_open)
                    paths = [next_state for path in paths for next_state in self._assign_target(path, target, result)]
                next_states += paths
        return next_states

    def _assign_target(
        self, state: FlowState, target: NameReference | IndexExpression, result: ExpressionResult
    ) -> list[FlowState]:
        if isinstance(target, NameReference):
            return [self.bind_variable(state, self.scopes.variables[target], result)]
        next_states = []
        for next_state, base, key in self.evaluate_index(target, state):
            if base.location is None:
                next_states.append(next_state)
            elif key is None:
                next_states.append(next_state.forget_fields(base.location))
            else:
                next_states.append(self.assign_location(next_state, (*base.location, key), result))
        return next_states


def _enter_iteration(state: FlowState, variables: list[LuaVariable], element: LuaVariable | None) -> FlowState:
    state = state.forget_variables(variables).assign((variables[0],), ExpressionResult(TRUTHY))
    if element is not None:
        state = replace(state.assign((element,), ExpressionResult(TRUTHY)), elements=state.elements | {element})
    return state


def find_result(results: list[ExpressionResult], position: int, is_open: bool) -> ExpressionResult:
    if position < len(results):
        return results[position]
    return ExpressionResult(UNKNOWN if is_open else values_of(NIL))
