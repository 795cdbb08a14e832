"""What the OpenAPI page says about the parts a schema cannot: the streams, and a proposal's fields."""

TEXT = """
Send a token as `Authorization: Bearer <token>`. Without configured tokens only this machine is answered.
Every fault is `{"ok": false, "error": "…"}`; where it is about single fields, `fields` says which.

### Events

A stream is server-sent events, each one `data:` line of JSON with a `type`:

| type | what it tells |
|---|---|
| `accepted` | the message is stored: `conversation_id`, `message_id` |
| `delta` | more `text` of the answer |
| `restart` | the answer broke off and begins again: forget the text since the last tool call |
| `tool_call_start` | a tool that only reads runs: `call_id`, `tool_name`, `summary`, `arguments` |
| `tool_call_result` | what it gave: `call_id`, `tool_name`, `ok`, `result` |
| `action_proposed` | a change waits for a decision: `proposal` |
| `action_update` | a proposal changed: `proposal` |
| `team_update` | a conversation's teammates changed: `team` |
| `done` | the turn ended: `conversation_id`, `ending` (`done`, `waiting` for decisions, `stopped`) |
| `error` | the turn could not go on: `conversation_id`, `error` in words |

A stream that a client loses loses nothing: the turn goes on, and its conversation has the answer.

### A request of a script

`POST /api/approvals` asks people; `GET /api/approvals/{id}?wait=60` answers when they have. Its `proposal`
has three fields more: `end` (`waiting`, `approved`, `declined`, `expired`, `cancelled`, `undeliverable`,
`failed`, `outcome_unknown`), `arguments` as they are, for who asked, and `callback`: how far telling the end
has come.

### A proposal

| field | what it tells |
|---|---|
| `id`, `conversation_id`, `message_id`, `channel`, `kind` | which it is and where it was asked for |
| `tool_name`, `tool_arguments`, `schema` | what would run, secrets hidden, and the schema for a form |
| `description`, `preview`, `risk`, `risk_reason`, `reason` | the change in words, field by field, and why |
| `teammate` | the name of the teammate that asks; empty where it is the lead agent |
| `requester`, `deciders`, `quorum`, `votes`, `may_decide` | who asked, who decides, whether you may |
| `state`, `outcome`, `cause`, `notes` | how it stands |
| `actions`, `group` | what can be pressed now; the other proposals of the same answer |
| `result`, `result_url`, `error` | how it ended; whole at `…/{id}/result`, and `…/{id}/files` |
| `decided_by`, `decided_from`, `decided_at`, `decline_reason`, `edited_by` | who decided, and from where |
| `created_at`, `updated_at`, `expires_at` | ISO 8601, UTC |
| `idempotency_key` | the same for every run, so that a tool that remembers keys acts once |
| `digest`, `round`, `version` | what was shown: sent back with a press, a change since is told (409) |
"""
