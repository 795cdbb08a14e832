CREATE TABLE IF NOT EXISTS account (
    actor VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    person_id VARCHAR NOT NULL,
    linked_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (actor)
);
CREATE INDEX IF NOT EXISTS ix_account_person_id ON account (person_id);
CREATE TABLE IF NOT EXISTS book (
    id SERIAL NOT NULL,
    version INTEGER NOT NULL,
    paused_at TIMESTAMP WITH TIME ZONE,
    memory JSON,
    PRIMARY KEY (id)
);
CREATE TABLE IF NOT EXISTS chain_end (
    id SERIAL NOT NULL,
    number BIGINT NOT NULL,
    hash VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    mark VARCHAR NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE IF NOT EXISTS conversation (
    id VARCHAR NOT NULL,
    channel VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    private BOOLEAN NOT NULL,
    owner VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    shown_at VARCHAR,
    deleted_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id)
);
CREATE INDEX IF NOT EXISTS conversation_of_owner ON conversation (channel, owner, created_at, id);
CREATE UNIQUE INDEX IF NOT EXISTS one_open_conversation ON conversation (channel, key) WHERE ended_at IS NULL;
CREATE TABLE IF NOT EXISTS dialogue (
    channel VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    state JSON NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (channel, key)
);
CREATE TABLE IF NOT EXISTS event (
    id BIGSERIAL NOT NULL,
    channel VARCHAR NOT NULL,
    event_id VARCHAR NOT NULL,
    payload JSON NOT NULL,
    received_at TIMESTAMP WITH TIME ZONE NOT NULL,
    handled_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id),
    CONSTRAINT event_once UNIQUE (channel, event_id)
);
CREATE INDEX IF NOT EXISTS event_handled ON event (handled_at) WHERE handled_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS event_unhandled ON event (channel, id) WHERE handled_at IS NULL;
CREATE TABLE IF NOT EXISTS hold (
    name VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    PRIMARY KEY (name)
);
CREATE TABLE IF NOT EXISTS issue (
    number SERIAL NOT NULL,
    title VARCHAR NOT NULL,
    body VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    priority VARCHAR NOT NULL,
    assignee VARCHAR,
    labels JSON NOT NULL,
    author VARCHAR NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    idempotency_key VARCHAR,
    PRIMARY KEY (number),
    UNIQUE (idempotency_key)
);
CREATE INDEX IF NOT EXISTS ix_issue_state ON issue (state);
CREATE TABLE IF NOT EXISTS ledger (
    id BIGINT NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    thing VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    tool VARCHAR NOT NULL,
    verb VARCHAR NOT NULL,
    actor VARCHAR NOT NULL,
    person VARCHAR NOT NULL,
    channel VARCHAR NOT NULL,
    before JSON,
    after JSON,
    holds JSON,
    previous VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (previous)
);
CREATE TABLE IF NOT EXISTS link_code (
    code_hash VARCHAR NOT NULL,
    actor VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    other VARCHAR,
    other_name VARCHAR DEFAULT '' NOT NULL,
    wanted BOOLEAN DEFAULT false NOT NULL,
    PRIMARY KEY (code_hash)
);
CREATE TABLE IF NOT EXISTS mcp_login (
    server VARCHAR NOT NULL,
    url VARCHAR NOT NULL,
    client VARCHAR NOT NULL,
    tokens VARCHAR NOT NULL,
    found VARCHAR NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE,
    signed_in_by VARCHAR NOT NULL,
    signed_in_at TIMESTAMP WITH TIME ZONE NOT NULL,
    version INTEGER NOT NULL,
    busy_until TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (server)
);
CREATE TABLE IF NOT EXISTS mcp_sign_in (
    id VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    server VARCHAR NOT NULL,
    until TIMESTAMP WITH TIME ZONE NOT NULL,
    said JSON,
    back BOOLEAN NOT NULL,
    ended VARCHAR,
    well BOOLEAN NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (state)
);
CREATE TABLE IF NOT EXISTS name (
    key VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    standing VARCHAR,
    PRIMARY KEY (key)
);
CREATE TABLE IF NOT EXISTS notice (
    id BIGSERIAL NOT NULL,
    channel VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    instead VARCHAR NOT NULL,
    proposal_id VARCHAR,
    text VARCHAR NOT NULL,
    tries INTEGER NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    next_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX IF NOT EXISTS notice_due ON notice (next_at);
CREATE TABLE IF NOT EXISTS output (
    id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    proposal_id VARCHAR,
    name VARCHAR NOT NULL,
    text TEXT NOT NULL,
    posted BOOLEAN NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX IF NOT EXISTS ix_output_conversation_id ON output (conversation_id);
CREATE INDEX IF NOT EXISTS output_created ON output (created_at);
CREATE INDEX IF NOT EXISTS output_unposted ON output (conversation_id, created_at, id) WHERE NOT posted;
CREATE TABLE IF NOT EXISTS process (
    id VARCHAR NOT NULL,
    host VARCHAR NOT NULL,
    pid INTEGER NOT NULL,
    began_at TIMESTAMP WITH TIME ZONE NOT NULL,
    beats INTEGER NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE IF NOT EXISTS rule (
    id BIGSERIAL NOT NULL,
    subject VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    pattern VARCHAR NOT NULL,
    value JSON NOT NULL,
    set_by VARCHAR NOT NULL,
    set_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_by VARCHAR,
    ended_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id)
);
CREATE TABLE IF NOT EXISTS sign_in (
    hash VARCHAR NOT NULL,
    account VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    code BOOLEAN NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (hash)
);
CREATE INDEX IF NOT EXISTS ix_sign_in_account ON sign_in (account);
CREATE TABLE IF NOT EXISTS slack_home (
    team VARCHAR NOT NULL,
    "user" VARCHAR NOT NULL,
    opened_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (team, "user")
);
CREATE TABLE IF NOT EXISTS slack_install (
    state VARCHAR NOT NULL,
    issued_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (state)
);
CREATE TABLE IF NOT EXISTS slack_workspace (
    team VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    token VARCHAR NOT NULL,
    bot_id VARCHAR NOT NULL,
    bot_user VARCHAR NOT NULL,
    scopes VARCHAR NOT NULL,
    installed_by VARCHAR NOT NULL,
    installed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    off_at TIMESTAMP WITH TIME ZONE,
    off_reason VARCHAR NOT NULL,
    PRIMARY KEY (team)
);
CREATE TABLE IF NOT EXISTS token (
    label VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    made_by VARCHAR NOT NULL,
    made_at TIMESTAMP WITH TIME ZONE NOT NULL,
    revoked_by VARCHAR,
    revoked_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (label)
);
CREATE TABLE IF NOT EXISTS tool_version (
    name VARCHAR NOT NULL,
    version VARCHAR NOT NULL,
    parameters JSON NOT NULL,
    PRIMARY KEY (name, version)
);
CREATE TABLE IF NOT EXISTS board (
    lead_id VARCHAR NOT NULL,
    channel VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    ref VARCHAR NOT NULL,
    wanted INTEGER NOT NULL,
    rendered INTEGER NOT NULL,
    gone BOOLEAN NOT NULL,
    PRIMARY KEY (lead_id),
    FOREIGN KEY(lead_id) REFERENCES conversation (id)
);
CREATE INDEX IF NOT EXISTS board_behind ON board (lead_id) WHERE rendered < wanted AND NOT gone;
CREATE TABLE IF NOT EXISTS issue_comment (
    id SERIAL NOT NULL,
    issue_number INTEGER NOT NULL,
    body VARCHAR NOT NULL,
    author VARCHAR NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    idempotency_key VARCHAR,
    PRIMARY KEY (id),
    FOREIGN KEY(issue_number) REFERENCES issue (number),
    UNIQUE (idempotency_key)
);
CREATE INDEX IF NOT EXISTS ix_issue_comment_issue_number ON issue_comment (issue_number);
CREATE TABLE IF NOT EXISTS message (
    id BIGSERIAL NOT NULL,
    conversation_id VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    after INTEGER,
    actor VARCHAR,
    name VARCHAR NOT NULL,
    channel VARCHAR,
    event_id VARCHAR,
    calls JSON,
    results JSON,
    delivered BOOLEAN NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT message_once UNIQUE (channel, event_id),
    FOREIGN KEY(conversation_id) REFERENCES conversation (id)
);
CREATE INDEX IF NOT EXISTS message_of_conversation ON message (conversation_id, id);
CREATE INDEX IF NOT EXISTS message_of_person ON message (actor, created_at) WHERE role = 'user';
CREATE INDEX IF NOT EXISTS message_undelivered ON message (id) WHERE NOT delivered;
CREATE TABLE IF NOT EXISTS proposal (
    id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    message_id BIGINT NOT NULL,
    call_id VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    tool_name VARCHAR NOT NULL,
    tool_version VARCHAR NOT NULL,
    arguments JSON NOT NULL,
    description VARCHAR NOT NULL,
    preview JSON NOT NULL,
    level VARCHAR NOT NULL,
    risk_reason VARCHAR NOT NULL,
    reason VARCHAR NOT NULL,
    requester VARCHAR NOT NULL,
    requester_name VARCHAR NOT NULL,
    deciders JSON NOT NULL,
    quorum INTEGER NOT NULL,
    rule VARCHAR NOT NULL,
    declines INTEGER NOT NULL,
    grant_id INTEGER,
    ttl_seconds FLOAT NOT NULL,
    warn_at TIMESTAMP WITH TIME ZONE,
    remind_at TIMESTAMP WITH TIME ZONE,
    remind_every FLOAT,
    escalate_at TIMESTAMP WITH TIME ZONE,
    escalate_to VARCHAR,
    teammate VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    cause VARCHAR,
    round INTEGER NOT NULL,
    version INTEGER NOT NULL,
    digest VARCHAR NOT NULL,
    idempotency_key VARCHAR NOT NULL,
    votes JSON NOT NULL,
    decided_by VARCHAR,
    decided_from VARCHAR,
    decided_at TIMESTAMP WITH TIME ZONE,
    decline_reason VARCHAR,
    edited_by VARCHAR,
    edits JSON,
    changed BOOLEAN NOT NULL,
    result VARCHAR,
    told VARCHAR,
    ended_badly VARCHAR,
    result_url VARCHAR,
    error VARCHAR,
    progress VARCHAR,
    owner VARCHAR,
    thing VARCHAR,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(conversation_id) REFERENCES conversation (id),
    UNIQUE (idempotency_key)
);
CREATE INDEX IF NOT EXISTS proposal_asked ON proposal (requester, state, updated_at, id);
CREATE INDEX IF NOT EXISTS proposal_due ON proposal (expires_at) WHERE NOT state <> 'proposed';
CREATE INDEX IF NOT EXISTS proposal_escalate ON proposal (escalate_at) WHERE NOT state <> 'proposed' AND escalate_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS proposal_moving ON proposal (state) WHERE state IN ('approved', 'executing');
CREATE INDEX IF NOT EXISTS proposal_of_conversation ON proposal (conversation_id, message_id);
CREATE INDEX IF NOT EXISTS proposal_of_message ON proposal (message_id);
CREATE INDEX IF NOT EXISTS proposal_open_in ON proposal (conversation_id) WHERE state = 'proposed';
CREATE INDEX IF NOT EXISTS proposal_question ON proposal (owner) WHERE kind = 'question' AND NOT (state <> 'proposed' AND state <> 'approved');
CREATE INDEX IF NOT EXISTS proposal_recent ON proposal (state, updated_at, id);
CREATE INDEX IF NOT EXISTS proposal_remind ON proposal (remind_at) WHERE NOT state <> 'proposed' AND remind_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS proposal_warn ON proposal (warn_at) WHERE NOT state <> 'proposed' AND warn_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS teammate (
    id VARCHAR NOT NULL,
    lead_id VARCHAR NOT NULL,
    place VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    tools JSON,
    needs_plan BOOLEAN NOT NULL,
    position INTEGER NOT NULL,
    asked BIGINT NOT NULL,
    rounds INTEGER NOT NULL,
    plan_id VARCHAR,
    standing VARCHAR NOT NULL,
    words VARCHAR NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id),
    CONSTRAINT teammate_once UNIQUE (lead_id, name),
    FOREIGN KEY(id) REFERENCES conversation (id),
    FOREIGN KEY(lead_id) REFERENCES conversation (id)
);
CREATE INDEX IF NOT EXISTS teammate_place ON teammate (place);
CREATE TABLE IF NOT EXISTS turn (
    id BIGSERIAL NOT NULL,
    conversation_id VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    attempts INTEGER NOT NULL,
    model_calls INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    error VARCHAR,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    retry_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id),
    FOREIGN KEY(conversation_id) REFERENCES conversation (id)
);
CREATE UNIQUE INDEX IF NOT EXISTS one_wanted_turn ON turn (conversation_id) WHERE state = 'wanted';
CREATE INDEX IF NOT EXISTS turn_to_retry ON turn (retry_at) WHERE retry_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS audit (
    id BIGINT NOT NULL,
    proposal_id VARCHAR NOT NULL,
    version INTEGER NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    verb VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    actor VARCHAR NOT NULL,
    person VARCHAR NOT NULL,
    channel VARCHAR NOT NULL,
    reason VARCHAR,
    digest VARCHAR NOT NULL,
    rule VARCHAR NOT NULL,
    grant_id INTEGER,
    about JSON,
    content VARCHAR DEFAULT '' NOT NULL,
    previous VARCHAR NOT NULL,
    hash VARCHAR NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT audit_once UNIQUE (proposal_id, version),
    FOREIGN KEY(proposal_id) REFERENCES proposal (id)
);
CREATE TABLE IF NOT EXISTS callback (
    proposal_id VARCHAR NOT NULL,
    url VARCHAR NOT NULL,
    attempts INTEGER NOT NULL,
    next_at TIMESTAMP WITH TIME ZONE NOT NULL,
    told_at TIMESTAMP WITH TIME ZONE,
    "over" BOOLEAN NOT NULL,
    fault VARCHAR NOT NULL,
    PRIMARY KEY (proposal_id),
    FOREIGN KEY(proposal_id) REFERENCES proposal (id)
);
CREATE INDEX IF NOT EXISTS callback_open ON callback (next_at) WHERE NOT over;
CREATE TABLE IF NOT EXISTS copy (
    id BIGSERIAL NOT NULL,
    proposal_id VARCHAR NOT NULL,
    channel VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    ref VARCHAR NOT NULL,
    wanted INTEGER NOT NULL,
    rendered INTEGER NOT NULL,
    gone BOOLEAN NOT NULL,
    shown VARCHAR,
    PRIMARY KEY (id),
    CONSTRAINT copy_once UNIQUE (channel, key, ref),
    FOREIGN KEY(proposal_id) REFERENCES proposal (id)
);
CREATE INDEX IF NOT EXISTS copy_behind ON copy (proposal_id) WHERE rendered < wanted AND NOT gone;
CREATE INDEX IF NOT EXISTS copy_of_proposal ON copy (proposal_id);
CREATE TABLE IF NOT EXISTS decider (
    account VARCHAR NOT NULL,
    proposal_id VARCHAR NOT NULL,
    PRIMARY KEY (account, proposal_id),
    FOREIGN KEY(proposal_id) REFERENCES proposal (id)
);
CREATE TABLE IF NOT EXISTS grant_given (
    id BIGSERIAL NOT NULL,
    tool_name VARCHAR NOT NULL,
    tool_version VARCHAR NOT NULL,
    rung VARCHAR NOT NULL,
    match VARCHAR NOT NULL,
    words VARCHAR NOT NULL,
    person_id VARCHAR NOT NULL,
    person_name VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    only_there BOOLEAN NOT NULL,
    requester VARCHAR,
    place VARCHAR,
    proposal_id VARCHAR NOT NULL,
    plan_digest VARCHAR,
    uses INTEGER NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE,
    revoked_at TIMESTAMP WITH TIME ZONE,
    revoked_by VARCHAR,
    PRIMARY KEY (id),
    FOREIGN KEY(proposal_id) REFERENCES proposal (id)
);
CREATE INDEX IF NOT EXISTS grant_of_tool ON grant_given (tool_name) WHERE revoked_at IS NULL;
