"""Built-in kinds as data: fields, defaults, rules, columns, wire formats; and custom kinds from their definitions.

In: plain data. Out: plain data, or faults. Never: does I/O beyond its own tables; knows an application.
"""
