"""What Slack refuses, as numbers; what could reach one of them is cut or split.

Each line names its source: [blocks] docs.slack.dev/reference/block-kit, [views] …/reference/views,
[chat] …/reference/methods/chat.postMessage and chat.startStream, [seen] found by asking Slack, [ours] a
choice of ours where Slack documents nothing.
"""

BLOCKS_PER_VIEW = 100  # [blocks]
HEADER = 150  # [blocks] plain text of a header block
CONTEXT_ELEMENTS = 10  # [blocks]
RICH_TEXT = 3000  # [ours] text of one rich text block; undocumented, so as a section's
MARKDOWN = 12_000  # [blocks] all markdown blocks of a message together; [chat] one markdown_text

BUTTON_TEXT = 75  # [blocks]
URL = 3000  # [blocks]
OVERFLOW_OPTIONS = 5  # [blocks]
OPTION_TEXT = 75  # [blocks]
CONFIRM_TITLE = 100  # [blocks]
CONFIRM_TEXT = 300  # [blocks]
CONFIRM_BUTTON = 30  # [blocks]
INPUT_VALUE = 3000  # [blocks] plain_text_input

VIEW_TITLE = 24  # [views] the same for submit and close
VIEW_BYTES = 250_000  # [views] the whole view as JSON

TASK_TITLE = 256  # [ours] a task chunk's title; undocumented
SESSION_TITLE = 200  # [chat] agents.sessions.setStatus
