"""A profiler's trace file, piece by piece, until its rows are linked. `timeline.reader.read` puts them together."""
