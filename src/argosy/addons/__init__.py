"""Optional controllers. Each package here is one add-on, and knows no other.

In: a variant's name. Out: an AddOn. Never: what an add-on of a stranger could not use.
"""
