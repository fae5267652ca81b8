"""Maintenance of tables: plans of picklable tasks, which any process can run and one commit publishes."""
