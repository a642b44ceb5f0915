"""Recognizes environments by common words: dev, test, staging, production.

In: names, namespaces, labels and paths. Out: the environment. Never: matches a part of a word.
"""

from __future__ import annotations

from typing import Final

PRODUCTION: Final = "production"
# From first to last environment.
ENVIRONMENT_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "dev": ("dev", "develop", "development", "sandbox"),
    "test": ("test", "testing", "qa", "integration", "int"),
    "staging": ("stage", "staging", "stg", "uat", "preprod", "pre-production"),
    PRODUCTION: ("prod", PRODUCTION, "prd", "live"),
}


def detect_environment(*texts: str) -> str:
    """Return the environment that the first matching text names; if a text names two, the later environment wins."""
    for text in texts:
        words = set(text.lower().replace("/", "-").replace("_", "-").split("-"))
        for name, environment_words in reversed(ENVIRONMENT_WORDS.items()):
            if words & set(environment_words):
                return name
    return ""


def rank_environment(name: str) -> int:
    """Return the position in the order of environments; -1 for an unknown word."""
    return next((position for position, words in enumerate(ENVIRONMENT_WORDS.values()) if name in words), -1)
