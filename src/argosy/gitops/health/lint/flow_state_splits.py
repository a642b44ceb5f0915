"""Splits the state of an execution path at a test: one state in which it is true, one in which it is false.

In: a state and the evaluated operands of a test. Out: both states, or None for one that is impossible. Never: evaluates
an expression.
"""

from __future__ import annotations

from argosy.gitops.health.lint.flow_state import ExpressionResult, FlowState, Location
from argosy.gitops.health.lint.possible_value_set import FALSY, ONLY_NIL, ValueAtom, string_atom

EQUALITY_OPERATORS = ("==", "~=")
# Operator → (swap the operands, truth of `<`).
ORDER_OPERATORS = {"<": (False, True), ">": (True, True), "<=": (True, False), ">=": (False, False)}
OptionalSplit = tuple[FlowState | None, FlowState | None]


def split_by_truth(state: FlowState, result: ExpressionResult) -> OptionalSplit:
    return (
        state.narrow(result.location, result.value.exclude(FALSY)),
        state.narrow(result.location, result.value.intersect(FALSY)),
    )


def split_by_equality(state: FlowState, left: ExpressionResult, right: ExpressionResult) -> OptionalSplit:
    for operand, literal in ((left, right), (right, left)):
        atom = literal.value.only_literal
        if atom is None:
            continue
        if operand.type_of is not None:
            return _split_by_type(state, operand.type_of, atom)
        atoms = frozenset({atom})
        true_state = state.narrow(operand.location, operand.value.intersect(atoms))
        return true_state, state.narrow(operand.location, operand.value.exclude(atoms))
    if left.location is None or right.location is None:
        return state, state
    return state.decide(("==", left.location, right.location), True), state.decide(
        ("==", left.location, right.location), False
    )


def _split_by_type(state: FlowState, location: Location, atom: ValueAtom) -> OptionalSplit:
    """Narrow the state after `type(location) == type_name`."""
    value = state.value_at(location)
    if atom == string_atom("nil"):
        return state.narrow(location, value.intersect(ONLY_NIL)), state.narrow(location, value.exclude(ONLY_NIL))
    return state.narrow(location, value.exclude(ONLY_NIL)), state


def split_by_order(operator: str, state: FlowState, left: ExpressionResult, right: ExpressionResult) -> OptionalSplit:
    is_swapped, is_less = ORDER_OPERATORS[operator]
    lesser, greater = (right, left) if is_swapped else (left, right)
    sides = [side.location if side.location is not None else side.value.only_literal for side in (lesser, greater)]
    if sides[0] is None or sides[1] is None:
        return state, state
    fact = ("<", sides[0], sides[1])
    return state.decide(fact, is_less), state.decide(fact, not is_less)
