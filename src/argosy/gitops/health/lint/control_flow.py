"""Follows every execution path of a script, and tracks tests and assignments on each.

In: the tree of a script. Out: results, reached branches, and uses of values that may be nil. Never: runs the script;
takes more than the allowed steps: then it raises `AnalysisAborted`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import reduce

from argosy.gitops.health.lint.evaluation import Evaluation
from argosy.gitops.health.lint.flow_state import Result, State, thinned
from argosy.gitops.health.lint.script_facts import Frame, Limits
from argosy.gitops.health.lint.values import NIL, TRUTHY, UNKNOWN, exactly
from argosy.gitops.health.lua.syntax.scopes import Scopes, Variable
from argosy.gitops.health.lua.syntax.tree import (
    Assign,
    Block,
    Break,
    Do,
    Expression,
    For,
    ForIn,
    Function,
    Goto,
    If,
    Index,
    Label,
    Local,
    LocalFunction,
    Name,
    Node,
    Repeat,
    Return,
    Scope,
    Statement,
    While,
)

MOST_ROUNDS = 12
_Split = Callable[[State], tuple[list[State], list[State]]]


class Flow(Evaluation):
    """`reached` has every statement, clause and else-block that some path reaches; `entered` the clauses taken."""

    def __init__(self, script: Block, scopes: Scopes, limits: Limits, missing: Collection[Variable] = ()) -> None:
        super().__init__(script, scopes, limits, missing)
        self.script = script
        self.reached: set[Node] = set()
        self.entered: set[Node] = set()
        self.fell_off: list[State] = []
        self.answers: list[tuple[Return, State, list[Result], bool]] = []

    def run(self) -> None:
        frame = self.frames[-1]
        self.fell_off = self.block(self.script, [State()])
        self._finish(frame)
        self.answers = frame.returned

    def run_alone(self, function: Function) -> None:
        """Follow the paths of a function whose callers are unknown."""
        self.frames.append(Frame(function))
        self.block(function.body, [State()])
        self._finish(self.frames.pop())

    def _finish(self, frame: Frame) -> None:
        if frame.waiting:
            self.give_up()  # a backward jump

    def thinned(self, states: list[State]) -> list[State]:
        is_in_loop = any(frame.broken for frame in self.frames)
        return thinned(states, self.subject, self.limits.ways_in_loops if is_in_loop else self.limits.ways)

    # -- blocks --

    def block(self, block: Block, states: list[State]) -> list[State]:
        declared: list[Variable] = []
        for statement in block.statements:
            if isinstance(statement, Label):
                states = states + self.frames[-1].waiting.pop(statement.name, [])
            if not states:
                continue
            self.reached.add(statement)
            if isinstance(statement, Local | LocalFunction):
                names = statement.names if isinstance(statement, Local) else (statement.name,)
                declared.extend(self.scopes.variables[name] for name in names)
            states = self.thinned(self.statement(statement, states))
        return [state.forgetting_all(declared) for state in states]

    def statement(self, node: Statement, states: list[State]) -> list[State]:
        for state in states:
            self.step(state)
        match node:
            case Local():
                return self._assigning(node.values, [self.scopes.variables[name] for name in node.names], states)
            case LocalFunction():
                return self._assigning((node.function,), [self.scopes.variables[node.name]], states)
            case Assign():
                return self._assign(node, states)
            case Do():
                return [after for state in states for after, _ in self.evaluate(node.call, state)]
            case Scope():
                return self.block(node.body, states)
            case If():
                return self._if(node, states)
            case Return():
                for state in states:
                    for after, results, is_open in self.evaluate_all(node.values, state):
                        self.frames[-1].returned.append((node, after, results, is_open))
            case Break():
                self.frames[-1].broken[-1].extend(states)
            case Goto():
                self.frames[-1].waiting.setdefault(node.label, []).extend(states)
            case Label():
                return states
            case _:
                return self._loop(node, states)
        return []

    def _if(self, node: If, states: list[State]) -> list[State]:
        after: list[State] = []
        for clause in node.clauses:
            if not states:
                break
            self.reached.add(clause)
            taken, passed = self._split(clause.condition, states)
            if taken:
                self.entered.add(clause)
                after += self.block(clause.body, taken)
            states = passed
        if node.otherwise is not None and states:
            self.reached.add(node.otherwise)
            states = self.block(node.otherwise, states)
        return after + states

    def _split(self, condition: Expression, states: list[State]) -> tuple[list[State], list[State]]:
        taken: list[State] = []
        passed: list[State] = []
        for state in states:
            yes, no = self.branch(condition, state)
            taken += yes
            passed += no
        return self.thinned(taken), self.thinned(passed)

    # -- loops --

    def _loop(self, node: Statement, states: list[State]) -> list[State]:
        match node:
            case While():
                return self._rounds(node.body, states, lambda state: self.branch(node.condition, state))
            case Repeat():
                return self._repeat(node, states)
            case For():
                for bound in node.bounds:
                    states = [after for state in states for after, _ in self.evaluate(bound, state)]
                variable = self.scopes.variables[node.name]
                return self._rounds(
                    node.body, states, lambda state: ([state.setting((variable,), Result(TRUTHY))], [state])
                )
            case ForIn():
                return self._for_in(node, states)
        return states

    def _repeat(self, node: Repeat, states: list[State]) -> list[State]:
        entered = self.thinned(states)
        left: list[State] = []

        def again(state: State) -> tuple[list[State], list[State]]:
            done, back = self.branch(node.condition, state)
            left.extend(done)
            return back, []

        def head(state: State) -> tuple[list[State], list[State]]:
            return [state], []

        after = self._rounds(node.body, entered, head, again)
        return after + self.thinned(left)

    def _for_in(self, node: ForIn, states: list[State]) -> list[State]:
        variables = [self.scopes.variables[name] for name in node.names]
        after: list[State] = []
        entering: dict[Variable | None, list[State]] = {}  # by the loop variable that holds a part of `obj`
        for state in states:
            for begun, results, _ in self.evaluate_all(node.values, state):
                source = results[0].source if results else None
                if source is not None and begun.is_empty(source):
                    after.append(begun)
                    continue
                is_part = source is not None and source.place is not None and self.is_of_subject(source.place, begun)
                element = variables[1] if is_part and len(variables) > 1 else None
                entering.setdefault(element, []).append(begun)
        for element, together in entering.items():
            after += self._through(node.body, self.thinned(together), variables, element)
        return after

    def _through(
        self, body: Block, states: list[State], variables: list[Variable], element: Variable | None
    ) -> list[State]:
        after = self._rounds(
            body,
            states,
            lambda now: ([_fresh(now, variables, element)], [now]),
            lambda now: ([now.forgetting_all(variables)], []),
        )
        return [state.forgetting_all(variables) for state in after]

    def _rounds(self, body: Block, states: list[State], head: _Split, tail: _Split | None = None) -> list[State]:
        """Iterate the loop until no new state appears; return the states that leave it."""
        self.frames[-1].broken.append([])
        left: list[State] = []
        seen: set[object] = set()
        widest: State | None = None
        for number in range(MOST_ROUNDS):
            entering: list[State] = []
            for state in states:
                enter, leave = head(state)
                entering += enter
                left += leave
            after = self.block(body, self.thinned(entering))
            if tail is not None:
                after = [back for state in after for back in tail(state)[0]]
            states = [state for state in self.thinned(after) if state.key not in seen]
            seen.update(state.key for state in states)
            if number > 2 and states:
                joined = reduce(State.join, states if widest is None else [widest, *states])
                states = [joined] if widest is None or joined.key != widest.key else []
                widest = joined
            if not states:
                return self.thinned(left + self.frames[-1].broken.pop())
        self.give_up()

    # -- assignments --

    def _assigning(self, values: tuple[Expression, ...], variables: list[Variable], states: list[State]) -> list[State]:
        after = []
        for state in states:
            for done, results, is_open in self.evaluate_all(values, state):
                for place, variable in enumerate(variables):
                    done = self.bind(done, variable, result_at(results, place, is_open))
                after.append(done)
        return after

    def _assign(self, node: Assign, states: list[State]) -> list[State]:
        after = []
        for state in states:
            for done, results, is_open in self.evaluate_all(node.values, state):
                ways = [done]
                for place, target in enumerate(node.targets):
                    result = result_at(results, place, is_open)
                    ways = [then for way in ways for then in self._store(way, target, result)]
                after += ways
        return after

    def _store(self, state: State, target: Name | Index, result: Result) -> list[State]:
        if isinstance(target, Name):
            return [self.bind(state, self.scopes.variables[target], result)]
        after = []
        for done, base, key in self.evaluate_index(target, state):
            if base.place is None:
                after.append(done)
            elif key is None:
                after.append(done.letting_go(base.place))
            else:
                after.append(self.put(done, (*base.place, key), result))
        return after


def _fresh(state: State, variables: list[Variable], element: Variable | None) -> State:
    state = state.forgetting_all(variables).setting((variables[0],), Result(TRUTHY))
    if element is not None:
        state = replace(state.setting((element,), Result(TRUTHY)), elements=state.elements | {element})
    return state


def result_at(results: list[Result], place: int, is_open: bool) -> Result:
    if place < len(results):
        return results[place]
    return Result(UNKNOWN if is_open else exactly(NIL))
