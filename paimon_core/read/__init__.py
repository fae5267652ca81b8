"""Reading: rows of splits, from raw files one after another or from merged sections of overlapping runs."""
