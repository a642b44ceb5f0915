"""The words that people use for environments.

In: names, namespaces, labels and paths. Out: the environment that they speak of. Never: a part of a word.
"""

from __future__ import annotations

from typing import Final

PRODUCTION: Final = "production"
# From the first to the last; what has no such word is no environment by convention.
WORDS: Final[dict[str, tuple[str, ...]]] = {
    "dev": ("dev", "develop", "development", "sandbox"),
    "test": ("test", "testing", "qa", "integration", "int"),
    "staging": ("stage", "staging", "stg", "uat", "preprod", "pre-production"),
    PRODUCTION: ("prod", PRODUCTION, "prd", "live"),
}


def environment_of(*said: str) -> str:
    """The first text that names one decides; of two in a text the later environment, for more depends on it."""
    for text in said:
        words = set(text.lower().replace("/", "-").replace("_", "-").split("-"))
        for name, known in reversed(WORDS.items()):
            if words & set(known):
                return name
    return ""


def rank(name: str) -> int:
    """Its place on the way; -1 for a word that is not known."""
    return next((place for place, words in enumerate(WORDS.values()) if name in words), -1)
