"""What the OpenAPI page says about the parts a schema cannot: the streams, and a proposal's fields."""

TAGS = [
    {"name": "conversations", "description": "Say something, read what was said."},
    {"name": "proposals", "description": "What waits for a decision, and deciding it."},
    {"name": "requests", "description": "A script asks people."},
    {"name": "rules", "description": "Rules, grants and commands, mostly for admins."},
    {"name": "people", "description": "Who is who: linked accounts and roles."},
    {"name": "audit", "description": "For admins: who did what, and whether that record is intact."},
    {"name": "mcp", "description": "For admins: MCP servers, and signing in at them."},
    {"name": "status", "description": "Who you are, what there is, what it cost, and whether Nod is up."},
]

TEXT = """
Send a token as `Authorization: Bearer <token>`; `nod token new NAME` makes one. Without
`NOD_HTTP_TOKENS` this machine is answered without a token, too.
Every error is `{"ok": false, "error": "…"}`; if single fields are wrong, `fields` says which.

### Events

A stream is server-sent events, each one `data:` line of JSON with a `type`:

| type | what it tells |
|---|---|
| `accepted` | the message is stored: `conversation_id`, `message_id` |
| `delta` | more `content` of the answer; `text` is the same |
| `thought` | what the model thinks before it answers: `text`, which no conversation keeps |
| `restart` | the answer was cut off and starts again: forget the text since the last tool call |
| `tool_call_start` | a call that reads, or is refused: `call_id`, `tool_name`, `summary`, `arguments` |
| `tool_call_progress` | how far it is: `call_id`, `tool_name`, `text` |
| `tool_call_result` | what it gave: `call_id`, `tool_name`, `ok`, `result` |
| `proposal_opened` | a change waits for a decision: `proposal` |
| `proposal_update` | a proposal changed: `proposal` |
| `question_answered` | the agent answered a question about a proposal: `proposal_id`, `questions` |
| `reload` | more changed while you were away than is told one by one: read the lists again |
| `team_update` | a conversation's teammates changed: `team` |
| `done` | the turn ended: `conversation_id`, `message_id`, `ending` (`done`, `waiting`, `stopped`) |
| `error` | the turn could not continue: `conversation_id`, `error` in words |

Losing a stream loses nothing: the turn continues, and its conversation has the answer.

### A request of a script

`POST /api/approvals` asks people; `GET /api/approvals/{id}?wait=60` answers when they have. Its `proposal`
has three extra fields: `end` (`waiting`, `approved`, `declined`, `expired`, `cancelled`, `undeliverable`,
`failed`, `outcome_unknown`), `arguments` as they are, for the requester, and `callback`: how far telling
the end has come.

### A proposal

| field | what it tells |
|---|---|
| `id`, `conversation_id`, `message_id`, `call_id`, `channel`, `kind` | which it is, and which call asked |
| `tool_name`, `tool_arguments`, `schema` | what would run, secrets hidden, and its schema |
| `fields` | the same as fields of an edit form, in order: label, shape, value, whether it is the default |
| `description`, `preview`, `risk`, `risk_reason`, `reason` | the change in words, field by field, and why |
| `why`, `outline` | `reason` where it is not just what was said; a plan line by line |
| `headline`, `warning` | the card's first line; what to know before approving |
| `teammate` | the name of the teammate that asks; empty for the lead agent |
| `requester`, `requester_account` | who asked |
| `deciders`, `quorum`, `votes`, `may_decide` | who decides, whether you may |
| `asker_decides` | the requester may decide alone, so a card need not say who may |
| `state`, `outcome`, `cause`, `notes` | its status |
| `verbs`, `buttons`, `group` | what can be pressed now, with labels; the rest of the group |
| `printed` | while it runs: the last lines of its output |
| `result`, `ended_badly`, `result_url`, `error` | how it ended; all of it: `…/{id}/result`, `…/{id}/files` |
| `result_fields` | a result that is an object, with the labels and values that people read |
| `decided_by`, `decided_from`, `decided_at`, `decline_reason`, `edited_by` | who decided, and from where |
| `grant` | the label of the grant that let it run, such as `G-7` |
| `created_at`, `updated_at`, `expires_at` | ISO 8601, UTC |
| `idempotency_key` | the same for every run, so that a tool that remembers keys acts once |
| `seen` | a hash of all that the card shows, old values too: send it back with a press, and a change since is
reported (409) |
| `digest`, `round`, `version` | the same for tool and arguments, for the content, for any change |
"""
