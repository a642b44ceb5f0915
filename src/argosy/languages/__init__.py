"""Small languages that users write. In: their text. Out: its result as plain data. Never: does I/O."""
