"""Tasks of operations: picklable plans that any process can run and that one commit publishes."""
