"""A catalog in a relational database, which the Java engine's JDBC catalog can share."""
