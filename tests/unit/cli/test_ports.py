"""Numbers that are no ports: a sentence and exit code 2 for every flag that takes one."""

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
def test_a_number_that_is_no_port_is_refused(
    command: str, flag: str, number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), flag, number]) == 2
    output = capsys.readouterr().err
    assert output.startswith(f"argosy: invalid port {flag} {number}\nnext: use 1 to 65535, or 0 for ")
