"""Reads by SQL: pushed filters and columns, the plan of a scan, and the choice of who reads the rows."""
