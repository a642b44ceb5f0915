"""Records of role tokens in the spec and in the status of an AppProject."""

from __future__ import annotations

from argosy.gitops.application_client.role_token_lists import combine_role_tokens

OLD, NEW = {"iat": 1, "id": "one"}, {"iat": 2, "id": "two", "exp": 9}


def test_records_of_both_places_are_in_both_the_newest_first() -> None:
    project = {
        "spec": {"roles": [{"name": "ci", "jwtTokens": [NEW]}, {"name": "cd"}]},
        "status": {"jwtTokensByRole": {"ci": {"items": [OLD]}}},
    }
    combined = combine_role_tokens(project)
    assert combined["spec"]["roles"] == [{"name": "ci", "jwtTokens": [NEW, OLD]}, {"name": "cd"}]
    assert combined["status"] == {"jwtTokensByRole": {"ci": {"items": [NEW, OLD]}}}
    assert combine_role_tokens(combined) == combined


def test_roles_that_are_applied_without_tokens_keep_them() -> None:
    stored = combine_role_tokens({"spec": {"roles": [{"name": "ci", "jwtTokens": [OLD]}]}})
    applied = {**stored, "spec": {"roles": [{"name": "ci"}, {"name": "cd"}]}}
    assert combine_role_tokens(applied)["spec"]["roles"] == [{"name": "ci", "jwtTokens": [OLD]}, {"name": "cd"}]


def test_records_of_a_removed_role_go() -> None:
    stored = combine_role_tokens({"spec": {"roles": [{"name": "ci", "jwtTokens": [OLD]}]}})
    assert combine_role_tokens({**stored, "spec": {"roles": [{"name": "cd"}]}}) == {"spec": {"roles": [{"name": "cd"}]}}
    assert combine_role_tokens({**stored, "spec": {}}) == {"spec": {}}


def test_record_without_an_id_is_one_with_its_time() -> None:
    project = {
        "spec": {"roles": [{"name": "ci", "jwtTokens": [{"iat": 1}]}]},
        "status": {"jwtTokensByRole": {"ci": {"items": [{"iat": 1, "id": "1"}]}}},
    }
    assert combine_role_tokens(project)["spec"]["roles"][0]["jwtTokens"] == [{"iat": 1, "id": "1"}]
