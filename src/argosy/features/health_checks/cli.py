"""`argosy health …`: list, show, test, lint and compare health checks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.output import print_data, print_lines, warn
from argosy.cli.tables import format_table
from argosy.features.health_checks import install_cli

if TYPE_CHECKING:
    from argosy.gitops.health.settings import Customizations

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy health list
  argosy health show isvc --profile strict
  argosy health test model.yaml
  argosy health test --script check.lua model.yaml --watch
  argosy health lint argocd-cm.yaml
  argosy health diff isvc -f argocd-cm.yaml

See also: docs/guides/health-checks.md
"""
EXAMPLES_BY_COMMAND = {
    "list": ["argosy health list", "argosy health list --profile strict -o name"],
    "show": ["argosy health show InferenceService", "argosy health show isvc --profile strict > check.lua"],
    "test": [
        "argosy health test model.yaml",
        "argosy health test argocd-cm.yaml model.yaml --expect Healthy",
        "argosy health test --script check.lua model.yaml --watch",
        "argosy health test resource_customizations -o junit > report.xml",
    ],
    "lint": ["argosy health lint check.lua", "argosy health lint argocd-cm.yaml --strict"],
    "diff": ["argosy health diff isvc --profile strict", "argosy health diff isvc -f argocd-cm.yaml"],
}
SETTINGS_HELP = "settings: ConfigMap argocd-cm or argosy-cm, or an ArgoCD resource; repeatable"


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "health",
        help="list, test, lint and compare health checks",
        description="List, test, lint and compare health checks, and install them into an Argo CD.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="list|show|test|lint|diff|apply|verify|export", required=True)
    list_parser = _add_command(parts, "list", "list the health rule of each kind", run_list)
    list_parser.add_argument("--profile", metavar="P", help="only kinds that have this profile")
    _add_output(list_parser, "text", "wide", "name", "json", "yaml")
    show_parser = _add_command(parts, "show", "print the rule of a kind", run_show)
    show_parser.add_argument("kind", metavar="KIND", help="as in InferenceService, isvc or Job.batch")
    show_parser.add_argument("--profile", metavar="P", help="the rule of this profile")
    _add_output(show_parser, "text", "json", "yaml")
    _add_test(parts)
    _add_lint(parts)
    _add_diff(parts)
    install_cli.add_commands(parts)


def _add_command(
    parts: Commands[argparse.ArgumentParser], name: str, help_text: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser = parts.add_parser(
        name,
        help=help_text,
        description=help_text.capitalize() + ".",
        epilog="Examples:\n" + "".join(f"  {line}\n" for line in EXAMPLES_BY_COMMAND[name]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if name != "lint":
        parser.add_argument(
            "-f", "--filename", type=Path, action="append", default=[], metavar="FILE", help=SETTINGS_HELP
        )
    parser.set_defaults(run=run)
    return parser


def _add_output(parser: argparse.ArgumentParser, *formats: str) -> None:
    parser.add_argument("-o", "--output", choices=formats, default=formats[0], help=", ".join(formats))


def _add_test(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add_command(parts, "test", "run the tests of rules, or assess objects", _run_test)
    paths_help = "a rule folder or a tree of them, objects (- is standard input), or settings that hold checks"
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help=paths_help)
    parser.add_argument("--script", type=Path, metavar="FILE", help="assess the objects with this script")
    parser.add_argument("--open-libs", action="store_true", help="give the script all libraries, as useOpenLibs does")
    parser.add_argument("--profile", metavar="P", help="use this profile for kinds that have it")
    parser.add_argument("--facts", type=Path, metavar="FILE", help="facts for rules, such as storageClasses")
    parser.add_argument(
        "--expect", metavar="HEALTH", help="exit 1 unless every object has this health, such as Healthy"
    )
    parser.add_argument("--watch", action="store_true", help="run again whenever a file is saved, until Ctrl-C")
    _add_output(parser, "text", "json", "yaml", "junit")


def _add_lint(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add_command(parts, "lint", "find mistakes in scripts and settings without running them", _run_lint)
    paths_help = "a script, a folder of scripts, a tree of rules, or settings that hold checks (- is standard input)"
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help=paths_help)
    parser.add_argument("--strict", action="store_true", help="exit 1 on warnings too")
    parser.add_argument("--open-libs", action="store_true", help="lone scripts get all libraries, as with useOpenLibs")
    _add_output(parser, "text", "json", "yaml", "junit", "github")


def _add_diff(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add_command(parts, "diff", "compare a health rule with another one", _run_diff)
    parser.add_argument("kind", metavar="KIND", help="as in InferenceService, isvc or Job.batch")
    objects_help = "objects to assess with both rules, instead of the bundled test objects (- is standard input)"
    parser.add_argument("paths", nargs="*", type=Path, metavar="OBJECT", help=objects_help)
    parser.add_argument("--profile", metavar="P", help="compare with this profile")
    parser.add_argument("--script", type=Path, metavar="FILE", help="compare with this script")
    parser.add_argument("--open-libs", action="store_true", help="give the script all libraries, as useOpenLibs does")
    _add_output(parser, "text", "json", "yaml")


def _run_test(args: argparse.Namespace) -> int:
    from argosy.features.health_checks.test_cli import run_test

    return run_test(args)


def _run_lint(args: argparse.Namespace) -> int:
    from argosy.features.health_checks.lint_and_diff_cli import run_lint

    return run_lint(args)


def _run_diff(args: argparse.Namespace) -> int:
    from argosy.features.health_checks.lint_and_diff_cli import run_diff

    return run_diff(args)


def run_list(args: argparse.Namespace) -> int:
    from argosy.features.health_checks.effective_health_rule_catalog import list_rule_rows

    settings = load_settings(args.filename)
    rule_rows = list_rule_rows(settings, args.profile or "")
    if args.output in ("json", "yaml"):
        print_data({"kind": "HealthRules", "items": [row.to_wire() for row in rule_rows]}, args.output)
    elif args.output == "name":
        print_lines(row.name for row in rule_rows if row.name)
    else:
        extra_headings = ["WHERE"] if args.output == "wide" else []
        table_rows = [
            [row.group or "(core)", row.kind, row.profile or "-", row.source or "-", ", ".join(row.also) or "-"]
            + ([row.where or "-"] if extra_headings else [])
            for row in rule_rows
        ]
        print_lines(format_table(["GROUP", "KIND", "PROFILE", "SOURCE", "ALSO", *extra_headings], table_rows))
    return 0


def run_show(args: argparse.Namespace) -> int:
    from argosy.features.health_checks.effective_health_rule_catalog import (
        find_rule,
        find_rule_source,
        render_rule,
        render_rule_name,
    )
    from argosy.gitops.health.bundled_rules import list_profiles_of_kind

    group_kind, rule = find_rule(args.kind, load_settings(args.filename), args.profile or "")
    if args.output != "text":
        data: dict[str, Any] = {
            "group": group_kind.group,
            "kind": group_kind.kind,
            "profile": rule.profile,
            "source": find_rule_source(rule),
        }
        data |= {"where": rule.where, "openLibs": rule.open_libs, "script": rule.script}
        data |= {} if rule.script else {"text": render_rule(rule)}
        print_data(
            {"kind": "HealthRule", "rule": data, "profiles": list(list_profiles_of_kind(group_kind))}, args.output
        )
        return 0
    other_profiles = ", ".join(name for name in list_profiles_of_kind(group_kind) if name != rule.profile)
    note = f"; other profiles: {other_profiles}" if other_profiles else ""
    print(f"{render_rule_name(rule.name)}{note}", file=sys.stderr)
    print(render_rule(rule), end="")
    return 0


def load_settings(files: list[Path]) -> Customizations:
    """Load the settings in the files and print a warning for each error in them."""
    from argosy.features.health_checks.input_files import load_settings

    settings = load_settings(files)
    warn(settings.faults)
    return settings
