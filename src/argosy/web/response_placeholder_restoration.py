"""Placeholders that stand in for secret values in one request, and what restores them in its response.

In: pairs of a placeholder and the text that was sent. Out: data with the sent texts. Never: does less work for a
request without a secret value; see request_input_echo.
"""

from __future__ import annotations

from typing import Final

from argosy.observability.redaction.constant_time_replacement import Substitutions, TextReplacement
from argosy.observability.redaction.four_byte_word_filter import list_words


class InputEcho:
    """Placeholders of one request. Usually none, or decoys, which change nothing but cost the same work."""

    def __init__(
        self,
        stand_ins: tuple[TextReplacement, ...] = (),
        decoys: tuple[TextReplacement, ...] = (),
        padding_text: str = "",
    ) -> None:
        """`padding_text`: the longest text that was sent."""
        self._stand_ins, self._decoys, self._padding_text = stand_ins, decoys, padding_text
        all_stand_ins = stand_ins + decoys
        # The response to a correct guess has the placeholder where that to a wrong one has the sent text. Both texts
        # are searched in both responses; the sent text is replaced by itself.
        self._placeholders = Substitutions(all_stand_ins, padding_text)
        self._sent_texts = Substitutions((TextReplacement(sent, sent) for _, sent in all_stand_ins), padding_text)

    @property
    def is_decoy(self) -> bool:
        return bool(self._decoys) and not self._stand_ins

    def __add__(self, other: InputEcho) -> InputEcho:
        if not other._stand_ins and not other._decoys:
            return self
        return InputEcho(
            self._stand_ins + other._stand_ins, self._decoys + other._decoys, self._padding_text or other._padding_text
        )

    def __bool__(self) -> bool:
        return bool(self._stand_ins)

    def restore(self, data: bytes, words: set[int] | None = None) -> bytes:
        """Put the sent texts back into the data. `words`: words of the data, if already known."""
        if not self._placeholders:
            return data
        words = list_words(data) if words is None else words
        restored = self._placeholders.apply(data, words)
        self._sent_texts.apply(data, words)
        return restored if self._stand_ins else data


NO_ECHO: Final = InputEcho()
