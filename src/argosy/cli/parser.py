"""Argument parser of all commands.

In: argv. Out: a namespace, or a message that says what to type. Never: accepts an abbreviated flag.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from typing import Any, NoReturn

from argosy.cli.error_messages import say
from argosy.cli.exit_codes import CANNOT

ARGOCD, COMPAT = "argocd", "--argocd-compat"  # program name, and the flag with the same meaning


class Mistyped(SystemExit):
    """Invalid command line, with argparse's message."""

    def __init__(self, said: str) -> None:
        super().__init__(CANNOT)
        self.said = said


class Parser(argparse.ArgumentParser):
    """argparse with a next step after errors, and suggestions for misspelled words."""

    def __init__(self, *, formatter_class: Any = argparse.HelpFormatter, **options: Any) -> None:
        # Every added flag creates a formatter, which would query the terminal width; only help needs it.
        # An abbreviation would become ambiguous as soon as a second flag starts with it.
        options.setdefault("allow_abbrev", False)
        super().__init__(formatter_class=functools.partial(formatter_class, width=80), **options)
        self._full_width = formatter_class
        self._is_mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As in kubectl: positional arguments and flags in any order; argparse wants positional arguments together."""
        chosen, left = super().parse_known_args(args, namespace)
        if self._is_mixing or not any(word == "-" or not word.startswith("-") for word in left) or self._passes_on():
            return chosen, left
        self._is_mixing = True
        try:
            mixed, unknown = self.parse_known_intermixed_args(args, None)
        finally:
            self._is_mixing = False
        return (chosen, left) if unknown else (mixed, unknown)

    def _passes_on(self) -> bool:
        """True if arguments go to a subcommand or to another program."""
        return any(each.nargs in (argparse.PARSER, argparse.REMAINDER) for each in self._actions)

    def format_help(self) -> str:
        self.formatter_class = self._full_width
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        if self._is_alone(message):
            print(self.format_help(), end="", flush=True)  # argo: prints help, and exits with a code other than zero
            raise Mistyped(message)
        hint = ""
        if "invalid choice: " in message:
            import difflib  # late: only needed for errors

            wrong, _, known = message.partition("invalid choice: ")[2].partition(" (choose from ")
            names = [name.strip(" ')") for name in known.split(",")]
            near = difflib.get_close_matches(wrong.strip("'\""), names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else self.suggest(wrong.strip("'\""))
        command = self.name_command()
        what = command.removeprefix("argosy").strip() or "the command"
        called = command.replace("argosy", ARGOCD, 1) if is_called_argocd() else command  # some groups are only there
        say(f"invalid arguments for {what}", f"{message}{hint}", f"{called} --help")
        raise Mistyped(message)

    def name_command(self) -> str:
        """Return the command whose help explains the error."""
        return self.prog

    def suggest(self, word: str) -> str:
        """Return a hint for a word that resembles no choice."""
        return ""

    def _is_alone(self, message: str) -> bool:
        """True if only the subcommand is missing: then the help is the answer."""
        groups = (each for each in self._actions if isinstance(each, argparse._SubParsersAction))
        return any(message.endswith(f"arguments are required: {each.metavar}") for each in groups)


def is_called_argocd() -> bool:
    return os.path.basename(sys.argv[0]) == ARGOCD or COMPAT in sys.argv
