BEGIN TRANSACTION;
CREATE TABLE account (
	actor VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	person_id VARCHAR NOT NULL, 
	linked_at DATETIME NOT NULL, 
	PRIMARY KEY (actor)
);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0004');
CREATE TABLE audit (
	id INTEGER NOT NULL, 
	proposal_id VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	at DATETIME NOT NULL, 
	verb VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	actor VARCHAR NOT NULL, 
	person VARCHAR NOT NULL, 
	channel VARCHAR NOT NULL, 
	reason VARCHAR, 
	digest VARCHAR NOT NULL, 
	rule VARCHAR NOT NULL, 
	grant_id INTEGER, 
	previous VARCHAR NOT NULL, 
	hash VARCHAR NOT NULL, about JSON, content VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(proposal_id) REFERENCES proposal (id), 
	CONSTRAINT audit_once UNIQUE (proposal_id, version)
);
INSERT INTO "audit" VALUES(1,'f7d23993a69b859d',1,'2026-11-22 00:16:50.333274','propose','proposed','nod','nod','nod',NULL,'27bbdb8689e2d200cc31d04967eaefceddfdef981b4e01d612a01bf079dabdeb','policy writes',NULL,'','41bcaf5b18096031c63d2e714d9329568f2cb2a6734a0342fa4b0c3205c34ca5',NULL,'9e51a43127ec83408ead88882153e8d8684b9105b3eb9e495efbd06ebcf1d8a2');
INSERT INTO "audit" VALUES(2,'bbb84c24983e7f29',1,'2026-11-22 00:16:50.840987','propose','proposed','http:eve','nod','nod',NULL,'43a378cfb35cf5cd692786fd0c5a27565b792755b82a058ae0c1ff4f0e04b60c','policy writes',NULL,'','2392e19f254777a048a7b0798b40169b4cc5235fce4f15a09805aeb2a5412c5a',NULL,'');
INSERT INTO "audit" VALUES(3,'3bd7aac4b3c36a1e',1,'2026-11-22 00:16:50.844076','propose','proposed','nod','nod','nod',NULL,'5c94e117b1c1c10eaba0279b55aef2b595dba3520e502d33c61c0eb85a89fe58','policy writes',NULL,'','0d86815ff7c0920f3bef6f9f58515d2c8ccb3d6c99e8c6e8d0011a2f3ec1ccb6',NULL,'');
INSERT INTO "audit" VALUES(4,'d29a22d1c90e5994',1,'2026-11-22 00:16:51.250934','propose','proposed','nod','nod','nod',NULL,'0098568616a973dc8931d32f40607107ccc0d192d41dd862155410aac2e9e564','policy writes',NULL,'','0556793f0532d4fcd92f80e4d0a66c94a8ca55fea0e88959dfc14427d500a7cd',NULL,'');
INSERT INTO "audit" VALUES(5,'59e6e0945ff229fb',1,'2026-11-22 00:16:51.624782','propose','proposed','nod','nod','nod',NULL,'f92b0cd66997ceb2a670e53f8b88b0a745eb4a492ba9952adf582ee249b998e3','policy writes',NULL,'','4adb311d45e4cc34df8b1639d516686bcd6970037a303fe57893835a06df9458',NULL,'02a9de53b5c75a65afff270424c7fa835b1cc1804d51f2cba855a22ef683bde5');
INSERT INTO "audit" VALUES(6,'bbb84c24983e7f29',2,'2026-11-22 00:17:17.555065','approve','approved','http:local','http:local','http',NULL,'43a378cfb35cf5cd692786fd0c5a27565b792755b82a058ae0c1ff4f0e04b60c','policy writes',NULL,'2392e19f254777a048a7b0798b40169b4cc5235fce4f15a09805aeb2a5412c5a','25c0132b3ff33ac77a6756250892b0995909a4922260119eec0982a8dd32e3c3',NULL,'');
INSERT INTO "audit" VALUES(7,'bbb84c24983e7f29',3,'2026-11-22 00:17:17.567082','execute','executing','nod','nod','nod',NULL,'43a378cfb35cf5cd692786fd0c5a27565b792755b82a058ae0c1ff4f0e04b60c','policy writes',NULL,'25c0132b3ff33ac77a6756250892b0995909a4922260119eec0982a8dd32e3c3','e9e4125259232984de03fe8f8a275a11e821d2fbe25261354ea4df014db4a8cf',NULL,'');
INSERT INTO "audit" VALUES(8,'bbb84c24983e7f29',4,'2026-11-22 00:17:17.575091','succeeded','succeeded','nod','nod','nod',NULL,'43a378cfb35cf5cd692786fd0c5a27565b792755b82a058ae0c1ff4f0e04b60c','policy writes',NULL,'e9e4125259232984de03fe8f8a275a11e821d2fbe25261354ea4df014db4a8cf','37a9dfb9f5f2b217247643baa5a6578fb312a7612588e3cb15e66453ce8dbc37',NULL,'f6326f489e7cf2c8f024c015de2345ee3ab8de63c3d927c3a9d4fc6a65132af6');
INSERT INTO "audit" VALUES(9,'3bd7aac4b3c36a1e',2,'2026-11-22 00:17:17.598235','decline','declined','http:local','http:local','http','Not today','5c94e117b1c1c10eaba0279b55aef2b595dba3520e502d33c61c0eb85a89fe58','policy writes',NULL,'0d86815ff7c0920f3bef6f9f58515d2c8ccb3d6c99e8c6e8d0011a2f3ec1ccb6','f965dd63f5258e609bb962d00b3cf03c0254ffb7692b02e908f899ce833622bb',NULL,'4f0da3bc21da6ea64cc5c9a895bec8ad0df3566f59a17296e9d07c37d1953539');
INSERT INTO "audit" VALUES(10,'d29a22d1c90e5994',2,'2026-11-22 00:17:38.204556','similar','approved','http:local','http:local','http',NULL,'0098568616a973dc8931d32f40607107ccc0d192d41dd862155410aac2e9e564','policy writes',NULL,'0556793f0532d4fcd92f80e4d0a66c94a8ca55fea0e88959dfc14427d500a7cd','ff02d78d100e9a68de7729bcabdfedd4b1095da50db5411132a26fbe0c4f04e8',NULL,'');
INSERT INTO "audit" VALUES(11,'d29a22d1c90e5994',3,'2026-11-22 00:17:38.221496','execute','executing','nod','nod','nod',NULL,'0098568616a973dc8931d32f40607107ccc0d192d41dd862155410aac2e9e564','policy writes',NULL,'ff02d78d100e9a68de7729bcabdfedd4b1095da50db5411132a26fbe0c4f04e8','05f9b5ad58db1d4c0bbdcc8c32493bfcaf8cdbd21eb70bce20ce98db25db7503',NULL,'');
INSERT INTO "audit" VALUES(12,'d29a22d1c90e5994',4,'2026-11-22 00:17:38.227900','succeeded','succeeded','nod','nod','nod',NULL,'0098568616a973dc8931d32f40607107ccc0d192d41dd862155410aac2e9e564','policy writes',NULL,'05f9b5ad58db1d4c0bbdcc8c32493bfcaf8cdbd21eb70bce20ce98db25db7503','eca9e09758089d0f82e5c82355ffa8bed3d1433ffd1e36c333f611c1a880d662',NULL,'9889c240dd574f555919df61d642662bf4713d227f2c9bfd000ca3be4ac62a77');
INSERT INTO "audit" VALUES(13,'1d99a3bab8c8fd68',1,'2026-11-22 00:17:38.471734','propose','approved','nod','nod','nod',NULL,'43e7301592ecb4b366faea1aecdd4418836a80b76d083fcb375bf0b9a12c9890','policy writes',1,'','81ebad593be9f96afd6f5cf1dde50e68b542aab482840fb245f9ef5f37eadbaa',NULL,'');
INSERT INTO "audit" VALUES(14,'1d99a3bab8c8fd68',2,'2026-11-22 00:17:38.484317','execute','executing','nod','nod','nod',NULL,'43e7301592ecb4b366faea1aecdd4418836a80b76d083fcb375bf0b9a12c9890','policy writes',1,'81ebad593be9f96afd6f5cf1dde50e68b542aab482840fb245f9ef5f37eadbaa','45f680f55205ea7eca32b05eef1399e21adfade405b04be8570ea1feaf4a42e7',NULL,'');
INSERT INTO "audit" VALUES(15,'1d99a3bab8c8fd68',3,'2026-11-22 00:17:38.492769','succeeded','succeeded','nod','nod','nod',NULL,'43e7301592ecb4b366faea1aecdd4418836a80b76d083fcb375bf0b9a12c9890','policy writes',1,'45f680f55205ea7eca32b05eef1399e21adfade405b04be8570ea1feaf4a42e7','5ee1c57c867b1e08c29721c9b3b3173d00b27d46ff8607a714c28fd9b41eea04',NULL,'b17556e4c0363d2ee5b8d41209c3e9d4d64413b863d097e8dae54c7b0ec82e3c');
CREATE TABLE board (
	lead_id VARCHAR NOT NULL, 
	channel VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	ref VARCHAR NOT NULL, 
	wanted INTEGER NOT NULL, 
	rendered INTEGER NOT NULL, 
	gone BOOLEAN NOT NULL, 
	PRIMARY KEY (lead_id), 
	FOREIGN KEY(lead_id) REFERENCES conversation (id)
);
CREATE TABLE book (
	id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	paused_at DATETIME, 
	memory JSON, 
	PRIMARY KEY (id)
);
INSERT INTO "book" VALUES(1,1,NULL,NULL);
CREATE TABLE callback (
	proposal_id VARCHAR NOT NULL, 
	url VARCHAR NOT NULL, 
	attempts INTEGER NOT NULL, 
	next_at DATETIME NOT NULL, 
	told_at DATETIME, 
	over BOOLEAN NOT NULL, 
	fault VARCHAR NOT NULL, 
	PRIMARY KEY (proposal_id), 
	FOREIGN KEY(proposal_id) REFERENCES proposal (id)
);
CREATE TABLE chain_end (
	id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	hash VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	mark VARCHAR NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "chain_end" VALUES(1,16,'76ee77dde1c10c25f86a3e7b5af864e77a2e0d00396899c201889e2ba1560675','','358dfe7a3cb8dfc802167eec58ac18a9a9638b7ec920100cbf5fca22f52dd4bb');
CREATE TABLE conversation (
	id VARCHAR NOT NULL, 
	channel VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	private BOOLEAN NOT NULL, 
	owner VARCHAR NOT NULL, 
	title VARCHAR NOT NULL, 
	created_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	shown_at VARCHAR, deleted_at DATETIME, 
	PRIMARY KEY (id)
);
INSERT INTO "conversation" VALUES('99ce28a7bd4d821f','http','local/99ce28a7bd4d821f',1,'http:local','create an issue ''Printer is on fire'' with high priority and assign it to Sam','2026-11-22 00:16:50.001357',NULL,NULL,NULL);
INSERT INTO "conversation" VALUES('28263937c10bc465','http','local/28263937c10bc465',1,'http:local','close #2 and assign #3 to Ana','2026-11-22 00:16:50.522056',NULL,NULL,NULL);
INSERT INTO "conversation" VALUES('be01498334c83ef5','http','local/be01498334c83ef5',1,'http:local','comment ''hello'' on #1','2026-11-22 00:16:51.015929',NULL,NULL,NULL);
INSERT INTO "conversation" VALUES('bc5d0bacd3f14a6f','http','local/bc5d0bacd3f14a6f',1,'http:local','delete #4','2026-11-22 00:16:51.408364',NULL,NULL,NULL);
INSERT INTO "conversation" VALUES('2fcd853d924febc8','http','local/2fcd853d924febc8',1,'http:local','comment "again" on #3','2026-11-22 00:17:38.234932',NULL,NULL,NULL);
CREATE TABLE copy (
	id INTEGER NOT NULL, 
	proposal_id VARCHAR NOT NULL, 
	channel VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	ref VARCHAR NOT NULL, 
	wanted INTEGER NOT NULL, 
	rendered INTEGER NOT NULL, 
	gone BOOLEAN NOT NULL, shown VARCHAR, 
	PRIMARY KEY (id), 
	FOREIGN KEY(proposal_id) REFERENCES proposal (id), 
	CONSTRAINT copy_once UNIQUE (channel, "key", ref)
);
CREATE TABLE decider (
	account VARCHAR NOT NULL, 
	proposal_id VARCHAR NOT NULL, 
	PRIMARY KEY (account, proposal_id), 
	FOREIGN KEY(proposal_id) REFERENCES proposal (id)
);
INSERT INTO "decider" VALUES('http:local','bbb84c24983e7f29');
INSERT INTO "decider" VALUES('http:local','3bd7aac4b3c36a1e');
INSERT INTO "decider" VALUES('http:local','d29a22d1c90e5994');
CREATE TABLE dialogue (
	channel VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	state JSON NOT NULL, 
	updated_at DATETIME NOT NULL, 
	PRIMARY KEY (channel, "key")
);
CREATE TABLE event (
	id INTEGER NOT NULL, 
	channel VARCHAR NOT NULL, 
	event_id VARCHAR NOT NULL, 
	payload JSON NOT NULL, 
	received_at DATETIME NOT NULL, 
	handled_at DATETIME, 
	PRIMARY KEY (id), 
	CONSTRAINT event_once UNIQUE (channel, event_id)
);
CREATE TABLE grant_given (
	id INTEGER NOT NULL, 
	tool_name VARCHAR NOT NULL, 
	tool_version VARCHAR NOT NULL, 
	rung VARCHAR NOT NULL, 
	"match" VARCHAR NOT NULL, 
	words VARCHAR NOT NULL, 
	person_id VARCHAR NOT NULL, 
	person_name VARCHAR NOT NULL, 
	conversation_id VARCHAR NOT NULL, 
	only_there BOOLEAN NOT NULL, 
	proposal_id VARCHAR NOT NULL, 
	plan_digest VARCHAR, 
	uses INTEGER NOT NULL, 
	created_at DATETIME NOT NULL, 
	expires_at DATETIME, 
	revoked_at DATETIME, 
	revoked_by VARCHAR, requester VARCHAR, place VARCHAR, 
	PRIMARY KEY (id), 
	FOREIGN KEY(proposal_id) REFERENCES proposal (id)
);
INSERT INTO "grant_given" VALUES(1,'comment_issue','374392a2bf9118e6','tool','','comment_issue with any arguments','http:local','you','be01498334c83ef5',0,'d29a22d1c90e5994',NULL,1,'2026-11-22 00:17:38.204556','2026-11-23 00:17:38.204556','2026-11-22 00:17:38.492883','http:local',NULL,NULL);
CREATE TABLE hold (
	name VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE issue (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	title VARCHAR NOT NULL, 
	body VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	priority VARCHAR NOT NULL, 
	assignee VARCHAR, 
	labels JSON NOT NULL, 
	author VARCHAR NOT NULL, 
	created_at DATETIME NOT NULL, 
	updated_at DATETIME NOT NULL, 
	idempotency_key VARCHAR, 
	UNIQUE (idempotency_key)
);
INSERT INTO "issue" VALUES(1,'Login fails after a password reset','The new password is accepted on the reset page, then refused at login for about a minute. Probably the cached session of the old password.','open','urgent','Ana','["auth", "bug"]','demo','2026-11-13 00:16:23.222476','2026-11-22 00:17:38.223751',NULL);
INSERT INTO "issue" VALUES(2,'Exported CSV has wrong dates for users east of Berlin','Dates shift by one day. The export formats local midnight as UTC.','closed','high','Sam','["bug", "export"]','demo','2026-11-14 00:16:23.222476','2026-11-22 00:17:17.570974',NULL);
INSERT INTO "issue" VALUES(3,'Dark mode for the settings page','The rest of the application has it; settings still glow.','open','low',NULL,'["design"]','demo','2026-11-15 00:16:23.222476','2026-11-22 00:17:38.486374',NULL);
INSERT INTO "issue" VALUES(4,'Invoices are sent twice when the mail server is slow','A time-out is taken for a failure and the job is run again. Three customers wrote to us.','open','urgent',NULL,'["billing", "bug"]','demo','2026-11-16 00:16:23.222476','2026-11-16 00:16:23.222476',NULL);
INSERT INTO "issue" VALUES(5,'Document the rate limits of the public API','','open','normal','Ana','["docs"]','demo','2026-11-17 00:16:23.222476','2026-11-17 00:16:23.222476',NULL);
INSERT INTO "issue" VALUES(6,'Upgrade the staging database','The version in use no longer gets security fixes.','closed','normal','Priya','["operations"]','demo','2026-11-18 00:16:23.222476','2026-11-21 22:16:23.222476',NULL);
CREATE TABLE issue_comment (
	id INTEGER NOT NULL, 
	issue_number INTEGER NOT NULL, 
	body VARCHAR NOT NULL, 
	author VARCHAR NOT NULL, 
	created_at DATETIME NOT NULL, 
	idempotency_key VARCHAR, 
	PRIMARY KEY (id), 
	FOREIGN KEY(issue_number) REFERENCES issue (number), 
	UNIQUE (idempotency_key)
);
INSERT INTO "issue_comment" VALUES(1,1,'Seen by two more people this morning.','demo','2026-11-21 21:16:23.222476',NULL);
INSERT INTO "issue_comment" VALUES(2,1,'hello','http:local','2026-11-22 00:17:38.223751','nod-d29a22d1c90e5994');
INSERT INTO "issue_comment" VALUES(3,3,'again','http:local','2026-11-22 00:17:38.486374','nod-1d99a3bab8c8fd68');
CREATE TABLE ledger (
	id INTEGER NOT NULL, 
	at DATETIME NOT NULL, 
	thing VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	tool VARCHAR NOT NULL, 
	verb VARCHAR NOT NULL, 
	actor VARCHAR NOT NULL, 
	person VARCHAR NOT NULL, 
	channel VARCHAR NOT NULL, 
	"before" JSON, 
	"after" JSON, 
	previous VARCHAR NOT NULL, 
	hash VARCHAR NOT NULL, holds JSON, 
	PRIMARY KEY (id), 
	UNIQUE (previous)
);
INSERT INTO "ledger" VALUES(1,'2026-11-22 00:17:38.204556','grant','G-1','comment_issue','give','http:local','http:local','http',NULL,'{"allows": "comment_issue with any arguments", "tool": ["comment_issue", "374392a2bf9118e6"], "match": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "rung": "tool", "until": "2026-11-23T00:17:38.204556+00:00", "only_in": null, "person": "http:local", "proposal": "d29a22d1c90e5994"}','','25b1bce58dca19fe2371e89aa534d5a0274e64606255f8145480b5ddb758dc80',NULL);
INSERT INTO "ledger" VALUES(2,'2026-11-22 00:17:38.492883','rule','policy for delete_* in *','delete_*','set','http:local','http:local','http',NULL,'{"rule": 1, "value": "always"}','25b1bce58dca19fe2371e89aa534d5a0274e64606255f8145480b5ddb758dc80','d18c25792c98a9dfc707efaddbfc05b822ca0ef195fef08282fe41f5b08c3323',NULL);
INSERT INTO "ledger" VALUES(3,'2026-11-22 00:17:38.492883','grant','G-1','comment_issue','end with a change of rules','http:local','http:local','http','{"allows": "comment_issue with any arguments", "tool": ["comment_issue", "374392a2bf9118e6"], "match": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "rung": "tool", "until": "2026-11-23T00:17:38.204556+00:00", "only_in": null, "person": "http:local", "proposal": "d29a22d1c90e5994"}',NULL,'d18c25792c98a9dfc707efaddbfc05b822ca0ef195fef08282fe41f5b08c3323','58b9de7e314f74ec1d38017654023004402054ff0692acdce47effcadf7c3b33',NULL);
INSERT INTO "ledger" VALUES(16,'2026-11-25 07:28:28.276071','upgrade','0002','','begin the chain','nod','nod','nod',NULL,'{"faults": ["proposal bbb84c24983e7f29: version 1 was altered"]}','7d3163dfb8ce9a20171f958931d3a0b5c9aa5524e203ed15b70b3cd5b3f37d38','76ee77dde1c10c25f86a3e7b5af864e77a2e0d00396899c201889e2ba1560675','{"rule 1": "a0ada9dac5d8965baf4ee0ff6a1b62b79ce8fea649fd7a7adb3a5d858b13d539", "grant 1": "31c57c5b34f04040ea4d5946c9327834fc518936051713e8b311354459f7c340", "tool create_issue 1abf71e172efef23": "a10dc415861936ea2b5412fbac90e8cab0de370c77a9dfcd3960f0f0dce03927", "tool close_issue 9fdf2ecc69129a3f": "08d78cba87b1849c5a4051b496df7919403043652aa7e89701d019511722fcc7", "tool update_issue 3ceca6fa054f7141": "b2749e1e61518a4c28443d95923f5293ccf19105eacd35b688fa6f7db88b20e8", "tool comment_issue 374392a2bf9118e6": "1d1bdf53541dff109680fc15aba030be58a35400049d3f545f09d3eaa0a7db35", "tool delete_issue 62347a629b4fb9f8": "0eac68bab562d796f2bd117cd44d76f13ef50fd784e6ffc83fb85fe0fb2a24b1"}');
CREATE TABLE link_code (
	code_hash VARCHAR NOT NULL, 
	actor VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	expires_at DATETIME NOT NULL, other VARCHAR, other_name VARCHAR DEFAULT '' NOT NULL, wanted BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (code_hash)
);
CREATE TABLE mcp_login (
	server VARCHAR NOT NULL, 
	url VARCHAR NOT NULL, 
	client VARCHAR NOT NULL, 
	tokens VARCHAR NOT NULL, 
	found VARCHAR NOT NULL, 
	expires_at DATETIME, 
	signed_in_by VARCHAR NOT NULL, 
	signed_in_at DATETIME NOT NULL, 
	version INTEGER NOT NULL, 
	busy_until DATETIME, 
	PRIMARY KEY (server)
);
CREATE TABLE mcp_sign_in (
	id VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	server VARCHAR NOT NULL, 
	until DATETIME NOT NULL, 
	said JSON, 
	back BOOLEAN NOT NULL, 
	ended VARCHAR, 
	well BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (state)
);
CREATE TABLE message (
	id INTEGER NOT NULL, 
	conversation_id VARCHAR NOT NULL, 
	role VARCHAR NOT NULL, 
	text VARCHAR NOT NULL, 
	"after" INTEGER, 
	actor VARCHAR, 
	name VARCHAR NOT NULL, 
	channel VARCHAR, 
	event_id VARCHAR, 
	calls JSON, 
	results JSON, 
	delivered BOOLEAN NOT NULL, 
	created_at DATETIME NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(conversation_id) REFERENCES conversation (id), 
	CONSTRAINT message_once UNIQUE (channel, event_id)
);
INSERT INTO "message" VALUES(1,'99ce28a7bd4d821f','user','create an issue ''Printer is on fire'' with high priority and assign it to Sam',NULL,'http:local','you','http','local/abc09a0270f97641eec8b59599aacc89',NULL,NULL,1,'2026-11-22 00:16:50.001357');
INSERT INTO "message" VALUES(2,'99ce28a7bd4d821f','assistant','I''d like to create the issue “Printer is on fire”; please look at the card.',1,NULL,'',NULL,NULL,'[["call_86a7f8411652af24", "create_issue", "{\"title\": \"Printer is on fire\", \"priority\": \"high\", \"assignee\": \"Sam\", \"approval_reason\": \"Somebody asked for it: \u201ccreate an issue ''Printer is on fire'' with high priority and assign it to Sam\u201d\"}", "Create issue \u201cPrinter is on fire\u201d"]]',NULL,1,'2026-11-22 00:16:50.333696');
INSERT INTO "message" VALUES(3,'28263937c10bc465','user','close #2 and assign #3 to Ana',NULL,'http:local','you','http','local/e54e6da73472a433088edb7b9a29db67',NULL,NULL,1,'2026-11-22 00:16:50.522056');
INSERT INTO "message" VALUES(4,'28263937c10bc465','assistant','I''d like to close #2 and change #3 (assignee: Ana); please look at the cards.',3,NULL,'',NULL,NULL,'[["call_f8ced7952415fbde", "close_issue", "{\"number\": 2, \"approval_reason\": \"Somebody asked for it: \u201cclose #2 and assign #3 to Ana\u201d\"}", "Close issue #2"], ["call_1fdad9a94ac23890", "update_issue", "{\"number\": 3, \"assignee\": \"Ana\", \"approval_reason\": \"Somebody asked for it: \u201cclose #2 and assign #3 to Ana\u201d\"}", "Change assignee of issue #3"]]',NULL,1,'2026-11-22 00:16:50.844408');
INSERT INTO "message" VALUES(5,'be01498334c83ef5','user','comment ''hello'' on #1',NULL,'http:local','you','http','local/0cab9fed35186ebc9a4c227a3e6c1257',NULL,NULL,1,'2026-11-22 00:16:51.015929');
INSERT INTO "message" VALUES(6,'be01498334c83ef5','assistant','I''d like to comment on #1; please look at the card.',5,NULL,'',NULL,NULL,'[["call_4be6d4e3c773c5a6", "comment_issue", "{\"number\": 1, \"body\": \"hello\", \"approval_reason\": \"Somebody asked for it: \u201ccomment ''hello'' on #1\u201d\"}", "Comment on issue #1"]]',NULL,1,'2026-11-22 00:16:51.251266');
INSERT INTO "message" VALUES(7,'bc5d0bacd3f14a6f','user','delete #4',NULL,'http:local','you','http','local/49b45835a0463c6126040dc03db31c9c',NULL,NULL,1,'2026-11-22 00:16:51.408364');
INSERT INTO "message" VALUES(8,'bc5d0bacd3f14a6f','assistant','I''d like to delete #4; please look at the card.',7,NULL,'',NULL,NULL,'[["call_676abb8070cc3b66", "delete_issue", "{\"number\": 4, \"approval_reason\": \"Somebody asked for it: \u201cdelete #4\u201d\"}", "Delete issue #4 and its comments"]]',NULL,1,'2026-11-22 00:16:51.625129');
INSERT INTO "message" VALUES(9,'28263937c10bc465','assistant','Done: closed #2.
Changing #3 (assignee: Ana) was declined (you said no. Reason: Not today), so I leave it as it is.',3,NULL,'',NULL,NULL,NULL,NULL,1,'2026-11-22 00:17:18.057259');
INSERT INTO "message" VALUES(10,'2fcd853d924febc8','user','comment "again" on #3',NULL,'http:local','you','http','local/ce806c67cc6c92f7206272f0847a158b',NULL,NULL,1,'2026-11-22 00:17:38.234932');
INSERT INTO "message" VALUES(11,'be01498334c83ef5','assistant','Done: commented on #1.',5,NULL,'',NULL,NULL,NULL,NULL,1,'2026-11-22 00:17:38.313846');
INSERT INTO "message" VALUES(12,'2fcd853d924febc8','assistant','I''d like to comment on #3; please look at the card.',10,NULL,'',NULL,NULL,'[["call_a1f5cb9db6860bfd", "comment_issue", "{\"number\": 3, \"body\": \"again\", \"approval_reason\": \"Somebody asked for it: \u201ccomment \\\"again\\\" on #3\u201d\"}", "Comment on issue #3"]]',NULL,1,'2026-11-22 00:17:38.472102');
INSERT INTO "message" VALUES(13,'2fcd853d924febc8','assistant','Done: commented on #3.',10,NULL,'',NULL,NULL,NULL,NULL,1,'2026-11-22 00:17:38.603520');
CREATE TABLE name (
	"key" VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "name" VALUES('http:local','you');
CREATE TABLE output (
	id VARCHAR NOT NULL, 
	conversation_id VARCHAR NOT NULL, 
	proposal_id VARCHAR, 
	name VARCHAR NOT NULL, 
	text TEXT NOT NULL, 
	posted BOOLEAN NOT NULL, 
	created_at DATETIME NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE process (
	id VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	pid INTEGER NOT NULL, 
	began_at DATETIME NOT NULL, 
	beats INTEGER NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE proposal (
	id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	conversation_id VARCHAR NOT NULL, 
	message_id INTEGER NOT NULL, 
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
	warn_at DATETIME, 
	remind_at DATETIME, 
	remind_every FLOAT, 
	escalate_at DATETIME, 
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
	decided_at DATETIME, 
	decline_reason VARCHAR, 
	edited_by VARCHAR, 
	edits JSON, 
	changed BOOLEAN NOT NULL, 
	result VARCHAR, 
	result_url VARCHAR, 
	error VARCHAR, 
	created_at DATETIME NOT NULL, 
	updated_at DATETIME NOT NULL, 
	expires_at DATETIME NOT NULL, told VARCHAR, progress VARCHAR, ended_badly VARCHAR, owner VARCHAR, thing VARCHAR, 
	PRIMARY KEY (id), 
	FOREIGN KEY(conversation_id) REFERENCES conversation (id), 
	UNIQUE (idempotency_key)
);
INSERT INTO "proposal" VALUES('f7d23993a69b859d','call','99ce28a7bd4d821f',2,'call_86a7f8411652af24',0,'create_issue','1abf71e172efef23','{"title": "Printer is on fire", "assignee": "Sam", "priority": "high"}','Create issue “Printer is on fire”','[["title", null, "Printer is on fire"], ["assignee", null, "Sam"], ["priority", null, "high"]]','write','it changes something','Somebody asked for it: “create an issue ''Printer is on fire'' with high priority and assign it to Sam”','http:local','you','{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false}',1,'policy writes',1,NULL,86400.0,'2026-11-22 19:28:50.333274',NULL,NULL,NULL,NULL,'','proposed',NULL,1,1,'27bbdb8689e2d200cc31d04967eaefceddfdef981b4e01d612a01bf079dabdeb','nod-f7d23993a69b859d','[]',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'2026-11-22 00:16:50.333274','2026-11-22 00:16:50.333274','2026-11-23 00:16:50.333274',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('bbb84c24983e7f29','call','28263937c10bc465',4,'call_f8ced7952415fbde',0,'close_issue','9fdf2ecc69129a3f','{"number": 2}','Close issue #2','[["state", "open", "closed"]]','write','it changes something','Somebody asked for it: “close #2 and assign #3 to Ana”','http:local','you','{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false}',1,'policy writes',1,NULL,86400.0,'2026-11-22 19:28:50.840987',NULL,NULL,NULL,NULL,'','succeeded',NULL,1,4,'43a378cfb35cf5cd692786fd0c5a27565b792755b82a058ae0c1ff4f0e04b60c','nod-bbb84c24983e7f29','[["http:local", "http:local", "you", "approve", null, "2026-11-22T00:17:17.555065+00:00"]]','you','http','2026-11-22 00:17:17.555065',NULL,NULL,NULL,0,'{"number": 2, "title": "Exported CSV has wrong dates for users east of Berlin", "state": "closed", "priority": "high", "assignee": "Sam", "labels": ["bug", "export"], "created_at": "2026-11-14T00:16:23.222476+00:00", "updated_at": "2026-11-22T00:17:17.570974+00:00"}',NULL,NULL,'2026-11-22 00:16:50.840987','2026-11-22 00:17:17.575091','2026-11-23 00:16:50.840987',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('3bd7aac4b3c36a1e','call','28263937c10bc465',4,'call_1fdad9a94ac23890',1,'update_issue','3ceca6fa054f7141','{"number": 3, "assignee": "Ana"}','Change assignee of issue #3','[["assignee", null, "Ana"]]','write','it changes something','Somebody asked for it: “close #2 and assign #3 to Ana”','http:local','you','{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false}',1,'policy writes',1,NULL,86400.0,'2026-11-22 19:28:50.844076',NULL,NULL,NULL,NULL,'','declined',NULL,1,2,'5c94e117b1c1c10eaba0279b55aef2b595dba3520e502d33c61c0eb85a89fe58','nod-3bd7aac4b3c36a1e','[["http:local", "http:local", "you", "decline", "Not today", "2026-11-22T00:17:17.598235+00:00"]]','you','http','2026-11-22 00:17:17.598235','Not today',NULL,NULL,0,NULL,NULL,NULL,'2026-11-22 00:16:50.844076','2026-11-22 00:17:17.598235','2026-11-23 00:16:50.844076',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('d29a22d1c90e5994','call','be01498334c83ef5',6,'call_4be6d4e3c773c5a6',0,'comment_issue','374392a2bf9118e6','{"number": 1, "body": "hello"}','Comment on issue #1','[["comment on \u201cLogin fails after a password reset\u201d", null, "hello"]]','write','it changes something','Somebody asked for it: “comment ''hello'' on #1”','http:local','you','{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false}',1,'policy writes',1,NULL,86400.0,'2026-11-22 19:28:51.250934',NULL,NULL,NULL,NULL,'','succeeded',NULL,1,4,'0098568616a973dc8931d32f40607107ccc0d192d41dd862155410aac2e9e564','nod-d29a22d1c90e5994','[["http:local", "http:local", "you", "approve", null, "2026-11-22T00:17:38.204556+00:00"]]','you','http','2026-11-22 00:17:38.204556',NULL,NULL,NULL,0,'{"number": 1, "title": "Login fails after a password reset", "state": "open", "priority": "urgent", "assignee": "Ana", "labels": ["auth", "bug"], "created_at": "2026-11-13T00:16:23.222476+00:00", "updated_at": "2026-11-22T00:17:38.223751+00:00", "comment": "hello"}',NULL,NULL,'2026-11-22 00:16:51.250934','2026-11-22 00:17:38.227900','2026-11-23 00:16:51.250934',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('59e6e0945ff229fb','call','bc5d0bacd3f14a6f',8,'call_676abb8070cc3b66',0,'delete_issue','62347a629b4fb9f8','{"number": 4}','Delete issue #4 and its comments','[["title", "Invoices are sent twice when the mail server is slow", null], ["state", "open", null], ["comments", "0", null]]','destructive','it cannot be undone','Somebody asked for it: “delete #4”','http:local','you','{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false}',1,'policy writes',1,NULL,86400.0,'2026-11-22 19:28:51.624782',NULL,NULL,NULL,NULL,'','proposed',NULL,1,1,'f92b0cd66997ceb2a670e53f8b88b0a745eb4a492ba9952adf582ee249b998e3','nod-59e6e0945ff229fb','[]',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'2026-11-22 00:16:51.624782','2026-11-22 00:16:51.624782','2026-11-23 00:16:51.624782',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('1d99a3bab8c8fd68','call','2fcd853d924febc8',12,'call_a1f5cb9db6860bfd',0,'comment_issue','374392a2bf9118e6','{"number": 3, "body": "again"}','Comment on issue #3','[["comment on \u201cDark mode for the settings page\u201d", null, "again"]]','write','it changes something','Somebody asked for it: “comment "again" on #3”','http:local','you','{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false}',1,'policy writes',1,1,86400.0,'2026-11-22 19:29:38.471734',NULL,NULL,NULL,NULL,'','succeeded',NULL,1,3,'43e7301592ecb4b366faea1aecdd4418836a80b76d083fcb375bf0b9a12c9890','nod-1d99a3bab8c8fd68','[]','your grant G-1',NULL,'2026-11-22 00:17:38.472102',NULL,NULL,NULL,0,'{"number": 3, "title": "Dark mode for the settings page", "state": "open", "priority": "low", "assignee": null, "labels": ["design"], "created_at": "2026-11-15T00:16:23.222476+00:00", "updated_at": "2026-11-22T00:17:38.486374+00:00", "comment": "again"}',NULL,NULL,'2026-11-22 00:17:38.471734','2026-11-22 00:17:38.492769','2026-11-23 00:17:38.471734',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE rule (
	id INTEGER NOT NULL, 
	subject VARCHAR NOT NULL, 
	scope VARCHAR NOT NULL, 
	pattern VARCHAR NOT NULL, 
	value JSON NOT NULL, 
	set_by VARCHAR NOT NULL, 
	set_at DATETIME NOT NULL, 
	ended_by VARCHAR, 
	ended_at DATETIME, 
	PRIMARY KEY (id)
);
INSERT INTO "rule" VALUES(1,'policy','*','delete_*','"always"','http:local','2026-11-22 00:17:38.492883',NULL,NULL);
CREATE TABLE sign_in (
	hash VARCHAR NOT NULL, 
	account VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	code BOOLEAN NOT NULL, 
	expires_at DATETIME NOT NULL, 
	PRIMARY KEY (hash)
);
CREATE TABLE slack_home (
	team VARCHAR NOT NULL, 
	user VARCHAR NOT NULL, 
	opened_at DATETIME NOT NULL, 
	PRIMARY KEY (team, user)
);
CREATE TABLE slack_install (
	state VARCHAR NOT NULL, 
	issued_at DATETIME NOT NULL, 
	PRIMARY KEY (state)
);
CREATE TABLE slack_workspace (
	team VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	token VARCHAR NOT NULL, 
	bot_id VARCHAR NOT NULL, 
	bot_user VARCHAR NOT NULL, 
	scopes VARCHAR NOT NULL, 
	installed_by VARCHAR NOT NULL, 
	installed_at DATETIME NOT NULL, 
	off_at DATETIME, 
	off_reason VARCHAR NOT NULL, 
	PRIMARY KEY (team)
);
CREATE TABLE teammate (
	id VARCHAR NOT NULL, 
	lead_id VARCHAR NOT NULL, 
	place VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	role VARCHAR NOT NULL, 
	task VARCHAR NOT NULL, 
	tools JSON, 
	needs_plan BOOLEAN NOT NULL, 
	position INTEGER NOT NULL, 
	asked INTEGER NOT NULL, 
	rounds INTEGER NOT NULL, 
	plan_id VARCHAR, 
	standing VARCHAR NOT NULL, 
	words VARCHAR NOT NULL, 
	created_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	PRIMARY KEY (id), 
	FOREIGN KEY(id) REFERENCES conversation (id), 
	FOREIGN KEY(lead_id) REFERENCES conversation (id), 
	CONSTRAINT teammate_once UNIQUE (lead_id, name)
);
CREATE TABLE token (
	label VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	hash VARCHAR NOT NULL, 
	made_by VARCHAR NOT NULL, 
	made_at DATETIME NOT NULL, 
	revoked_by VARCHAR, 
	revoked_at DATETIME, 
	PRIMARY KEY (label)
);
CREATE TABLE tool_version (
	name VARCHAR NOT NULL, 
	version VARCHAR NOT NULL, 
	parameters JSON NOT NULL, 
	PRIMARY KEY (name, version)
);
INSERT INTO "tool_version" VALUES('create_issue','1abf71e172efef23','{"additionalProperties": false, "properties": {"title": {"description": "one line, up to 200 characters", "maxLength": 200, "minLength": 1, "type": "string"}, "body": {"anyOf": [{"maxLength": 20000, "type": "string"}, {"type": "null"}], "description": "what is wrong or wanted, in Markdown"}, "assignee": {"anyOf": [{"maxLength": 80, "type": "string"}, {"type": "null"}], "description": "who should do it; nobody when not given"}, "priority": {"anyOf": [{"enum": ["low", "normal", "high", "urgent"], "type": "string"}, {"type": "null"}], "description": "normal when not given"}, "labels": {"anyOf": [{"items": {"maxLength": 40, "minLength": 1, "type": "string"}, "maxItems": 10, "type": "array"}, {"type": "null"}], "description": "up to 10 labels of up to 40 characters"}}, "required": ["title", "body", "assignee", "priority", "labels"], "type": "object"}');
INSERT INTO "tool_version" VALUES('close_issue','9fdf2ecc69129a3f','{"additionalProperties": false, "properties": {"number": {"description": "the issue''s number, without #", "maximum": 2147483647, "minimum": 1, "type": "integer"}, "reason": {"anyOf": [{"maxLength": 20000, "minLength": 1, "type": "string"}, {"type": "null"}], "description": "why; it is added as a comment"}}, "required": ["number", "reason"], "type": "object"}');
INSERT INTO "tool_version" VALUES('update_issue','3ceca6fa054f7141','{"additionalProperties": false, "properties": {"number": {"description": "the issue''s number, without #", "maximum": 2147483647, "minimum": 1, "type": "integer"}, "title": {"anyOf": [{"maxLength": 200, "minLength": 1, "type": "string"}, {"type": "null"}], "description": "the new title, one line"}, "body": {"anyOf": [{"maxLength": 20000, "type": "string"}, {"type": "null"}], "description": "the new body; it replaces the old one, \"\" empties it"}, "assignee": {"anyOf": [{"maxLength": 80, "type": "string"}, {"type": "null"}], "description": "who should do it; \"\" for nobody"}, "priority": {"anyOf": [{"enum": ["low", "normal", "high", "urgent"], "type": "string"}, {"type": "null"}], "description": "the new priority"}, "labels": {"anyOf": [{"items": {"maxLength": 40, "minLength": 1, "type": "string"}, "maxItems": 10, "type": "array"}, {"type": "null"}], "description": "all labels it shall have; they replace the old ones, [] removes all"}, "state": {"anyOf": [{"enum": ["open", "closed"], "type": "string"}, {"type": "null"}], "description": "open to reopen, closed to close"}}, "required": ["number", "title", "body", "assignee", "priority", "labels", "state"], "type": "object"}');
INSERT INTO "tool_version" VALUES('comment_issue','374392a2bf9118e6','{"additionalProperties": false, "properties": {"number": {"description": "the issue''s number, without #", "maximum": 2147483647, "minimum": 1, "type": "integer"}, "body": {"description": "the comment, in Markdown", "maxLength": 20000, "minLength": 1, "type": "string"}}, "required": ["number", "body"], "type": "object"}');
INSERT INTO "tool_version" VALUES('delete_issue','62347a629b4fb9f8','{"additionalProperties": false, "properties": {"number": {"description": "the issue''s number, without #", "maximum": 2147483647, "minimum": 1, "type": "integer"}}, "required": ["number"], "type": "object"}');
CREATE TABLE turn (
	id INTEGER NOT NULL, 
	conversation_id VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	attempts INTEGER NOT NULL, 
	model_calls INTEGER NOT NULL, 
	prompt_tokens INTEGER NOT NULL, 
	completion_tokens INTEGER NOT NULL, 
	error VARCHAR, 
	created_at DATETIME NOT NULL, 
	ended_at DATETIME, owner VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(conversation_id) REFERENCES conversation (id)
);
INSERT INTO "turn" VALUES(1,'99ce28a7bd4d821f','waiting',0,1,0,0,NULL,'2026-11-22 00:16:50.001357','2026-11-22 00:16:50.333696','');
INSERT INTO "turn" VALUES(2,'28263937c10bc465','waiting',0,1,0,0,NULL,'2026-11-22 00:16:50.522056','2026-11-22 00:16:50.844408','');
INSERT INTO "turn" VALUES(3,'be01498334c83ef5','waiting',0,1,0,0,NULL,'2026-11-22 00:16:51.015929','2026-11-22 00:16:51.251266','');
INSERT INTO "turn" VALUES(4,'bc5d0bacd3f14a6f','waiting',0,1,0,0,NULL,'2026-11-22 00:16:51.408364','2026-11-22 00:16:51.625129','');
INSERT INTO "turn" VALUES(5,'28263937c10bc465','done',0,1,0,0,NULL,'2026-11-22 00:17:17.598235','2026-11-22 00:17:18.057259','');
INSERT INTO "turn" VALUES(6,'be01498334c83ef5','done',0,1,0,0,NULL,'2026-11-22 00:17:38.227900','2026-11-22 00:17:38.313846','');
INSERT INTO "turn" VALUES(7,'2fcd853d924febc8','waiting',0,1,0,0,NULL,'2026-11-22 00:17:38.234932','2026-11-22 00:17:38.472102','');
INSERT INTO "turn" VALUES(8,'2fcd853d924febc8','done',0,1,0,0,NULL,'2026-11-22 00:17:38.492769','2026-11-22 00:17:38.603520','');
CREATE INDEX ix_account_person_id ON account (person_id);
CREATE UNIQUE INDEX one_open_conversation ON conversation (channel, "key") WHERE ended_at IS NULL;
CREATE INDEX board_behind ON board (lead_id) WHERE rendered < wanted AND gone = 0;
CREATE INDEX teammate_place ON teammate (place);
CREATE INDEX event_unhandled ON event (channel, id) WHERE handled_at IS NULL;
CREATE INDEX ix_issue_state ON issue (state);
CREATE INDEX ix_output_conversation_id ON output (conversation_id);
CREATE INDEX output_unposted ON output (conversation_id, created_at, id) WHERE posted = 0;
CREATE INDEX ix_issue_comment_issue_number ON issue_comment (issue_number);
CREATE INDEX message_of_conversation ON message (conversation_id, id);
CREATE INDEX message_undelivered ON message (id) WHERE delivered = 0;
CREATE INDEX proposal_moving ON proposal (state) WHERE state IN ('approved', 'executing');
CREATE INDEX proposal_of_conversation ON proposal (conversation_id, message_id);
CREATE INDEX proposal_of_message ON proposal (message_id);
CREATE UNIQUE INDEX one_wanted_turn ON turn (conversation_id) WHERE state = 'wanted';
CREATE INDEX callback_open ON callback (next_at) WHERE over = 0;
CREATE INDEX copy_behind ON copy (proposal_id) WHERE rendered < wanted AND gone = 0;
CREATE INDEX copy_of_proposal ON copy (proposal_id);
CREATE INDEX grant_of_tool ON grant_given (tool_name) WHERE revoked_at IS NULL;
CREATE INDEX conversation_of_owner ON conversation (channel, owner, created_at, id);
CREATE INDEX message_of_person ON message (actor, created_at) WHERE role = 'user';
CREATE INDEX proposal_open_in ON proposal (conversation_id) WHERE state = 'proposed';
CREATE INDEX proposal_recent ON proposal (state, updated_at, id);
CREATE INDEX proposal_asked ON proposal (requester, state, updated_at, id);
CREATE INDEX ix_sign_in_account ON sign_in (account);
CREATE INDEX proposal_question ON proposal (owner) WHERE kind = 'question' AND NOT (state <> 'proposed' AND state <> 'approved');
CREATE INDEX proposal_due ON proposal (expires_at) WHERE NOT state <> 'proposed';
CREATE INDEX proposal_warn ON proposal (warn_at) WHERE NOT state <> 'proposed' AND warn_at IS NOT NULL;
CREATE INDEX proposal_remind ON proposal (remind_at) WHERE NOT state <> 'proposed' AND remind_at IS NOT NULL;
CREATE INDEX proposal_escalate ON proposal (escalate_at) WHERE NOT state <> 'proposed' AND escalate_at IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('issue',6);
COMMIT;
