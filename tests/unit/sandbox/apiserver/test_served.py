"""Where kinds are kept."""

from argosy.sandbox.apiserver.served_kind import get_bucket


def test_both_groups_of_events_share_a_bucket_and_no_other_group_does() -> None:
    assert get_bucket("", "events") == get_bucket("events.k8s.io", "events") == "events"
    assert get_bucket("example.com", "events") == "example.com/events"
