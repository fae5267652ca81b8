"""Every byte goes through here: one `FileIO` of ten verbs over local disks and fsspec stores."""
