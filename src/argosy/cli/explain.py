"""`argosy explain KIND/NAME|AGYnnn`: why an object, a field or an Application is as it is; what a rule means."""

from __future__ import annotations

import argparse

from argosy.cli.target_flags import add_target_flags
from argosy.model.errors import UserError

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy explain deploy/web
  argosy explain application/models
  argosy explain isvc/fraud .spec.predictor.minReplicas -n ml
  argosy explain AGY113

See also: docs/reference/explaining.md, docs/reference/rules.md
"""


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="why an object, a field or an Application is as it is, or what a rule means",
        description="What happens, why it is certain, and what to do.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("what", metavar="KIND/NAME|RULE", help="such as deploy/web, application/models, or a rule: AGY113")
    add("field", nargs="?", default="", metavar="FIELD", help="one field of it, such as .spec.replicas")
    add("-n", "--namespace", default="", metavar="NS", help="where the object is (default: wherever there is one)")
    add("--app", default="", metavar="APP", help="the Application that has it, as NAME or NAMESPACE/NAME")
    forms = ["text", "json", "yaml"]
    add("-o", "--output", choices=forms, default="text", help="text (default), json or yaml; of an object")
    add_target_flags(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    from argosy.cli.explain_rule import explain_rule, is_rule

    if is_rule(chosen.what):
        return explain_rule(chosen.what)
    kind, _, name = chosen.what.partition("/")
    if not kind or not name:
        told = "is neither an object nor a rule; write KIND/NAME, such as deploy/web, or a rule, such as AGY113"
        raise UserError(told, where=chosen.what)
    from argosy.cli.explain_application import explain_application, is_application

    if is_application(kind) and not chosen.field and not chosen.app:
        return explain_application(chosen, name)
    from argosy.cli.explain_object import explain_object

    return explain_object(chosen)
