"""The versions of the schema, in their order."""
