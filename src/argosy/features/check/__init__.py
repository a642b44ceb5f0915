"""Checks repositories: reads files, finds Applications, renders them, and asks the rules.

In: paths. Out: findings, and what could not be looked at. Never: asks a cluster; prints.
"""
