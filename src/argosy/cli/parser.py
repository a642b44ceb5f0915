"""The argument parser of all commands.

In: argv. Out: a namespace, or a message that says what to type. Never: an abbreviation for a flag.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from typing import Any, NoReturn

from argosy.cli.error_messages import say
from argosy.cli.exit_codes import CANNOT

ARGOCD, COMPAT = "argocd", "--argocd-compat"  # the name to be called by, and the flag that says the same


class Mistyped(SystemExit):
    """A command line that is not understood, and why."""

    def __init__(self, said: str) -> None:
        super().__init__(CANNOT)
        self.said = said


class Parser(argparse.ArgumentParser):
    """argparse, with what to do next after a mistake, and the nearest word to a wrong one."""

    def __init__(self, *, formatter_class: Any = argparse.HelpFormatter, **options: Any) -> None:
        # Every flag that is added makes a formatter, which would ask the terminal for its width: help alone needs that.
        # An abbreviation would mean another flag as soon as there is a second one that begins like it.
        options.setdefault("allow_abbrev", False)
        super().__init__(formatter_class=functools.partial(formatter_class, width=80), **options)
        self._full_width = formatter_class
        self._is_mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As kubectl takes them: words and flags in any order, where argparse alone wants words in one run."""
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
        """Whether words go to a verb below, or to another program."""
        return any(each.nargs in (argparse.PARSER, argparse.REMAINDER) for each in self._actions)

    def format_help(self) -> str:
        self.formatter_class = self._full_width
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        if self._is_alone(message):
            print(self.format_help(), end="", flush=True)  # argo: its help, and an exit code that is not zero
            raise Mistyped(message)
        hint = ""
        if "invalid choice: " in message:
            import difflib  # late: it is for mistakes

            wrong, _, known = message.partition("invalid choice: ")[2].partition(" (choose from ")
            names = [name.strip(" ')") for name in known.split(",")]
            near = difflib.get_close_matches(wrong.strip("'\""), names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else self.suggest(wrong.strip("'\""))
        command = self.name_command()
        what = command.removeprefix("argosy").strip() or "the command"
        called = command.replace("argosy", ARGOCD, 1) if is_called_argocd() else command  # some groups are there only
        say(f"{what} was not understood", f"{message}{hint}", f"{called} --help")
        raise Mistyped(message)

    def name_command(self) -> str:
        """Return the command whose help says more."""
        return self.prog

    def suggest(self, word: str) -> str:
        """Return a hint for a word that resembles no choice."""
        return ""

    def _is_alone(self, message: str) -> bool:
        """Whether a group was typed without a verb, and nothing else is wrong: then all verbs are the answer."""
        groups = (each for each in self._actions if isinstance(each, argparse._SubParsersAction))
        return any(message.endswith(f"arguments are required: {each.metavar}") for each in groups)


def is_called_argocd() -> bool:
    return os.path.basename(sys.argv[0]) == ARGOCD or COMPAT in sys.argv
