"""Manifests: which files a snapshot consists of, as entries in Avro files and lists of those files."""
