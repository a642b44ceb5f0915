"""Findings, causes of differences and effects of changes, as values that commands and pages show.

In: results of the packages below. Out: values. Never: changes a cluster or a repository.
"""
