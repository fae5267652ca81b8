"""One data file: read projected and evolved, written with its statistics."""
