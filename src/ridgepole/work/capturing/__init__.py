"""A program on fake tensors: the stage, what is pretended there, and what writes it down. See `work.capture`."""
