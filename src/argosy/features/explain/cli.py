"""`argosy explain KIND/NAME|AGYnnn`: explain the state of an object, a field or an Application, or a rule."""

from __future__ import annotations

import argparse

from argosy.cli.cluster_flags import add_target_flags
from argosy.errors import UserError

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy explain deploy/web
  argosy explain models                    an Application; application/models is the same
  argosy explain isvc/fraud .spec.predictor.minReplicas -n ml
  argosy explain AGY113

See also: docs/reference/difference-causes.md, docs/reference/rules.md
"""
USAGE_HINT = "use KIND/NAME, such as deploy/web, or a rule, such as AGY113"


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="explain the state of an object, a field or an Application, or a rule",
        description="Explain what happens, why it is certain, and what to do.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    help_text = "such as deploy/web, application/models, just the name of an Application, or a rule: AGY113"
    add("what", metavar="KIND/NAME|RULE", help=f"{help_text}; KIND NAME is the same as KIND/NAME")
    add("words", nargs="*", default=[], metavar="FIELD", help="one field of the object, such as .spec.replicas")
    add("-n", "--namespace", default="", metavar="NS", help="namespace of the object (default: any)")
    add("--app", default="", metavar="APP", help="the Application of the object, as NAME or NAMESPACE/NAME")
    formats = ["text", "json", "yaml"]
    add("-o", "--output", choices=formats, default="text", help="text (default), json or yaml; for objects only")
    add_target_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from argosy.features.explain.rule_cli import explain_rule, is_rule_id

    args.what, args.field = _read_object_and_field(args.what, args.words)
    if is_rule_id(args.what):
        return explain_rule(args.what)
    from argosy.features.explain.application_cli import explain_application, explain_bare_name, is_application

    kind, slash, name = args.what.partition("/")
    if kind and not slash and not args.field and not args.app and not kind.upper().startswith("AGY"):
        return explain_bare_name(args, kind)
    if not kind or not name:
        raise UserError(f"not an object or a rule; {USAGE_HINT}", where=args.what)
    if is_application(kind) and not args.field and not args.app:
        return explain_application(args, name)
    from argosy.features.explain.object_cli import explain_object

    return explain_object(args)


def _read_object_and_field(object_name: str, words: list[str]) -> tuple[str, str]:
    """k8s: `KIND NAME` is the same as `KIND/NAME`; a field must then start with a dot or a slash."""
    if object_name and words and "/" not in object_name and not words[0].startswith((".", "/")):
        object_name, words = f"{object_name}/{words[0]}", words[1:]
    if len(words) > 1:
        raise UserError("only one field can be explained at a time; remove the others", where=words[1])
    return object_name, words[0] if words else ""
