"""`argosy explain KIND/NAME|AGYnnn`: why an object, a field or an Application is as it is; what a rule means."""

from __future__ import annotations

import argparse

from argosy.cli.target_flags import add_target_flags
from argosy.errors import UserError

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy explain deploy/web
  argosy explain models                    an Application; application/models is the same
  argosy explain isvc/fraud .spec.predictor.minReplicas -n ml
  argosy explain AGY113

See also: docs/reference/explaining.md, docs/reference/rules.md
"""
WRITE = "write KIND/NAME, such as deploy/web, or a rule, such as AGY113"


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="why an object, a field or an Application is as it is, or what a rule means",
        description="What happens, why it is certain, and what to do.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    about = "such as deploy/web, application/models, the name of an Application alone, or a rule: AGY113"
    add("what", metavar="KIND/NAME|RULE", help=f"{about}; KIND NAME is the same as KIND/NAME")
    add("words", nargs="*", default=[], metavar="FIELD", help="one field of it, such as .spec.replicas")
    add("-n", "--namespace", default="", metavar="NS", help="where the object is (default: wherever there is one)")
    add("--app", default="", metavar="APP", help="the Application that has it, as NAME or NAMESPACE/NAME")
    forms = ["text", "json", "yaml"]
    add("-o", "--output", choices=forms, default="text", help="text (default), json or yaml; of an object")
    add_target_flags(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    from argosy.features.explain.rule_cli import explain_rule, is_rule

    chosen.what, chosen.field = _read(chosen.what, chosen.words)
    if is_rule(chosen.what):
        return explain_rule(chosen.what)
    from argosy.features.explain.application_cli import explain_application, explain_named, is_application

    kind, slash, name = chosen.what.partition("/")
    if kind and not slash and not chosen.field and not chosen.app and not kind.upper().startswith("AGY"):
        return explain_named(chosen, kind)
    if not kind or not name:
        raise UserError(f"is neither an object nor a rule; {WRITE}", where=chosen.what)
    if is_application(kind) and not chosen.field and not chosen.app:
        return explain_application(chosen, name)
    from argosy.features.explain.object_cli import explain_object

    return explain_object(chosen)


def _read(what: str, words: list[str]) -> tuple[str, str]:
    """k8s: `KIND NAME` is as good as `KIND/NAME`; a field begins with a dot or a slash then."""
    if what and words and "/" not in what and not words[0].startswith((".", "/")):
        what, words = f"{what}/{words[0]}", words[1:]
    if len(words) > 1:
        raise UserError("one field at a time; leave the others out", where=words[1])
    return what, words[0] if words else ""
