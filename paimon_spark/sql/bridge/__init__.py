"""The bridge between Python and the classes of the connector in Spark's JVM."""
