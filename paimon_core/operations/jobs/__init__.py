"""Tasks of operations: picklable units of work that any process can run and that one commit publishes."""
