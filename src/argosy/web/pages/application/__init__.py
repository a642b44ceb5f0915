"""The pages of Applications: the list, and everything of one.

In: a request that may see it, and what lives. Out: values for templates, one file a page. Never: HTML; a decision that
`desk` could make.
"""
