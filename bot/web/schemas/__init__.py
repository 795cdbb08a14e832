"""What the HTTP interface answers: one pydantic model for each answer, which the OpenAPI page describes.

Most are read from a value's attributes. Times are ISO 8601 in UTC; secrets are redacted as on every card.
"""
