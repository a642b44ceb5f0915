"""Every port flag rejects invalid port numbers with exit code 2."""

from __future__ import annotations

import pytest

from argosy.main import main

FLAGS = [
    ("controller", "--port"),
    ("serve", "--port"),
    ("serve", "--metrics-port"),
    ("demo", "--port"),
    ("demo", "--api-port"),
    ("sandbox start", "--port"),
    ("open", "--port"),
]


@pytest.mark.parametrize("number", ["99999", "65536", "-1"])
@pytest.mark.parametrize(("command", "flag"), FLAGS)
def test_invalid_port_number_is_rejected(
    command: str, flag: str, number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), flag, number]) == 2
    output = capsys.readouterr().err
    assert output.startswith(f"argosy: invalid port {flag} {number}\nnext: use 1 to 65535, or 0 for ")
