"""SQL for classic sessions: a catalog of Paimon tables, made of classes that the driver compiles."""
