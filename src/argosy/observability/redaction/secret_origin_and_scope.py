"""Provenance of secret values: where a value comes from, and which values a text may quote.

In: –. Out: SecretOrigin and SecretScope values. Never: knows how Applications or projects lead to them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from argosy.observability.redaction.guessable_values import NO_FORMS, GuessableForms, is_guessable, unescape


class SecretOrigin(NamedTuple):
    """Where a secret value comes from."""

    namespace: str
    project: str = ""  # the only project that it is declared for
    is_installation: bool = False  # in the control namespace: credentials of repositories, clusters, accounts
    guessable: GuessableForms = NO_FORMS  # for an installation's Secret: all forms of its guessable values


@dataclass(frozen=True)
class SecretScope:
    """The Secrets that a text may quote. An empty scope: those of the installation.

    Tenants control the text of their Applications. So guessable values of the installation's Secrets are not masked
    there, even if declared for their project: a Pod that prints guesses would learn which one is right. Values that
    cannot be guessed are masked everywhere, or in the project that they are declared for. Errors of Git arrive here
    without the credential, also percent-encoded or as base64; other transformations by a host are not known.
    """

    project: str = ""
    namespaces: frozenset[str] = frozenset()
    words: str = field(default="", repr=False)  # public words of the Application: commits, paths, options, names

    has_guessable: bool = False  # masks guessable values too: for texts that no tenant writes
    git_words: Container[str] | None = field(default=None, repr=False)  # words in the Application's manifests in Git
    readable: frozenset[str] = frozenset()  # namespaces whose Secrets the writers of its Git can read anyway

    def covers(self, origin: SecretOrigin, form: bytes, *, is_block: bool = False) -> bool:
        """True if a value of that origin is masked; `form` is its encoded form.

        The origin tells which values can be guessed, because a form may hold only a part of a value. `is_block`: the
        form is a block of a long value. Blocks are found one by one, so each can be guessed by itself.
        """
        if origin.namespace in self.namespaces:
            return True
        if origin.project and origin.project != self.project:
            return not self.project and self.has_guessable
        if not origin.is_installation:  # a password in a repository URL of the project
            return bool(origin.project)
        return self.has_guessable or not (form in origin.guessable or (is_block and is_guessable(form)))

    def can_read(self, origins: Iterable[SecretOrigin | None]) -> bool:
        """True if the writers of the Application's Git can read all origin Secrets of a value anyway.

        Only then words in that Git, and names of objects, may unmask it. Otherwise a writer could put guesses there and
        learn from a missing mask which one is right.
        """
        return bool(self.readable) and all(
            origin is not None
            and not origin.project
            and not origin.is_installation
            and origin.namespace in self.readable
            for origin in origins
        )

    def shows_in_git(self, form: bytes) -> bool:
        """True if the value is in the Application's Git. It counts only if `can_read` is true for its origins."""
        if self.git_words is None:
            return False
        text = form.decode("utf-8", "replace")
        return any(spelling in self.git_words for spelling in dict.fromkeys((text, unescape(text))))


INSTALLATION: Final = SecretScope()
