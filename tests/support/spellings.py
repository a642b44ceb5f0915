"""Alternative spellings of repository and cluster URLs, as an attacker would try them.

In: a canonical URL, a random source. Out: a URL that refers to the same repository or cluster. Never: another host,
port or path.
"""

from __future__ import annotations

import random

DEFAULT_PORTS = {"https": "443", "http": "80", "ssh": "22"}


def respell_repository(scheme: str, host: str, segments: list[str], rng: random.Random) -> str:
    path = _respell_path(segments, rng) + rng.choice(["", "", "/", "//", ".git", ".GIT", ".git/", "%2egit"])
    if scheme == "ssh" and rng.random() < 0.4:
        return f"git@{_mix_case(host, rng)}:{path.lstrip('/')}"
    user = rng.choice(["", "", "git@", "u@", "a.b@"]) if scheme != "ssh" else "git@"
    text = f"{_mix_case(scheme, rng)}://{user}{_mix_case(host, rng)}{_port(scheme, rng)}{path}"
    return f" {text} " if rng.random() < 0.1 else text


def respell_cluster(scheme: str, host: str, path: str, rng: random.Random) -> str:
    text = f"{_mix_case(scheme, rng)}://{_mix_case(host, rng)}{_port(scheme, rng)}{path}"
    return text + rng.choice(["", "/", "//"])


def _port(scheme: str, rng: random.Random) -> str:
    default = DEFAULT_PORTS[scheme]
    return rng.choice(["", "", ":", f":{default}", f":0{default}", f":000{default}"])


def _mix_case(text: str, rng: random.Random) -> str:
    return "".join(char.upper() if rng.random() < 0.3 else char for char in text)


def _respell_path(segments: list[str], rng: random.Random) -> str:
    return "".join("/" * rng.choice([1, 1, 1, 2, 3]) + _respell_segment(segment, rng) for segment in segments)


def _respell_segment(segment: str, rng: random.Random) -> str:
    def respell(char: str) -> str:
        if rng.random() < 0.1:
            return "".join(rng.choice([f"%{byte:02x}", f"%{byte:02X}"]) for byte in char.encode())
        return char.upper() if rng.random() < 0.2 else char

    return "".join(map(respell, segment))
