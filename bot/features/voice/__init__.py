"""Voice: what people say aloud becomes text, by a model of the file of models that transcribes.

Begin with `hearing.py`. What was heard is the text of a file that came with a message: it is read with it,
it goes with retention, and nothing that takes a person's press, reason or answer ever looks there.
"""
