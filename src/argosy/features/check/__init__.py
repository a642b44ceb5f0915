"""`argosy check`: reads files, finds and renders Applications, and applies the rules.

In: paths. Out: findings, and notes about what was not checked. Never: contacts a cluster; prints.
"""
