"""The REST catalog: databases and tables that a server of Paimon's REST interface holds."""
