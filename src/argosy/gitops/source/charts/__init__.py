"""Fetches charts from Helm repositories.

In: the URL of a repository, a chart, a version or a range. Out: Checkout(tree, version). Never: runs Helm; sends a
credential to another host, unless the source asks for that.
"""
