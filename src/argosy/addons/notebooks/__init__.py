"""Notebooks that gate models: jobs that run a notebook of a repository, judge it, and say what came of it.

In: NotebookValidationJobs. Out: an AddOn. Never: runs a cell in this process.
"""
