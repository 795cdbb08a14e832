"""Files that are text: of a known encoding or not, with markup or without."""
