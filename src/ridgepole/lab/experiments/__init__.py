"""The experiments, one file each: it measures one thing, and says what it means."""
