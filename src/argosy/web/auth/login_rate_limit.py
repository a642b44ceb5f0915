"""Login rate limit: counts password attempts in the cluster before the password is compared.

In: an account and a client address. Out: whether this attempt may be compared. Never: resets on a restart; lets unknown
names displace a real account, or one address lock out all others; counts after the comparison, because concurrent
attempts would all pass.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Container, Mapping
from math import isinf
from typing import Final, NamedTuple

from argosy.errors import Conflict
from argosy.kube.client import Cluster
from argosy.kube.controller.clock import SYSTEM_CLOCK, Clock
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP

CONFIG_MAP_NAME: Final = "argosy-login-attempts"
MAX_FAILURES: Final = 5  # argo: failures
MAX_FAILURES_PER_ADDRESS: Final = 4  # of them, per address, so that other addresses keep one attempt
WINDOW_SECONDS: Final = 300.0  # argo: seconds
# Seconds for which an address stays known after the account signed in from it.
KNOWN_ADDRESS_SECONDS: Final = 30 * 86400.0
KNOWN_ADDRESS_RENEWAL_SECONDS: Final = 86400.0  # seconds after which that is written again
# Key prefixes in the ConfigMap.
ACCOUNT_PREFIX, ADDRESS_PREFIX, KNOWN_ADDRESS_PREFIX, UNKNOWN_ACCOUNTS_KEY = "account.", "at.", "home.", "strangers"
UNKNOWN_ACCOUNT: Final = ""  # shared by all unknown names
MAX_WRITE_ATTEMPTS: Final = 12  # on write conflicts with other servers
RETRY_STEP_SECONDS: Final = 0.005  # seconds
MAX_CACHED_REFUSALS: Final = 1_000
REFUSAL_CACHE_SECONDS: Final = 1.0  # seconds for which a cached refusal is used


class LoginAttempt(NamedTuple):
    """A counted attempt; it can be taken back if the password was right."""

    keys: tuple[str, ...]
    timestamp: str
    account_address: str  # hash of account and address


class _AttemptLimit(NamedTuple):
    key: str
    max_attempts: int


class LoginRateLimiter:
    def __init__(self, cluster: Cluster, namespace: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._cluster, self._clock = cluster, clock
        self._key = ResourceKey(*CONFIG_MAP, namespace, CONFIG_MAP_NAME)
        self._lock = asyncio.Lock()
        self._refusals: dict[tuple[str, str], tuple[float, list[str]]] = {}  # refusals: time of the read, and attempts

    async def count_attempt(self, account: str, peer: str = "") -> LoginAttempt | None:
        """Count an attempt. None: refused, do not compare the password."""
        async with self._lock:
            if self._is_refused_by_cache(account, peer):
                return None
            account_address = _hash_account_address(account, peer) if account and peer else ""
            for attempt in range(MAX_WRITE_ATTEMPTS):
                await asyncio.sleep(RETRY_STEP_SECONDS * attempt)
                config_map = await self._cluster.get(self._key)
                limits = self._list_limits(config_map, account, account_address)
                if exceeded := next(
                    (
                        limit
                        for limit in limits
                        if len(self._read_timestamps(config_map, limit.key)) >= limit.max_attempts
                    ),
                    None,
                ):
                    if len(self._refusals) >= MAX_CACHED_REFUSALS:
                        self._refusals.clear()
                    self._refusals[account, peer] = (
                        self._clock.monotonic(),
                        self._read_timestamps(config_map, exceeded.key)[-exceeded.max_attempts :],
                    )
                    return None
                timestamp = f"{self._now():.3f}"
                data = {limit.key: [*self._read_timestamps(config_map, limit.key), timestamp] for limit in limits}
                if await self._write(config_map, data):
                    return LoginAttempt(tuple(data), timestamp, account_address)
            return None  # too many write conflicts: an attempt that is not counted is not compared

    async def remove_attempt(self, login_attempt: LoginAttempt) -> None:
        """Take back a correct attempt and remember the address as known. Attempts by others stay counted."""
        async with self._lock:
            for attempt in range(MAX_WRITE_ATTEMPTS):
                await asyncio.sleep(RETRY_STEP_SECONDS * attempt)
                config_map = await self._cluster.get(self._key)
                data = {key: self._read_timestamps(config_map, key) for key in login_attempt.keys}
                for timestamps in data.values():
                    if login_attempt.timestamp in timestamps:
                        timestamps.remove(login_attempt.timestamp)
                if login_attempt.account_address and not self._is_known_address(
                    config_map, login_attempt.account_address, KNOWN_ADDRESS_RENEWAL_SECONDS
                ):
                    data[f"{KNOWN_ADDRESS_PREFIX}{login_attempt.account_address}"] = [login_attempt.timestamp]
                if await self._write(config_map, data):
                    self._refusals.clear()
                    return

    def _list_limits(
        self, config_map: Manifest | None, account: str, account_address: str
    ) -> tuple[_AttemptLimit, ...]:
        """Known addresses of an account have a separate limit, so that nobody can lock it out there."""
        if not account_address:
            return (_AttemptLimit(f"{ACCOUNT_PREFIX}{account}" if account else UNKNOWN_ACCOUNTS_KEY, MAX_FAILURES),)
        if self._is_known_address(config_map, account_address, KNOWN_ADDRESS_SECONDS):
            return (_AttemptLimit(f"{ADDRESS_PREFIX}{account_address}", MAX_FAILURES),)
        return (
            _AttemptLimit(f"{ACCOUNT_PREFIX}{account}", MAX_FAILURES),
            _AttemptLimit(f"{ADDRESS_PREFIX}{account_address}", MAX_FAILURES_PER_ADDRESS),
        )

    def _is_known_address(self, config_map: Manifest | None, account_address: str, seconds: float) -> bool:
        data = (config_map or {}).get("data") or {}
        return (
            _parse_seconds(str(data.get(f"{KNOWN_ADDRESS_PREFIX}{account_address}") or "0"), unreadable=0.0)
            > self._now() - seconds
        )

    def _is_refused_by_cache(self, account: str, peer: str) -> bool:
        """True if a recent read refused, and none of its attempts has expired since."""
        read_at, timestamps = self._refusals.get((account, peer), (0.0, []))
        if not timestamps or self._clock.monotonic() - read_at > REFUSAL_CACHE_SECONDS:
            self._refusals.pop((account, peer), None)
            return False
        return len(self._keep_recent(timestamps)) == len(timestamps)

    def _read_timestamps(self, config_map: Manifest | None, key: str) -> list[str]:
        data = (config_map or {}).get("data") or {}
        return self._keep_recent(str(data.get(key) or "").split())

    def _keep_recent(self, timestamps: list[str]) -> list[str]:
        """Drop old attempts, and attempts in the future: they predate a clock change and would count too long."""
        now = self._now()
        return [
            timestamp
            for timestamp in timestamps
            if now - WINDOW_SECONDS < (moment := _parse_seconds(timestamp))
            and (moment <= now + WINDOW_SECONDS or isinf(moment))
        ]

    async def _write(self, config_map: Manifest | None, timestamps: Mapping[str, list[str]]) -> bool:
        """Write attempts. False: a write conflict; read again."""
        data = {key: " ".join(values) or None for key, values in timestamps.items()} | self._list_stale_keys(
            config_map, timestamps
        )
        metadata = {"name": CONFIG_MAP_NAME, "namespace": self._key.namespace}
        try:
            if config_map is None:
                non_empty = {key: text for key, text in data.items() if text}
                manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": non_empty}
                await self._cluster.create(manifest)
            else:
                version = config_map["metadata"]["resourceVersion"]
                await self._cluster.patch(self._key, {"metadata": {"resourceVersion": version}, "data": data})
        except Conflict:
            return False
        return True

    def _list_stale_keys(self, config_map: Manifest | None, excluded_keys: Container[str]) -> dict[str, None]:
        """Return expired per-address keys, so that the ConfigMap does not grow forever."""
        stale: dict[str, None] = {}
        for key in (config_map or {}).get("data") or {}:
            is_old = key.startswith(ADDRESS_PREFIX) and not self._read_timestamps(config_map, key)
            is_left = key.startswith(KNOWN_ADDRESS_PREFIX) and not self._is_known_address(
                config_map, key.removeprefix(KNOWN_ADDRESS_PREFIX), KNOWN_ADDRESS_SECONDS
            )
            if key not in excluded_keys and (is_old or is_left):
                stale[key] = None
        return stale

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _parse_seconds(timestamp: str, unreadable: float = float("inf")) -> float:
    """Parse a time. Invalid text counts as now, so that writing invalid data gains nothing."""
    try:
        return float(timestamp)
    except ValueError:
        return unreadable


def _hash_account_address(account: str, peer: str) -> str:
    """Return account and address as a valid ConfigMap key."""
    return hashlib.sha256(f"{account}\0{peer}".encode()).hexdigest()[:32]
