"""The merge tree of one bucket: levels, sorted runs, sections of runs that overlap."""
