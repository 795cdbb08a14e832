CREATE TABLE account (
    actor character varying NOT NULL,
    name character varying NOT NULL,
    person_id character varying NOT NULL,
    linked_at timestamp with time zone NOT NULL
);
CREATE TABLE alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE audit (
    id bigint NOT NULL,
    proposal_id character varying NOT NULL,
    version integer NOT NULL,
    at timestamp with time zone NOT NULL,
    verb character varying NOT NULL,
    state character varying NOT NULL,
    actor character varying NOT NULL,
    person character varying NOT NULL,
    channel character varying NOT NULL,
    reason character varying,
    digest character varying NOT NULL,
    rule character varying NOT NULL,
    grant_id integer,
    previous character varying NOT NULL,
    hash character varying NOT NULL,
    about json,
    content character varying DEFAULT ''::character varying NOT NULL
);
CREATE SEQUENCE audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE audit_id_seq OWNED BY audit.id;
CREATE TABLE board (
    lead_id character varying NOT NULL,
    channel character varying NOT NULL,
    key character varying NOT NULL,
    ref character varying NOT NULL,
    wanted integer NOT NULL,
    rendered integer NOT NULL,
    gone boolean NOT NULL
);
CREATE TABLE book (
    id integer NOT NULL,
    version integer NOT NULL,
    paused_at timestamp with time zone,
    memory json
);
CREATE SEQUENCE book_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE book_id_seq OWNED BY book.id;
CREATE TABLE callback (
    proposal_id character varying NOT NULL,
    url character varying NOT NULL,
    attempts integer NOT NULL,
    next_at timestamp with time zone NOT NULL,
    told_at timestamp with time zone,
    over boolean NOT NULL,
    fault character varying NOT NULL
);
CREATE TABLE chain_end (
    id integer NOT NULL,
    number bigint NOT NULL,
    hash character varying NOT NULL,
    key character varying NOT NULL,
    mark character varying NOT NULL
);
CREATE SEQUENCE chain_end_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE chain_end_id_seq OWNED BY chain_end.id;
CREATE TABLE conversation (
    id character varying NOT NULL,
    channel character varying NOT NULL,
    key character varying NOT NULL,
    private boolean NOT NULL,
    owner character varying NOT NULL,
    title character varying NOT NULL,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    shown_at character varying,
    deleted_at timestamp with time zone
);
CREATE TABLE copy (
    id bigint NOT NULL,
    proposal_id character varying NOT NULL,
    channel character varying NOT NULL,
    key character varying NOT NULL,
    ref character varying NOT NULL,
    wanted integer NOT NULL,
    rendered integer NOT NULL,
    gone boolean NOT NULL,
    shown character varying
);
CREATE SEQUENCE copy_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE copy_id_seq OWNED BY copy.id;
CREATE TABLE decider (
    account character varying NOT NULL,
    proposal_id character varying NOT NULL
);
CREATE TABLE dialogue (
    channel character varying NOT NULL,
    key character varying NOT NULL,
    state json NOT NULL,
    updated_at timestamp with time zone NOT NULL
);
CREATE TABLE event (
    id bigint NOT NULL,
    channel character varying NOT NULL,
    event_id character varying NOT NULL,
    payload json NOT NULL,
    received_at timestamp with time zone NOT NULL,
    handled_at timestamp with time zone
);
CREATE SEQUENCE event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE event_id_seq OWNED BY event.id;
CREATE TABLE grant_given (
    id bigint NOT NULL,
    tool_name character varying NOT NULL,
    tool_version character varying NOT NULL,
    rung character varying NOT NULL,
    match character varying NOT NULL,
    words character varying NOT NULL,
    person_id character varying NOT NULL,
    person_name character varying NOT NULL,
    conversation_id character varying NOT NULL,
    only_there boolean NOT NULL,
    proposal_id character varying NOT NULL,
    plan_digest character varying,
    uses integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    revoked_by character varying,
    requester character varying,
    place character varying
);
CREATE SEQUENCE grant_given_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE grant_given_id_seq OWNED BY grant_given.id;
CREATE TABLE hold (
    name character varying NOT NULL,
    owner character varying NOT NULL
);
CREATE TABLE issue (
    number integer NOT NULL,
    title character varying NOT NULL,
    body character varying NOT NULL,
    state character varying NOT NULL,
    priority character varying NOT NULL,
    assignee character varying,
    labels json NOT NULL,
    author character varying NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    idempotency_key character varying
);
CREATE TABLE issue_comment (
    id integer NOT NULL,
    issue_number integer NOT NULL,
    body character varying NOT NULL,
    author character varying NOT NULL,
    created_at timestamp with time zone NOT NULL,
    idempotency_key character varying
);
CREATE SEQUENCE issue_comment_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE issue_comment_id_seq OWNED BY issue_comment.id;
CREATE SEQUENCE issue_number_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE issue_number_seq OWNED BY issue.number;
CREATE TABLE ledger (
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    thing character varying NOT NULL,
    key character varying NOT NULL,
    tool character varying NOT NULL,
    verb character varying NOT NULL,
    actor character varying NOT NULL,
    person character varying NOT NULL,
    channel character varying NOT NULL,
    before json,
    after json,
    previous character varying NOT NULL,
    hash character varying NOT NULL,
    holds json
);
CREATE SEQUENCE ledger_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE ledger_id_seq OWNED BY ledger.id;
CREATE TABLE link_code (
    code_hash character varying NOT NULL,
    actor character varying NOT NULL,
    name character varying NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    other character varying,
    other_name character varying DEFAULT ''::character varying NOT NULL,
    wanted boolean DEFAULT false NOT NULL
);
CREATE TABLE mcp_login (
    server character varying NOT NULL,
    url character varying NOT NULL,
    client character varying NOT NULL,
    tokens character varying NOT NULL,
    found character varying NOT NULL,
    expires_at timestamp with time zone,
    signed_in_by character varying NOT NULL,
    signed_in_at timestamp with time zone NOT NULL,
    version integer NOT NULL,
    busy_until timestamp with time zone
);
CREATE TABLE mcp_sign_in (
    id character varying NOT NULL,
    state character varying NOT NULL,
    server character varying NOT NULL,
    until timestamp with time zone NOT NULL,
    said json,
    back boolean NOT NULL,
    ended character varying,
    well boolean NOT NULL
);
CREATE TABLE message (
    id bigint NOT NULL,
    conversation_id character varying NOT NULL,
    role character varying NOT NULL,
    text character varying NOT NULL,
    after integer,
    actor character varying,
    name character varying NOT NULL,
    channel character varying,
    event_id character varying,
    calls json,
    results json,
    delivered boolean NOT NULL,
    created_at timestamp with time zone NOT NULL
);
CREATE SEQUENCE message_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE message_id_seq OWNED BY message.id;
CREATE TABLE name (
    key character varying NOT NULL,
    name character varying NOT NULL
);
CREATE TABLE output (
    id character varying NOT NULL,
    conversation_id character varying NOT NULL,
    proposal_id character varying,
    name character varying NOT NULL,
    text text NOT NULL,
    posted boolean NOT NULL,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE process (
    id character varying NOT NULL,
    host character varying NOT NULL,
    pid integer NOT NULL,
    began_at timestamp with time zone NOT NULL,
    beats integer NOT NULL
);
CREATE TABLE proposal (
    id character varying NOT NULL,
    kind character varying NOT NULL,
    conversation_id character varying NOT NULL,
    message_id bigint NOT NULL,
    call_id character varying NOT NULL,
    "position" integer NOT NULL,
    tool_name character varying NOT NULL,
    tool_version character varying NOT NULL,
    arguments json NOT NULL,
    description character varying NOT NULL,
    preview json NOT NULL,
    level character varying NOT NULL,
    risk_reason character varying NOT NULL,
    reason character varying NOT NULL,
    requester character varying NOT NULL,
    requester_name character varying NOT NULL,
    deciders json NOT NULL,
    quorum integer NOT NULL,
    rule character varying NOT NULL,
    declines integer NOT NULL,
    grant_id integer,
    ttl_seconds double precision NOT NULL,
    warn_at timestamp with time zone,
    remind_at timestamp with time zone,
    remind_every double precision,
    escalate_at timestamp with time zone,
    escalate_to character varying,
    teammate character varying NOT NULL,
    state character varying NOT NULL,
    cause character varying,
    round integer NOT NULL,
    version integer NOT NULL,
    digest character varying NOT NULL,
    idempotency_key character varying NOT NULL,
    votes json NOT NULL,
    decided_by character varying,
    decided_from character varying,
    decided_at timestamp with time zone,
    decline_reason character varying,
    edited_by character varying,
    edits json,
    changed boolean NOT NULL,
    result character varying,
    result_url character varying,
    error character varying,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    told character varying,
    progress character varying,
    ended_badly character varying,
    owner character varying,
    thing character varying
);
CREATE TABLE rule (
    id bigint NOT NULL,
    subject character varying NOT NULL,
    scope character varying NOT NULL,
    pattern character varying NOT NULL,
    value json NOT NULL,
    set_by character varying NOT NULL,
    set_at timestamp with time zone NOT NULL,
    ended_by character varying,
    ended_at timestamp with time zone
);
CREATE SEQUENCE rule_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE rule_id_seq OWNED BY rule.id;
CREATE TABLE sign_in (
    hash character varying NOT NULL,
    account character varying NOT NULL,
    name character varying NOT NULL,
    code boolean NOT NULL,
    expires_at timestamp with time zone NOT NULL
);
CREATE TABLE slack_home (
    team character varying NOT NULL,
    "user" character varying NOT NULL,
    opened_at timestamp with time zone NOT NULL
);
CREATE TABLE slack_install (
    state character varying NOT NULL,
    issued_at timestamp with time zone NOT NULL
);
CREATE TABLE slack_workspace (
    team character varying NOT NULL,
    name character varying NOT NULL,
    token character varying NOT NULL,
    bot_id character varying NOT NULL,
    bot_user character varying NOT NULL,
    scopes character varying NOT NULL,
    installed_by character varying NOT NULL,
    installed_at timestamp with time zone NOT NULL,
    off_at timestamp with time zone,
    off_reason character varying NOT NULL
);
CREATE TABLE teammate (
    id character varying NOT NULL,
    lead_id character varying NOT NULL,
    place character varying NOT NULL,
    name character varying NOT NULL,
    role character varying NOT NULL,
    task character varying NOT NULL,
    tools json,
    needs_plan boolean NOT NULL,
    "position" integer NOT NULL,
    asked bigint NOT NULL,
    rounds integer NOT NULL,
    plan_id character varying,
    standing character varying NOT NULL,
    words character varying NOT NULL,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone
);
CREATE TABLE token (
    label character varying NOT NULL,
    name character varying NOT NULL,
    hash character varying NOT NULL,
    made_by character varying NOT NULL,
    made_at timestamp with time zone NOT NULL,
    revoked_by character varying,
    revoked_at timestamp with time zone
);
CREATE TABLE tool_version (
    name character varying NOT NULL,
    version character varying NOT NULL,
    parameters json NOT NULL
);
CREATE TABLE turn (
    id bigint NOT NULL,
    conversation_id character varying NOT NULL,
    state character varying NOT NULL,
    attempts integer NOT NULL,
    model_calls integer NOT NULL,
    prompt_tokens integer NOT NULL,
    completion_tokens integer NOT NULL,
    error character varying,
    created_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    owner character varying DEFAULT ''::character varying NOT NULL
);
CREATE SEQUENCE turn_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE turn_id_seq OWNED BY turn.id;
ALTER TABLE ONLY book ALTER COLUMN id SET DEFAULT nextval('book_id_seq'::regclass);
ALTER TABLE ONLY chain_end ALTER COLUMN id SET DEFAULT nextval('chain_end_id_seq'::regclass);
ALTER TABLE ONLY copy ALTER COLUMN id SET DEFAULT nextval('copy_id_seq'::regclass);
ALTER TABLE ONLY event ALTER COLUMN id SET DEFAULT nextval('event_id_seq'::regclass);
ALTER TABLE ONLY grant_given ALTER COLUMN id SET DEFAULT nextval('grant_given_id_seq'::regclass);
ALTER TABLE ONLY issue ALTER COLUMN number SET DEFAULT nextval('issue_number_seq'::regclass);
ALTER TABLE ONLY issue_comment ALTER COLUMN id SET DEFAULT nextval('issue_comment_id_seq'::regclass);
ALTER TABLE ONLY message ALTER COLUMN id SET DEFAULT nextval('message_id_seq'::regclass);
ALTER TABLE ONLY rule ALTER COLUMN id SET DEFAULT nextval('rule_id_seq'::regclass);
ALTER TABLE ONLY turn ALTER COLUMN id SET DEFAULT nextval('turn_id_seq'::regclass);
INSERT INTO alembic_version VALUES ('0004');
INSERT INTO audit VALUES (4, '209766b65bb6b5d0', 1, '2026-11-22 15:26:43.702752+00', 'propose', 'proposed', 'nod', 'nod', 'nod', NULL, '9dc42b83a7452d960656c574d122b0d82b14db571edbb7d919de479f3fa7960f', 'policy writes', NULL, '81b71c34cf1a7250ca91551443d6b8162ee04951e739e01622bcf3e7135c51ea', '65bfc1af4cdf0f4f4f27091a8a7934d09c5e6f47c90aa458fa5609fe31ec6f4d', '{"requester": "http:local", "name": "you", "place": "http:local/a", "tool": ["create_issue", "c4bb526f3e189507"], "summary": "Create issue \u201cPrinter is on fire\u201d", "arguments": {"title": "Printer is on fire", "assignee": "Sam", "priority": "high"}, "schema": "ba0fe54cb9d125b90611cf07cfb19c04f5e5a7c7ecb13e89dacb340201a19f5f"}', '5b9e4c726b9d911c4121ed0007d47619b3471f39a49cd78b7e4bd7ca4bf9562b');
INSERT INTO audit VALUES (5, '4cccfe0b7a5416a7', 1, '2026-11-22 15:26:44.036986+00', 'propose', 'proposed', 'nod', 'nod', 'nod', NULL, '43a378cfb35cf5cd692786fd0c5a27565b792755b82a058ae0c1ff4f0e04b60c', 'policy writes', NULL, '65bfc1af4cdf0f4f4f27091a8a7934d09c5e6f47c90aa458fa5609fe31ec6f4d', '1d49a062d2c616f1659dafbb806acb030d7d225becb36b1dfbd9d3fe12b9cadf', '{"requester": "http:local", "name": "you", "place": "http:local/b", "tool": ["close_issue", "9fdf2ecc69129a3f"], "summary": "Close issue #2 \u201cExported CSV has wrong dates for users east of Berlin\u201d", "arguments": {"number": 2}, "schema": "08d78cba87b1849c5a4051b496df7919403043652aa7e89701d019511722fcc7"}', 'a3f5026f1104e28447a5fbb8e78f68b284d6e4d77cb1f9006c92acb7b9bb1b68');
INSERT INTO audit VALUES (6, '3c4fc3cb3e94bdaf', 1, '2026-11-22 15:26:44.061926+00', 'propose', 'proposed', 'nod', 'nod', 'nod', NULL, '1fc1ed533f41c3ee31142e8475d9d318f8a694666ce96a29987242fb5aee1b7a', 'policy writes', NULL, '1d49a062d2c616f1659dafbb806acb030d7d225becb36b1dfbd9d3fe12b9cadf', '62779aab10953df12bba6ac3925597406fce4c2327d2d40d6ff83f52b0bbf681', '{"requester": "http:local", "name": "you", "place": "http:local/b", "tool": ["update_issue", "0b02d8d032277b2c"], "summary": "Change assignee of issue #3 \u201cDark mode for the settings page\u201d", "arguments": {"number": 3, "assignee": "Ana"}, "schema": "c449ed99d72cce8d1c73f3a5e3fe7fcf8afddec4bbd15f15125bfcaac5e19ea0"}', 'dd14d59454bdd665df29d41b90adcaf25af7ff208f55534009742a20d13959c3');
INSERT INTO audit VALUES (7, '4cccfe0b7a5416a7', 2, '2026-11-22 15:26:44.085118+00', 'approve', 'approved', 'http:local', 'http:local', 'http', NULL, '43a378cfb35cf5cd692786fd0c5a27565b792755b82a058ae0c1ff4f0e04b60c', 'policy writes', NULL, '62779aab10953df12bba6ac3925597406fce4c2327d2d40d6ff83f52b0bbf681', '0dba011e869a6ca0d76be1b71e56272d5a29dfa796f404a548bf94dc74214eac', NULL, '65a232d727ff5fb2ba0c20b912fea2b0929371958cf0ebd42412f5101a5947c5');
INSERT INTO audit VALUES (8, '4cccfe0b7a5416a7', 3, '2026-11-22 15:26:44.142838+00', 'execute', 'executing', 'nod', 'nod', 'nod', NULL, '43a378cfb35cf5cd692786fd0c5a27565b792755b82a058ae0c1ff4f0e04b60c', 'policy writes', NULL, '0dba011e869a6ca0d76be1b71e56272d5a29dfa796f404a548bf94dc74214eac', 'e7e5f82c35f912effea96d9d5aecf2d8fc70c17d7ad505a0bf17be0dd29cdc4d', NULL, 'dc807a892c7d1328027e970e39ad4cbea5516e0fcc761b7aa263e3aae9064ec7');
INSERT INTO audit VALUES (9, '4cccfe0b7a5416a7', 4, '2026-11-22 15:26:44.17627+00', 'succeeded', 'succeeded', 'nod', 'nod', 'nod', NULL, '43a378cfb35cf5cd692786fd0c5a27565b792755b82a058ae0c1ff4f0e04b60c', 'policy writes', NULL, 'e7e5f82c35f912effea96d9d5aecf2d8fc70c17d7ad505a0bf17be0dd29cdc4d', 'cd46353e5ca9c4ba957eb9d7c92d1534672acc63440a50c750f48c2c17095287', NULL, '746f008444846e7b2ada47669fb64c8e1511f779f85c87c17d202f25cc566d84');
INSERT INTO audit VALUES (10, '3c4fc3cb3e94bdaf', 2, '2026-11-22 15:26:44.190085+00', 'decline', 'declined', 'http:local', 'http:local', 'http', 'Not today', '1fc1ed533f41c3ee31142e8475d9d318f8a694666ce96a29987242fb5aee1b7a', 'policy writes', NULL, 'cd46353e5ca9c4ba957eb9d7c92d1534672acc63440a50c750f48c2c17095287', 'fe617d2bee124345c2dc1688aad5314f4eb99b511c0fbcec5242ee4cac7107d2', NULL, 'db65a30a3e368a41a968c49f2b8043bd81accad993a337176a599d20ba946209');
INSERT INTO audit VALUES (11, '26141c5481206ef2', 1, '2026-11-22 15:26:44.829354+00', 'propose', 'proposed', 'nod', 'nod', 'nod', NULL, 'de7561e94d3b5b723ab8adacd4d81438a4a4c47f1b5d327145af07ae094a7e53', 'policy writes', NULL, 'fe617d2bee124345c2dc1688aad5314f4eb99b511c0fbcec5242ee4cac7107d2', 'b317469cd49a25f62d6918f4c6067d0305e024b6cff8192318dd9b8d089c597f', '{"requester": "http:local", "name": "you", "place": "http:local/c", "tool": ["delete_issue", "b95134ed94623b1e"], "summary": "Delete issue #4 \u201cInvoices are sent twice when the mail server is slow\u201d", "arguments": {"number": 4}, "schema": "0eac68bab562d796f2bd117cd44d76f13ef50fd784e6ffc83fb85fe0fb2a24b1"}', 'f75017f619fe6c05036aa3e655b9f74ccf22555f6bedc907bb45cbbfb676bcc0');
INSERT INTO audit VALUES (12, '26141c5481206ef2', 2, '2026-11-22 15:26:44.88799+00', 'approve', 'proposed', 'http:ana', 'http:ana', 'http', NULL, 'de7561e94d3b5b723ab8adacd4d81438a4a4c47f1b5d327145af07ae094a7e53', 'policy writes', NULL, 'b317469cd49a25f62d6918f4c6067d0305e024b6cff8192318dd9b8d089c597f', '7540bd2cc49338021ff568dda345473b9c455b0f8fbb66c92738ab293d7985a7', NULL, '73143f88a3775eacab56ab73ed30cc67a104c05837d173b48802723731f62359');
INSERT INTO audit VALUES (13, '229ab721f4bd6236', 1, '2026-11-22 15:26:45.192482+00', 'propose', 'proposed', 'nod', 'nod', 'nod', NULL, '0098568616a973dc8931d32f40607107ccc0d192d41dd862155410aac2e9e564', 'policy writes', NULL, '7540bd2cc49338021ff568dda345473b9c455b0f8fbb66c92738ab293d7985a7', '377c67130d75aa1628677343c0be14f8260472986f683c9278d503ef0448be0e', '{"requester": "http:local", "name": "you", "place": "http:local/d", "tool": ["comment_issue", "374392a2bf9118e6"], "summary": "Comment on issue #1 \u201cLogin fails after a password reset\u201d", "arguments": {"number": 1, "body": "hello"}, "schema": "1d1bdf53541dff109680fc15aba030be58a35400049d3f545f09d3eaa0a7db35"}', '984afe00ea5cd0ab3a0585f4c3aefecb0356dc11eea6379b135e243b96fead72');
INSERT INTO audit VALUES (14, '229ab721f4bd6236', 2, '2026-11-22 15:26:45.227965+00', 'similar', 'approved', 'http:local', 'http:local', 'http', NULL, '0098568616a973dc8931d32f40607107ccc0d192d41dd862155410aac2e9e564', 'policy writes', NULL, '377c67130d75aa1628677343c0be14f8260472986f683c9278d503ef0448be0e', '080ba5a6a9a65dcb133068eb388b7aa0e2905fac1230ca6790df13021b78366c', NULL, 'f0b6da40ea3ea8793f7bc3b1835d9d13edf2232ef4c6b5185387c65f421e1557');
INSERT INTO audit VALUES (16, '229ab721f4bd6236', 3, '2026-11-22 15:26:45.279716+00', 'execute', 'executing', 'nod', 'nod', 'nod', NULL, '0098568616a973dc8931d32f40607107ccc0d192d41dd862155410aac2e9e564', 'policy writes', NULL, '35ff9b17784b6ad1dc99cf41456e4b9ffae25d11b612b7dcd9e760b58ac5e280', '683f24ad8ba88a6783eb54cb721f034eb4b84e184054f22e33279865579e6fd1', NULL, 'a9f92c74a7ab08a7c7d1456870256cda34298c8ebab09c1c91eefab01848d2db');
INSERT INTO audit VALUES (17, '229ab721f4bd6236', 4, '2026-11-22 15:26:45.31346+00', 'succeeded', 'succeeded', 'nod', 'nod', 'nod', NULL, '0098568616a973dc8931d32f40607107ccc0d192d41dd862155410aac2e9e564', 'policy writes', NULL, '683f24ad8ba88a6783eb54cb721f034eb4b84e184054f22e33279865579e6fd1', '086636214d9ef710288594a7d8e186ed5b5db5abbd8f643e70322acc0402a7c9', NULL, '86556ea46b0c44006f7ab40abcc2dba3261fa6a7a3b9f44492268a229de09b5b');
INSERT INTO audit VALUES (18, 'f1a95024692d4b47', 1, '2026-11-22 15:26:45.695099+00', 'propose', 'approved', 'nod', 'nod', 'nod', NULL, '43e7301592ecb4b366faea1aecdd4418836a80b76d083fcb375bf0b9a12c9890', 'policy writes', 1, '086636214d9ef710288594a7d8e186ed5b5db5abbd8f643e70322acc0402a7c9', '1f56d70bba759c2223d899b454e139274687474bf217cacbba205af0853f9714', '{"requester": "http:local", "name": "you", "place": "http:local/d", "tool": ["comment_issue", "374392a2bf9118e6"], "summary": "Comment on issue #3 \u201cDark mode for the settings page\u201d", "arguments": {"number": 3, "body": "again"}, "schema": "1d1bdf53541dff109680fc15aba030be58a35400049d3f545f09d3eaa0a7db35"}', 'cc70a3f4f0f736774b496e5412f8fb46667a3554cfd6ec3c63f9fa86f559d15c');
INSERT INTO audit VALUES (19, 'f1a95024692d4b47', 2, '2026-11-22 15:26:45.732476+00', 'execute', 'executing', 'nod', 'nod', 'nod', NULL, '43e7301592ecb4b366faea1aecdd4418836a80b76d083fcb375bf0b9a12c9890', 'policy writes', 1, '1f56d70bba759c2223d899b454e139274687474bf217cacbba205af0853f9714', 'ac7610f226be03bfa6758095c9b737be61f5e0bd37e323ad6baf1cf52a5e7052', NULL, '6a94ea645eb852def8f313dd363505eec3e5c4ff5189d47c189b7eec17066fa8');
INSERT INTO audit VALUES (20, 'f1a95024692d4b47', 3, '2026-11-22 15:26:46.055583+00', 'succeeded', 'succeeded', 'nod', 'nod', 'nod', NULL, '43e7301592ecb4b366faea1aecdd4418836a80b76d083fcb375bf0b9a12c9890', 'policy writes', 1, 'ac7610f226be03bfa6758095c9b737be61f5e0bd37e323ad6baf1cf52a5e7052', '9b8e58319addf6d45472fc2c42911c87b1b936910fef3975d11e79256290799c', NULL, 'b8205847b6654bf6a2403746ea0029c789f7f8ad12c4e0335ccad669a67eee5d');
INSERT INTO audit VALUES (21, '9cba1f057dbd7c36', 1, '2026-11-22 15:26:46.43363+00', 'propose', 'proposed', 'nod', 'nod', 'nod', NULL, 'f739fd7f27366124f385b24382d69f9b756debe239a42a0e417778059b72e208', 'policy writes', NULL, '9b8e58319addf6d45472fc2c42911c87b1b936910fef3975d11e79256290799c', '64b13141f9bc7306c5d739a793b5ffe6b0ce1aa0506bae4a814d43401628c674', '{"requester": "http:local", "name": "you", "place": "http:local/e", "tool": ["update_issue", "0b02d8d032277b2c"], "summary": "Change assignee of issue #1 \u201cLogin fails after a password reset\u201d", "arguments": {"number": 1, "assignee": "Sam"}, "schema": "c449ed99d72cce8d1c73f3a5e3fe7fcf8afddec4bbd15f15125bfcaac5e19ea0"}', 'b43bfe9f38f8096efe540dce77fb8422ef826be2131acaa17eba233b66d2583e');
INSERT INTO audit VALUES (22, '9cba1f057dbd7c36', 2, '2026-11-22 15:26:46.505652+00', 'edit', 'proposed', 'http:local', 'http:local', 'http', NULL, '4bd1b88b1913b403a097a411057290546ecf2e4c428aedb786e714bbdd12e0bf', 'policy writes', NULL, '64b13141f9bc7306c5d739a793b5ffe6b0ce1aa0506bae4a814d43401628c674', '19356aad29d1da49078916ce52414f21583d9846391732de89ae322394104892', '{"requester": "http:local", "name": "you", "place": "http:local/e", "tool": ["update_issue", "0b02d8d032277b2c"], "summary": "Change assignee of issue #1 \u201cLogin fails after a password reset\u201d", "arguments": {"number": 1, "assignee": "Zoe"}, "schema": "c449ed99d72cce8d1c73f3a5e3fe7fcf8afddec4bbd15f15125bfcaac5e19ea0"}', 'd628de142ea08e90832e30eeb287c6076794db8cb18d03316027c008f541007f');
INSERT INTO audit VALUES (23, '9cba1f057dbd7c36', 3, '2026-11-22 15:26:46.505652+00', 'approve', 'approved', 'http:local', 'http:local', 'http', NULL, '4bd1b88b1913b403a097a411057290546ecf2e4c428aedb786e714bbdd12e0bf', 'policy writes', NULL, '19356aad29d1da49078916ce52414f21583d9846391732de89ae322394104892', 'c48f50d9e46979babf2421524a9e650f6e29db605b3593f08a88072d247b40a2', NULL, '441fd379604fbae1432842d46236c4d8c37f8eb9521e99c5ab3940ffc027ba5a');
INSERT INTO audit VALUES (24, '9cba1f057dbd7c36', 4, '2026-11-22 15:26:46.557576+00', 'execute', 'executing', 'nod', 'nod', 'nod', NULL, '4bd1b88b1913b403a097a411057290546ecf2e4c428aedb786e714bbdd12e0bf', 'policy writes', NULL, 'c48f50d9e46979babf2421524a9e650f6e29db605b3593f08a88072d247b40a2', 'f9e0bd0c938a357e4a649ae3b56719535fcac6b6c37810ae4d4bccc01b82bd8a', NULL, '083442c7a3a85f24ee95fa80a26a375f43713fc5ae206e8ebaa3237fbecdd9db');
INSERT INTO audit VALUES (25, '9cba1f057dbd7c36', 5, '2026-11-22 15:26:46.618716+00', 'succeeded', 'succeeded', 'nod', 'nod', 'nod', NULL, '4bd1b88b1913b403a097a411057290546ecf2e4c428aedb786e714bbdd12e0bf', 'policy writes', NULL, 'f9e0bd0c938a357e4a649ae3b56719535fcac6b6c37810ae4d4bccc01b82bd8a', 'f79bb8a3146819b067c3d96f72a821fe28cf8a566e9d57c28a6983ee0fb4693c', NULL, 'ec159271598cab829786c0e89582f66e39897d95200633c72363bedd7a66bb53');
INSERT INTO audit VALUES (27, '209766b65bb6b5d0', 2, '2026-11-22 15:26:46.872282+00', 'resume', 'proposed', 'http:local', 'http:local', 'http', NULL, '9dc42b83a7452d960656c574d122b0d82b14db571edbb7d919de479f3fa7960f', 'policy writes', NULL, 'a136ead6788a9f3f853f0b2c558e69fa5346f9eabb433445590a8b5d962c01b1', '44767dcd96342c61861abf99ae127aab6771fdbd27fc36710d0c51efd60ce7bf', NULL, '8cf82b10ecd633001e77473f54a6393053fe66467867a008456fc8264c0d28d4');
INSERT INTO audit VALUES (28, '26141c5481206ef2', 3, '2026-11-22 15:26:46.872282+00', 'resume', 'proposed', 'http:local', 'http:local', 'http', NULL, 'de7561e94d3b5b723ab8adacd4d81438a4a4c47f1b5d327145af07ae094a7e53', 'policy writes', NULL, '44767dcd96342c61861abf99ae127aab6771fdbd27fc36710d0c51efd60ce7bf', '9b49c72191928e3a13f8b7a2e548d77418103b4d96c3c4d90c0a9848590a760f', NULL, '4ef93702319e0e2979bdc65be3183e6f80427e14512d814920cd964dbae39efa');
INSERT INTO audit VALUES (30, '2dcff26fc604ea35', 1, '2026-11-22 15:26:47.886795+00', 'propose', 'proposed', 'nod', 'nod', 'nod', NULL, '948a76d479a6c1eb04211e9831ec8744eb21f3d9bb7cb1ddb5ce0970d6d48708', 'rule 2: plans human', NULL, '830656ef6973519626b47ff82c78fc7dc1a5e8bf69fb9faae370de7fcf27beb8', 'ec35a5a837f44d1bdfe2a507492e0150f0b65fe0e08e8aa85ce3ef050463a20e', '{"requester": "http:local", "name": "you", "place": "team:400feafa49c1b548", "tool": ["plan_submit", "2eabd2e8bcb02b04"], "summary": "issue-organiser''s plan, version 1: Give 2 open issues without an owner to the person with the least to do.", "arguments": {"summary": "Give 2 open issues without an owner to the person with the least to do.", "steps": [{"description": "Look at the open issues and at who has how much to do", "tools": ["get_issue", "list_issues", "search_issues", "workload"], "estimated_tokens": null}, {"description": "Give #4 (Invoices are sent twice when the mail server is slow) to Ana", "tools": ["update_issue"], "estimated_tokens": 400}, {"description": "Give #3 (Dark mode for the settings page) to Zoe", "tools": ["update_issue"], "estimated_tokens": 400}], "risks": "They may know nothing about it yet.", "alternatives": "Ask in the team who wants it; that takes longer."}, "schema": "a3420a06385861bb99654c22fe52dc726dcc5377bea05012792fb10fb9f3d3e6"}', '1d630de921f43494a2f8fd557b2c33e73d88b8521b302b9e1d3c4ff57eb03659');
INSERT INTO board VALUES ('d9a120949c298ebd', 'http', 'local/team', 'd9a120949c298ebd', 6, 6, false);
INSERT INTO book VALUES (1, 5, NULL, '{"resume": {}}');
INSERT INTO chain_end VALUES (1, 30, 'ec35a5a837f44d1bdfe2a507492e0150f0b65fe0e08e8aa85ce3ef050463a20e', '', '7d35d1811358a6bdc62a6f14e92a379d802a0c024ea555b5af99dd187ea1d624');
INSERT INTO conversation VALUES ('9856a2a6e19fb454', 'http', 'local/a', true, 'http:local', 'create an issue ''Printer is on fire'' with high priority and assign it to Sam', '2026-11-22 15:26:42.003677+00', NULL, NULL, NULL);
INSERT INTO conversation VALUES ('e32ee20dbfd334e6', 'http', 'local/b', true, 'http:local', 'close #2 and assign #3 to Ana', '2026-11-22 15:26:43.780017+00', NULL, NULL, NULL);
INSERT INTO conversation VALUES ('290b182b1a880fb3', 'http', 'local/c', true, 'http:local', 'delete #4', '2026-11-22 15:26:44.664917+00', NULL, NULL, NULL);
INSERT INTO conversation VALUES ('d708fef8069324d8', 'http', 'local/d', true, 'http:local', 'comment ''hello'' on #1', '2026-11-22 15:26:44.937556+00', NULL, NULL, NULL);
INSERT INTO conversation VALUES ('89588cced8fa29f2', 'http', 'local/e', true, 'http:local', 'assign #1 to Sam', '2026-11-22 15:26:46.236384+00', NULL, NULL, NULL);
INSERT INTO conversation VALUES ('d9a120949c298ebd', 'http', 'local/team', true, 'http:local', 'Have one teammate survey the open issues and another reorganise them; plan first', '2026-11-22 15:26:46.961993+00', NULL, NULL, NULL);
INSERT INTO conversation VALUES ('827a2b98f3c7bb29', 'team', '827a2b98f3c7bb29', true, 'http:local', 'issue-surveyor: Survey the open issues', '2026-11-22 15:26:47.12857+00', NULL, 'http:local/team', NULL);
INSERT INTO conversation VALUES ('400feafa49c1b548', 'team', '400feafa49c1b548', true, 'http:local', 'issue-organiser: Reorganise the open issues', '2026-11-22 15:26:47.12857+00', NULL, 'http:local/team', NULL);
INSERT INTO decider VALUES ('http:local', '4cccfe0b7a5416a7');
INSERT INTO decider VALUES ('http:local', '3c4fc3cb3e94bdaf');
INSERT INTO decider VALUES ('http:ana', '26141c5481206ef2');
INSERT INTO decider VALUES ('http:ben', '26141c5481206ef2');
INSERT INTO decider VALUES ('http:local', '229ab721f4bd6236');
INSERT INTO decider VALUES ('http:local', '9cba1f057dbd7c36');
INSERT INTO grant_given VALUES (1, 'comment_issue', '374392a2bf9118e6', 'tool', '', 'comment_issue with any arguments, for you in one private conversation', 'http:local', 'you', 'd708fef8069324d8', false, '229ab721f4bd6236', NULL, 1, '2026-11-22 15:26:45.227965+00', '2026-11-23 15:26:45.227965+00', NULL, NULL, 'http:local', 'http:local/d');
INSERT INTO issue VALUES (1, 'Login fails after a password reset', 'The new password is accepted on the reset page, then refused at login for about a minute. Probably the cached session of the old password.', 'open', 'urgent', 'Zoe', '["auth", "bug"]', 'demo', '2026-11-13 15:26:41.634691+00', '2026-11-22 15:26:46.581084+00', NULL);
INSERT INTO issue VALUES (2, 'Exported CSV has wrong dates for users east of Berlin', 'Dates shift by one day. The export formats local midnight as UTC.', 'closed', 'high', 'Sam', '["bug", "export"]', 'demo', '2026-11-14 15:26:41.634691+00', '2026-11-22 15:26:44.158352+00', NULL);
INSERT INTO issue VALUES (3, 'Dark mode for the settings page', 'The rest of the application has it; settings still glow.', 'open', 'low', NULL, '["design"]', 'demo', '2026-11-15 15:26:41.634691+00', '2026-11-22 15:26:45.775735+00', NULL);
INSERT INTO issue VALUES (4, 'Invoices are sent twice when the mail server is slow', 'A time-out is taken for a failure and the job is run again. Three customers wrote to us.', 'open', 'urgent', NULL, '["billing", "bug"]', 'demo', '2026-11-16 15:26:41.634691+00', '2026-11-16 15:26:41.634691+00', NULL);
INSERT INTO issue VALUES (5, 'Document the rate limits of the public API', '', 'open', 'normal', 'Ana', '["docs"]', 'demo', '2026-11-17 15:26:41.634691+00', '2026-11-17 15:26:41.634691+00', NULL);
INSERT INTO issue VALUES (6, 'Upgrade the staging database', 'The version in use no longer gets security fixes.', 'closed', 'normal', 'Priya', '["operations"]', 'demo', '2026-11-18 15:26:41.634691+00', '2026-11-22 13:26:41.634691+00', NULL);
INSERT INTO issue_comment VALUES (1, 1, 'Seen by two more people this morning.', 'demo', '2026-11-22 12:26:41.634691+00', NULL);
INSERT INTO issue_comment VALUES (2, 1, 'hello', 'http:local', '2026-11-22 15:26:45.288304+00', 'nod-229ab721f4bd6236');
INSERT INTO issue_comment VALUES (3, 3, 'again', 'http:local', '2026-11-22 15:26:45.775735+00', 'nod-f1a95024692d4b47');
INSERT INTO ledger VALUES (1, '2026-11-22 15:26:41.796609+00', 'rule', 'quorum for delete_issue in *', 'delete_issue', 'set', 'http:local', 'http:local', 'http', NULL, '{"rule": 1, "value": [2, 0]}', '', '0939de47dcf6f1ff2bd1c446586b8176e5601887669baae5a4aa556e76cad813', '{"rule 1": "a4610c8d6f0b7a83bad73fc1f834dcf924cbd1caf83fb0aa65007b92741cda25"}');
INSERT INTO ledger VALUES (2, '2026-11-22 15:26:41.86694+00', 'rule', 'plans for * in *', '*', 'set', 'http:local', 'http:local', 'http', NULL, '{"rule": 2, "value": "human"}', '0939de47dcf6f1ff2bd1c446586b8176e5601887669baae5a4aa556e76cad813', 'b31bec95d6dc7add7e41265fd831d3102406e067091b8c922a85381a139dea21', '{"rule 2": "5df1562caef4d3c41ca7eb99e21fc6e0608fd023509d0a74085d29265eac7154"}');
INSERT INTO ledger VALUES (3, '2026-11-22 15:26:41.892034+00', 'rule', 'deciders for delete_issue in *', 'delete_issue', 'set', 'http:local', 'http:local', 'http', NULL, '{"rule": 3, "value": ["http:ana", "http:ben"]}', 'b31bec95d6dc7add7e41265fd831d3102406e067091b8c922a85381a139dea21', '81b71c34cf1a7250ca91551443d6b8162ee04951e739e01622bcf3e7135c51ea', '{"rule 3": "1809b336e043a3fb8a164089a2ad13b9b5e74a84084a47fe163aced808ffb6af"}');
INSERT INTO ledger VALUES (15, '2026-11-22 15:26:45.227965+00', 'grant', 'G-1', 'comment_issue', 'give', 'http:local', 'http:local', 'http', NULL, '{"allows": "comment_issue with any arguments, for you in one private conversation", "tool": ["comment_issue", "374392a2bf9118e6"], "match": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "rung": "tool", "until": "2026-11-23T15:26:45.227965+00:00", "only_in": null, "for": "http:local", "at": "http:local/d", "person": "http:local", "proposal": "229ab721f4bd6236"}', '080ba5a6a9a65dcb133068eb388b7aa0e2905fac1230ca6790df13021b78366c', '35ff9b17784b6ad1dc99cf41456e4b9ffae25d11b612b7dcd9e760b58ac5e280', '{"grant 1": "a0528b3945e983703576b8ed40d5921023070dbed4bdb18ddfdf4cc5f8803acc"}');
INSERT INTO ledger VALUES (26, '2026-11-22 15:26:46.789124+00', 'pause', 'everything', '', 'pause', 'http:local', 'http:local', 'http', NULL, '{"since": "2026-11-22T15:26:46.789124+00:00", "name": "you"}', 'f79bb8a3146819b067c3d96f72a821fe28cf8a566e9d57c28a6983ee0fb4693c', 'a136ead6788a9f3f853f0b2c558e69fa5346f9eabb433445590a8b5d962c01b1', '{"pause 1": "77b77077dc7b10453e170ea37d991457ec27c7b3e08c60203f042e9091119191"}');
INSERT INTO ledger VALUES (29, '2026-11-22 15:26:46.872282+00', 'pause', 'everything', '', 'resume', 'http:local', 'http:local', 'http', '{"since": "2026-11-22T15:26:46.789124+00:00"}', NULL, '9b49c72191928e3a13f8b7a2e548d77418103b4d96c3c4d90c0a9848590a760f', '830656ef6973519626b47ff82c78fc7dc1a5e8bf69fb9faae370de7fcf27beb8', '{"pause 1": null}');
INSERT INTO message VALUES (1, '9856a2a6e19fb454', 'user', 'create an issue ''Printer is on fire'' with high priority and assign it to Sam', NULL, 'http:local', 'you', 'http', 'e1', NULL, NULL, true, '2026-11-22 15:26:42.003677+00');
INSERT INTO message VALUES (2, '9856a2a6e19fb454', 'assistant', 'I''d like to create the issue “Printer is on fire” (priority: high, assignee: Sam).', 1, NULL, '', NULL, NULL, '[["call_db57ae1cac83dfbd", "create_issue", "{\"title\": \"Printer is on fire\", \"priority\": \"high\", \"assignee\": \"Sam\", \"approval_reason\": \"Requested: \u201ccreate an issue ''Printer is on fire'' with high priority and assign it to Sam\u201d\"}", "Create issue \u201cPrinter is on fire\u201d"]]', NULL, true, '2026-11-22 15:26:43.70313+00');
INSERT INTO message VALUES (3, 'e32ee20dbfd334e6', 'user', 'close #2 and assign #3 to Ana', NULL, 'http:local', 'you', 'http', 'e2', NULL, NULL, true, '2026-11-22 15:26:43.780017+00');
INSERT INTO message VALUES (4, 'e32ee20dbfd334e6', 'assistant', 'I''d like to close #2 and assign #3 to Ana.', 3, NULL, '', NULL, NULL, '[["call_52cf147b6c611de4", "close_issue", "{\"number\": 2, \"approval_reason\": \"Requested: \u201cclose #2 and assign #3 to Ana\u201d\"}", "Close issue #2"], ["call_d389a2534baa3928", "update_issue", "{\"number\": 3, \"assignee\": \"Ana\", \"approval_reason\": \"Requested: \u201cclose #2 and assign #3 to Ana\u201d\"}", "Change assignee of issue #3"]]', NULL, true, '2026-11-22 15:26:44.062263+00');
INSERT INTO message VALUES (5, 'e32ee20dbfd334e6', 'assistant', 'Done: closed #2.
You declined assigning #3 to Ana (“Not today”), so I''ve left it alone.', 3, NULL, '', NULL, NULL, NULL, NULL, true, '2026-11-22 15:26:44.640954+00');
INSERT INTO message VALUES (6, '290b182b1a880fb3', 'user', 'delete #4', NULL, 'http:local', 'you', 'http', 'e3', NULL, NULL, true, '2026-11-22 15:26:44.664917+00');
INSERT INTO message VALUES (7, '290b182b1a880fb3', 'assistant', 'I''d like to delete #4.', 6, NULL, '', NULL, NULL, '[["call_56a4b3871d14b607", "delete_issue", "{\"number\": 4, \"approval_reason\": \"Requested: \u201cdelete #4\u201d\"}", "Delete issue #4 and its comments"]]', NULL, true, '2026-11-22 15:26:44.829624+00');
INSERT INTO message VALUES (8, 'd708fef8069324d8', 'user', 'comment ''hello'' on #1', NULL, 'http:local', 'you', 'http', 'e4', NULL, NULL, true, '2026-11-22 15:26:44.937556+00');
INSERT INTO message VALUES (9, 'd708fef8069324d8', 'assistant', 'I''d like to comment on #1.', 8, NULL, '', NULL, NULL, '[["call_e18d83f78657cac3", "comment_issue", "{\"number\": 1, \"body\": \"hello\", \"approval_reason\": \"Requested: \u201ccomment ''hello'' on #1\u201d\"}", "Comment on issue #1"]]', NULL, true, '2026-11-22 15:26:45.19279+00');
INSERT INTO message VALUES (10, 'd708fef8069324d8', 'assistant', 'Done: commented on #1.', 8, NULL, '', NULL, NULL, NULL, NULL, true, '2026-11-22 15:26:45.453018+00');
INSERT INTO message VALUES (11, 'd708fef8069324d8', 'user', 'comment ''again'' on #3', NULL, 'http:local', 'you', 'http', 'e5', NULL, NULL, true, '2026-11-22 15:26:45.477591+00');
INSERT INTO message VALUES (12, 'd708fef8069324d8', 'assistant', 'I''d like to comment on #3.', 11, NULL, '', NULL, NULL, '[["call_5c59c97368230255", "comment_issue", "{\"number\": 3, \"body\": \"again\", \"approval_reason\": \"Requested: \u201ccomment ''again'' on #3\u201d\"}", "Comment on issue #3"]]', NULL, true, '2026-11-22 15:26:45.695319+00');
INSERT INTO message VALUES (13, 'd708fef8069324d8', 'assistant', 'Done: commented on #3.', 11, NULL, '', NULL, NULL, NULL, NULL, true, '2026-11-22 15:26:46.19928+00');
INSERT INTO message VALUES (14, '89588cced8fa29f2', 'user', 'assign #1 to Sam', NULL, 'http:local', 'you', 'http', 'e6', NULL, NULL, true, '2026-11-22 15:26:46.236384+00');
INSERT INTO message VALUES (15, '89588cced8fa29f2', 'assistant', 'I''d like to assign #1 to Sam.', 14, NULL, '', NULL, NULL, '[["call_0f6eb2c3298460f9", "update_issue", "{\"number\": 1, \"assignee\": \"Sam\", \"approval_reason\": \"Requested: \u201cassign #1 to Sam\u201d\"}", "Change assignee of issue #1"]]', NULL, true, '2026-11-22 15:26:46.433802+00');
INSERT INTO message VALUES (16, '89588cced8fa29f2', 'assistant', 'Done: assigned #1 to Zoe.', 14, NULL, '', NULL, NULL, NULL, NULL, true, '2026-11-22 15:26:46.773475+00');
INSERT INTO message VALUES (17, 'd9a120949c298ebd', 'user', 'Have one teammate survey the open issues and another reorganise them; plan first', NULL, 'http:local', 'you', 'http', 'e7', NULL, NULL, true, '2026-11-22 15:26:46.961993+00');
INSERT INTO message VALUES (18, 'd9a120949c298ebd', 'assistant', 'I give this to 2 teammates.', 17, NULL, '', NULL, NULL, '[["call_6d8a80496c8747d4", "spawn_teammate", "{\"role\": \"issue surveyor\", \"task\": \"Survey the open issues\", \"tools\": [\"get_issue\", \"list_issues\", \"search_issues\", \"workload\"], \"require_plan_approval\": false}", "Start a teammate: issue surveyor"], ["call_ee010c3657a611e7", "spawn_teammate", "{\"role\": \"issue organiser\", \"task\": \"Reorganise the open issues\", \"tools\": [\"get_issue\", \"list_issues\", \"search_issues\", \"workload\", \"update_issue\"], \"require_plan_approval\": true}", "Start a teammate: issue organiser"]]', '{"call_6d8a80496c8747d4": ["Started issue-surveyor. Its result will be told to you in a [Nod] line; do not wait for it.", true], "call_ee010c3657a611e7": ["Started issue-organiser. It plans first, and may only look around until its plan is approved. Its result will be told to you in a [Nod] line; do not wait for it.", true]}', true, '2026-11-22 15:26:47.12857+00');
INSERT INTO message VALUES (19, '827a2b98f3c7bb29', 'note', '[Nod] Your task:
Survey the open issues', NULL, 'http:local', 'you', NULL, NULL, NULL, NULL, true, '2026-11-22 15:26:47.12857+00');
INSERT INTO message VALUES (20, '400feafa49c1b548', 'note', '[Nod] Your task:
Reorganise the open issues', NULL, 'http:local', 'you', NULL, NULL, NULL, NULL, true, '2026-11-22 15:26:47.12857+00');
INSERT INTO message VALUES (21, '827a2b98f3c7bb29', 'assistant', 'Let me look.', 19, NULL, '', NULL, NULL, '[["call_1da620a21df725d8", "list_issues", "{\"state\": \"open\"}", "List issues"], ["call_883bcd70efa753ba", "workload", "{}", "Count open issues by assignee"]]', '{"call_883bcd70efa753ba": ["{\"workload\": [{\"assignee\": \"Ana\", \"open\": 1, \"urgent\": 0}, {\"assignee\": \"Zoe\", \"open\": 1, \"urgent\": 1}, {\"assignee\": null, \"open\": 2, \"urgent\": 1}]}", true], "call_1da620a21df725d8": ["{\"issues\": [{\"number\": 5, \"title\": \"Document the rate limits of the public API\", \"state\": \"open\", \"priority\": \"normal\", \"assignee\": \"Ana\", \"labels\": [\"docs\"], \"created_at\": \"2026-11-17T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-17T15:26:41.634691+00:00\"}, {\"number\": 4, \"title\": \"Invoices are sent twice when the mail server is slow\", \"state\": \"open\", \"priority\": \"urgent\", \"assignee\": null, \"labels\": [\"billing\", \"bug\"], \"created_at\": \"2026-11-16T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-16T15:26:41.634691+00:00\"}, {\"number\": 3, \"title\": \"Dark mode for the settings page\", \"state\": \"open\", \"priority\": \"low\", \"assignee\": null, \"labels\": [\"design\"], \"created_at\": \"2026-11-15T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-22T15:26:45.775735+00:00\"}, {\"number\": 1, \"title\": \"Login fails after a password reset\", \"state\": \"open\", \"priority\": \"urgent\", \"assignee\": \"Zoe\", \"labels\": [\"auth\", \"bug\"], \"created_at\": \"2026-11-13T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-22T15:26:46.581084+00:00\"}], \"total\": 4}", true]}', true, '2026-11-22 15:26:47.62524+00');
INSERT INTO message VALUES (22, '400feafa49c1b548', 'assistant', 'Let me look.', 20, NULL, '', NULL, NULL, '[["call_1da620a21df725d8", "list_issues", "{\"state\": \"open\"}", "List issues"], ["call_883bcd70efa753ba", "workload", "{}", "Count open issues by assignee"]]', '{"call_883bcd70efa753ba": ["{\"workload\": [{\"assignee\": \"Ana\", \"open\": 1, \"urgent\": 0}, {\"assignee\": \"Zoe\", \"open\": 1, \"urgent\": 1}, {\"assignee\": null, \"open\": 2, \"urgent\": 1}]}", true], "call_1da620a21df725d8": ["{\"issues\": [{\"number\": 5, \"title\": \"Document the rate limits of the public API\", \"state\": \"open\", \"priority\": \"normal\", \"assignee\": \"Ana\", \"labels\": [\"docs\"], \"created_at\": \"2026-11-17T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-17T15:26:41.634691+00:00\"}, {\"number\": 4, \"title\": \"Invoices are sent twice when the mail server is slow\", \"state\": \"open\", \"priority\": \"urgent\", \"assignee\": null, \"labels\": [\"billing\", \"bug\"], \"created_at\": \"2026-11-16T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-16T15:26:41.634691+00:00\"}, {\"number\": 3, \"title\": \"Dark mode for the settings page\", \"state\": \"open\", \"priority\": \"low\", \"assignee\": null, \"labels\": [\"design\"], \"created_at\": \"2026-11-15T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-22T15:26:45.775735+00:00\"}, {\"number\": 1, \"title\": \"Login fails after a password reset\", \"state\": \"open\", \"priority\": \"urgent\", \"assignee\": \"Zoe\", \"labels\": [\"auth\", \"bug\"], \"created_at\": \"2026-11-13T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-22T15:26:46.581084+00:00\"}], \"total\": 4}", true]}', true, '2026-11-22 15:26:47.639261+00');
INSERT INTO message VALUES (23, '400feafa49c1b548', 'assistant', 'This is my plan.', 20, NULL, '', NULL, NULL, '[["call_9b1fba22b6d579d7", "plan_submit", "{\"summary\": \"Give 2 open issues without an owner to the person with the least to do.\", \"steps\": [{\"description\": \"Look at the open issues and at who has how much to do\", \"tools\": [\"get_issue\", \"list_issues\", \"search_issues\", \"workload\"]}, {\"description\": \"Give #4 (Invoices are sent twice when the mail server is slow) to Ana\", \"tools\": [\"update_issue\"], \"estimated_tokens\": 400}, {\"description\": \"Give #3 (Dark mode for the settings page) to Zoe\", \"tools\": [\"update_issue\"], \"estimated_tokens\": 400}], \"risks\": \"They may know nothing about it yet.\", \"alternatives\": \"Ask in the team who wants it; that takes longer.\", \"approval_reason\": \"You asked to reorganise the open issues; these have no owner.\"}", "Plan: Give 2 open issues without an owner to the person with the least to do."]]', NULL, true, '2026-11-22 15:26:47.887467+00');
INSERT INTO message VALUES (24, 'd9a120949c298ebd', 'note', '[Nod] Version 1 of the plan of teammate issue-organiser was submitted. People approve it; you may reject it or ask for changes. Review it with plan_review:
> Summary: Give 2 open issues without an owner to the person with the least to do.
> Step 1: Look at the open issues and at who has how much to do (tools: get_issue, list_issues, search_issues, workload)
> Step 2: Give #4 (Invoices are sent twice when the mail server is slow) to Ana (tools: update_issue; about 400 tokens)
> Step 3: Give #3 (Dark mode for the settings page) to Zoe (tools: update_issue; about 400 tokens)
> Risks: They may know nothing about it yet.
> Alternatives: Ask in the team who wants it; that takes longer.', NULL, NULL, '', NULL, NULL, NULL, NULL, true, '2026-11-22 15:26:47.887467+00');
INSERT INTO message VALUES (25, 'd9a120949c298ebd', 'assistant', 'I started issue-surveyor and issue-organiser. I''ll tell you what they find. Any changes need your approval.', 17, NULL, '', NULL, NULL, NULL, NULL, true, '2026-11-22 15:26:47.936125+00');
INSERT INTO message VALUES (26, 'd9a120949c298ebd', 'assistant', '**issue-organiser** has a plan, version 1. Its card waits for a decision.', 24, NULL, '', NULL, NULL, NULL, NULL, true, '2026-11-22 15:26:48.270913+00');
INSERT INTO message VALUES (27, '827a2b98f3c7bb29', 'assistant', '4 issues are open: 2 urgent, 2 without an owner.

- **#5** Document the rate limits of the public API (open · Ana · normal · docs)
- **#4** Invoices are sent twice when the mail server is slow (open · no owner · urgent · billing, bug)
- **#3** Dark mode for the settings page (open · no owner · low · design)
- **#1** Login fails after a password reset (open · Zoe · urgent · auth, bug)', 19, NULL, '', NULL, NULL, NULL, NULL, true, '2026-11-22 15:26:49.579158+00');
INSERT INTO message VALUES (28, 'd9a120949c298ebd', 'note', '[Nod] Teammate issue-surveyor is done. Its result:
> 4 issues are open: 2 urgent, 2 without an owner.
> 
> - **#5** Document the rate limits of the public API (open · Ana · normal · docs)
> - **#4** Invoices are sent twice when the mail server is slow (open · no owner · urgent · billing, bug)
> - **#3** Dark mode for the settings page (open · no owner · low · design)
> - **#1** Login fails after a password reset (open · Zoe · urgent · auth, bug)', NULL, NULL, '', NULL, NULL, NULL, NULL, true, '2026-11-22 15:26:49.579158+00');
INSERT INTO message VALUES (29, 'd9a120949c298ebd', 'assistant', '**issue-surveyor** is done:

4 issues are open: 2 urgent, 2 without an owner.

- **#5** Document the rate limits of the public API (open · Ana · normal · docs)
- **#4** Invoices are sent twice when the mail server is slow (open · no owner · urgent · billing, bug)
- **#3** Dark mode for the settings page (open · no owner · low · design)
- **#1** Login fails after a password reset (open · Zoe · urgent · auth, bug)', 28, NULL, '', NULL, NULL, NULL, NULL, true, '2026-11-22 15:26:51.617577+00');
INSERT INTO message VALUES (30, '9856a2a6e19fb454', 'user', 'list open issues', NULL, 'http:local', 'you', 'http', 'e8', NULL, NULL, true, '2026-11-22 15:26:51.649421+00');
INSERT INTO message VALUES (31, '9856a2a6e19fb454', 'assistant', 'Let me look.', 30, NULL, '', NULL, NULL, '[["call_f135d351d4151acd", "list_issues", "{\"state\": \"open\"}", "List issues"]]', '{"call_f135d351d4151acd": ["{\"issues\": [{\"number\": 5, \"title\": \"Document the rate limits of the public API\", \"state\": \"open\", \"priority\": \"normal\", \"assignee\": \"Ana\", \"labels\": [\"docs\"], \"created_at\": \"2026-11-17T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-17T15:26:41.634691+00:00\"}, {\"number\": 4, \"title\": \"Invoices are sent twice when the mail server is slow\", \"state\": \"open\", \"priority\": \"urgent\", \"assignee\": null, \"labels\": [\"billing\", \"bug\"], \"created_at\": \"2026-11-16T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-16T15:26:41.634691+00:00\"}, {\"number\": 3, \"title\": \"Dark mode for the settings page\", \"state\": \"open\", \"priority\": \"low\", \"assignee\": null, \"labels\": [\"design\"], \"created_at\": \"2026-11-15T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-22T15:26:45.775735+00:00\"}, {\"number\": 1, \"title\": \"Login fails after a password reset\", \"state\": \"open\", \"priority\": \"urgent\", \"assignee\": \"Zoe\", \"labels\": [\"auth\", \"bug\"], \"created_at\": \"2026-11-13T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-22T15:26:46.581084+00:00\"}], \"total\": 4}", true]}', true, '2026-11-22 15:26:51.785618+00');
INSERT INTO message VALUES (32, '9856a2a6e19fb454', 'assistant', '4 open issues:

- **#5** Document the rate limits of the public API (open · Ana · normal · docs)
- **#4** Invoices are sent twice when the mail server is slow (open · no owner · urgent · billing, bug)
- **#3** Dark mode for the settings page (open · no owner · low · design)
- **#1** Login fails after a password reset (open · Zoe · urgent · auth, bug)', 30, NULL, '', NULL, NULL, NULL, NULL, true, '2026-11-22 15:26:53.38684+00');
INSERT INTO name VALUES ('http:local', 'you');
INSERT INTO name VALUES ('http:ana', 'Ana');
INSERT INTO process VALUES ('4d7ac52514fd86b6', 'nod.example', 7582, '2026-11-22 15:26:41.179714+00', 0);
INSERT INTO proposal VALUES ('209766b65bb6b5d0', 'call', '9856a2a6e19fb454', 2, 'call_db57ae1cac83dfbd', 0, 'create_issue', 'c4bb526f3e189507', '{"title": "Printer is on fire", "assignee": "Sam", "priority": "high"}', 'Create issue “Printer is on fire”', '[["title", null, "Printer is on fire"], ["assignee", null, "Sam"], ["priority", null, "high"]]', 'write', '', 'Requested: “create an issue ''Printer is on fire'' with high priority and assign it to Sam”', 'http:local', 'you', '{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/a"}', 1, 'policy writes', 1, NULL, 86400, '2026-11-23 10:38:43.78591+00', NULL, NULL, NULL, NULL, '', 'proposed', NULL, 1, 2, '9dc42b83a7452d960656c574d122b0d82b14db571edbb7d919de479f3fa7960f', 'nod-209766b65bb6b5d0', '[]', NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, '2026-11-22 15:26:43.702752+00', '2026-11-22 15:26:46.872282+00', '2026-11-23 15:26:43.78591+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO proposal VALUES ('4cccfe0b7a5416a7', 'call', 'e32ee20dbfd334e6', 4, 'call_52cf147b6c611de4', 0, 'close_issue', '9fdf2ecc69129a3f', '{"number": 2}', 'Close issue #2 “Exported CSV has wrong dates for users east of Berlin”', '[["state", "open", "closed"]]', 'write', '', 'Requested: “close #2 and assign #3 to Ana”', 'http:local', 'you', '{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/b"}', 1, 'policy writes', 1, NULL, 86400, '2026-11-23 10:38:44.036986+00', NULL, NULL, NULL, NULL, '', 'succeeded', NULL, 1, 4, '43a378cfb35cf5cd692786fd0c5a27565b792755b82a058ae0c1ff4f0e04b60c', 'nod-4cccfe0b7a5416a7', '[["http:local", "http:local", "you", "approve", null, "2026-11-22T15:26:44.085118+00:00"]]', 'you', 'http', '2026-11-22 15:26:44.085118+00', NULL, NULL, NULL, false, '{"number": 2, "title": "Exported CSV has wrong dates for users east of Berlin", "state": "closed", "priority": "high", "assignee": "Sam", "labels": ["bug", "export"], "created_at": "2026-11-14T15:26:41.634691+00:00", "updated_at": "2026-11-22T15:26:44.158352+00:00"}', NULL, NULL, '2026-11-22 15:26:44.036986+00', '2026-11-22 15:26:44.17627+00', '2026-11-23 15:26:44.036986+00', 'Closed issue #2 “Exported CSV has wrong dates for users east of Berlin”', NULL, NULL, '4d7ac52514fd86b6', NULL);
INSERT INTO proposal VALUES ('3c4fc3cb3e94bdaf', 'call', 'e32ee20dbfd334e6', 4, 'call_d389a2534baa3928', 1, 'update_issue', '0b02d8d032277b2c', '{"number": 3, "assignee": "Ana"}', 'Change assignee of issue #3 “Dark mode for the settings page”', '[["assignee", null, "Ana"]]', 'write', '', 'Requested: “close #2 and assign #3 to Ana”', 'http:local', 'you', '{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/b"}', 1, 'policy writes', 1, NULL, 86400, '2026-11-23 10:38:44.061926+00', NULL, NULL, NULL, NULL, '', 'declined', NULL, 1, 2, '1fc1ed533f41c3ee31142e8475d9d318f8a694666ce96a29987242fb5aee1b7a', 'nod-3c4fc3cb3e94bdaf', '[["http:local", "http:local", "you", "decline", "Not today", "2026-11-22T15:26:44.190085+00:00"]]', 'you', 'http', '2026-11-22 15:26:44.190085+00', 'Not today', NULL, NULL, false, NULL, NULL, NULL, '2026-11-22 15:26:44.061926+00', '2026-11-22 15:26:44.190085+00', '2026-11-23 15:26:44.061926+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO proposal VALUES ('26141c5481206ef2', 'call', '290b182b1a880fb3', 7, 'call_56a4b3871d14b607', 0, 'delete_issue', 'b95134ed94623b1e', '{"number": 4}', 'Delete issue #4 “Invoices are sent twice when the mail server is slow”', '[["title", "Invoices are sent twice when the mail server is slow", null], ["state", "open", null]]', 'destructive', 'it cannot be undone', 'Requested: “delete #4”', 'http:local', 'you', '{"requester": false, "roles": [], "people": ["http:ana", "http:ben"], "members": null, "four_eyes": true, "lead": null, "escalated": null, "place": "http:local/c"}', 2, 'policy writes', 1, NULL, 86400, '2026-11-23 10:38:44.912512+00', NULL, NULL, NULL, NULL, '', 'proposed', NULL, 1, 3, 'de7561e94d3b5b723ab8adacd4d81438a4a4c47f1b5d327145af07ae094a7e53', 'nod-26141c5481206ef2', '[["http:ana", "http:ana", "Ana", "approve", null, "2026-11-22T15:26:44.887990+00:00"]]', NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, '2026-11-22 15:26:44.829354+00', '2026-11-22 15:26:46.872282+00', '2026-11-23 15:26:44.912512+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO proposal VALUES ('229ab721f4bd6236', 'call', 'd708fef8069324d8', 9, 'call_e18d83f78657cac3', 0, 'comment_issue', '374392a2bf9118e6', '{"number": 1, "body": "hello"}', 'Comment on issue #1 “Login fails after a password reset”', '[["comment", null, "hello"]]', 'write', '', 'Requested: “comment ''hello'' on #1”', 'http:local', 'you', '{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/d"}', 1, 'policy writes', 1, NULL, 86400, '2026-11-23 10:38:45.192482+00', NULL, NULL, NULL, NULL, '', 'succeeded', NULL, 1, 4, '0098568616a973dc8931d32f40607107ccc0d192d41dd862155410aac2e9e564', 'nod-229ab721f4bd6236', '[["http:local", "http:local", "you", "approve", null, "2026-11-22T15:26:45.227965+00:00"]]', 'you', 'http', '2026-11-22 15:26:45.227965+00', NULL, NULL, NULL, false, '{"number": 1, "title": "Login fails after a password reset", "state": "open", "priority": "urgent", "assignee": "Ana", "labels": ["auth", "bug"], "created_at": "2026-11-13T15:26:41.634691+00:00", "updated_at": "2026-11-22T15:26:45.288304+00:00", "comment": "hello"}', NULL, NULL, '2026-11-22 15:26:45.192482+00', '2026-11-22 15:26:45.31346+00', '2026-11-23 15:26:45.192482+00', 'Commented on issue #1 “Login fails after a password reset”', NULL, NULL, '4d7ac52514fd86b6', NULL);
INSERT INTO proposal VALUES ('f1a95024692d4b47', 'call', 'd708fef8069324d8', 12, 'call_5c59c97368230255', 0, 'comment_issue', '374392a2bf9118e6', '{"number": 3, "body": "again"}', 'Comment on issue #3 “Dark mode for the settings page”', '[["comment", null, "again"]]', 'write', '', 'Requested: “comment ''again'' on #3”', 'http:local', 'you', '{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/d"}', 1, 'policy writes', 1, 1, 86400, '2026-11-23 10:38:45.695099+00', NULL, NULL, NULL, NULL, '', 'succeeded', NULL, 1, 3, '43e7301592ecb4b366faea1aecdd4418836a80b76d083fcb375bf0b9a12c9890', 'nod-f1a95024692d4b47', '[]', 'your grant G-1', NULL, '2026-11-22 15:26:45.695319+00', NULL, NULL, NULL, false, '{"number": 3, "title": "Dark mode for the settings page", "state": "open", "priority": "low", "assignee": null, "labels": ["design"], "created_at": "2026-11-15T15:26:41.634691+00:00", "updated_at": "2026-11-22T15:26:45.775735+00:00", "comment": "again"}', NULL, NULL, '2026-11-22 15:26:45.695099+00', '2026-11-22 15:26:46.055583+00', '2026-11-23 15:26:45.695099+00', 'Commented on issue #3 “Dark mode for the settings page”', NULL, NULL, '4d7ac52514fd86b6', NULL);
INSERT INTO proposal VALUES ('9cba1f057dbd7c36', 'call', '89588cced8fa29f2', 15, 'call_0f6eb2c3298460f9', 0, 'update_issue', '0b02d8d032277b2c', '{"number": 1, "assignee": "Zoe"}', 'Change assignee of issue #1 “Login fails after a password reset”', '[["assignee", "Ana", "Zoe"]]', 'write', '', 'Requested: “assign #1 to Sam”', 'http:local', 'you', '{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/e"}', 1, 'policy writes', 1, NULL, 86400, '2026-11-23 10:38:46.505652+00', NULL, NULL, NULL, NULL, '', 'succeeded', NULL, 2, 5, '4bd1b88b1913b403a097a411057290546ecf2e4c428aedb786e714bbdd12e0bf', 'nod-9cba1f057dbd7c36', '[["http:local", "http:local", "you", "approve", null, "2026-11-22T15:26:46.505652+00:00"]]', 'you', 'http', '2026-11-22 15:26:46.505652+00', NULL, 'you', '[[2, "you", [["assignee", "Sam", "Zoe"]]]]', false, '{"number": 1, "title": "Login fails after a password reset", "state": "open", "priority": "urgent", "assignee": "Zoe", "labels": ["auth", "bug"], "created_at": "2026-11-13T15:26:41.634691+00:00", "updated_at": "2026-11-22T15:26:46.581084+00:00"}', NULL, NULL, '2026-11-22 15:26:46.43363+00', '2026-11-22 15:26:46.618716+00', '2026-11-23 15:26:46.505652+00', 'Changed assignee of issue #1 “Login fails after a password reset”', NULL, NULL, '4d7ac52514fd86b6', NULL);
INSERT INTO proposal VALUES ('2dcff26fc604ea35', 'plan', '400feafa49c1b548', 23, 'call_9b1fba22b6d579d7', 0, 'plan_submit', '2eabd2e8bcb02b04', '{"summary": "Give 2 open issues without an owner to the person with the least to do.", "steps": [{"description": "Look at the open issues and at who has how much to do", "tools": ["get_issue", "list_issues", "search_issues", "workload"], "estimated_tokens": null}, {"description": "Give #4 (Invoices are sent twice when the mail server is slow) to Ana", "tools": ["update_issue"], "estimated_tokens": 400}, {"description": "Give #3 (Dark mode for the settings page) to Zoe", "tools": ["update_issue"], "estimated_tokens": 400}], "risks": "They may know nothing about it yet.", "alternatives": "Ask in the team who wants it; that takes longer."}', 'issue-organiser''s plan, version 1: Give 2 open issues without an owner to the person with the least to do.', '[["Summary", null, "Give 2 open issues without an owner to the person with the least to do."], ["Step 1", null, "Look at the open issues and at who has how much to do (tools: get_issue, list_issues, search_issues, workload)"], ["Step 2", null, "Give #4 (Invoices are sent twice when the mail server is slow) to Ana (tools: update_issue; about 400 tokens)"], ["Step 3", null, "Give #3 (Dark mode for the settings page) to Zoe (tools: update_issue; about 400 tokens)"], ["Risks", null, "They may know nothing about it yet."], ["Alternatives", null, "Ask in the team who wants it; that takes longer."]]', 'write', 'its approval unlocks the teammate''s tools', 'You asked to reorganise the open issues; these have no owner.', 'http:local', 'you', '{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/team"}', 1, 'rule 2: plans human', 1, NULL, 86400, '2026-11-23 10:38:47.886795+00', NULL, NULL, NULL, NULL, 'issue-organiser', 'proposed', NULL, 1, 1, '948a76d479a6c1eb04211e9831ec8744eb21f3d9bb7cb1ddb5ce0970d6d48708', 'nod-2dcff26fc604ea35', '[]', NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, '2026-11-22 15:26:47.886795+00', '2026-11-22 15:26:47.886795+00', '2026-11-23 15:26:47.886795+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO rule VALUES (1, 'quorum', '*', 'delete_issue', '[2, 0]', 'http:local', '2026-11-22 15:26:41.796609+00', NULL, NULL);
INSERT INTO rule VALUES (2, 'plans', '*', '*', '"human"', 'http:local', '2026-11-22 15:26:41.86694+00', NULL, NULL);
INSERT INTO rule VALUES (3, 'deciders', '*', 'delete_issue', '["http:ana", "http:ben"]', 'http:local', '2026-11-22 15:26:41.892034+00', NULL, NULL);
INSERT INTO teammate VALUES ('827a2b98f3c7bb29', 'd9a120949c298ebd', 'http:local/team', 'issue-surveyor', 'issue surveyor', 'Survey the open issues', '["get_issue", "list_issues", "search_issues", "workload"]', false, 0, 17, 0, NULL, 'done', '4 issues are open: 2 urgent, 2 without an owner.

- **#5** Document the rate limits of the public API (open · Ana · normal · docs)
- **#4** Invoices are sent twice when the mail server is slow (open · no owner · urgent · billing, bug)
- **#3** Dark mode for the settings page (open · no owner · low · design)
- **#1** Login fails after a password reset (open · Zoe · urgent · auth, bug)', '2026-11-22 15:26:47.12857+00', '2026-11-22 15:26:49.579158+00');
INSERT INTO teammate VALUES ('400feafa49c1b548', 'd9a120949c298ebd', 'http:local/team', 'issue-organiser', 'issue organiser', 'Reorganise the open issues', '["get_issue", "list_issues", "search_issues", "workload", "update_issue"]', true, 1, 17, 1, '2dcff26fc604ea35', 'working', '', '2026-11-22 15:26:47.12857+00', NULL);
INSERT INTO tool_version VALUES ('create_issue', 'c4bb526f3e189507', '{"additionalProperties": false, "properties": {"title": {"description": "one line, up to 200 characters", "maxLength": 200, "minLength": 1, "type": "string"}, "body": {"anyOf": [{"maxLength": 20000, "type": "string"}, {"type": "null"}], "description": "what is wrong or wanted, in Markdown", "default": ""}, "assignee": {"anyOf": [{"maxLength": 80, "type": "string"}, {"type": "null"}], "description": "who should do it; no one when not given", "default": ""}, "priority": {"anyOf": [{"enum": ["low", "normal", "high", "urgent"], "type": "string"}, {"type": "null"}], "description": "normal when not given", "default": "normal"}, "labels": {"anyOf": [{"items": {"maxLength": 40, "minLength": 1, "type": "string"}, "maxItems": 10, "type": "array"}, {"type": "null"}], "description": "up to 10 labels of up to 40 characters", "default": []}}, "required": ["title", "body", "assignee", "priority", "labels"], "type": "object"}');
INSERT INTO tool_version VALUES ('close_issue', '9fdf2ecc69129a3f', '{"additionalProperties": false, "properties": {"number": {"description": "the issue''s number, without #", "maximum": 2147483647, "minimum": 1, "type": "integer"}, "reason": {"anyOf": [{"maxLength": 20000, "minLength": 1, "type": "string"}, {"type": "null"}], "description": "why; it is added as a comment"}}, "required": ["number", "reason"], "type": "object"}');
INSERT INTO tool_version VALUES ('update_issue', '0b02d8d032277b2c', '{"additionalProperties": false, "properties": {"number": {"description": "the issue''s number, without #", "maximum": 2147483647, "minimum": 1, "type": "integer"}, "title": {"anyOf": [{"maxLength": 200, "minLength": 1, "type": "string"}, {"type": "null"}], "description": "the new title, one line"}, "body": {"anyOf": [{"maxLength": 20000, "type": "string"}, {"type": "null"}], "description": "the new body; it replaces the old one, \"\" empties it"}, "assignee": {"anyOf": [{"maxLength": 80, "type": "string"}, {"type": "null"}], "description": "who should do it; \"\" for no one"}, "priority": {"anyOf": [{"enum": ["low", "normal", "high", "urgent"], "type": "string"}, {"type": "null"}], "description": "the new priority"}, "labels": {"anyOf": [{"items": {"maxLength": 40, "minLength": 1, "type": "string"}, "maxItems": 10, "type": "array"}, {"type": "null"}], "description": "all labels it should have; they replace the old ones, [] removes all"}, "state": {"anyOf": [{"enum": ["open", "closed"], "type": "string"}, {"type": "null"}], "description": "open to reopen, closed to close"}}, "required": ["number", "title", "body", "assignee", "priority", "labels", "state"], "type": "object"}');
INSERT INTO tool_version VALUES ('delete_issue', 'b95134ed94623b1e', '{"additionalProperties": false, "properties": {"number": {"description": "the issue''s number, without #", "maximum": 2147483647, "minimum": 1, "type": "integer"}}, "required": ["number"], "type": "object"}');
INSERT INTO tool_version VALUES ('comment_issue', '374392a2bf9118e6', '{"additionalProperties": false, "properties": {"number": {"description": "the issue''s number, without #", "maximum": 2147483647, "minimum": 1, "type": "integer"}, "body": {"description": "the comment, in Markdown", "maxLength": 20000, "minLength": 1, "type": "string"}}, "required": ["number", "body"], "type": "object"}');
INSERT INTO tool_version VALUES ('plan_submit', '2eabd2e8bcb02b04', '{"additionalProperties": false, "properties": {"summary": {"description": "what will be different in the end, in a sentence or two", "maxLength": 2000, "minLength": 1, "type": "string"}, "steps": {"description": "what you will do, in order, each with the names of the tools it takes", "items": {"additionalProperties": false, "description": "One step of a plan.", "properties": {"description": {"maxLength": 2000, "minLength": 1, "type": "string"}, "tools": {"anyOf": [{"items": {"type": "string"}, "maxItems": 20, "type": "array"}, {"type": "null"}]}, "estimated_tokens": {"anyOf": [{"minimum": 0, "type": "integer"}, {"type": "null"}]}}, "required": ["description", "tools", "estimated_tokens"], "type": "object"}, "maxItems": 20, "minItems": 1, "type": "array"}, "risks": {"anyOf": [{"items": {"maxLength": 2000, "minLength": 1, "type": "string"}, "type": "array"}, {"maxLength": 2000, "minLength": 1, "type": "string"}, {"type": "null"}], "description": "what could go wrong"}, "alternatives": {"anyOf": [{"items": {"maxLength": 2000, "minLength": 1, "type": "string"}, "type": "array"}, {"maxLength": 2000, "minLength": 1, "type": "string"}, {"type": "null"}], "description": "what you decided against, and why"}}, "required": ["summary", "steps", "risks", "alternatives"], "type": "object"}');
INSERT INTO turn VALUES (1, '9856a2a6e19fb454', 'waiting', 1, 1, 0, 0, NULL, '2026-11-22 15:26:42.003677+00', '2026-11-22 15:26:43.70313+00', '4d7ac52514fd86b6');
INSERT INTO turn VALUES (2, 'e32ee20dbfd334e6', 'waiting', 1, 1, 0, 0, NULL, '2026-11-22 15:26:43.780017+00', '2026-11-22 15:26:44.062263+00', '4d7ac52514fd86b6');
INSERT INTO turn VALUES (3, 'e32ee20dbfd334e6', 'done', 1, 1, 0, 0, NULL, '2026-11-22 15:26:44.190085+00', '2026-11-22 15:26:44.640954+00', '4d7ac52514fd86b6');
INSERT INTO turn VALUES (4, '290b182b1a880fb3', 'waiting', 1, 1, 0, 0, NULL, '2026-11-22 15:26:44.664917+00', '2026-11-22 15:26:44.829624+00', '4d7ac52514fd86b6');
INSERT INTO turn VALUES (5, 'd708fef8069324d8', 'waiting', 1, 1, 0, 0, NULL, '2026-11-22 15:26:44.937556+00', '2026-11-22 15:26:45.19279+00', '4d7ac52514fd86b6');
INSERT INTO turn VALUES (6, 'd708fef8069324d8', 'done', 1, 1, 0, 0, NULL, '2026-11-22 15:26:45.31346+00', '2026-11-22 15:26:45.453018+00', '4d7ac52514fd86b6');
INSERT INTO turn VALUES (7, 'd708fef8069324d8', 'waiting', 1, 1, 0, 0, NULL, '2026-11-22 15:26:45.477591+00', '2026-11-22 15:26:45.695319+00', '4d7ac52514fd86b6');
INSERT INTO turn VALUES (8, 'd708fef8069324d8', 'done', 1, 1, 0, 0, NULL, '2026-11-22 15:26:46.055583+00', '2026-11-22 15:26:46.19928+00', '4d7ac52514fd86b6');
INSERT INTO turn VALUES (9, '89588cced8fa29f2', 'waiting', 1, 1, 0, 0, NULL, '2026-11-22 15:26:46.236384+00', '2026-11-22 15:26:46.433802+00', '4d7ac52514fd86b6');
INSERT INTO turn VALUES (10, '89588cced8fa29f2', 'done', 1, 1, 0, 0, NULL, '2026-11-22 15:26:46.618716+00', '2026-11-22 15:26:46.773475+00', '4d7ac52514fd86b6');
INSERT INTO turn VALUES (11, 'd9a120949c298ebd', 'done', 1, 3, 0, 0, NULL, '2026-11-22 15:26:46.961993+00', '2026-11-22 15:26:48.270913+00', '4d7ac52514fd86b6');
INSERT INTO turn VALUES (12, '827a2b98f3c7bb29', 'done', 1, 2, 0, 0, NULL, '2026-11-22 15:26:47.12857+00', '2026-11-22 15:26:49.579158+00', '4d7ac52514fd86b6');
INSERT INTO turn VALUES (13, '400feafa49c1b548', 'waiting', 1, 2, 0, 0, NULL, '2026-11-22 15:26:47.12857+00', '2026-11-22 15:26:47.887467+00', '4d7ac52514fd86b6');
INSERT INTO turn VALUES (14, 'd9a120949c298ebd', 'done', 1, 1, 0, 0, NULL, '2026-11-22 15:26:49.579158+00', '2026-11-22 15:26:51.617577+00', '4d7ac52514fd86b6');
INSERT INTO turn VALUES (15, '9856a2a6e19fb454', 'done', 1, 2, 0, 0, NULL, '2026-11-22 15:26:51.649421+00', '2026-11-22 15:26:53.38684+00', '4d7ac52514fd86b6');
SELECT pg_catalog.setval('audit_id_seq', 30, true);
SELECT pg_catalog.setval('book_id_seq', 1, true);
SELECT pg_catalog.setval('chain_end_id_seq', 1, true);
SELECT pg_catalog.setval('copy_id_seq', 1, false);
SELECT pg_catalog.setval('event_id_seq', 1, false);
SELECT pg_catalog.setval('grant_given_id_seq', 1, true);
SELECT pg_catalog.setval('issue_comment_id_seq', 3, true);
SELECT pg_catalog.setval('issue_number_seq', 6, true);
SELECT pg_catalog.setval('ledger_id_seq', 29, true);
SELECT pg_catalog.setval('message_id_seq', 32, true);
SELECT pg_catalog.setval('rule_id_seq', 3, true);
SELECT pg_catalog.setval('turn_id_seq', 15, true);
ALTER TABLE ONLY account
    ADD CONSTRAINT account_pkey PRIMARY KEY (actor);
ALTER TABLE ONLY alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY audit
    ADD CONSTRAINT audit_once UNIQUE (proposal_id, version);
ALTER TABLE ONLY audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);
ALTER TABLE ONLY board
    ADD CONSTRAINT board_pkey PRIMARY KEY (lead_id);
ALTER TABLE ONLY book
    ADD CONSTRAINT book_pkey PRIMARY KEY (id);
ALTER TABLE ONLY callback
    ADD CONSTRAINT callback_pkey PRIMARY KEY (proposal_id);
ALTER TABLE ONLY chain_end
    ADD CONSTRAINT chain_end_pkey PRIMARY KEY (id);
ALTER TABLE ONLY conversation
    ADD CONSTRAINT conversation_pkey PRIMARY KEY (id);
ALTER TABLE ONLY copy
    ADD CONSTRAINT copy_once UNIQUE (channel, key, ref);
ALTER TABLE ONLY copy
    ADD CONSTRAINT copy_pkey PRIMARY KEY (id);
ALTER TABLE ONLY decider
    ADD CONSTRAINT decider_pkey PRIMARY KEY (account, proposal_id);
ALTER TABLE ONLY dialogue
    ADD CONSTRAINT dialogue_pkey PRIMARY KEY (channel, key);
ALTER TABLE ONLY event
    ADD CONSTRAINT event_once UNIQUE (channel, event_id);
ALTER TABLE ONLY event
    ADD CONSTRAINT event_pkey PRIMARY KEY (id);
ALTER TABLE ONLY grant_given
    ADD CONSTRAINT grant_given_pkey PRIMARY KEY (id);
ALTER TABLE ONLY hold
    ADD CONSTRAINT hold_pkey PRIMARY KEY (name);
ALTER TABLE ONLY issue_comment
    ADD CONSTRAINT issue_comment_idempotency_key_key UNIQUE (idempotency_key);
ALTER TABLE ONLY issue_comment
    ADD CONSTRAINT issue_comment_pkey PRIMARY KEY (id);
ALTER TABLE ONLY issue
    ADD CONSTRAINT issue_idempotency_key_key UNIQUE (idempotency_key);
ALTER TABLE ONLY issue
    ADD CONSTRAINT issue_pkey PRIMARY KEY (number);
ALTER TABLE ONLY ledger
    ADD CONSTRAINT ledger_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ledger
    ADD CONSTRAINT ledger_previous_key UNIQUE (previous);
ALTER TABLE ONLY link_code
    ADD CONSTRAINT link_code_pkey PRIMARY KEY (code_hash);
ALTER TABLE ONLY mcp_login
    ADD CONSTRAINT mcp_login_pkey PRIMARY KEY (server);
ALTER TABLE ONLY mcp_sign_in
    ADD CONSTRAINT mcp_sign_in_pkey PRIMARY KEY (id);
ALTER TABLE ONLY mcp_sign_in
    ADD CONSTRAINT mcp_sign_in_state_key UNIQUE (state);
ALTER TABLE ONLY message
    ADD CONSTRAINT message_once UNIQUE (channel, event_id);
ALTER TABLE ONLY message
    ADD CONSTRAINT message_pkey PRIMARY KEY (id);
ALTER TABLE ONLY name
    ADD CONSTRAINT name_pkey PRIMARY KEY (key);
ALTER TABLE ONLY output
    ADD CONSTRAINT output_pkey PRIMARY KEY (id);
ALTER TABLE ONLY process
    ADD CONSTRAINT process_pkey PRIMARY KEY (id);
ALTER TABLE ONLY proposal
    ADD CONSTRAINT proposal_idempotency_key_key UNIQUE (idempotency_key);
ALTER TABLE ONLY proposal
    ADD CONSTRAINT proposal_pkey PRIMARY KEY (id);
ALTER TABLE ONLY rule
    ADD CONSTRAINT rule_pkey PRIMARY KEY (id);
ALTER TABLE ONLY sign_in
    ADD CONSTRAINT sign_in_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY slack_home
    ADD CONSTRAINT slack_home_pkey PRIMARY KEY (team, "user");
ALTER TABLE ONLY slack_install
    ADD CONSTRAINT slack_install_pkey PRIMARY KEY (state);
ALTER TABLE ONLY slack_workspace
    ADD CONSTRAINT slack_workspace_pkey PRIMARY KEY (team);
ALTER TABLE ONLY teammate
    ADD CONSTRAINT teammate_once UNIQUE (lead_id, name);
ALTER TABLE ONLY teammate
    ADD CONSTRAINT teammate_pkey PRIMARY KEY (id);
ALTER TABLE ONLY token
    ADD CONSTRAINT token_pkey PRIMARY KEY (label);
ALTER TABLE ONLY tool_version
    ADD CONSTRAINT tool_version_pkey PRIMARY KEY (name, version);
ALTER TABLE ONLY turn
    ADD CONSTRAINT turn_pkey PRIMARY KEY (id);
CREATE INDEX board_behind ON board USING btree (lead_id) WHERE ((rendered < wanted) AND (NOT gone));
CREATE INDEX callback_open ON callback USING btree (next_at) WHERE (NOT over);
CREATE INDEX conversation_of_owner ON conversation USING btree (channel, owner, created_at, id);
CREATE INDEX copy_behind ON copy USING btree (proposal_id) WHERE ((rendered < wanted) AND (NOT gone));
CREATE INDEX copy_of_proposal ON copy USING btree (proposal_id);
CREATE INDEX event_unhandled ON event USING btree (channel, id) WHERE (handled_at IS NULL);
CREATE INDEX grant_of_tool ON grant_given USING btree (tool_name) WHERE (revoked_at IS NULL);
CREATE INDEX ix_account_person_id ON account USING btree (person_id);
CREATE INDEX ix_issue_comment_issue_number ON issue_comment USING btree (issue_number);
CREATE INDEX ix_issue_state ON issue USING btree (state);
CREATE INDEX ix_output_conversation_id ON output USING btree (conversation_id);
CREATE INDEX ix_sign_in_account ON sign_in USING btree (account);
CREATE INDEX message_of_conversation ON message USING btree (conversation_id, id);
CREATE INDEX message_of_person ON message USING btree (actor, created_at) WHERE ((role)::text = 'user'::text);
CREATE INDEX message_undelivered ON message USING btree (id) WHERE (NOT delivered);
CREATE UNIQUE INDEX one_open_conversation ON conversation USING btree (channel, key) WHERE (ended_at IS NULL);
CREATE UNIQUE INDEX one_wanted_turn ON turn USING btree (conversation_id) WHERE ((state)::text = 'wanted'::text);
CREATE INDEX output_unposted ON output USING btree (conversation_id, created_at, id) WHERE (NOT posted);
CREATE INDEX proposal_asked ON proposal USING btree (requester, state, updated_at, id);
CREATE INDEX proposal_due ON proposal USING btree (expires_at) WHERE (NOT ((state)::text <> 'proposed'::text));
CREATE INDEX proposal_escalate ON proposal USING btree (escalate_at) WHERE ((NOT ((state)::text <> 'proposed'::text)) AND (escalate_at IS NOT NULL));
CREATE INDEX proposal_moving ON proposal USING btree (state) WHERE ((state)::text = ANY ((ARRAY['approved'::character varying, 'executing'::character varying])::text[]));
CREATE INDEX proposal_of_conversation ON proposal USING btree (conversation_id, message_id);
CREATE INDEX proposal_of_message ON proposal USING btree (message_id);
CREATE INDEX proposal_open_in ON proposal USING btree (conversation_id) WHERE ((state)::text = 'proposed'::text);
CREATE INDEX proposal_question ON proposal USING btree (owner) WHERE (((kind)::text = 'question'::text) AND (NOT (((state)::text <> 'proposed'::text) AND ((state)::text <> 'approved'::text))));
CREATE INDEX proposal_recent ON proposal USING btree (state, updated_at, id);
CREATE INDEX proposal_remind ON proposal USING btree (remind_at) WHERE ((NOT ((state)::text <> 'proposed'::text)) AND (remind_at IS NOT NULL));
CREATE INDEX proposal_warn ON proposal USING btree (warn_at) WHERE ((NOT ((state)::text <> 'proposed'::text)) AND (warn_at IS NOT NULL));
CREATE INDEX teammate_place ON teammate USING btree (place);
ALTER TABLE ONLY audit
    ADD CONSTRAINT audit_proposal_id_fkey FOREIGN KEY (proposal_id) REFERENCES proposal(id);
ALTER TABLE ONLY board
    ADD CONSTRAINT board_lead_id_fkey FOREIGN KEY (lead_id) REFERENCES conversation(id);
ALTER TABLE ONLY callback
    ADD CONSTRAINT callback_proposal_id_fkey FOREIGN KEY (proposal_id) REFERENCES proposal(id);
ALTER TABLE ONLY copy
    ADD CONSTRAINT copy_proposal_id_fkey FOREIGN KEY (proposal_id) REFERENCES proposal(id);
ALTER TABLE ONLY decider
    ADD CONSTRAINT decider_proposal_id_fkey FOREIGN KEY (proposal_id) REFERENCES proposal(id);
ALTER TABLE ONLY grant_given
    ADD CONSTRAINT grant_given_proposal_id_fkey FOREIGN KEY (proposal_id) REFERENCES proposal(id);
ALTER TABLE ONLY issue_comment
    ADD CONSTRAINT issue_comment_issue_number_fkey FOREIGN KEY (issue_number) REFERENCES issue(number);
ALTER TABLE ONLY message
    ADD CONSTRAINT message_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES conversation(id);
ALTER TABLE ONLY proposal
    ADD CONSTRAINT proposal_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES conversation(id);
ALTER TABLE ONLY teammate
    ADD CONSTRAINT teammate_id_fkey FOREIGN KEY (id) REFERENCES conversation(id);
ALTER TABLE ONLY teammate
    ADD CONSTRAINT teammate_lead_id_fkey FOREIGN KEY (lead_id) REFERENCES conversation(id);
ALTER TABLE ONLY turn
    ADD CONSTRAINT turn_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES conversation(id);
