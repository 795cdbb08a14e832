"""Nod: an AI teammate that asks, with buttons, before it changes anything."""
