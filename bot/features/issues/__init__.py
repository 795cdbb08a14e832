"""Issues: the built-in issue tracker. Begin with `tools.py`. No other tracker comes in here."""
