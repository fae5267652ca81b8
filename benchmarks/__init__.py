"""Every claim about speed, against its opponents in the same run: ``python -m benchmarks`` (docs/benchmarks.md)."""
