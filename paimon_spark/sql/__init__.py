"""SQL for classic sessions: a catalog of Paimon tables, built on Java classes that the driver compiles."""
