"""Pages that change before the eyes of who reads them: server-sent events.

In: changes that the lookout tells of, pages that people have open. Out: the parts of a page that became other. Never: a
part that its reader may not see; holds up everybody for one who reads slowly.
"""
