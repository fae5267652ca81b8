"""Every byte goes through here: one `FileIO` of eleven verbs over local disks and fsspec stores."""
