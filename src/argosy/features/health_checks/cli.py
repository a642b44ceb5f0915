"""`argosy health …`: list, show, test, lint and compare health checks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.output import print_data, print_lines, warn
from argosy.cli.tables import table
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
SHOWN = {
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
SETTINGS = "settings: ConfigMap argocd-cm or argosy-cm, or an ArgoCD resource; repeatable"


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "health",
        help="list, test, lint and compare health checks",
        description="List, test, lint and compare health checks, and install them into an Argo CD.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(dest="part", metavar="list|show|test|lint|diff|apply|verify|export", required=True)
    listing = _add(parts, "list", "list the health rule of each kind", list_rules)
    listing.add_argument("--profile", metavar="P", help="only kinds that have this profile")
    _add_output(listing, "text", "wide", "name", "json", "yaml")
    showing = _add(parts, "show", "print the rule of a kind", show_rule)
    showing.add_argument("kind", metavar="KIND", help="as in InferenceService, isvc or Job.batch")
    showing.add_argument("--profile", metavar="P", help="the rule of this profile")
    _add_output(showing, "text", "json", "yaml")
    _add_test(parts)
    _add_lint(parts)
    _add_diff(parts)
    install_cli.add_to(parts)


def _add(
    parts: Commands[argparse.ArgumentParser], name: str, about: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser = parts.add_parser(
        name,
        help=about,
        description=about.capitalize() + ".",
        epilog="Examples:\n" + "".join(f"  {line}\n" for line in SHOWN[name]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if name != "lint":
        parser.add_argument("-f", "--filename", type=Path, action="append", default=[], metavar="FILE", help=SETTINGS)
    parser.set_defaults(run=run)
    return parser


def _add_output(parser: argparse.ArgumentParser, *forms: str) -> None:
    parser.add_argument("-o", "--output", choices=forms, default=forms[0], help=", ".join(forms))


def _add_test(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(parts, "test", "run the tests of rules, or assess objects", _test)
    about = "a rule folder or a tree of them, objects (- is standard input), or settings that hold checks"
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help=about)
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
    parser = _add(parts, "lint", "find mistakes in scripts and settings without running them", _lint)
    about = "a script, a folder of scripts, a tree of rules, or settings that hold checks (- is standard input)"
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help=about)
    parser.add_argument("--strict", action="store_true", help="exit 1 on warnings too")
    parser.add_argument("--open-libs", action="store_true", help="lone scripts get all libraries, as with useOpenLibs")
    _add_output(parser, "text", "json", "yaml", "junit", "github")


def _add_diff(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(parts, "diff", "compare a health rule with another one", _diff)
    parser.add_argument("kind", metavar="KIND", help="as in InferenceService, isvc or Job.batch")
    objects = "objects to assess with both rules, instead of the bundled test objects (- is standard input)"
    parser.add_argument("paths", nargs="*", type=Path, metavar="OBJECT", help=objects)
    parser.add_argument("--profile", metavar="P", help="compare with this profile")
    parser.add_argument("--script", type=Path, metavar="FILE", help="compare with this script")
    parser.add_argument("--open-libs", action="store_true", help="give the script all libraries, as useOpenLibs does")
    _add_output(parser, "text", "json", "yaml")


def _test(chosen: argparse.Namespace) -> int:
    from argosy.features.health_checks.test_cli import test

    return test(chosen)


def _lint(chosen: argparse.Namespace) -> int:
    from argosy.features.health_checks.review_cli import lint

    return lint(chosen)


def _diff(chosen: argparse.Namespace) -> int:
    from argosy.features.health_checks.review_cli import diff

    return diff(chosen)


def list_rules(chosen: argparse.Namespace) -> int:
    from argosy.features.health_checks.catalog import rows

    settings = settings_of(chosen.filename)
    found = rows(settings, chosen.profile or "")
    if chosen.output in ("json", "yaml"):
        print_data({"kind": "HealthRules", "items": [row.as_data() for row in found]}, chosen.output)
    elif chosen.output == "name":
        print_lines(row.name for row in found if row.name)
    else:
        wide = ["WHERE"] if chosen.output == "wide" else []
        shown = [
            [row.group or "(core)", row.kind, row.profile or "-", row.source or "-", ", ".join(row.also) or "-"]
            + ([row.where or "-"] if wide else [])
            for row in found
        ]
        print_lines(table(["GROUP", "KIND", "PROFILE", "SOURCE", "ALSO", *wide], shown))
    return 0


def show_rule(chosen: argparse.Namespace) -> int:
    from argosy.features.health_checks.catalog import called, find_rule, shown, source_of
    from argosy.gitops.health.bundled import profiles_of

    of, rule = find_rule(chosen.kind, settings_of(chosen.filename), chosen.profile or "")
    if chosen.output != "text":
        data: dict[str, Any] = {"group": of.group, "kind": of.kind, "profile": rule.profile, "source": source_of(rule)}
        data |= {"where": rule.where, "openLibs": rule.open_libs, "script": rule.script}
        data |= {} if rule.script else {"text": shown(rule)}
        print_data({"kind": "HealthRule", "rule": data, "profiles": list(profiles_of(of))}, chosen.output)
        return 0
    others = ", ".join(name for name in profiles_of(of) if name != rule.profile)
    note = f"; other profiles: {others}" if others else ""
    print(f"{called(rule.name)}{note}", file=sys.stderr)
    print(shown(rule), end="")
    return 0


def settings_of(files: list[Path]) -> Customizations:
    """Load the settings in the files and print a warning for each error in them."""
    from argosy.features.health_checks.inputs import read_settings

    found = read_settings(files)
    warn(found.faults)
    return found
