"""Promotions, done: a repository read and written by git, a cluster asked, files checked.

In: what was typed. Out: plans, verdicts, commits. Never: half a promotion.
"""
