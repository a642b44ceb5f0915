"""A stand-in has the same encoded forms as the sent text, and each form is restored as the same form of it."""

from __future__ import annotations

import base64
import html
import json
import string
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.gitops.redaction.never_masked_object_names import PublicWords
from argosy.observability.redaction.constant_time_replacement import Substitutions, TextReplacement
from argosy.observability.redaction.four_byte_word_filter import list_words
from argosy.observability.redaction.secret_encodings import iter_forms, iter_named_forms
from argosy.observability.redaction.secret_mask import SecretMask
from argosy.web.auth.caller import NOBODY
from argosy.web.request import QueryParameters
from argosy.web.request_input_echo import conceal_request
from support.examples import examples
from support.page_site import a_request, a_site

ENCODERS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in HTML": html.escape,
    "in JSON": lambda text: json.dumps(text, ensure_ascii=False),
    "in ASCII JSON": json.dumps,
    "in HTML in JSON": lambda text: html.escape(json.dumps(text, ensure_ascii=False)),
    "in an address": lambda text: quote(text, safe=""),
    "in a query": quote_plus,
    "in hexadecimal": lambda text: text.encode().hex(),
    "in base64": lambda text: base64.b64encode(text.encode()).decode(),
    "in base64 with a line end": lambda text: base64.b64encode(f"{text}\n".encode()).decode(),
    "in lower case": str.lower,
}


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize(("text", "sent"), [("-_.-_.-_.-", "~~~~~~~~~~"), ("~~~~~~~~~~", "-_.-_.-_.-")])
def test_form_is_replaced_by_the_same_form_of_the_sent_text(encoder: str, text: str, sent: str) -> None:
    """Only one of the two texts has another base64 form in URLs."""
    substitutions, encode = Substitutions([TextReplacement(text, sent)]), ENCODERS[encoder]
    data = f"- {encode(text)} -".encode()
    assert substitutions.apply(data, list_words(data)).decode() == f"- {encode(sent)} -"


def restore(sent: str, encode: Callable[[str], str]) -> tuple[str, str]:
    """Return the stand-in for a sent secret, and the restored response that quotes it in a form."""
    request = a_request(a_site(), "GET", "/apps", {}, QueryParameters([("q", sent)]), {}, NOBODY)
    concealed, echo = conceal_request(
        request, SecretMask(lambda: [{"stringData": {"v": sent}}], PublicWords()).find_values
    )
    assert echo, "it is a secret"
    return concealed.query["q"], echo.restore(encode(concealed.query["q"]).encode()).decode()


SIGNS_ONLY = ['"><!--&\'"', "<&>\"'/\\:;", "!!??##$$==", "()[]{}<>", ":/?#[]@!$&'()*,;="]
SIGNS_ONLY += ["密码很长的句子啊", "пароль Вот Он", "äöüßÄÖÜẞ€"]


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("sent", SIGNS_ONLY)
def test_secret_without_ascii_letters_and_digits_is_echoed_as_sent(sent: str, encoder: str) -> None:
    stand_in, restored = restore(sent, ENCODERS[encoder])
    assert stand_in != sent
    assert restored == ENCODERS[encoder](sent)


@pytest.mark.parametrize("sent", SIGNS_ONLY)
def test_stand_in_has_the_same_forms_as_the_sent_text(sent: str) -> None:
    stand_in, _ = restore(sent, str)
    escaped = [
        [name for name, _ in iter_named_forms(text) if not name.startswith("base64")] for text in (sent, stand_in)
    ]
    assert escaped[0] == escaped[1]


SIGNS = "".join(sorted(set(string.punctuation) - set("%+")))
WIDE = st.text(alphabet=f"{SIGNS}äÄßЖж密€\U0001f600", min_size=8, max_size=24)


@given(WIDE.filter(lambda text: len(set(text)) >= 4), st.sampled_from(sorted(ENCODERS)))
@settings(max_examples=examples(200), deadline=None)
def test_any_secret_of_signs_is_echoed_as_sent(sent: str, encoder: str) -> None:
    stand_in, restored = restore(sent, ENCODERS[encoder])
    assert stand_in != sent
    assert restored == ENCODERS[encoder](sent)


@given(st.text(max_size=30))
@settings(max_examples=examples(200), deadline=None)
def test_encoded_forms_have_unique_names(text: str) -> None:
    named = list(iter_named_forms(text))
    assert len({name for name, _ in named}) == len(named)
    assert {form for _, form in named} == set(iter_forms(text))
