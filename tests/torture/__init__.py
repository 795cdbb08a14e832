"""Real processes, killed at random while people write and press; then a checker in plain SQL.

``make torture`` runs it for long; ``ARGS="--database postgresql+psycopg://… --processes 3 --kills 1000"``.
"""
