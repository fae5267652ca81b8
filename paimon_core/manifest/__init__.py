"""Manifests: the files of a snapshot, as entries in Avro files, and the lists of these files."""
