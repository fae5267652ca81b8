"""Splits to rows: raw files one after another, or sections of overlapping runs merged."""
