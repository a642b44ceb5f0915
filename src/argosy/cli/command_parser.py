"""Argument parser of all commands.

In: argv. Out: a namespace, or a message that says what to type. Never: accepts an abbreviated flag.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from typing import Any, NoReturn

from argosy.cli.error_messages import print_failure
from argosy.cli.exit_codes import EXIT_ERROR

ARGOCD, COMPAT = "argocd", "--argocd-compat"  # program name, and the flag with the same meaning


class UsageError(SystemExit):
    """Invalid command line, with argparse's message."""

    def __init__(self, message: str) -> None:
        super().__init__(EXIT_ERROR)
        self.message = message


class CommandParser(argparse.ArgumentParser):
    """argparse with a next step after errors, and suggestions for misspelled words."""

    def __init__(self, *, formatter_class: Any = argparse.HelpFormatter, **options: Any) -> None:
        # Every added flag creates a formatter, which would query the terminal width; only help needs it.
        # An abbreviation would become ambiguous as soon as a second flag starts with it.
        options.setdefault("allow_abbrev", False)
        super().__init__(formatter_class=functools.partial(formatter_class, width=80), **options)
        self._help_formatter = formatter_class
        self._is_intermixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As in kubectl: positional arguments and flags in any order; argparse wants positional arguments together."""
        parsed, unparsed = super().parse_known_args(args, namespace)
        if (
            self._is_intermixing
            or not any(word == "-" or not word.startswith("-") for word in unparsed)
            or self._has_subcommand_or_remainder()
        ):
            return parsed, unparsed
        self._is_intermixing = True
        try:
            mixed, unknown = self.parse_known_intermixed_args(args, None)
        finally:
            self._is_intermixing = False
        return (parsed, unparsed) if unknown else (mixed, unknown)

    def _has_subcommand_or_remainder(self) -> bool:
        """True if arguments go to a subcommand or to another program."""
        return any(action.nargs in (argparse.PARSER, argparse.REMAINDER) for action in self._actions)

    def format_help(self) -> str:
        self.formatter_class = self._help_formatter
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        if self._lacks_only_subcommand(message):
            print(self.format_help(), end="", flush=True)  # argo: prints help, and exits with a code other than zero
            raise UsageError(message)
        hint = ""
        if "invalid choice: " in message:
            import difflib  # late: only needed for errors

            wrong, _, choices = message.partition("invalid choice: ")[2].partition(" (choose from ")
            names = [name.strip(" ')") for name in choices.split(",")]
            suggestions = difflib.get_close_matches(wrong.strip("'\""), names, n=1)
            hint = f"; did you mean {suggestions[0]!r}?" if suggestions else self.suggest_for_word(wrong.strip("'\""))
        command = self.get_command_name()
        command_words = command.removeprefix("argosy").strip() or "the command"
        # Some groups of commands exist only there.
        help_command = command.replace("argosy", ARGOCD, 1) if is_called_argocd() else command
        print_failure(f"invalid arguments for {command_words}", f"{message}{hint}", f"{help_command} --help")
        raise UsageError(message)

    def get_command_name(self) -> str:
        """Return the command whose help explains the error."""
        return self.prog

    def suggest_for_word(self, word: str) -> str:
        """Return a hint for a word that resembles no choice."""
        return ""

    def _lacks_only_subcommand(self, message: str) -> bool:
        """True if only the subcommand is missing: then the help is the answer."""
        groups = (group for group in self._actions if isinstance(group, argparse._SubParsersAction))
        return any(message.endswith(f"arguments are required: {group.metavar}") for group in groups)


def is_called_argocd() -> bool:
    return os.path.basename(sys.argv[0]) == ARGOCD or COMPAT in sys.argv
