"""Recognizes environments by common words: dev, test, staging, production.

In: names, namespaces, labels and paths. Out: the environment. Never: matches a part of a word.
"""

from __future__ import annotations

from typing import Final

PRODUCTION: Final = "production"
# From first to last environment.
WORDS: Final[dict[str, tuple[str, ...]]] = {
    "dev": ("dev", "develop", "development", "sandbox"),
    "test": ("test", "testing", "qa", "integration", "int"),
    "staging": ("stage", "staging", "stg", "uat", "preprod", "pre-production"),
    PRODUCTION: ("prod", PRODUCTION, "prd", "live"),
}


def environment_of(*said: str) -> str:
    """Return the environment that the first matching text names; if a text names two, the later environment wins."""
    for text in said:
        words = set(text.lower().replace("/", "-").replace("_", "-").split("-"))
        for name, known in reversed(WORDS.items()):
            if words & set(known):
                return name
    return ""


def rank(name: str) -> int:
    """Return the position in the order of environments; -1 for an unknown word."""
    return next((place for place, words in enumerate(WORDS.values()) if name in words), -1)
