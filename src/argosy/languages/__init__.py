"""Small languages that users write. In: their text. Out: what it means, as plain data. Never: does I/O."""
