"""Evaluates expressions on one execution path, and splits paths at tests.

In: an expression and a state. Out: the states after it, each with the value of the expression. Never: runs a script.
"""

from __future__ import annotations

from argosy.gitops.health.lint.flow_state import ANYTHING, Place, Result, State
from argosy.gitops.health.lint.script_facts import HARMLESS, MOST_CALLS, Frame, Ground
from argosy.gitops.health.lint.values import (
    FALSE,
    FALSY,
    FUNCTION,
    NIL,
    ONLY_NIL,
    TABLE,
    TRUE,
    TRUTHY,
    UNKNOWN,
    Atom,
    Value,
    exactly,
    text,
)
from argosy.gitops.health.lua.syntax.scopes import Variable
from argosy.gitops.health.lua.syntax.tree import (
    Binary,
    Block,
    Call,
    Concat,
    Constant,
    Expression,
    Function,
    Index,
    Logical,
    Method,
    Name,
    String,
    Table,
    Unary,
    Vararg,
)

Ways = list[tuple[State, Result]]
Many = list[tuple[State, list[Result], bool]]  # the bool says that there may be more values
Split = tuple[list[State], list[State]]
_EQUALITY = ("==", "~=")
# Operator → (swap the operands, truth of `<`).
_ORDER = {"<": (False, True), ">": (True, True), "<=": (True, False), ">=": (False, False)}
_BY_PLACE = "[1]"  # represents all entries of a table without a name


class Evaluation(Ground):
    def block(self, block: Block, states: list[State]) -> list[State]:
        raise NotImplementedError  # implemented by the statement analysis

    # -- variables --

    def bind(self, state: State, variable: Variable, result: Result) -> State:
        if variable in self.loose or variable is self.subject:
            return state.forgetting((variable,))
        place = result.place
        if place is not None and self.is_of_subject(place, state) and place[0] is not variable:
            return state.naming(variable, place)
        return self.put(state, (variable,), result)

    def put(self, state: State, place: Place, result: Result) -> State:
        if result.place is not None and result.value.may_be(TABLE) and not self.is_of_subject(result.place, state):
            state = state.letting_go(result.place)  # from now on, two names refer to one table
            result = Result(result.value)
        return state.setting(place, result)

    def _name(self, node: Name, state: State) -> Result:
        variable = self.scopes.variables[node]
        if variable in self.loose:
            return ANYTHING
        if variable in self.missing:
            return Result(exactly(NIL))
        if variable.is_global and not variable.values:
            return Result(UNKNOWN, (variable,)) if node.name == "obj" else ANYTHING
        place = state.place_of(variable)
        return Result(state.look(place), place)

    # -- expressions --

    def evaluate(self, node: Expression, state: State) -> Ways:
        self.step(state)
        match node:
            case String():
                return [(state, Result(exactly(text(node.value))))]
            case Constant():
                return [(state, Result(_constant(node)))]
            case Name():
                return [(state, self._name(node, state))]
            case Index():
                return [(done, _field(done, base, key)) for done, base, key in self.evaluate_index(node, state)]
            case Logical():
                return self._logical(node, state)
            case Call() | Method():
                return [
                    (done, results[0] if results else _missing(is_open))
                    for done, results, is_open in self.call(node, state)
                ]
            case Binary(operator=operator) if operator in _EQUALITY or operator in _ORDER:
                return self._as_booleans(node, state)
            case Unary(operator="not"):
                return self._as_booleans(node, state)
            case Binary():
                return [
                    (then, Result(TRUTHY))
                    for done, _ in self.evaluate(node.left, state)
                    for then, _ in self.evaluate(node.right, done)
                ]
            case Unary():
                ways = self.evaluate(node.operand, state)
                how = "counted" if node.operator == "#" else ""
                return [
                    (self.note_nil(given, done, node.line, how) if how else done, Result(TRUTHY))
                    for done, given in ways
                ]
            case Concat():
                return self._concat(node, state)
            case Table():
                return self._table(node, state)
            case Function():
                return [(state, Result(exactly(FUNCTION)))]
        return [(state, ANYTHING)]

    def evaluate_all(self, nodes: tuple[Expression, ...], state: State) -> Many:
        """Evaluate a list of expressions; a call at the end may return several values."""
        found: Many = [(state, [], False)]
        for place, node in enumerate(nodes):
            is_last = place == len(nodes) - 1
            after: Many = []
            for done, results, _ in found:
                if is_last and isinstance(node, Call | Method):
                    after += [(then, results + more, is_open) for then, more, is_open in self.call(node, done)]
                else:
                    is_open = is_last and isinstance(node, Vararg)
                    after += [(then, [*results, one], is_open) for then, one in self.evaluate(node, done)]
            found = after
        return found

    def evaluate_index(self, node: Index, state: State) -> list[tuple[State, Result, str | None]]:
        """Return the base, and the key if it is a single string."""
        found = []
        for done, base in self.evaluate(node.base, state):
            done = self.note_nil(base, done, node.line, "indexed")
            for then, key in self.evaluate(node.key, done):
                atom = key.value.single
                found.append((then, base, str(atom[1]) if atom is not None and atom[0] == "string" else None))
        return found

    def _logical(self, node: Logical, state: State) -> Ways:
        found: Ways = []
        going: Ways = self.evaluate(node.operands[0], state)
        for operand in node.operands[1:]:
            after: Ways = []
            for done, result in going:
                truthy, falsy = _truth(done, result)
                stays, goes = (falsy, truthy) if node.operator == "and" else (truthy, falsy)
                if stays is not None:
                    left = result.value.only(FALSY) if node.operator == "and" else result.value.without(FALSY)
                    found.append((stays, Result(left, result.place, result.fields, result.has_all_fields)))
                if goes is not None:
                    after += self.evaluate(operand, goes)
            going = after
        return found + going

    def _as_booleans(self, node: Expression, state: State) -> Ways:
        truthy, falsy = self.branch(node, state)
        yes, no = Result(exactly(TRUE)), Result(exactly(FALSE))
        return [(done, yes) for done in truthy] + [(done, no) for done in falsy]

    def _concat(self, node: Concat, state: State) -> Ways:
        states = [state]
        for part in node.parts:
            states = [
                self.note_nil(given, done, part.line, "joined")
                for before in states
                for done, given in self.evaluate(part, before)
            ]
        return [(done, Result(TRUTHY)) for done in states]

    def _table(self, node: Table, state: State) -> Ways:
        ways: list[tuple[State, dict[str, Result]]] = [(state, {})]
        has_all = True
        for entry in node.fields:
            name = entry.key.value if isinstance(entry.key, String) else _BY_PLACE if entry.key is None else None
            has_all = has_all and name is not None
            after = []
            for before, fields in ways:
                for done, given in self.evaluate(entry.value, before):
                    if given.place is not None and not self.is_of_subject(given.place, done):
                        done = done.letting_go(given.place)
                    after.append((done, fields if name is None else {**fields, name: given}))
            ways = after
        return [(done, Result(exactly(TABLE), None, fields, has_all)) for done, fields in ways]

    # -- calls --

    def call(self, node: Call | Method, state: State) -> Many:
        if isinstance(node, Method):
            return self._method(node, state)
        function = node.function
        variable = self.scopes.variables[function] if isinstance(function, Name) else None
        before = [state] if isinstance(function, Name) else [done for done, _ in self.evaluate(function, state)]
        found: Many = []
        for begun in before:
            for done, results, _ in self.evaluate_all(node.arguments, begun):
                if variable is not None and variable in self.functions:
                    found += self._follow(self.functions[variable], done, results)
                else:
                    found += self._library(node, done, results)
        return found

    def _method(self, node: Method, state: State) -> Many:
        found: Many = []
        for done, base in self.evaluate(node.base, state):
            done = self.note_nil(base, done, node.line, "indexed")
            for then, results, _ in self.evaluate_all(node.arguments, done):
                found.append((self._hand_over(then, [base, *results]), [], True))
        return found

    def _hand_over(self, state: State, results: list[Result]) -> State:
        for result in results:
            if result.place is not None:
                state = state.letting_go(result.place)
        return state

    def _library(self, node: Call, state: State, results: list[Result]) -> Many:
        name = self.builtin(node.function)
        if name == "error":
            return []  # execution ends here
        if name in ("ipairs", "pairs") and results:
            state = self.note_nil(results[0], state, node.line, "iterated")
            return [(state, [Result(TRUTHY, source=results[0])], True)]
        if name == "tonumber" and results:
            return _number_of(state, results[0])
        if name == "type" and results:
            return [(state, [Result(TRUTHY, type_of=results[0].place)], False)]
        if name == "tostring":
            return [(state, [Result(TRUTHY)], False)]
        return [(state if name in HARMLESS else self._hand_over(state, results), [], True)]

    def _follow(self, function: Function, state: State, results: list[Result]) -> Many:
        """Follow a call into a function of the script, with these arguments."""
        if len(self.frames) > MOST_CALLS or any(frame.function is function for frame in self.frames):
            for variable in self.changed_by(function):
                state = state.forgetting((variable,))
            return [(self._hand_over(state, results), [], True)]
        frame = Frame(function)
        self.frames.append(frame)
        parameters = [self.scopes.variables[name] for name in function.parameters]
        for place, variable in enumerate(parameters):
            given = results[place] if place < len(results) else Result(exactly(NIL))
            state = self.bind(state, variable, given)
        fallen = self.block(function.body, [state])
        self.frames.pop()
        if frame.waiting:
            self.give_up()
        found: Many = [(done, [], False) for done in fallen]
        for _, done, answers, is_open in frame.returned:
            found.append((done, [self._taken_along(done, answer) for answer in answers], is_open))
        after = [(done.forgetting_all(self.inner[function]), answers, is_open) for done, answers, is_open in found]
        return _unlike(after)

    def _taken_along(self, state: State, result: Result) -> Result:
        """Detach a result from the local variable of the function that returned it."""
        place = result.place
        if place is None or (place[0] is self.subject):
            return result
        below = {other[-1]: Result(value) for other, value in state.values.items() if other[:-1] == place}
        is_closed = place in state.closed
        return Result(result.value, None, below if below or is_closed else None, is_closed)

    # -- tests --

    def branch(self, node: Expression, state: State) -> Split:
        """Return the states in which the expression is true, and those in which it is false."""
        self.step(state)
        match node:
            case Logical():
                return self._branch_logical(node, state)
            case Unary(operator="not"):
                truthy, falsy = self.branch(node.operand, state)
                return falsy, truthy
            case Binary(operator=operator) if operator in _EQUALITY or operator in _ORDER:
                return self._branch_comparison(node, state)
        splits = [_truth(done, result) for done, result in self.evaluate(node, state)]
        return [yes for yes, _ in splits if yes is not None], [no for _, no in splits if no is not None]

    def _branch_logical(self, node: Logical, state: State) -> Split:
        going, decided = [state], []
        for operand in node.operands:
            after = []
            for done in going:
                truthy, falsy = self.branch(operand, done)
                goes, stays = (truthy, falsy) if node.operator == "and" else (falsy, truthy)
                after += goes
                decided += stays
            going = after
        return (going, decided) if node.operator == "and" else (decided, going)

    def _branch_comparison(self, node: Binary, state: State) -> Split:
        truthy: list[State] = []
        falsy: list[State] = []
        for done, left in self.evaluate(node.left, state):
            for then, right in self.evaluate(node.right, done):
                if node.operator in _EQUALITY:
                    yes, no = _equal(then, left, right)
                    if node.operator == "~=":
                        yes, no = no, yes
                else:
                    yes, no = _ordered(node.operator, then, left, right)
                truthy += [yes] if yes is not None else []
                falsy += [no] if no is not None else []
        return truthy, falsy


def _constant(node: Constant) -> Value:
    if node.is_number:
        return exactly(("number", node.value)) if node.value is not None else TRUTHY
    return exactly(NIL if node.value is None else TRUE if node.value else FALSE)


def _number_of(state: State, given: Result) -> Many:
    """Evaluate `tonumber(argument)`: nil for nil, unknown for anything else."""
    nil, other = given.value.only(ONLY_NIL), given.value.without(ONLY_NIL)
    found: Many = []
    for value, result in ((nil, Result(exactly(NIL))), (other, ANYTHING)):
        narrowed = state.narrowed(given.place, value)
        if narrowed is not None:
            found.append((narrowed, [result], False))
    return found


def _unlike(ways: Many) -> Many:
    """Remove duplicate paths."""
    seen = {}
    for way in ways:
        state, results, is_open = way
        seen[state.key, tuple([result.key() for result in results]), is_open] = way
    return list(seen.values())


def _missing(is_open: bool) -> Result:
    return ANYTHING if is_open else Result(exactly(NIL))


def _field(state: State, base: Result, key: str | None) -> Result:
    if key is None:
        return ANYTHING
    if base.place is not None:
        return Result(state.look((*base.place, key)), (*base.place, key))
    if base.fields is not None and (key in base.fields or base.has_all_fields):
        return base.fields.get(key, Result(exactly(NIL)))
    return ANYTHING


def _truth(state: State, result: Result) -> tuple[State | None, State | None]:
    return (
        state.narrowed(result.place, result.value.without(FALSY)),
        state.narrowed(result.place, result.value.only(FALSY)),
    )


def _equal(state: State, left: Result, right: Result) -> tuple[State | None, State | None]:
    for one, other in ((left, right), (right, left)):
        atom = other.value.single
        if atom is None:
            continue
        if one.type_of is not None:
            return _typed(state, one.type_of, atom)
        these = frozenset({atom})
        yes = state.narrowed(one.place, one.value.only(these))
        return yes, state.narrowed(one.place, one.value.without(these))
    if left.place is None or right.place is None:
        return state, state
    return state.deciding(("==", left.place, right.place), True), state.deciding(("==", left.place, right.place), False)


def _typed(state: State, place: Place, atom: Atom) -> tuple[State | None, State | None]:
    """Narrow the state after `type(location) == type_name`."""
    value = state.look(place)
    if atom == text("nil"):
        return state.narrowed(place, value.only(ONLY_NIL)), state.narrowed(place, value.without(ONLY_NIL))
    return state.narrowed(place, value.without(ONLY_NIL)), state


def _ordered(operator: str, state: State, left: Result, right: Result) -> tuple[State | None, State | None]:
    is_turned, is_less = _ORDER[operator]
    one, other = (right, left) if is_turned else (left, right)
    sides = [side.place if side.place is not None else side.value.single for side in (one, other)]
    if sides[0] is None or sides[1] is None:
        return state, state
    fact = ("<", sides[0], sides[1])
    return state.deciding(fact, is_less), state.deciding(fact, not is_less)
