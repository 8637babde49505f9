"""A live program while it runs: what is timed bare, what is recorded, and how it is left as it was."""
