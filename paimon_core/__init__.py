"""Apache Paimon tables in pure Python."""
