"""SQL reads: pushed-down filters and columns, the plan of a scan, and the choice of its reader."""
