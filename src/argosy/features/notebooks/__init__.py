"""Notebook jobs: run a notebook of a Git repository, validate it and report the result, so that it can gate a model.

This file stays empty, because the process of every notebook imports it.
"""
