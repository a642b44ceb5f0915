"""`argosy explain AGYnnn`: what a rule of `argosy check` means."""

from __future__ import annotations

import argparse

from argosy.model.errors import UserError

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy explain AGY113

See also: docs/reference/rules.md
"""


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="what a rule of argosy check means",
        description="What happens, why it is certain, and what to do.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", metavar="RULE", help="such as AGY113")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    from argosy.cli.explain_rule import explain_rule, is_rule

    if is_rule(chosen.what):
        return explain_rule(chosen.what)
    raise UserError("is no rule; name one as argosy check prints it, such as AGY113", where=chosen.what)
