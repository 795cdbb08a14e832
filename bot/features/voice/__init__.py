"""Voice: recordings that people send become text, by a model that transcribes (NOD_MODELS).

Begin with `transcription.py`. The text becomes the text of the file that came with the message. So the agent
reads it with the message, and it is deleted with the file; no press, reason or answer of a person is ever
taken from it.
"""
