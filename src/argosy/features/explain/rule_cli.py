"""`argosy explain AGYnnn`: explain a rule. In: its id. Out: its page, on stdout. Never: needs a repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.cli.exit_codes import EXIT_OK
from argosy.errors import UserError

RULE_ID_PATTERN: Final = re.compile(r"AGY\d+", re.IGNORECASE)


def is_rule_id(word: str) -> bool:
    return RULE_ID_PATTERN.fullmatch(word) is not None


def explain_rule(word: str) -> int:
    from argosy.gitops.analysis.rules import CATALOGUE

    rule = CATALOGUE.get(word.upper())
    if rule is None:
        raise UserError("unknown rule; see the list of rules: docs/reference/rules.md", where=word)
    print("\n".join(render_rule_page(rule.id)))
    return EXIT_OK


def render_rule_page(number: str) -> Iterator[str]:
    from argosy.gitops.analysis.rules import CATALOGUE

    rule = CATALOGUE[number]
    yield f"{rule.id} ({rule.severity}): {rule.title}"
    yield ""
    yield f"What happens:   {rule.consequence}"
    yield f"Known because:  {rule.certainty}"
    yield f"What to do:     {rule.fix}"
    if rule.automatic_fix:
        yield f"Automatic fix:  argosy check --fix does it, {rule.automatic_fix}"
    if rule.is_live:
        yield "Checked by:     argosy doctor, in a running cluster"
    else:
        yield f"To suppress it: argosy.dev/suppress: {rule.id} REASON (an annotation), or check.suppress in argosy.yaml"
