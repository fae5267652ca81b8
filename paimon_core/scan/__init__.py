"""From a snapshot to splits: the files that a read must open, grouped into splits and tasks."""
