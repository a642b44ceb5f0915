"""Notebooks that gate models: jobs that run a notebook of a repository, judge it, and report the result.

This file stays empty: the process of every notebook imports it.
"""
