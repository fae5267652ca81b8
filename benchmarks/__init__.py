"""Every claim about speed, measured against its opponents in the same run: ``python -m benchmarks`` (docs/benchmarks.md)."""
