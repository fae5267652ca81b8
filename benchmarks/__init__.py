"""Every claim about speed, with its opponents in one run: ``python -m benchmarks`` (docs/internals/benchmarks.md)."""
