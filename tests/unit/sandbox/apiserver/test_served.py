"""Where kinds are kept."""

from argosy.sandbox.apiserver.served_kind import bucket_of


def test_both_groups_of_events_share_a_bucket_and_no_other_group_does() -> None:
    assert bucket_of("", "events") == bucket_of("events.k8s.io", "events") == "events"
    assert bucket_of("example.com", "events") == "example.com/events"
