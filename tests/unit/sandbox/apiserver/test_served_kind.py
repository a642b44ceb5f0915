"""Storage buckets of served kinds."""

from argosy.sandbox.apiserver.kind_codec_and_validation import get_bucket


def test_core_and_events_k8s_io_events_share_one_bucket() -> None:
    assert get_bucket("", "events") == get_bucket("events.k8s.io", "events") == "events"
    assert get_bucket("example.com", "events") == "example.com/events"
