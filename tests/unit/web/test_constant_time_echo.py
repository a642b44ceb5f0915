"""A request with a right guess of a secret value takes the same steps as one with a wrong guess."""

from __future__ import annotations

import base64
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from argosy.gitops.redaction.never_masked_object_names import PublicWords
from argosy.observability.redaction import constant_time_replacement
from argosy.observability.redaction.four_byte_word_filter import data_may_contain, list_first_words, list_words
from argosy.observability.redaction.secret_mask import SecretMask
from argosy.web import authorization, request_input_echo
from argosy.web.auth.caller import NOBODY
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from argosy.web.request import QueryParameters, RequestContext
from argosy.web.request_input_echo import conceal_request
from argosy.web.responses import JsonResponse
from argosy.web.route import Route, SignedIn
from support.page_site import CONTROL, a_request, a_site
from support.tenants import ask

RIGHT, WRONG = "pin-314159", "pin-271828"
PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "alone": lambda guess: {"query": QueryParameters([("q", guess)])},
    "behind other text": lambda guess: {"query": QueryParameters([("q", f"{'x' * 34}{guess}")])},
    "behind signs": lambda guess: {"query": QueryParameters([("q", f"{'<&>' * 10}{guess}")])},
    "as a name": lambda guess: {"query": QueryParameters([(guess, "1")])},
    "percent-encoded": lambda guess: {"query": QueryParameters([("q", f"%41{'x' * 30}{guess}")])},
    "in the path": lambda guess: {"path_parameters": {"name": guess}, "path": f"/apps/{guess}"},
    "twice": lambda guess: {"query": QueryParameters([("q", guess), ("tab", guess)])},
}
STEPS = (
    (request_input_echo, "_build_stand_in"),
    (request_input_echo, "_pick_character"),
    (request_input_echo, "_compile_spellings"),
    (request_input_echo, "_encode_like"),
    (request_input_echo, "_replace_secrets"),
    (constant_time_replacement, "iter_named_forms"),
)


@pytest.fixture(autouse=True)
def same_stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random stand-ins: one in many thousands contains a word of the response by chance and costs one more pass."""
    rng = random.Random(7)
    monkeypatch.setattr(request_input_echo.secrets, "token_bytes", rng.randbytes)
    monkeypatch.setattr(request_input_echo.secrets, "token_hex", lambda size: rng.randbytes(size).hex())


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Number of calls of each step."""
    counted: Counter[str] = Counter()

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any, **options: Any) -> Any:
            counted[name] += 1
            return function(*arguments, **options)

        return count

    for module, name in STEPS:
        monkeypatch.setattr(module, name, counting(name, getattr(module, name)))
    monkeypatch.setattr(authorization, "authorize", counting("permitted", authorization.authorize))
    monkeypatch.setattr(SecretMask, "find_values", counting("find", SecretMask.find_values))
    return counted


@pytest.mark.parametrize("place", PLACES)
def test_right_and_wrong_guess_take_the_same_steps(place: str, steps: Counter[str]) -> None:
    mask, taken = SecretMask(lambda: [{"stringData": {"v": RIGHT}}], PublicWords()), list[Counter[str]]()
    for guess in (RIGHT, WRONG):
        parts: dict[str, Any] = {"path": "/apps", "path_parameters": {}, "query": QueryParameters([])} | PLACES[place](
            guess
        )
        request = a_request(a_site(), "GET", **parts)
        steps.clear()
        concealed, echo = conceal_request(request, mask.find_values)
        assert (concealed is request, echo.is_decoy) == (guess == WRONG, guess == WRONG)
        taken.append(+steps)
    assert taken[0] == taken[1]
    assert taken[0]["_build_stand_in"] > 0 and taken[0]["_pick_character"] > 0


@pytest.mark.parametrize("text", ["", "short", "x" * 7])
def test_text_too_short_for_a_secret_takes_no_further_step(text: str, steps: Counter[str]) -> None:
    request = a_request(a_site(), "GET", "/apps", {}, QueryParameters([("q", text)]), {}, NOBODY)
    conceal_request(request, SecretMask(lambda: [{"stringData": {"v": RIGHT}}], PublicWords()).find_values)
    assert steps == {"find": 1}


class Scanned(bytes):
    """A response that counts how often it is searched from its start."""

    scans = 0

    def find(self, part: Any, *place: Any) -> int:
        Scanned.scans += not place
        return super().find(part, *place)

    def replace(self, *arguments: Any) -> bytes:  # type: ignore[override]
        Scanned.scans += 1
        return super().replace(*arguments)

    def __contains__(self, part: Any) -> bool:
        Scanned.scans += 1
        return super().__contains__(part)


def count_scans(text: str, secret: str, lead: str = "") -> int:
    """Return how often a large response that echoes a query is searched."""
    request = a_request(a_site(), "GET", "/apps", {}, QueryParameters([("q", f"{lead}{text}")]), {}, NOBODY)
    mask = SecretMask(lambda: [{"stringData": {"v": secret}}], PublicWords())
    concealed, echo = conceal_request(request, mask.find_values)
    answer, expected = (
        Scanned(f"{'an answer of many words ' * 1_000}{q}, cut {q[:-3]}, again {q}".encode())
        for q in (concealed.query["q"], request.query["q"])
    )
    Scanned.scans = 0
    mask.search.find_needles(answer)
    restored = echo.restore(answer)
    assert restored == expected
    return Scanned.scans


@pytest.mark.parametrize("lead", ["", "with ", "x" * 40, "<b>&'quoted'"])
@pytest.mark.parametrize("length", [10, 20, 52, 200])
def test_right_guess_of_any_length_causes_as_many_searches_as_a_wrong_one(length: int, lead: str) -> None:
    value = ("pin-1b3d5f7h9j2l4n6p8r0t2v4x6z" * 7)[:length]
    right, wrong = count_scans(value, value, lead), count_scans(value, "quite-another-value", lead)
    assert 0 < right == wrong <= 3


LEADS = pytest.mark.parametrize("lead", ["", "x", "xy", "xyz"])  # the guess starts at any offset of a word


def count_scans_of_parts(right_length: int, lead: str) -> tuple[int, list[int]]:
    """Return how often a response is searched for a wrong guess, and for those with right first or last bytes."""
    value, wrong = "1b3d5f7h9j2l4n6p8r0t", "q0w1e2r4t5y6u8i9o1z3"
    rest = len(value) - right_length
    guesses = (f"{value[:right_length]}{wrong[right_length:]}", f"{wrong[:rest]}{value[rest:]}")
    return count_scans(wrong, value, lead), [count_scans(guess, value, lead) for guess in guesses]


@LEADS
@pytest.mark.parametrize("right_length", [0, 4, 8, 12, 16])
def test_partly_right_guess_causes_as_many_searches_as_a_wrong_one(right_length: int, lead: str) -> None:
    wrong, partly_right = count_scans_of_parts(right_length, lead)
    assert partly_right == [wrong, wrong]


@LEADS
@pytest.mark.parametrize("right_length", [17, 18, 19])
def test_guess_with_three_wrong_end_bytes_costs_at_most_one_more_pass(right_length: int, lead: str) -> None:
    wrong, partly_right = count_scans_of_parts(right_length, lead)
    assert set(partly_right) <= {wrong, wrong + 1}


def test_short_text_beside_a_secret_in_the_path_is_no_error() -> None:
    request = a_request(a_site(), "GET", f"/apps/{RIGHT}", {}, QueryParameters([("q", "<&>\"'")]), {}, NOBODY)
    concealed, echo = conceal_request(
        request, SecretMask(lambda: [{"stringData": {"v": RIGHT}}], PublicWords()).find_values
    )
    assert RIGHT not in concealed.path and echo.restore(concealed.path.encode()).decode() == request.path


@pytest.mark.parametrize("text", [b"", b"four", b"sixsix"])
def test_text_that_may_contain_no_whole_word_cannot_be_searched(text: bytes) -> None:
    with pytest.raises(AssertionError):
        list_first_words(text)
    with pytest.raises(AssertionError):
        data_may_contain(set(), text)


@pytest.mark.parametrize("lead", range(4))
def test_text_of_seven_bytes_is_found_at_any_offset_of_a_word(lead: int) -> None:
    words = list_words(b"." * lead + b"sevensy" + b"." * 4)
    assert data_may_contain(words, b"sevensy") and words & list_first_words(b"sevensy")


def test_decoy_changes_no_response() -> None:
    request = a_request(a_site(), "GET", "/apps", {}, QueryParameters([("q", WRONG)]), {}, NOBODY)
    concealed, echo = conceal_request(
        request, SecretMask(lambda: [{"stringData": {"v": RIGHT}}], PublicWords()).find_values
    )
    answer = f"{WRONG} {WRONG.upper()} {WRONG[:8]} {WRONG.encode().hex()} {RIGHT}".encode()
    assert concealed is request and echo.restore(answer) == answer


@pytest.mark.anyio
async def test_right_and_wrong_guess_are_authorized_equally_often(steps: Counter[str]) -> None:
    async def answer(request: RequestContext) -> JsonResponse:
        return JsonResponse({"q": request.query["q"]})

    encoded = base64.b64encode(RIGHT.encode()).decode()
    metadata = {"name": "pin", "namespace": CONTROL}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"v": encoded}}
    entry = WebApplication(a_site([secret]), [Route("GET", "/api/v1/x", SignedIn(), answer, "x", query=("q",))])
    taken = []
    for guess in (RIGHT, WRONG):
        steps.clear()
        got = await ask(entry, "GET", f"/api/v1/x?q={guess}", {"Authorization": "Bearer ann"})
        assert got.json() == {"q": guess}
        taken.append(+steps)
    assert taken[0] == taken[1]
    assert taken[0]["permitted"] == 2
