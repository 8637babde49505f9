"""What a user names to be priced, one file a kind. See `work.target`."""
