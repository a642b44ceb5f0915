"""Kinds as data: fields, defaults, validation, columns and wire formats of built-in kinds; CRDs for custom kinds.

In: plain data. Out: plain data, or errors. Never: does I/O other than loading its own tables; knows Applications.
"""
