"""gRPC codes of errors: by HTTP code, except for mistakes to which Argo CD gives no code."""

from __future__ import annotations

import pytest

from argosy.errors import ArgosyError, PolicyError, SourceError, UserError
from argosy.web.error_details import describe_error, report_without_code


@pytest.mark.parametrize(
    ("error", "http_code", "grpc_code"),
    [
        (SourceError("no such revision", where="main"), 400, 2),
        (UserError("no such action"), 400, 2),
        (PolicyError("the project forbids it"), 403, 7),
    ],
)
def test_mistake_reported_without_code_is_unknown(error: ArgosyError, http_code: int, grpc_code: int) -> None:
    with pytest.raises(ArgosyError) as caught, report_without_code():
        raise error
    details = describe_error(caught.value)
    assert (details.code, details.grpc_code, details.message) == (http_code, grpc_code, str(error))


def test_other_mistake_is_an_invalid_argument() -> None:
    assert describe_error(UserError("not a number")).grpc_code == 3
