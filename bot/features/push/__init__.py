"""Web Push: notifications on the devices of people who may decide, through their browsers' push services.

Begin with `sender.py`, the sweep. `rows.py` keeps devices, `notifications.py` what they are to show;
`letter.py` judges what is sent to a person, at the moment when it is sent; `vapid.py` encrypts and signs.
"""
