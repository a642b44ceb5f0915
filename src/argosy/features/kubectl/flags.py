"""Flags of the built-in kubectl, by verb.

In: arguments. Out: an argparse.Namespace with every field that a verb reads. Never: ignores an unknown flag.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from argosy.features.kubectl.session import Refused

Flag = tuple[tuple[str, ...], dict[str, Any]]
ON: Final = {"action": "store_true"}
MANY: Final[dict[str, Any]] = {"action": "append", "default": []}
# Flags of every verb; flags for logging and timeouts are accepted and ignored.
EVERYWHERE: Final[tuple[Flag, ...]] = (
    (("-n", "--namespace"), {"default": ""}),
    (("--kubeconfig",), {"default": ""}),
    (("--context",), {"default": ""}),
    (("--request-timeout",), {"default": ""}),
    (("-v", "--v"), {"default": ""}),
    (("--field-manager",), {"default": ""}),
    (("-l", "--selector"), {"default": ""}),
    (("-A", "--all-namespaces"), ON),
    (("--field-selector",), {"default": ""}),
    (("-o", "--output"), {"default": ""}),
    (("--ignore-not-found",), {"nargs": "?", "const": "true", "default": ""}),
    (("--all",), ON),
    (("--dry-run",), {"default": ""}),
)
FILES: Final[Flag] = (("-f", "--filename"), MANY)
OF: Final[dict[str, tuple[Flag, ...]]] = {
    "get": (
        (("-w", "--watch"), ON), (("--no-headers",), ON), (("--show-labels",), ON), (("--sort-by",), {"default": ""}),
    ),
    "wait": ((("--for",), {"default": "", "dest": "condition"}), (("--timeout",), {"default": ""})),
    "apply": (FILES, (("--server-side",), ON), (("--force-conflicts",), ON)),
    "create": (
        FILES, (("--from-literal",), MANY), (("--clusterrole",), {"default": ""}), (("--role",), {"default": ""}),
        (("--serviceaccount",), MANY), (("--user",), MANY), (("--group",), MANY),
    ),
    "delete": (
        FILES, (("--wait",), {"nargs": "?", "const": "true", "default": "true"}), (("--now",), ON), (("--force",), ON),
        (("--grace-period",), {"type": int, "default": None}), (("--cascade",), {"default": "background"}),
        (("--timeout",), {"default": ""}),
    ),
    "patch": (
        (("-p", "--patch"), {"default": ""}), (("--patch-file",), {"default": ""}),
        (("--type",), {"default": "strategic"}), (("--subresource",), {"default": ""}),
    ),
    "annotate": ((("--overwrite",), ON),),
    "label": ((("--overwrite",), ON),),
    "describe": (),
    "logs": (
        (("-f", "--follow"), ON), (("-c", "--container"), {"default": ""}), (("-p", "--previous"), ON),
        (("--tail",), {"type": int, "default": None}), (("--since",), {"default": ""}), (("--prefix",), ON),
    ),
    "version": ((("--client",), ON),),
    "api-resources": (),
    "whoami": ((("--show-server",), ON), (("-c", "--show-context"), ON)),
    "extract": ((("--keys",), MANY), (("--to",), {"default": "."}), (("--confirm",), ON)),
    "start-build": ((("-w", "--wait"), ON), (("-F", "--follow"), ON)),
    "project": ((("-q", "--short"), ON),),
    "new-project": ((("--description",), {"default": ""}), (("--display-name",), {"default": ""})),
    "login": (
        (("-u", "--username"), {"default": ""}), (("-p", "--password"), {"default": ""}),
        (("-t", "--token"), {"default": ""}), (("--server",), {"default": ""}), (("--insecure-skip-tls-verify",), ON),
    ),
}  # fmt: skip
WITH_VALUE: Final = frozenset(name for names, how in EVERYWHERE for name in names if "default" in how)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(f"{message}; argosy's built-in kubectl: see argosy kubectl --help, or install kubectl")


def verb_of(words: Sequence[str]) -> str:
    """The first argument that is neither a flag nor a flag's value; empty if there is none."""
    left = iter(words)
    for word in left:
        if not word.startswith("-"):
            return word
        if word in WITH_VALUE and "=" not in word:
            next(left, None)
    return ""


def understood(verb: str, words: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of a verb. Raises KubectlError."""
    parser = _Parser(prog=f"kubectl {verb}", add_help=False, allow_abbrev=False)
    for names, how in (*EVERYWHERE, *OF[verb]):
        parser.add_argument(*names, **{**how, **({"default": []} if how is MANY else {})})
    parser.add_argument("words", nargs="*")
    rest = list(words)
    rest.remove(verb)
    return parser.parse_intermixed_args(rest)
