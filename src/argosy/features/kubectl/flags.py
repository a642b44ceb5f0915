"""Flags of the built-in kubectl, by verb.

In: arguments. Out: an argparse.Namespace with every field that a verb reads. Never: ignores an unknown flag.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from argosy.features.kubectl.session import KubectlError

FlagSpec = tuple[tuple[str, ...], dict[str, Any]]
STORE_TRUE: Final = {"action": "store_true"}
APPEND: Final[dict[str, Any]] = {"action": "append", "default": []}
# Flags of every verb; flags for logging and timeouts are accepted and ignored.
COMMON_FLAGS: Final[tuple[FlagSpec, ...]] = (
    (("-n", "--namespace"), {"default": ""}),
    (("--kubeconfig",), {"default": ""}),
    (("--context",), {"default": ""}),
    (("--request-timeout",), {"default": ""}),
    (("-v", "--v"), {"default": ""}),
    (("--field-manager",), {"default": ""}),
    (("-l", "--selector"), {"default": ""}),
    (("-A", "--all-namespaces"), STORE_TRUE),
    (("--field-selector",), {"default": ""}),
    (("-o", "--output"), {"default": ""}),
    (("--ignore-not-found",), {"nargs": "?", "const": "true", "default": ""}),
    (("--all",), STORE_TRUE),
    (("--dry-run",), {"default": ""}),
)
FILENAME_FLAG: Final[FlagSpec] = (("-f", "--filename"), APPEND)
VERB_FLAGS: Final[dict[str, tuple[FlagSpec, ...]]] = {
    "get": (
        (("-w", "--watch"), STORE_TRUE),
        (("--no-headers",), STORE_TRUE),
        (("--show-labels",), STORE_TRUE),
        (("--sort-by",), {"default": ""}),
    ),
    "wait": ((("--for",), {"default": "", "dest": "condition"}), (("--timeout",), {"default": ""})),
    "apply": (FILENAME_FLAG, (("--server-side",), STORE_TRUE), (("--force-conflicts",), STORE_TRUE)),
    "create": (
        FILENAME_FLAG,
        (("--from-literal",), APPEND),
        (("--clusterrole",), {"default": ""}),
        (("--role",), {"default": ""}),
        (("--serviceaccount",), APPEND),
        (("--user",), APPEND),
        (("--group",), APPEND),
    ),
    "delete": (
        FILENAME_FLAG,
        (("--wait",), {"nargs": "?", "const": "true", "default": "true"}),
        (("--now",), STORE_TRUE),
        (("--force",), STORE_TRUE),
        (("--grace-period",), {"type": int, "default": None}),
        (("--cascade",), {"default": "background"}),
        (("--timeout",), {"default": ""}),
    ),
    "patch": (
        (("-p", "--patch"), {"default": ""}),
        (("--patch-file",), {"default": ""}),
        (("--type",), {"default": "strategic"}),
        (("--subresource",), {"default": ""}),
    ),
    "annotate": ((("--overwrite",), STORE_TRUE),),
    "label": ((("--overwrite",), STORE_TRUE),),
    "describe": (),
    "logs": (
        (("-f", "--follow"), STORE_TRUE),
        (("-c", "--container"), {"default": ""}),
        (("-p", "--previous"), STORE_TRUE),
        (("--tail",), {"type": int, "default": None}),
        (("--since",), {"default": ""}),
        (("--prefix",), STORE_TRUE),
    ),
    "version": ((("--client",), STORE_TRUE),),
    "api-resources": (),
    "whoami": ((("--show-server",), STORE_TRUE), (("-c", "--show-context"), STORE_TRUE)),
    "extract": ((("--keys",), APPEND), (("--to",), {"default": "."}), (("--confirm",), STORE_TRUE)),
    "start-build": ((("-w", "--wait"), STORE_TRUE), (("-F", "--follow"), STORE_TRUE)),
    "project": ((("-q", "--short"), STORE_TRUE),),
    "new-project": ((("--description",), {"default": ""}), (("--display-name",), {"default": ""})),
    "login": (
        (("-u", "--username"), {"default": ""}),
        (("-p", "--password"), {"default": ""}),
        (("-t", "--token"), {"default": ""}),
        (("--server",), {"default": ""}),
        (("--insecure-skip-tls-verify",), STORE_TRUE),
    ),
}
FLAGS_WITH_VALUE: Final = frozenset(name for names, options in COMMON_FLAGS for name in names if "default" in options)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise KubectlError(f"{message}; argosy's built-in kubectl: see argosy kubectl --help, or install kubectl")


def find_verb(arguments: Sequence[str]) -> str:
    """The first argument that is neither a flag nor a flag's value; empty if there is none."""
    remaining = iter(arguments)
    for argument in remaining:
        if not argument.startswith("-"):
            return argument
        if argument in FLAGS_WITH_VALUE and "=" not in argument:
            next(remaining, None)
    return ""


def parse_arguments(verb: str, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of a verb. Raises KubectlError."""
    parser = _Parser(prog=f"kubectl {verb}", add_help=False, allow_abbrev=False)
    for names, options in (*COMMON_FLAGS, *VERB_FLAGS[verb]):
        parser.add_argument(*names, **{**options, **({"default": []} if options is APPEND else {})})
    parser.add_argument("words", nargs="*")
    remaining = list(arguments)
    remaining.remove(verb)
    return parser.parse_intermixed_args(remaining)
