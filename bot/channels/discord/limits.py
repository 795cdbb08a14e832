"""What Discord accepts; lengths in characters, counted here in UTF-16 units, which is never too few.

Pages, below https://docs.discord.com/developers: resources/message (create message, embed limits),
components/reference, interactions/receiving-and-responding, reference (uploading files).
"""

CONTENT = 2000  # of one message
EMBED_TEXT = 4096  # of an embed; 6000 in all, and Nod sends one
ROWS = 5  # of components in a message
IN_ROW = 5  # buttons in a row
BUTTON = 80  # a button's label
CUSTOM_ID = 100
LINK = 512  # a link button's address
LABEL = 45  # of an input, and the title of a window
WINDOW_PARTS = 5  # components in a window
HINT = 100  # the description of a label
INPUT = 4000  # the value of a text input
OPTIONS = 25  # of a menu, each of up to 100 characters
OPTION = 100
FILE = 10 * 2**20  # bytes, where no one pays for more
ACKNOWLEDGE = 2.0  # seconds we take to answer an interaction; Discord waits 3
