"""Answers to people: why something is as it is, and what to type.

In: what the rooms below have found. Out: values to be shown. Never: changes a cluster or a repository.
"""
