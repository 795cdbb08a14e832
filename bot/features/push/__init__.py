"""Web Push: notifications on the devices of people who may decide, through their browsers' push services.

Begin with `sender.py`, the sweep. `rows.py` stores devices, and `notifications.py` the cards that each device
is to show. `push_message.py` writes a message at the moment when it is sent; `vapid.py` encrypts and signs
it.
"""
