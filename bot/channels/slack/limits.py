"""What Slack refuses, as numbers; everything we build stays within them.

Each line names its source: [blocks] docs.slack.dev/reference/block-kit, [views] …/reference/views,
[chat] …/reference/methods/chat.postMessage and chat.startStream, [seen] found by asking Slack, [ours] a
choice of ours where Slack documents nothing.
"""

BLOCKS_PER_MESSAGE = 50  # [blocks]
BLOCKS_PER_VIEW = 100  # [blocks]
HEADER = 150  # [blocks] plain text of a header block
SECTION = 3000  # [blocks] text of a section block
SECTION_FIELDS = 10  # [blocks]
SECTION_FIELD = 2000  # [blocks]
CONTEXT_ELEMENTS = 10  # [blocks]
CONTEXT_TEXT = 2000  # [ours] one text of a context block; undocumented, so well below a section's
ACTION_ELEMENTS = 25  # [blocks]
RICH_TEXT = 3000  # [ours] text of one rich text block; undocumented, so as a section's
MARKDOWN = 12_000  # [blocks] all markdown blocks of a message together; [chat] one markdown_text
MESSAGE_CHARACTERS = 13_200  # [seen] all text of all blocks, then msg_blocks_too_long
MESSAGE_TEXT = 40_000  # [chat] text, then it is cut by Slack

BLOCK_ID = 255  # [blocks]
ACTION_ID = 255  # [blocks]
BUTTON_TEXT = 75  # [blocks]
BUTTON_VALUE = 2000  # [blocks]
URL = 3000  # [blocks]
OVERFLOW_OPTIONS = 5  # [blocks]
OPTION_TEXT = 75  # [blocks]
OPTION_VALUE = 150  # [blocks]
SELECT_OPTIONS = 100  # [blocks]
CONFIRM_TITLE = 100  # [blocks]
CONFIRM_TEXT = 300  # [blocks]
CONFIRM_BUTTON = 30  # [blocks]
INPUT_LABEL = 2000  # [blocks]
INPUT_HINT = 2000  # [blocks]
INPUT_VALUE = 3000  # [blocks] plain_text_input
PLACEHOLDER = 150  # [blocks]

VIEW_TITLE = 24  # [views] the same for submit and close
PRIVATE_METADATA = 3000  # [views]
CALLBACK_ID = 255  # [views]
VIEW_BYTES = 250_000  # [views] the whole view as JSON

TASK_TITLE = 256  # [ours] a task chunk's title; undocumented
SESSION_TITLE = 200  # [chat] agents.sessions.setStatus
PROMPTS = 4  # [chat] suggested prompts
