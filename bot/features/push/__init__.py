"""Web Push: notifications on the devices of people who may decide, through their browsers' push services.

Begin with `sender.py`, the sweep. `rows.py` stores devices, `watcher.py` notices cards that they are to show,
and `notifications.py` stores these. `push_message.py` writes a message at the moment when it is sent;
`push_client.py` sends it, encrypted and signed by `vapid.py`.
"""
