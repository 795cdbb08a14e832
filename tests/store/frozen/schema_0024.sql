BEGIN TRANSACTION;
CREATE TABLE absence (
	id INTEGER NOT NULL, 
	account VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	stand_in VARCHAR NOT NULL, 
	stand_in_name VARCHAR NOT NULL, 
	since DATETIME NOT NULL, 
	until DATETIME NOT NULL, 
	ended_by VARCHAR, 
	ended_at DATETIME, 
	PRIMARY KEY (id)
);
CREATE TABLE account (
	actor VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	person_id VARCHAR NOT NULL, 
	linked_at DATETIME NOT NULL, 
	PRIMARY KEY (actor)
);
CREATE TABLE agent_call (
	id VARCHAR NOT NULL, 
	agent VARCHAR NOT NULL, 
	proposal_id VARCHAR NOT NULL, 
	digest VARCHAR NOT NULL, 
	depth INTEGER NOT NULL, 
	created_at DATETIME NOT NULL, 
	told_at DATETIME, 
	outcome JSON, 
	PRIMARY KEY (id), 
	FOREIGN KEY(proposal_id) REFERENCES proposal (id), 
	UNIQUE (proposal_id)
);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0024');
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
INSERT INTO "audit" VALUES(4,'209766b65bb6b5d0',1,'2026-11-22 15:26:43.702752','propose','proposed','nod','nod','nod',NULL,'9dc42b83a7452d960656c574d122b0d82b14db571edbb7d919de479f3fa7960f','policy writes',NULL,'81b71c34cf1a7250ca91551443d6b8162ee04951e739e01622bcf3e7135c51ea','65bfc1af4cdf0f4f4f27091a8a7934d09c5e6f47c90aa458fa5609fe31ec6f4d','{"requester": "http:local", "name": "you", "place": "http:local/a", "tool": ["create_issue", "c4bb526f3e189507"], "summary": "Create issue \u201cPrinter is on fire\u201d", "arguments": {"title": "Printer is on fire", "assignee": "Sam", "priority": "high"}, "schema": "ba0fe54cb9d125b90611cf07cfb19c04f5e5a7c7ecb13e89dacb340201a19f5f"}','5b9e4c726b9d911c4121ed0007d47619b3471f39a49cd78b7e4bd7ca4bf9562b');
INSERT INTO "audit" VALUES(5,'4cccfe0b7a5416a7',1,'2026-11-22 15:26:44.036986','propose','proposed','nod','nod','nod',NULL,'43a378cfb35cf5cd692786fd0c5a27565b792755b82a058ae0c1ff4f0e04b60c','policy writes',NULL,'65bfc1af4cdf0f4f4f27091a8a7934d09c5e6f47c90aa458fa5609fe31ec6f4d','1d49a062d2c616f1659dafbb806acb030d7d225becb36b1dfbd9d3fe12b9cadf','{"requester": "http:local", "name": "you", "place": "http:local/b", "tool": ["close_issue", "9fdf2ecc69129a3f"], "summary": "Close issue #2 \u201cExported CSV has wrong dates for users east of Berlin\u201d", "arguments": {"number": 2}, "schema": "08d78cba87b1849c5a4051b496df7919403043652aa7e89701d019511722fcc7"}','a3f5026f1104e28447a5fbb8e78f68b284d6e4d77cb1f9006c92acb7b9bb1b68');
INSERT INTO "audit" VALUES(6,'3c4fc3cb3e94bdaf',1,'2026-11-22 15:26:44.061926','propose','proposed','nod','nod','nod',NULL,'1fc1ed533f41c3ee31142e8475d9d318f8a694666ce96a29987242fb5aee1b7a','policy writes',NULL,'1d49a062d2c616f1659dafbb806acb030d7d225becb36b1dfbd9d3fe12b9cadf','62779aab10953df12bba6ac3925597406fce4c2327d2d40d6ff83f52b0bbf681','{"requester": "http:local", "name": "you", "place": "http:local/b", "tool": ["update_issue", "0b02d8d032277b2c"], "summary": "Change assignee of issue #3 \u201cDark mode for the settings page\u201d", "arguments": {"number": 3, "assignee": "Ana"}, "schema": "c449ed99d72cce8d1c73f3a5e3fe7fcf8afddec4bbd15f15125bfcaac5e19ea0"}','dd14d59454bdd665df29d41b90adcaf25af7ff208f55534009742a20d13959c3');
INSERT INTO "audit" VALUES(7,'4cccfe0b7a5416a7',2,'2026-11-22 15:26:44.085118','approve','approved','http:local','http:local','http',NULL,'43a378cfb35cf5cd692786fd0c5a27565b792755b82a058ae0c1ff4f0e04b60c','policy writes',NULL,'62779aab10953df12bba6ac3925597406fce4c2327d2d40d6ff83f52b0bbf681','0dba011e869a6ca0d76be1b71e56272d5a29dfa796f404a548bf94dc74214eac',NULL,'65a232d727ff5fb2ba0c20b912fea2b0929371958cf0ebd42412f5101a5947c5');
INSERT INTO "audit" VALUES(8,'4cccfe0b7a5416a7',3,'2026-11-22 15:26:44.142838','execute','executing','nod','nod','nod',NULL,'43a378cfb35cf5cd692786fd0c5a27565b792755b82a058ae0c1ff4f0e04b60c','policy writes',NULL,'0dba011e869a6ca0d76be1b71e56272d5a29dfa796f404a548bf94dc74214eac','e7e5f82c35f912effea96d9d5aecf2d8fc70c17d7ad505a0bf17be0dd29cdc4d',NULL,'dc807a892c7d1328027e970e39ad4cbea5516e0fcc761b7aa263e3aae9064ec7');
INSERT INTO "audit" VALUES(9,'4cccfe0b7a5416a7',4,'2026-11-22 15:26:44.176270','succeeded','succeeded','nod','nod','nod',NULL,'43a378cfb35cf5cd692786fd0c5a27565b792755b82a058ae0c1ff4f0e04b60c','policy writes',NULL,'e7e5f82c35f912effea96d9d5aecf2d8fc70c17d7ad505a0bf17be0dd29cdc4d','cd46353e5ca9c4ba957eb9d7c92d1534672acc63440a50c750f48c2c17095287',NULL,'746f008444846e7b2ada47669fb64c8e1511f779f85c87c17d202f25cc566d84');
INSERT INTO "audit" VALUES(10,'3c4fc3cb3e94bdaf',2,'2026-11-22 15:26:44.190085','decline','declined','http:local','http:local','http','Not today','1fc1ed533f41c3ee31142e8475d9d318f8a694666ce96a29987242fb5aee1b7a','policy writes',NULL,'cd46353e5ca9c4ba957eb9d7c92d1534672acc63440a50c750f48c2c17095287','fe617d2bee124345c2dc1688aad5314f4eb99b511c0fbcec5242ee4cac7107d2',NULL,'db65a30a3e368a41a968c49f2b8043bd81accad993a337176a599d20ba946209');
INSERT INTO "audit" VALUES(11,'26141c5481206ef2',1,'2026-11-22 15:26:44.829354','propose','proposed','nod','nod','nod',NULL,'de7561e94d3b5b723ab8adacd4d81438a4a4c47f1b5d327145af07ae094a7e53','policy writes',NULL,'fe617d2bee124345c2dc1688aad5314f4eb99b511c0fbcec5242ee4cac7107d2','b317469cd49a25f62d6918f4c6067d0305e024b6cff8192318dd9b8d089c597f','{"requester": "http:local", "name": "you", "place": "http:local/c", "tool": ["delete_issue", "b95134ed94623b1e"], "summary": "Delete issue #4 \u201cInvoices are sent twice when the mail server is slow\u201d", "arguments": {"number": 4}, "schema": "0eac68bab562d796f2bd117cd44d76f13ef50fd784e6ffc83fb85fe0fb2a24b1"}','f75017f619fe6c05036aa3e655b9f74ccf22555f6bedc907bb45cbbfb676bcc0');
INSERT INTO "audit" VALUES(12,'26141c5481206ef2',2,'2026-11-22 15:26:44.887990','approve','proposed','http:ana','http:ana','http',NULL,'de7561e94d3b5b723ab8adacd4d81438a4a4c47f1b5d327145af07ae094a7e53','policy writes',NULL,'b317469cd49a25f62d6918f4c6067d0305e024b6cff8192318dd9b8d089c597f','7540bd2cc49338021ff568dda345473b9c455b0f8fbb66c92738ab293d7985a7',NULL,'73143f88a3775eacab56ab73ed30cc67a104c05837d173b48802723731f62359');
INSERT INTO "audit" VALUES(13,'229ab721f4bd6236',1,'2026-11-22 15:26:45.192482','propose','proposed','nod','nod','nod',NULL,'0098568616a973dc8931d32f40607107ccc0d192d41dd862155410aac2e9e564','policy writes',NULL,'7540bd2cc49338021ff568dda345473b9c455b0f8fbb66c92738ab293d7985a7','377c67130d75aa1628677343c0be14f8260472986f683c9278d503ef0448be0e','{"requester": "http:local", "name": "you", "place": "http:local/d", "tool": ["comment_issue", "374392a2bf9118e6"], "summary": "Comment on issue #1 \u201cLogin fails after a password reset\u201d", "arguments": {"number": 1, "body": "hello"}, "schema": "1d1bdf53541dff109680fc15aba030be58a35400049d3f545f09d3eaa0a7db35"}','984afe00ea5cd0ab3a0585f4c3aefecb0356dc11eea6379b135e243b96fead72');
INSERT INTO "audit" VALUES(14,'229ab721f4bd6236',2,'2026-11-22 15:26:45.227965','similar','approved','http:local','http:local','http',NULL,'0098568616a973dc8931d32f40607107ccc0d192d41dd862155410aac2e9e564','policy writes',NULL,'377c67130d75aa1628677343c0be14f8260472986f683c9278d503ef0448be0e','080ba5a6a9a65dcb133068eb388b7aa0e2905fac1230ca6790df13021b78366c',NULL,'f0b6da40ea3ea8793f7bc3b1835d9d13edf2232ef4c6b5185387c65f421e1557');
INSERT INTO "audit" VALUES(16,'229ab721f4bd6236',3,'2026-11-22 15:26:45.279716','execute','executing','nod','nod','nod',NULL,'0098568616a973dc8931d32f40607107ccc0d192d41dd862155410aac2e9e564','policy writes',NULL,'35ff9b17784b6ad1dc99cf41456e4b9ffae25d11b612b7dcd9e760b58ac5e280','683f24ad8ba88a6783eb54cb721f034eb4b84e184054f22e33279865579e6fd1',NULL,'a9f92c74a7ab08a7c7d1456870256cda34298c8ebab09c1c91eefab01848d2db');
INSERT INTO "audit" VALUES(17,'229ab721f4bd6236',4,'2026-11-22 15:26:45.313460','succeeded','succeeded','nod','nod','nod',NULL,'0098568616a973dc8931d32f40607107ccc0d192d41dd862155410aac2e9e564','policy writes',NULL,'683f24ad8ba88a6783eb54cb721f034eb4b84e184054f22e33279865579e6fd1','086636214d9ef710288594a7d8e186ed5b5db5abbd8f643e70322acc0402a7c9',NULL,'86556ea46b0c44006f7ab40abcc2dba3261fa6a7a3b9f44492268a229de09b5b');
INSERT INTO "audit" VALUES(18,'f1a95024692d4b47',1,'2026-11-22 15:26:45.695099','propose','approved','nod','nod','nod',NULL,'43e7301592ecb4b366faea1aecdd4418836a80b76d083fcb375bf0b9a12c9890','policy writes',1,'086636214d9ef710288594a7d8e186ed5b5db5abbd8f643e70322acc0402a7c9','1f56d70bba759c2223d899b454e139274687474bf217cacbba205af0853f9714','{"requester": "http:local", "name": "you", "place": "http:local/d", "tool": ["comment_issue", "374392a2bf9118e6"], "summary": "Comment on issue #3 \u201cDark mode for the settings page\u201d", "arguments": {"number": 3, "body": "again"}, "schema": "1d1bdf53541dff109680fc15aba030be58a35400049d3f545f09d3eaa0a7db35"}','cc70a3f4f0f736774b496e5412f8fb46667a3554cfd6ec3c63f9fa86f559d15c');
INSERT INTO "audit" VALUES(19,'f1a95024692d4b47',2,'2026-11-22 15:26:45.732476','execute','executing','nod','nod','nod',NULL,'43e7301592ecb4b366faea1aecdd4418836a80b76d083fcb375bf0b9a12c9890','policy writes',1,'1f56d70bba759c2223d899b454e139274687474bf217cacbba205af0853f9714','ac7610f226be03bfa6758095c9b737be61f5e0bd37e323ad6baf1cf52a5e7052',NULL,'6a94ea645eb852def8f313dd363505eec3e5c4ff5189d47c189b7eec17066fa8');
INSERT INTO "audit" VALUES(20,'f1a95024692d4b47',3,'2026-11-22 15:26:46.055583','succeeded','succeeded','nod','nod','nod',NULL,'43e7301592ecb4b366faea1aecdd4418836a80b76d083fcb375bf0b9a12c9890','policy writes',1,'ac7610f226be03bfa6758095c9b737be61f5e0bd37e323ad6baf1cf52a5e7052','9b8e58319addf6d45472fc2c42911c87b1b936910fef3975d11e79256290799c',NULL,'b8205847b6654bf6a2403746ea0029c789f7f8ad12c4e0335ccad669a67eee5d');
INSERT INTO "audit" VALUES(21,'9cba1f057dbd7c36',1,'2026-11-22 15:26:46.433630','propose','proposed','nod','nod','nod',NULL,'f739fd7f27366124f385b24382d69f9b756debe239a42a0e417778059b72e208','policy writes',NULL,'9b8e58319addf6d45472fc2c42911c87b1b936910fef3975d11e79256290799c','64b13141f9bc7306c5d739a793b5ffe6b0ce1aa0506bae4a814d43401628c674','{"requester": "http:local", "name": "you", "place": "http:local/e", "tool": ["update_issue", "0b02d8d032277b2c"], "summary": "Change assignee of issue #1 \u201cLogin fails after a password reset\u201d", "arguments": {"number": 1, "assignee": "Sam"}, "schema": "c449ed99d72cce8d1c73f3a5e3fe7fcf8afddec4bbd15f15125bfcaac5e19ea0"}','b43bfe9f38f8096efe540dce77fb8422ef826be2131acaa17eba233b66d2583e');
INSERT INTO "audit" VALUES(22,'9cba1f057dbd7c36',2,'2026-11-22 15:26:46.505652','edit','proposed','http:local','http:local','http',NULL,'4bd1b88b1913b403a097a411057290546ecf2e4c428aedb786e714bbdd12e0bf','policy writes',NULL,'64b13141f9bc7306c5d739a793b5ffe6b0ce1aa0506bae4a814d43401628c674','19356aad29d1da49078916ce52414f21583d9846391732de89ae322394104892','{"requester": "http:local", "name": "you", "place": "http:local/e", "tool": ["update_issue", "0b02d8d032277b2c"], "summary": "Change assignee of issue #1 \u201cLogin fails after a password reset\u201d", "arguments": {"number": 1, "assignee": "Zoe"}, "schema": "c449ed99d72cce8d1c73f3a5e3fe7fcf8afddec4bbd15f15125bfcaac5e19ea0"}','d628de142ea08e90832e30eeb287c6076794db8cb18d03316027c008f541007f');
INSERT INTO "audit" VALUES(23,'9cba1f057dbd7c36',3,'2026-11-22 15:26:46.505652','approve','approved','http:local','http:local','http',NULL,'4bd1b88b1913b403a097a411057290546ecf2e4c428aedb786e714bbdd12e0bf','policy writes',NULL,'19356aad29d1da49078916ce52414f21583d9846391732de89ae322394104892','c48f50d9e46979babf2421524a9e650f6e29db605b3593f08a88072d247b40a2',NULL,'441fd379604fbae1432842d46236c4d8c37f8eb9521e99c5ab3940ffc027ba5a');
INSERT INTO "audit" VALUES(24,'9cba1f057dbd7c36',4,'2026-11-22 15:26:46.557576','execute','executing','nod','nod','nod',NULL,'4bd1b88b1913b403a097a411057290546ecf2e4c428aedb786e714bbdd12e0bf','policy writes',NULL,'c48f50d9e46979babf2421524a9e650f6e29db605b3593f08a88072d247b40a2','f9e0bd0c938a357e4a649ae3b56719535fcac6b6c37810ae4d4bccc01b82bd8a',NULL,'083442c7a3a85f24ee95fa80a26a375f43713fc5ae206e8ebaa3237fbecdd9db');
INSERT INTO "audit" VALUES(25,'9cba1f057dbd7c36',5,'2026-11-22 15:26:46.618716','succeeded','succeeded','nod','nod','nod',NULL,'4bd1b88b1913b403a097a411057290546ecf2e4c428aedb786e714bbdd12e0bf','policy writes',NULL,'f9e0bd0c938a357e4a649ae3b56719535fcac6b6c37810ae4d4bccc01b82bd8a','f79bb8a3146819b067c3d96f72a821fe28cf8a566e9d57c28a6983ee0fb4693c',NULL,'ec159271598cab829786c0e89582f66e39897d95200633c72363bedd7a66bb53');
INSERT INTO "audit" VALUES(27,'209766b65bb6b5d0',2,'2026-11-22 15:26:46.872282','resume','proposed','http:local','http:local','http',NULL,'9dc42b83a7452d960656c574d122b0d82b14db571edbb7d919de479f3fa7960f','policy writes',NULL,'a136ead6788a9f3f853f0b2c558e69fa5346f9eabb433445590a8b5d962c01b1','44767dcd96342c61861abf99ae127aab6771fdbd27fc36710d0c51efd60ce7bf',NULL,'8cf82b10ecd633001e77473f54a6393053fe66467867a008456fc8264c0d28d4');
INSERT INTO "audit" VALUES(28,'26141c5481206ef2',3,'2026-11-22 15:26:46.872282','resume','proposed','http:local','http:local','http',NULL,'de7561e94d3b5b723ab8adacd4d81438a4a4c47f1b5d327145af07ae094a7e53','policy writes',NULL,'44767dcd96342c61861abf99ae127aab6771fdbd27fc36710d0c51efd60ce7bf','9b49c72191928e3a13f8b7a2e548d77418103b4d96c3c4d90c0a9848590a760f',NULL,'4ef93702319e0e2979bdc65be3183e6f80427e14512d814920cd964dbae39efa');
INSERT INTO "audit" VALUES(30,'2dcff26fc604ea35',1,'2026-11-22 15:26:47.886795','propose','proposed','nod','nod','nod',NULL,'948a76d479a6c1eb04211e9831ec8744eb21f3d9bb7cb1ddb5ce0970d6d48708','rule 2: plans human',NULL,'830656ef6973519626b47ff82c78fc7dc1a5e8bf69fb9faae370de7fcf27beb8','ec35a5a837f44d1bdfe2a507492e0150f0b65fe0e08e8aa85ce3ef050463a20e','{"requester": "http:local", "name": "you", "place": "team:400feafa49c1b548", "tool": ["plan_submit", "2eabd2e8bcb02b04"], "summary": "issue-organiser''s plan, version 1: Give 2 open issues without an owner to the person with the least to do.", "arguments": {"summary": "Give 2 open issues without an owner to the person with the least to do.", "steps": [{"description": "Look at the open issues and at who has how much to do", "tools": ["get_issue", "list_issues", "search_issues", "workload"], "estimated_tokens": null}, {"description": "Give #4 (Invoices are sent twice when the mail server is slow) to Ana", "tools": ["update_issue"], "estimated_tokens": 400}, {"description": "Give #3 (Dark mode for the settings page) to Zoe", "tools": ["update_issue"], "estimated_tokens": 400}], "risks": "They may know nothing about it yet.", "alternatives": "Ask in the team who wants it; that takes longer."}, "schema": "a3420a06385861bb99654c22fe52dc726dcc5377bea05012792fb10fb9f3d3e6"}','1d630de921f43494a2f8fd557b2c33e73d88b8521b302b9e1d3c4ff57eb03659');
INSERT INTO "audit" VALUES(35,'039e6eee45418502',1,'2026-11-22 15:27:47.886795','propose','proposed','nod','nod','nod',NULL,'dd376aa8bf3df1bfb75ae596b74b2c886bbf83415b50326fd73ba125a3755683','policy writes',NULL,'79e9c12b0f06bf80f47b94c73de936caed44dc5f1375aa59144159cc1ed563ee','99c06587fdd6ad80e15509c8e7013fd76f7ed5f4f6f0d336e4bc9fb32ebbff6e','{"requester": "http:local", "name": "you", "place": "http:local/f", "tool": ["update_issue", "0b02d8d032277b2c"], "summary": "Change assignee of issue #6 \u201cUpgrade the staging database\u201d", "arguments": {"number": 6, "assignee": "Zoe"}, "schema": "c449ed99d72cce8d1c73f3a5e3fe7fcf8afddec4bbd15f15125bfcaac5e19ea0"}','c8c586e3f08c9574573d463a778eb1028cc8b4c9c75455d4fa69ba06f461016c');
INSERT INTO "audit" VALUES(36,'039e6eee45418502',2,'2026-11-22 15:27:48.886795','approve','approved','http:local','http:local','http',NULL,'dd376aa8bf3df1bfb75ae596b74b2c886bbf83415b50326fd73ba125a3755683','policy writes',NULL,'99c06587fdd6ad80e15509c8e7013fd76f7ed5f4f6f0d336e4bc9fb32ebbff6e','af8051e137bda00a5b194593e253b889b6fdcb2660b7a605abcce5d2bf35af7a',NULL,'3b363d7078651fcf89fd1875d495fa98171dbb348beef142d128f4aecab8ba36');
INSERT INTO "audit" VALUES(37,'039e6eee45418502',3,'2026-11-22 15:27:48.886795','execute','executing','nod','nod','nod',NULL,'dd376aa8bf3df1bfb75ae596b74b2c886bbf83415b50326fd73ba125a3755683','policy writes',NULL,'af8051e137bda00a5b194593e253b889b6fdcb2660b7a605abcce5d2bf35af7a','62a25b4ff19afb1b734109688769d1e200653e02e64b84c87cd5ea2eba88a580',NULL,'ca41bf1f0955aa90ebe39063f62f4f364a2d8a26ccbf0854028d4a348ed2e02e');
INSERT INTO "audit" VALUES(38,'039e6eee45418502',4,'2026-11-22 15:27:48.886795','succeeded','succeeded','nod','nod','nod',NULL,'dd376aa8bf3df1bfb75ae596b74b2c886bbf83415b50326fd73ba125a3755683','policy writes',NULL,'62a25b4ff19afb1b734109688769d1e200653e02e64b84c87cd5ea2eba88a580','c67e9aa34153472941985f5bb65d2395897100af04d0c8a7db3f2af67e000b8a',NULL,'f1f10f5210b0366d399a105e53005e2e5f1c9d4f0bd5e716eddfe37fad2d01d7');
INSERT INTO "audit" VALUES(39,'b7fcff70745f0d90',1,'2026-11-22 15:27:48.886795','propose','proposed','nod','nod','nod',NULL,'dd074176cf44b679527188f365227377b1364baf0b7102fd70370b34ae642232','policy writes',NULL,'c67e9aa34153472941985f5bb65d2395897100af04d0c8a7db3f2af67e000b8a','30307d902cc23468a5e8f85299a22628f747e86570bb652140b6f76df0e7c91e','{"requester": "http:local", "name": "you", "place": "http:local/g", "tool": ["update_issue", "0b02d8d032277b2c"], "summary": "Change priority of issue #3 \u201cDark mode for the settings page\u201d", "arguments": {"number": 3, "priority": "urgent"}, "schema": "c449ed99d72cce8d1c73f3a5e3fe7fcf8afddec4bbd15f15125bfcaac5e19ea0"}','3f2dcab46f0e797a4b415f13f37368266aa74b10b16830b481fad8dc504e93aa');
INSERT INTO "audit" VALUES(40,'80ae3d8397db6ed4',1,'2026-11-22 15:27:48.886795','propose','proposed','nod','nod','nod',NULL,'00ee0155eae8d719eb0b682f437eb2f1379820657dd89bcd170e29d34302a60c','policy writes',NULL,'30307d902cc23468a5e8f85299a22628f747e86570bb652140b6f76df0e7c91e','013ef22b0530948363b2638d7fc15f6fb9680b2e33077765ec13b7836564b901','{"requester": "http:local", "name": "you", "place": "http:local/g", "tool": ["update_issue", "0b02d8d032277b2c"], "summary": "Change priority of issue #5 \u201cDocument the rate limits of the public API\u201d", "arguments": {"number": 5, "priority": "urgent"}, "schema": "c449ed99d72cce8d1c73f3a5e3fe7fcf8afddec4bbd15f15125bfcaac5e19ea0"}','ee75c1a071aebddb643474f0fce6dc04ec9e05d7a304792454512d3e0e64923a');
INSERT INTO "audit" VALUES(41,'d1fdc32f24506956',1,'2026-11-22 15:27:48.886795','propose','proposed','nod','nod','nod',NULL,'e4ecd5bca2b509bb09ddc69fa8b3c7836d3acf1f0a46702167872ca1bfe36446','policy writes',NULL,'013ef22b0530948363b2638d7fc15f6fb9680b2e33077765ec13b7836564b901','2a3358950d73f839392616ce25a710af63ab3d655ea71d6e28859f1326100755','{"requester": "http:local", "name": "you", "place": "http:local/g", "tool": ["update_issue", "0b02d8d032277b2c"], "summary": "Change priority of issue #6 \u201cUpgrade the staging database\u201d", "arguments": {"number": 6, "priority": "urgent"}, "schema": "c449ed99d72cce8d1c73f3a5e3fe7fcf8afddec4bbd15f15125bfcaac5e19ea0"}','8f574787aed28bc2c3f6166bdf0761e9b80a0cb0bd6fffa725431ac172e7d779');
INSERT INTO "audit" VALUES(44,'6a77643374fa4365',1,'2026-11-22 15:27:49.886795','propose','proposed','nod','nod','nod','asked for by http:local','23357c83d264a06caf698d4e611ed8dd6e37573d0071da4f1814a46e315258d5','policy writes',NULL,'47e4730263272db1912f70fbe7696261ea2dc387dbb8e7522f6a1d4207a3694c','56b4b297f931b306356d2bc98b5701a7ec9f347c4672afa5c4158815219a1683','{"requester": "http:local", "name": "you", "place": "http:local/h", "tool": ["shell_run", "ec889daa780913d3"], "summary": "Run \u201csh -c ''echo two >> a.txt; echo new > b.txt''\u201d", "arguments": {"argv": ["sh", "-c", "echo two >> a.txt; echo new > b.txt"]}, "schema": "53350bcbc64b2c35d64887437d55e203a53f3f9cb495b37b007b124db30f37ba"}','f14d5e5baee91118106a9e93cb6d675866a341b6d0b075d4c4cc56d12982b866');
INSERT INTO "audit" VALUES(46,'cfe7a01f5c4c5d70',1,'2026-11-22 15:27:54.886795','propose','proposed','nod','nod','nod',NULL,'f1d1bfbc23bb445c42a94d576e59dcda4b0a3c2e4e51be47e042d117cd5fd958','policy writes',NULL,'9c324d98c947acb8a234163c5737b9c727703036f0bb5d4c09352b0d9cb56cdf','d4c176ec6dbb977a1e64ee81e0116f56b74af7217c0859b8569257271d2ff9c8','{"requester": "http:local", "name": "you", "place": "http:local/today0", "tool": ["remember", "f9ebcf8cbbb55de8"], "summary": "Remember for the team", "arguments": {"fact": "the printer is in room 4", "about": "team"}, "schema": "828c3afb20cd7a945c9643243922b0c7281db867b76f7110958e3810b39dc865"}','45800f234138737bcecd660d9f472b0d875db78cd96a29dac4c07d9d54596f0e');
INSERT INTO "audit" VALUES(47,'ee9524ae941d477d',1,'2026-11-22 15:27:56.886795','propose','proposed','nod','nod','nod',NULL,'2d16a39b06ef91e61d6a857746cfa2a0f34f5ee4f4b8e9eeb18ac90e22c1e22b','policy writes',NULL,'d4c176ec6dbb977a1e64ee81e0116f56b74af7217c0859b8569257271d2ff9c8','4cb1a9a84a875d96372ceace825df91298c71f84135e89c67b1e9cabf08230fd','{"requester": "http:local", "name": "you", "place": "http:local/today1", "tool": ["schedule_task", "17b6b931f9e47dae"], "summary": "Schedule \u201clist the issues\u201d", "arguments": {"task": "list the issues", "at": "2026-11-23 09:00", "time_zone": "UTC", "every": "monday"}, "schema": "5c99876ee4d4e2ac5695123723145bd8bebcd6fa8f2ca538d34a9d72a7ce7cb7"}','872c214ce993a0be91d2cbf54ae0ea90fa6cd8b8bb243059bc351527c8521712');
INSERT INTO "audit" VALUES(48,'5b07bddf00640447',1,'2026-11-22 15:27:58.886795','propose','proposed','nod','nod','nod',NULL,'a9e7e06017360c6155d89474eeaf26ebd468a7814b889bf3dad60d27009445a0','policy writes',NULL,'4cb1a9a84a875d96372ceace825df91298c71f84135e89c67b1e9cabf08230fd','ecd9c8ae3e9852691e038b46e4953bc5f36b4060d6d2731a87770aa4fbaa4665','{"requester": "http:local", "name": "you", "place": "http:local/today2", "tool": ["create_issue", "c4bb526f3e189507"], "summary": "Create issue \u201cToday\u201d", "arguments": {"title": "Today", "body": "", "assignee": "", "priority": "normal", "labels": []}, "schema": "ba0fe54cb9d125b90611cf07cfb19c04f5e5a7c7ecb13e89dacb340201a19f5f"}','f62ea1a5d9fd70b3a7e6d8c4db6ac5039d58e6f2a89d5508e61607593407aacd');
INSERT INTO "audit" VALUES(49,'5b07bddf00640447',2,'2026-11-22 15:28:00.886795','approve','approved','http:local','http:local','http',NULL,'a9e7e06017360c6155d89474eeaf26ebd468a7814b889bf3dad60d27009445a0','policy writes',NULL,'ecd9c8ae3e9852691e038b46e4953bc5f36b4060d6d2731a87770aa4fbaa4665','095d9d9cf381023a8760c0e6f43be6785108aba2345140cd88e37a4693c7e8a1',NULL,'9b6e56dc71bee1516f3099117dadb7c522a06a49b0b04376eaf992aeba917df8');
INSERT INTO "audit" VALUES(50,'5b07bddf00640447',3,'2026-11-22 15:28:00.886795','execute','executing','nod','nod','nod',NULL,'a9e7e06017360c6155d89474eeaf26ebd468a7814b889bf3dad60d27009445a0','policy writes',NULL,'095d9d9cf381023a8760c0e6f43be6785108aba2345140cd88e37a4693c7e8a1','30e3330df853792aceafb909e68159a1f3e7e63f370c636a08a2c23504e47a30',NULL,'f258ce9fc5cfcefe37179940320b28a7e1bd7544b4df91e61b5bf153a6e73c71');
INSERT INTO "audit" VALUES(51,'5b07bddf00640447',4,'2026-11-22 15:28:00.886795','succeeded','succeeded','nod','nod','nod',NULL,'a9e7e06017360c6155d89474eeaf26ebd468a7814b889bf3dad60d27009445a0','policy writes',NULL,'30e3330df853792aceafb909e68159a1f3e7e63f370c636a08a2c23504e47a30','82d73622a83ff2b18f5d108b0157b37c2b3c7a7a1e6bc2276082ddc09f67a4e9',NULL,'e9e357d8fb3fa8207503b0168d55813ac6fb9d98ba62ab2b079fca187f3aa6c2');
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
INSERT INTO "board" VALUES('d9a120949c298ebd','http','local/team','d9a120949c298ebd',6,6,0);
CREATE TABLE book (
	id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	paused_at DATETIME, 
	memory JSON, 
	PRIMARY KEY (id)
);
INSERT INTO "book" VALUES(1,10,NULL,'{"resume": {}}');
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
INSERT INTO "chain_end" VALUES(1,51,'82d73622a83ff2b18f5d108b0157b37c2b3c7a7a1e6bc2276082ddc09f67a4e9','','9b779e706291031f563df79ddc9b9fc470460ac2a1c9d470ec0a7f845c8ec9b4');
CREATE TABLE connecting (
	id VARCHAR NOT NULL, 
	server VARCHAR NOT NULL, 
	url VARCHAR NOT NULL, 
	identity VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	owner_name VARCHAR NOT NULL, 
	person VARCHAR NOT NULL, 
	person_name VARCHAR NOT NULL, 
	conversation_id VARCHAR, 
	step VARCHAR NOT NULL, 
	created_at DATETIME NOT NULL, 
	until DATETIME NOT NULL, 
	state VARCHAR, 
	browser VARCHAR NOT NULL, 
	is_organised BOOLEAN NOT NULL, 
	back VARCHAR NOT NULL, 
	scope VARCHAR NOT NULL, 
	issuer VARCHAR NOT NULL, 
	subject VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	digits VARCHAR NOT NULL, 
	found VARCHAR NOT NULL, 
	verifier VARCHAR NOT NULL, 
	client VARCHAR NOT NULL, 
	tokens VARCHAR NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (state)
);
CREATE TABLE connection (
	id VARCHAR NOT NULL, 
	server VARCHAR NOT NULL, 
	url VARCHAR NOT NULL, 
	identity VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	owner_name VARCHAR NOT NULL, 
	accounts JSON NOT NULL, 
	name VARCHAR NOT NULL, 
	issuer VARCHAR NOT NULL, 
	subject VARCHAR NOT NULL, 
	client VARCHAR NOT NULL, 
	tokens VARCHAR NOT NULL, 
	found VARCHAR NOT NULL, 
	connected_by VARCHAR NOT NULL, 
	connected_at DATETIME NOT NULL, 
	expires_at DATETIME, 
	last_used_at DATETIME, 
	version INTEGER NOT NULL, 
	busy_until DATETIME, 
	refusals INTEGER NOT NULL, 
	told_lost BOOLEAN NOT NULL, 
	PRIMARY KEY (id)
);
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
INSERT INTO "conversation" VALUES('9856a2a6e19fb454','http','local/a',1,'http:local','create an issue ''Printer is on fire'' with high priority and assign it to Sam','2026-11-22 15:26:42.003677',NULL,NULL,NULL);
INSERT INTO "conversation" VALUES('e32ee20dbfd334e6','http','local/b',1,'http:local','close #2 and assign #3 to Ana','2026-11-22 15:26:43.780017',NULL,NULL,NULL);
INSERT INTO "conversation" VALUES('290b182b1a880fb3','http','local/c',1,'http:local','delete #4','2026-11-22 15:26:44.664917',NULL,NULL,NULL);
INSERT INTO "conversation" VALUES('d708fef8069324d8','http','local/d',1,'http:local','comment ''hello'' on #1','2026-11-22 15:26:44.937556',NULL,NULL,NULL);
INSERT INTO "conversation" VALUES('89588cced8fa29f2','http','local/e',1,'http:local','assign #1 to Sam','2026-11-22 15:26:46.236384',NULL,NULL,NULL);
INSERT INTO "conversation" VALUES('d9a120949c298ebd','http','local/team',1,'http:local','Have one teammate survey the open issues and another reorganise them; plan first','2026-11-22 15:26:46.961993',NULL,NULL,NULL);
INSERT INTO "conversation" VALUES('827a2b98f3c7bb29','team','827a2b98f3c7bb29',1,'http:local','issue-surveyor: Survey the open issues','2026-11-22 15:26:47.128570',NULL,'http:local/team',NULL);
INSERT INTO "conversation" VALUES('400feafa49c1b548','team','400feafa49c1b548',1,'http:local','issue-organiser: Reorganise the open issues','2026-11-22 15:26:47.128570',NULL,'http:local/team',NULL);
INSERT INTO "conversation" VALUES('9db9e3d2696520bd','http','local/f',1,'http:local','assign #6 to Zoe','2026-11-22 15:27:47.886795',NULL,NULL,NULL);
INSERT INTO "conversation" VALUES('e77f7bbb6122e4a9','http','local/g',1,'http:local','set the priority of #3, #5 and #6 to urgent','2026-11-22 15:27:48.886795',NULL,NULL,NULL);
INSERT INTO "conversation" VALUES('ef0c227215fb4678','http','local/h',0,'http:local','Run “sh -c ''echo two >> a.txt; echo new > b.txt''”','2026-11-22 15:27:49.886795',NULL,NULL,NULL);
INSERT INTO "conversation" VALUES('38d348fa072ff785','http','local/today0',1,'http:local','remember that the printer is in room 4','2026-11-22 15:27:54.886795',NULL,NULL,NULL);
INSERT INTO "conversation" VALUES('1ed4f2dfa41be8ac','http','local/today1',1,'http:local','every monday at 9 list the issues','2026-11-22 15:27:56.886795',NULL,NULL,NULL);
INSERT INTO "conversation" VALUES('09e6159207a8db48','http','local/today2',1,'http:local','create an issue ''Today''','2026-11-22 15:27:58.886795',NULL,NULL,NULL);
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
INSERT INTO "decider" VALUES('http:local','4cccfe0b7a5416a7');
INSERT INTO "decider" VALUES('http:local','3c4fc3cb3e94bdaf');
INSERT INTO "decider" VALUES('http:ana','26141c5481206ef2');
INSERT INTO "decider" VALUES('http:ben','26141c5481206ef2');
INSERT INTO "decider" VALUES('http:local','229ab721f4bd6236');
INSERT INTO "decider" VALUES('http:local','9cba1f057dbd7c36');
INSERT INTO "decider" VALUES('http:local','039e6eee45418502');
INSERT INTO "decider" VALUES('http:local','5b07bddf00640447');
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
	revoked_by VARCHAR, requester VARCHAR, place VARCHAR, schedule VARCHAR, connection VARCHAR, 
	PRIMARY KEY (id), 
	FOREIGN KEY(proposal_id) REFERENCES proposal (id)
);
INSERT INTO "grant_given" VALUES(1,'comment_issue','374392a2bf9118e6','tool','','comment_issue with any arguments, for you in one private conversation','http:local','you','d708fef8069324d8',0,'229ab721f4bd6236',NULL,1,'2026-11-22 15:26:45.227965','2026-11-23 15:26:45.227965',NULL,NULL,'http:local','http:local/d',NULL,NULL);
CREATE TABLE held (
	account VARCHAR NOT NULL, 
	proposal_id VARCHAR NOT NULL, 
	place VARCHAR NOT NULL, 
	held_at DATETIME NOT NULL, 
	until DATETIME NOT NULL, 
	released_at DATETIME, 
	recorded BOOLEAN NOT NULL, 
	PRIMARY KEY (account, proposal_id), 
	FOREIGN KEY(proposal_id) REFERENCES proposal (id)
);
CREATE TABLE hold (
	name VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE inverse (
	id VARCHAR NOT NULL, 
	conversation_id VARCHAR NOT NULL, 
	arguments JSON NOT NULL, 
	created_at DATETIME NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(id) REFERENCES proposal (id)
);
INSERT INTO "inverse" VALUES('039e6eee45418502','9db9e3d2696520bd','{"number": 6, "assignee": "Priya"}','2026-11-22 15:27:48.886795');
INSERT INTO "inverse" VALUES('5b07bddf00640447','09e6159207a8db48','{"number": 7}','2026-11-22 15:28:00.886795');
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
INSERT INTO "issue" VALUES(1,'Login fails after a password reset','The new password is accepted on the reset page, then refused at login for about a minute. Probably the cached session of the old password.','open','urgent','Zoe','["auth", "bug"]','demo','2026-11-13 15:26:41.634691','2026-11-22 15:26:46.581084',NULL);
INSERT INTO "issue" VALUES(2,'Exported CSV has wrong dates for users east of Berlin','Dates shift by one day. The export formats local midnight as UTC.','closed','high','Sam','["bug", "export"]','demo','2026-11-14 15:26:41.634691','2026-11-22 15:26:44.158352',NULL);
INSERT INTO "issue" VALUES(3,'Dark mode for the settings page','The rest of the application has it; settings still glow.','open','low',NULL,'["design"]','demo','2026-11-15 15:26:41.634691','2026-11-22 15:26:45.775735',NULL);
INSERT INTO "issue" VALUES(4,'Invoices are sent twice when the mail server is slow','A time-out is taken for a failure and the job is run again. Three customers wrote to us.','open','urgent',NULL,'["billing", "bug"]','demo','2026-11-16 15:26:41.634691','2026-11-16 15:26:41.634691',NULL);
INSERT INTO "issue" VALUES(5,'Document the rate limits of the public API','','open','normal','Ana','["docs"]','demo','2026-11-17 15:26:41.634691','2026-11-17 15:26:41.634691',NULL);
INSERT INTO "issue" VALUES(6,'Upgrade the staging database','The version in use no longer gets security fixes.','closed','normal','Zoe','["operations"]','demo','2026-11-18 15:26:41.634691','2026-11-22 15:27:48.886795',NULL);
INSERT INTO "issue" VALUES(7,'Today','','open','normal',NULL,'[]','http:local','2026-11-22 15:28:00.886795','2026-11-22 15:28:00.886795','nod-5b07bddf00640447');
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
INSERT INTO "issue_comment" VALUES(1,1,'Seen by two more people this morning.','demo','2026-11-22 12:26:41.634691',NULL);
INSERT INTO "issue_comment" VALUES(2,1,'hello','http:local','2026-11-22 15:26:45.288304','nod-229ab721f4bd6236');
INSERT INTO "issue_comment" VALUES(3,3,'again','http:local','2026-11-22 15:26:45.775735','nod-f1a95024692d4b47');
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
INSERT INTO "ledger" VALUES(1,'2026-11-22 15:26:41.796609','rule','quorum for delete_issue in *','delete_issue','set','http:local','http:local','http',NULL,'{"rule": 1, "value": [2, 0]}','','0939de47dcf6f1ff2bd1c446586b8176e5601887669baae5a4aa556e76cad813','{"rule 1": "a4610c8d6f0b7a83bad73fc1f834dcf924cbd1caf83fb0aa65007b92741cda25"}');
INSERT INTO "ledger" VALUES(2,'2026-11-22 15:26:41.866940','rule','plans for * in *','*','set','http:local','http:local','http',NULL,'{"rule": 2, "value": "human"}','0939de47dcf6f1ff2bd1c446586b8176e5601887669baae5a4aa556e76cad813','b31bec95d6dc7add7e41265fd831d3102406e067091b8c922a85381a139dea21','{"rule 2": "5df1562caef4d3c41ca7eb99e21fc6e0608fd023509d0a74085d29265eac7154"}');
INSERT INTO "ledger" VALUES(3,'2026-11-22 15:26:41.892034','rule','deciders for delete_issue in *','delete_issue','set','http:local','http:local','http',NULL,'{"rule": 3, "value": ["http:ana", "http:ben"]}','b31bec95d6dc7add7e41265fd831d3102406e067091b8c922a85381a139dea21','81b71c34cf1a7250ca91551443d6b8162ee04951e739e01622bcf3e7135c51ea','{"rule 3": "1809b336e043a3fb8a164089a2ad13b9b5e74a84084a47fe163aced808ffb6af"}');
INSERT INTO "ledger" VALUES(15,'2026-11-22 15:26:45.227965','grant','G-1','comment_issue','give','http:local','http:local','http',NULL,'{"allows": "comment_issue with any arguments, for you in one private conversation", "tool": ["comment_issue", "374392a2bf9118e6"], "match": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "rung": "tool", "until": "2026-11-23T15:26:45.227965+00:00", "only_in": null, "for": "http:local", "at": "http:local/d", "person": "http:local", "proposal": "229ab721f4bd6236"}','080ba5a6a9a65dcb133068eb388b7aa0e2905fac1230ca6790df13021b78366c','35ff9b17784b6ad1dc99cf41456e4b9ffae25d11b612b7dcd9e760b58ac5e280','{"grant 1": "a0528b3945e983703576b8ed40d5921023070dbed4bdb18ddfdf4cc5f8803acc"}');
INSERT INTO "ledger" VALUES(26,'2026-11-22 15:26:46.789124','pause','everything','','pause','http:local','http:local','http',NULL,'{"since": "2026-11-22T15:26:46.789124+00:00", "name": "you"}','f79bb8a3146819b067c3d96f72a821fe28cf8a566e9d57c28a6983ee0fb4693c','a136ead6788a9f3f853f0b2c558e69fa5346f9eabb433445590a8b5d962c01b1','{"pause 1": "77b77077dc7b10453e170ea37d991457ec27c7b3e08c60203f042e9091119191"}');
INSERT INTO "ledger" VALUES(29,'2026-11-22 15:26:46.872282','pause','everything','','resume','http:local','http:local','http','{"since": "2026-11-22T15:26:46.789124+00:00"}',NULL,'9b49c72191928e3a13f8b7a2e548d77418103b4d96c3c4d90c0a9848590a760f','830656ef6973519626b47ff82c78fc7dc1a5e8bf69fb9faae370de7fcf27beb8','{"pause 1": null}');
INSERT INTO "ledger" VALUES(31,'2026-11-22 15:27:47.886795','rule','quorum for update_issue in *','update_issue','set','http:local','http:local','http',NULL,'{"rule": 4, "value": [1, 0]}','ec35a5a837f44d1bdfe2a507492e0150f0b65fe0e08e8aa85ce3ef050463a20e','283857ba3c7fe5fefe2be4e718d76857666d041d016f88a91392bf4a9eccea6c','{"rule 4": "2b1351d0b41321bff1b43035c91754092a59f2f9500f2ffed532c88bd742aac3"}');
INSERT INTO "ledger" VALUES(32,'2026-11-22 15:27:47.886795','rule','deciders for update_issue in *','update_issue','set','http:local','http:local','http',NULL,'{"rule": 5, "value": ["requester"]}','283857ba3c7fe5fefe2be4e718d76857666d041d016f88a91392bf4a9eccea6c','46f94cda80156bc3336c9aceed75be330534dc8474a8ebb6b41e3a6012f7b7da','{"rule 5": "8e3d3033c00209750b1306ff71d86ebd56ab9503ca74e96d34dc277bf74d5202"}');
INSERT INTO "ledger" VALUES(33,'2026-11-22 15:27:47.886795','rule','quorum for shell_run in *','shell_run','set','http:local','http:local','http',NULL,'{"rule": 6, "value": [1, 0]}','46f94cda80156bc3336c9aceed75be330534dc8474a8ebb6b41e3a6012f7b7da','0e98b2646e05b47ba67a4849108b7a89f8ac3fbe240df88d2f9ea53f97c563a1','{"rule 6": "1dec63ee93ee7dc0992313a69e534ccf9c69e1c2fe555d47160289fa1931d147"}');
INSERT INTO "ledger" VALUES(34,'2026-11-22 15:27:47.886795','rule','deciders for shell_run in *','shell_run','set','http:local','http:local','http',NULL,'{"rule": 7, "value": ["requester"]}','0e98b2646e05b47ba67a4849108b7a89f8ac3fbe240df88d2f9ea53f97c563a1','79e9c12b0f06bf80f47b94c73de936caed44dc5f1375aa59144159cc1ed563ee','{"rule 7": "0fd05b448a60884322434cd5101ca489708bd26e593e97ae226ff7c456d27495"}');
INSERT INTO "ledger" VALUES(42,'2026-11-22 15:27:49.886795','trial','542b9257b7e6dc8d','shell_run','try','http:local','http:local','http',NULL,'{"call": "Run \u201csh -c ''echo two >> a.txt; echo new > b.txt''\u201d", "digest": "23357c83d264a06caf698d4e611ed8dd6e37573d0071da4f1814a46e315258d5", "process": "bcfaa53910d0b506"}','2a3358950d73f839392616ce25a710af63ab3d655ea71d6e28859f1326100755','aee60f732a84b0d0908627d0ca4954bdd192c1c15162afee13ff8c9893aa0319','{}');
INSERT INTO "ledger" VALUES(43,'2026-11-22 15:27:49.886795','trial','542b9257b7e6dc8d','shell_run','tried','http:local','http:local','http',NULL,'{"ended": "ended with code 0, 2 files would change", "cage": "bubblewrap 0.8.0, no network", "files": 2, "applies": "fa51438998c7a21a38a741ec66e62743677936e88d939f6ec106504c1f502035"}','aee60f732a84b0d0908627d0ca4954bdd192c1c15162afee13ff8c9893aa0319','47e4730263272db1912f70fbe7696261ea2dc387dbb8e7522f6a1d4207a3694c','{}');
INSERT INTO "ledger" VALUES(45,'2026-11-22 15:27:49.886795','rule','policy for update_issue in * where priority in (low, normal)','update_issue','set','http:local','http:local','http',NULL,'{"rule": 8, "value": "never"}','56b4b297f931b306356d2bc98b5701a7ec9f347c4672afa5c4158815219a1683','9c324d98c947acb8a234163c5737b9c727703036f0bb5d4c09352b0d9cb56cdf','{"rule 8": "09c90a96fa7e171290b4b9d418e5cbb6cd246f860bc98303f4c0d5c195cd2f05"}');
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
CREATE TABLE memory (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	about VARCHAR NOT NULL, 
	scope VARCHAR NOT NULL, 
	fact VARCHAR NOT NULL, 
	asked_by VARCHAR NOT NULL, 
	said_at DATETIME NOT NULL, 
	until DATETIME
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
	created_at DATETIME NOT NULL, files JSON, 
	PRIMARY KEY (id), 
	FOREIGN KEY(conversation_id) REFERENCES conversation (id), 
	CONSTRAINT message_once UNIQUE (channel, event_id)
);
INSERT INTO "message" VALUES(1,'9856a2a6e19fb454','user','create an issue ''Printer is on fire'' with high priority and assign it to Sam',NULL,'http:local','you','http','e1',NULL,NULL,1,'2026-11-22 15:26:42.003677',NULL);
INSERT INTO "message" VALUES(2,'9856a2a6e19fb454','assistant','I''d like to create the issue “Printer is on fire” (priority: high, assignee: Sam).',1,NULL,'',NULL,NULL,'[["call_db57ae1cac83dfbd", "create_issue", "{\"title\": \"Printer is on fire\", \"priority\": \"high\", \"assignee\": \"Sam\", \"approval_reason\": \"Requested: \u201ccreate an issue ''Printer is on fire'' with high priority and assign it to Sam\u201d\"}", "Create issue \u201cPrinter is on fire\u201d"]]',NULL,1,'2026-11-22 15:26:43.703130',NULL);
INSERT INTO "message" VALUES(3,'e32ee20dbfd334e6','user','close #2 and assign #3 to Ana',NULL,'http:local','you','http','e2',NULL,NULL,1,'2026-11-22 15:26:43.780017',NULL);
INSERT INTO "message" VALUES(4,'e32ee20dbfd334e6','assistant','I''d like to close #2 and assign #3 to Ana.',3,NULL,'',NULL,NULL,'[["call_52cf147b6c611de4", "close_issue", "{\"number\": 2, \"approval_reason\": \"Requested: \u201cclose #2 and assign #3 to Ana\u201d\"}", "Close issue #2"], ["call_d389a2534baa3928", "update_issue", "{\"number\": 3, \"assignee\": \"Ana\", \"approval_reason\": \"Requested: \u201cclose #2 and assign #3 to Ana\u201d\"}", "Change assignee of issue #3"]]',NULL,1,'2026-11-22 15:26:44.062263',NULL);
INSERT INTO "message" VALUES(5,'e32ee20dbfd334e6','assistant','Done: closed #2.
You declined assigning #3 to Ana (“Not today”), so I''ve left it alone.',3,NULL,'',NULL,NULL,NULL,NULL,1,'2026-11-22 15:26:44.640954',NULL);
INSERT INTO "message" VALUES(6,'290b182b1a880fb3','user','delete #4',NULL,'http:local','you','http','e3',NULL,NULL,1,'2026-11-22 15:26:44.664917',NULL);
INSERT INTO "message" VALUES(7,'290b182b1a880fb3','assistant','I''d like to delete #4.',6,NULL,'',NULL,NULL,'[["call_56a4b3871d14b607", "delete_issue", "{\"number\": 4, \"approval_reason\": \"Requested: \u201cdelete #4\u201d\"}", "Delete issue #4 and its comments"]]',NULL,1,'2026-11-22 15:26:44.829624',NULL);
INSERT INTO "message" VALUES(8,'d708fef8069324d8','user','comment ''hello'' on #1',NULL,'http:local','you','http','e4',NULL,NULL,1,'2026-11-22 15:26:44.937556',NULL);
INSERT INTO "message" VALUES(9,'d708fef8069324d8','assistant','I''d like to comment on #1.',8,NULL,'',NULL,NULL,'[["call_e18d83f78657cac3", "comment_issue", "{\"number\": 1, \"body\": \"hello\", \"approval_reason\": \"Requested: \u201ccomment ''hello'' on #1\u201d\"}", "Comment on issue #1"]]',NULL,1,'2026-11-22 15:26:45.192790',NULL);
INSERT INTO "message" VALUES(10,'d708fef8069324d8','assistant','Done: commented on #1.',8,NULL,'',NULL,NULL,NULL,NULL,1,'2026-11-22 15:26:45.453018',NULL);
INSERT INTO "message" VALUES(11,'d708fef8069324d8','user','comment ''again'' on #3',NULL,'http:local','you','http','e5',NULL,NULL,1,'2026-11-22 15:26:45.477591',NULL);
INSERT INTO "message" VALUES(12,'d708fef8069324d8','assistant','I''d like to comment on #3.',11,NULL,'',NULL,NULL,'[["call_5c59c97368230255", "comment_issue", "{\"number\": 3, \"body\": \"again\", \"approval_reason\": \"Requested: \u201ccomment ''again'' on #3\u201d\"}", "Comment on issue #3"]]',NULL,1,'2026-11-22 15:26:45.695319',NULL);
INSERT INTO "message" VALUES(13,'d708fef8069324d8','assistant','Done: commented on #3.',11,NULL,'',NULL,NULL,NULL,NULL,1,'2026-11-22 15:26:46.199280',NULL);
INSERT INTO "message" VALUES(14,'89588cced8fa29f2','user','assign #1 to Sam',NULL,'http:local','you','http','e6',NULL,NULL,1,'2026-11-22 15:26:46.236384',NULL);
INSERT INTO "message" VALUES(15,'89588cced8fa29f2','assistant','I''d like to assign #1 to Sam.',14,NULL,'',NULL,NULL,'[["call_0f6eb2c3298460f9", "update_issue", "{\"number\": 1, \"assignee\": \"Sam\", \"approval_reason\": \"Requested: \u201cassign #1 to Sam\u201d\"}", "Change assignee of issue #1"]]',NULL,1,'2026-11-22 15:26:46.433802',NULL);
INSERT INTO "message" VALUES(16,'89588cced8fa29f2','assistant','Done: assigned #1 to Zoe.',14,NULL,'',NULL,NULL,NULL,NULL,1,'2026-11-22 15:26:46.773475',NULL);
INSERT INTO "message" VALUES(17,'d9a120949c298ebd','user','Have one teammate survey the open issues and another reorganise them; plan first',NULL,'http:local','you','http','e7',NULL,NULL,1,'2026-11-22 15:26:46.961993',NULL);
INSERT INTO "message" VALUES(18,'d9a120949c298ebd','assistant','I give this to 2 teammates.',17,NULL,'',NULL,NULL,'[["call_6d8a80496c8747d4", "spawn_teammate", "{\"role\": \"issue surveyor\", \"task\": \"Survey the open issues\", \"tools\": [\"get_issue\", \"list_issues\", \"search_issues\", \"workload\"], \"require_plan_approval\": false}", "Start a teammate: issue surveyor"], ["call_ee010c3657a611e7", "spawn_teammate", "{\"role\": \"issue organiser\", \"task\": \"Reorganise the open issues\", \"tools\": [\"get_issue\", \"list_issues\", \"search_issues\", \"workload\", \"update_issue\"], \"require_plan_approval\": true}", "Start a teammate: issue organiser"]]','{"call_6d8a80496c8747d4": ["Started issue-surveyor. Its result will be told to you in a [Nod] line; do not wait for it.", true], "call_ee010c3657a611e7": ["Started issue-organiser. It plans first, and may only look around until its plan is approved. Its result will be told to you in a [Nod] line; do not wait for it.", true]}',1,'2026-11-22 15:26:47.128570',NULL);
INSERT INTO "message" VALUES(19,'827a2b98f3c7bb29','note','[Nod] Your task:
Survey the open issues',NULL,'http:local','you',NULL,NULL,NULL,NULL,1,'2026-11-22 15:26:47.128570',NULL);
INSERT INTO "message" VALUES(20,'400feafa49c1b548','note','[Nod] Your task:
Reorganise the open issues',NULL,'http:local','you',NULL,NULL,NULL,NULL,1,'2026-11-22 15:26:47.128570',NULL);
INSERT INTO "message" VALUES(21,'827a2b98f3c7bb29','assistant','Let me look.',19,NULL,'',NULL,NULL,'[["call_1da620a21df725d8", "list_issues", "{\"state\": \"open\"}", "List issues"], ["call_883bcd70efa753ba", "workload", "{}", "Count open issues by assignee"]]','{"call_883bcd70efa753ba": ["{\"workload\": [{\"assignee\": \"Ana\", \"open\": 1, \"urgent\": 0}, {\"assignee\": \"Zoe\", \"open\": 1, \"urgent\": 1}, {\"assignee\": null, \"open\": 2, \"urgent\": 1}]}", true], "call_1da620a21df725d8": ["{\"issues\": [{\"number\": 5, \"title\": \"Document the rate limits of the public API\", \"state\": \"open\", \"priority\": \"normal\", \"assignee\": \"Ana\", \"labels\": [\"docs\"], \"created_at\": \"2026-11-17T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-17T15:26:41.634691+00:00\"}, {\"number\": 4, \"title\": \"Invoices are sent twice when the mail server is slow\", \"state\": \"open\", \"priority\": \"urgent\", \"assignee\": null, \"labels\": [\"billing\", \"bug\"], \"created_at\": \"2026-11-16T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-16T15:26:41.634691+00:00\"}, {\"number\": 3, \"title\": \"Dark mode for the settings page\", \"state\": \"open\", \"priority\": \"low\", \"assignee\": null, \"labels\": [\"design\"], \"created_at\": \"2026-11-15T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-22T15:26:45.775735+00:00\"}, {\"number\": 1, \"title\": \"Login fails after a password reset\", \"state\": \"open\", \"priority\": \"urgent\", \"assignee\": \"Zoe\", \"labels\": [\"auth\", \"bug\"], \"created_at\": \"2026-11-13T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-22T15:26:46.581084+00:00\"}], \"total\": 4}", true]}',1,'2026-11-22 15:26:47.625240',NULL);
INSERT INTO "message" VALUES(22,'400feafa49c1b548','assistant','Let me look.',20,NULL,'',NULL,NULL,'[["call_1da620a21df725d8", "list_issues", "{\"state\": \"open\"}", "List issues"], ["call_883bcd70efa753ba", "workload", "{}", "Count open issues by assignee"]]','{"call_883bcd70efa753ba": ["{\"workload\": [{\"assignee\": \"Ana\", \"open\": 1, \"urgent\": 0}, {\"assignee\": \"Zoe\", \"open\": 1, \"urgent\": 1}, {\"assignee\": null, \"open\": 2, \"urgent\": 1}]}", true], "call_1da620a21df725d8": ["{\"issues\": [{\"number\": 5, \"title\": \"Document the rate limits of the public API\", \"state\": \"open\", \"priority\": \"normal\", \"assignee\": \"Ana\", \"labels\": [\"docs\"], \"created_at\": \"2026-11-17T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-17T15:26:41.634691+00:00\"}, {\"number\": 4, \"title\": \"Invoices are sent twice when the mail server is slow\", \"state\": \"open\", \"priority\": \"urgent\", \"assignee\": null, \"labels\": [\"billing\", \"bug\"], \"created_at\": \"2026-11-16T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-16T15:26:41.634691+00:00\"}, {\"number\": 3, \"title\": \"Dark mode for the settings page\", \"state\": \"open\", \"priority\": \"low\", \"assignee\": null, \"labels\": [\"design\"], \"created_at\": \"2026-11-15T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-22T15:26:45.775735+00:00\"}, {\"number\": 1, \"title\": \"Login fails after a password reset\", \"state\": \"open\", \"priority\": \"urgent\", \"assignee\": \"Zoe\", \"labels\": [\"auth\", \"bug\"], \"created_at\": \"2026-11-13T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-22T15:26:46.581084+00:00\"}], \"total\": 4}", true]}',1,'2026-11-22 15:26:47.639261',NULL);
INSERT INTO "message" VALUES(23,'400feafa49c1b548','assistant','This is my plan.',20,NULL,'',NULL,NULL,'[["call_9b1fba22b6d579d7", "plan_submit", "{\"summary\": \"Give 2 open issues without an owner to the person with the least to do.\", \"steps\": [{\"description\": \"Look at the open issues and at who has how much to do\", \"tools\": [\"get_issue\", \"list_issues\", \"search_issues\", \"workload\"]}, {\"description\": \"Give #4 (Invoices are sent twice when the mail server is slow) to Ana\", \"tools\": [\"update_issue\"], \"estimated_tokens\": 400}, {\"description\": \"Give #3 (Dark mode for the settings page) to Zoe\", \"tools\": [\"update_issue\"], \"estimated_tokens\": 400}], \"risks\": \"They may know nothing about it yet.\", \"alternatives\": \"Ask in the team who wants it; that takes longer.\", \"approval_reason\": \"You asked to reorganise the open issues; these have no owner.\"}", "Plan: Give 2 open issues without an owner to the person with the least to do."]]',NULL,1,'2026-11-22 15:26:47.887467',NULL);
INSERT INTO "message" VALUES(24,'d9a120949c298ebd','note','[Nod] Version 1 of the plan of teammate issue-organiser was submitted. People approve it; you may reject it or ask for changes. Review it with plan_review:
> Summary: Give 2 open issues without an owner to the person with the least to do.
> Step 1: Look at the open issues and at who has how much to do (tools: get_issue, list_issues, search_issues, workload)
> Step 2: Give #4 (Invoices are sent twice when the mail server is slow) to Ana (tools: update_issue; about 400 tokens)
> Step 3: Give #3 (Dark mode for the settings page) to Zoe (tools: update_issue; about 400 tokens)
> Risks: They may know nothing about it yet.
> Alternatives: Ask in the team who wants it; that takes longer.',NULL,NULL,'',NULL,NULL,NULL,NULL,1,'2026-11-22 15:26:47.887467',NULL);
INSERT INTO "message" VALUES(25,'d9a120949c298ebd','assistant','I started issue-surveyor and issue-organiser. I''ll tell you what they find. Any changes need your approval.',17,NULL,'',NULL,NULL,NULL,NULL,1,'2026-11-22 15:26:47.936125',NULL);
INSERT INTO "message" VALUES(26,'d9a120949c298ebd','assistant','**issue-organiser** has a plan, version 1. Its card waits for a decision.',24,NULL,'',NULL,NULL,NULL,NULL,1,'2026-11-22 15:26:48.270913',NULL);
INSERT INTO "message" VALUES(27,'827a2b98f3c7bb29','assistant','4 issues are open: 2 urgent, 2 without an owner.

- **#5** Document the rate limits of the public API (open · Ana · normal · docs)
- **#4** Invoices are sent twice when the mail server is slow (open · no owner · urgent · billing, bug)
- **#3** Dark mode for the settings page (open · no owner · low · design)
- **#1** Login fails after a password reset (open · Zoe · urgent · auth, bug)',19,NULL,'',NULL,NULL,NULL,NULL,1,'2026-11-22 15:26:49.579158',NULL);
INSERT INTO "message" VALUES(28,'d9a120949c298ebd','note','[Nod] Teammate issue-surveyor is done. Its result:
> 4 issues are open: 2 urgent, 2 without an owner.
> 
> - **#5** Document the rate limits of the public API (open · Ana · normal · docs)
> - **#4** Invoices are sent twice when the mail server is slow (open · no owner · urgent · billing, bug)
> - **#3** Dark mode for the settings page (open · no owner · low · design)
> - **#1** Login fails after a password reset (open · Zoe · urgent · auth, bug)',NULL,NULL,'',NULL,NULL,NULL,NULL,1,'2026-11-22 15:26:49.579158',NULL);
INSERT INTO "message" VALUES(29,'d9a120949c298ebd','assistant','**issue-surveyor** is done:

4 issues are open: 2 urgent, 2 without an owner.

- **#5** Document the rate limits of the public API (open · Ana · normal · docs)
- **#4** Invoices are sent twice when the mail server is slow (open · no owner · urgent · billing, bug)
- **#3** Dark mode for the settings page (open · no owner · low · design)
- **#1** Login fails after a password reset (open · Zoe · urgent · auth, bug)',28,NULL,'',NULL,NULL,NULL,NULL,1,'2026-11-22 15:26:51.617577',NULL);
INSERT INTO "message" VALUES(30,'9856a2a6e19fb454','user','list open issues',NULL,'http:local','you','http','e8',NULL,NULL,1,'2026-11-22 15:26:51.649421',NULL);
INSERT INTO "message" VALUES(31,'9856a2a6e19fb454','assistant','Let me look.',30,NULL,'',NULL,NULL,'[["call_f135d351d4151acd", "list_issues", "{\"state\": \"open\"}", "List issues"]]','{"call_f135d351d4151acd": ["{\"issues\": [{\"number\": 5, \"title\": \"Document the rate limits of the public API\", \"state\": \"open\", \"priority\": \"normal\", \"assignee\": \"Ana\", \"labels\": [\"docs\"], \"created_at\": \"2026-11-17T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-17T15:26:41.634691+00:00\"}, {\"number\": 4, \"title\": \"Invoices are sent twice when the mail server is slow\", \"state\": \"open\", \"priority\": \"urgent\", \"assignee\": null, \"labels\": [\"billing\", \"bug\"], \"created_at\": \"2026-11-16T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-16T15:26:41.634691+00:00\"}, {\"number\": 3, \"title\": \"Dark mode for the settings page\", \"state\": \"open\", \"priority\": \"low\", \"assignee\": null, \"labels\": [\"design\"], \"created_at\": \"2026-11-15T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-22T15:26:45.775735+00:00\"}, {\"number\": 1, \"title\": \"Login fails after a password reset\", \"state\": \"open\", \"priority\": \"urgent\", \"assignee\": \"Zoe\", \"labels\": [\"auth\", \"bug\"], \"created_at\": \"2026-11-13T15:26:41.634691+00:00\", \"updated_at\": \"2026-11-22T15:26:46.581084+00:00\"}], \"total\": 4}", true]}',1,'2026-11-22 15:26:51.785618',NULL);
INSERT INTO "message" VALUES(32,'9856a2a6e19fb454','assistant','4 open issues:

- **#5** Document the rate limits of the public API (open · Ana · normal · docs)
- **#4** Invoices are sent twice when the mail server is slow (open · no owner · urgent · billing, bug)
- **#3** Dark mode for the settings page (open · no owner · low · design)
- **#1** Login fails after a password reset (open · Zoe · urgent · auth, bug)',30,NULL,'',NULL,NULL,NULL,NULL,1,'2026-11-22 15:26:53.386840',NULL);
INSERT INTO "message" VALUES(33,'9db9e3d2696520bd','user','assign #6 to Zoe',NULL,'http:local','you','http','f-1',NULL,NULL,1,'2026-11-22 15:27:47.886795',NULL);
INSERT INTO "message" VALUES(34,'9db9e3d2696520bd','assistant','I''d like to assign #6 to Zoe.',33,NULL,'',NULL,'16.1','[["call_d94422ada7b5c351", "update_issue", "{\"number\": 6, \"assignee\": \"Zoe\", \"approval_reason\": \"Requested: \u201cassign #6 to Zoe\u201d\"}", "Change assignee of issue #6"]]',NULL,1,'2026-11-22 15:27:47.886795',NULL);
INSERT INTO "message" VALUES(35,'9db9e3d2696520bd','assistant','Done: assigned #6 to Zoe.',33,NULL,'',NULL,'17.1',NULL,NULL,1,'2026-11-22 15:27:48.886795',NULL);
INSERT INTO "message" VALUES(36,'e77f7bbb6122e4a9','user','set the priority of #3, #5 and #6 to urgent',NULL,'http:local','you','http','f-2',NULL,NULL,1,'2026-11-22 15:27:48.886795',NULL);
INSERT INTO "message" VALUES(37,'e77f7bbb6122e4a9','assistant','I''d like to change #3 (priority: urgent), change #5 (priority: urgent) and change #6 (priority: urgent).',36,NULL,'',NULL,'18.1','[["call_f357d48cc2a537af", "update_issue", "{\"number\": 3, \"priority\": \"urgent\", \"approval_reason\": \"Requested: \u201cset the priority of #3, #5 and #6 to urgent\u201d\"}", "Change priority of issue #3"], ["call_76f8ba2b41490938", "update_issue", "{\"number\": 5, \"priority\": \"urgent\", \"approval_reason\": \"Requested: \u201cset the priority of #3, #5 and #6 to urgent\u201d\"}", "Change priority of issue #5"], ["call_02e035343a81ad0d", "update_issue", "{\"number\": 6, \"priority\": \"urgent\", \"approval_reason\": \"Requested: \u201cset the priority of #3, #5 and #6 to urgent\u201d\"}", "Change priority of issue #6"]]',NULL,1,'2026-11-22 15:27:48.886795',NULL);
INSERT INTO "message" VALUES(38,'ef0c227215fb4678','notice','please',0,NULL,'',NULL,NULL,'[["", "shell_run", "{}", "Run \u201csh -c ''echo two >> a.txt; echo new > b.txt''\u201d"]]',NULL,1,'2026-11-22 15:27:49.886795',NULL);
INSERT INTO "message" VALUES(39,'38d348fa072ff785','user','remember that the printer is in room 4',NULL,'http:local','you','http','e-t0',NULL,NULL,1,'2026-11-22 15:27:54.886795',NULL);
INSERT INTO "message" VALUES(40,'38d348fa072ff785','assistant','I''d like to remember “the printer is in room 4”.',39,NULL,'',NULL,'19.1','[["call_503fdca91803acda", "remember", "{\"about\": \"team\", \"fact\": \"the printer is in room 4\", \"approval_reason\": \"Requested: \u201cremember that the printer is in room 4\u201d\"}", "Remember for the team"]]',NULL,1,'2026-11-22 15:27:54.886795',NULL);
INSERT INTO "message" VALUES(41,'1ed4f2dfa41be8ac','user','every monday at 9 list the issues',NULL,'http:local','you','http','e-t1',NULL,NULL,1,'2026-11-22 15:27:56.886795',NULL);
INSERT INTO "message" VALUES(42,'1ed4f2dfa41be8ac','assistant','I''d like to schedule “list the issues”.',41,NULL,'',NULL,'20.1','[["call_c26889d04871c223", "schedule_task", "{\"every\": \"monday\", \"at\": \"09:00\", \"task\": \"list the issues\", \"approval_reason\": \"Requested: \u201cevery monday at 9 list the issues\u201d\"}", "Schedule \u201clist the issues\u201d"]]',NULL,1,'2026-11-22 15:27:56.886795',NULL);
INSERT INTO "message" VALUES(43,'09e6159207a8db48','user','create an issue ''Today''',NULL,'http:local','you','http','e-t2',NULL,NULL,1,'2026-11-22 15:27:58.886795',NULL);
INSERT INTO "message" VALUES(44,'09e6159207a8db48','assistant','I''d like to create the issue “Today”.',43,NULL,'',NULL,'21.1','[["call_145932b166323ef0", "create_issue", "{\"title\": \"Today\", \"approval_reason\": \"Requested: \u201ccreate an issue ''Today''\u201d\"}", "Create issue \u201cToday\u201d"]]',NULL,1,'2026-11-22 15:27:58.886795',NULL);
INSERT INTO "message" VALUES(45,'09e6159207a8db48','assistant','Done: created the issue “Today” as #7.',43,NULL,'',NULL,'22.1',NULL,NULL,1,'2026-11-22 15:28:00.886795',NULL);
CREATE TABLE mute (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	account VARCHAR NOT NULL, 
	tool_name VARCHAR NOT NULL, 
	set_at DATETIME NOT NULL, 
	until DATETIME NOT NULL
);
CREATE TABLE name (
	"key" VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, standing VARCHAR, 
	PRIMARY KEY ("key")
);
INSERT INTO "name" VALUES('http:local','you',NULL);
INSERT INTO "name" VALUES('http:ana','Ana',NULL);
CREATE TABLE notice (
	id INTEGER NOT NULL, 
	channel VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	"instead" VARCHAR NOT NULL, 
	proposal_id VARCHAR, 
	text VARCHAR NOT NULL, 
	tries INTEGER NOT NULL, 
	created_at DATETIME NOT NULL, 
	next_at DATETIME NOT NULL, offers JSON, 
	PRIMARY KEY (id)
);
CREATE TABLE opened_card (
	id INTEGER NOT NULL, 
	card_id VARCHAR NOT NULL, 
	account VARCHAR NOT NULL, 
	rounds INTEGER NOT NULL, 
	part VARCHAR NOT NULL, 
	at DATETIME NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT opened_card_once UNIQUE (card_id, account, rounds, part)
);
CREATE TABLE opinion (
	proposal_id VARCHAR NOT NULL, 
	round INTEGER NOT NULL, 
	model VARCHAR NOT NULL, 
	raising VARCHAR NOT NULL, 
	waits BOOLEAN NOT NULL, 
	asked_at DATETIME NOT NULL, 
	due_at DATETIME NOT NULL, 
	taken_until DATETIME, 
	PRIMARY KEY (proposal_id, round), 
	FOREIGN KEY(proposal_id) REFERENCES proposal (id)
);
CREATE TABLE "output" (
	id VARCHAR NOT NULL, 
	conversation_id VARCHAR NOT NULL, 
	proposal_id VARCHAR, 
	name VARCHAR NOT NULL, 
	text TEXT NOT NULL, 
	posted BOOLEAN NOT NULL, 
	created_at DATETIME NOT NULL, 
	data BLOB, 
	kind VARCHAR DEFAULT '' NOT NULL, 
	size INTEGER DEFAULT '0' NOT NULL, 
	actor VARCHAR, 
	ref VARCHAR DEFAULT '' NOT NULL, 
	fault VARCHAR DEFAULT '' NOT NULL, 
	ready BOOLEAN DEFAULT 1 NOT NULL, origin VARCHAR, 
	PRIMARY KEY (id)
);
CREATE TABLE page (
	proposal_id VARCHAR NOT NULL, 
	event VARCHAR NOT NULL, 
	more INTEGER NOT NULL, 
	attempts INTEGER NOT NULL, 
	paged_at DATETIME NOT NULL, 
	next_at DATETIME NOT NULL, 
	sending_until DATETIME, 
	is_over BOOLEAN NOT NULL, 
	fault VARCHAR NOT NULL, 
	PRIMARY KEY (proposal_id), 
	FOREIGN KEY(proposal_id) REFERENCES proposal (id)
);
CREATE TABLE process (
	id VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	pid INTEGER NOT NULL, 
	began_at DATETIME NOT NULL, 
	beats INTEGER NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "process" VALUES('b798be6724aaa9cb','vm',11578,'2026-11-22 15:27:54.886795',0);
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
	expires_at DATETIME NOT NULL, told VARCHAR, progress VARCHAR, ended_badly VARCHAR, owner VARCHAR, thing VARCHAR, trial JSON, for_real BOOLEAN, read_again JSON, undo_seconds FLOAT, inverse JSON, undoes VARCHAR, undone_by VARCHAR, undone VARCHAR, undo_until DATETIME, batch VARCHAR, vouched BOOLEAN, schedule VARCHAR, ticked JSON, annotations JSON, connection JSON, chat VARCHAR, agent VARCHAR, notify_at DATETIME, steps JSON, 
	PRIMARY KEY (id), 
	FOREIGN KEY(conversation_id) REFERENCES conversation (id), 
	UNIQUE (idempotency_key)
);
INSERT INTO "proposal" VALUES('209766b65bb6b5d0','call','9856a2a6e19fb454',2,'call_db57ae1cac83dfbd',0,'create_issue','c4bb526f3e189507','{"title": "Printer is on fire", "assignee": "Sam", "priority": "high"}','Create issue “Printer is on fire”','[["title", null, "Printer is on fire"], ["assignee", null, "Sam"], ["priority", null, "high"]]','write','','Requested: “create an issue ''Printer is on fire'' with high priority and assign it to Sam”','http:local','you','{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/a"}',1,'policy writes',1,NULL,86400.0,'2026-11-23 10:38:43.785910',NULL,NULL,NULL,NULL,'','proposed',NULL,1,2,'9dc42b83a7452d960656c574d122b0d82b14db571edbb7d919de479f3fa7960f','nod-209766b65bb6b5d0','[]',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'2026-11-22 15:26:43.702752','2026-11-22 15:26:46.872282','2026-11-23 15:26:43.785910',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('4cccfe0b7a5416a7','call','e32ee20dbfd334e6',4,'call_52cf147b6c611de4',0,'close_issue','9fdf2ecc69129a3f','{"number": 2}','Close issue #2 “Exported CSV has wrong dates for users east of Berlin”','[["state", "open", "closed"]]','write','','Requested: “close #2 and assign #3 to Ana”','http:local','you','{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/b"}',1,'policy writes',1,NULL,86400.0,'2026-11-23 10:38:44.036986',NULL,NULL,NULL,NULL,'','succeeded',NULL,1,4,'43a378cfb35cf5cd692786fd0c5a27565b792755b82a058ae0c1ff4f0e04b60c','nod-4cccfe0b7a5416a7','[["http:local", "http:local", "you", "approve", null, "2026-11-22T15:26:44.085118+00:00"]]','you','http','2026-11-22 15:26:44.085118',NULL,NULL,NULL,0,'{"number": 2, "title": "Exported CSV has wrong dates for users east of Berlin", "state": "closed", "priority": "high", "assignee": "Sam", "labels": ["bug", "export"], "created_at": "2026-11-14T15:26:41.634691+00:00", "updated_at": "2026-11-22T15:26:44.158352+00:00"}',NULL,NULL,'2026-11-22 15:26:44.036986','2026-11-22 15:26:44.176270','2026-11-23 15:26:44.036986','Closed issue #2 “Exported CSV has wrong dates for users east of Berlin”',NULL,NULL,'4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('3c4fc3cb3e94bdaf','call','e32ee20dbfd334e6',4,'call_d389a2534baa3928',1,'update_issue','0b02d8d032277b2c','{"number": 3, "assignee": "Ana"}','Change assignee of issue #3 “Dark mode for the settings page”','[["assignee", null, "Ana"]]','write','','Requested: “close #2 and assign #3 to Ana”','http:local','you','{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/b"}',1,'policy writes',1,NULL,86400.0,'2026-11-23 10:38:44.061926',NULL,NULL,NULL,NULL,'','declined',NULL,1,2,'1fc1ed533f41c3ee31142e8475d9d318f8a694666ce96a29987242fb5aee1b7a','nod-3c4fc3cb3e94bdaf','[["http:local", "http:local", "you", "decline", "Not today", "2026-11-22T15:26:44.190085+00:00"]]','you','http','2026-11-22 15:26:44.190085','Not today',NULL,NULL,0,NULL,NULL,NULL,'2026-11-22 15:26:44.061926','2026-11-22 15:26:44.190085','2026-11-23 15:26:44.061926',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('26141c5481206ef2','call','290b182b1a880fb3',7,'call_56a4b3871d14b607',0,'delete_issue','b95134ed94623b1e','{"number": 4}','Delete issue #4 “Invoices are sent twice when the mail server is slow”','[["title", "Invoices are sent twice when the mail server is slow", null], ["state", "open", null]]','destructive','it cannot be undone','Requested: “delete #4”','http:local','you','{"requester": false, "roles": [], "people": ["http:ana", "http:ben"], "members": null, "four_eyes": true, "lead": null, "escalated": null, "place": "http:local/c"}',2,'policy writes',1,NULL,86400.0,'2026-11-23 10:38:44.912512',NULL,NULL,NULL,NULL,'','proposed',NULL,1,3,'de7561e94d3b5b723ab8adacd4d81438a4a4c47f1b5d327145af07ae094a7e53','nod-26141c5481206ef2','[["http:ana", "http:ana", "Ana", "approve", null, "2026-11-22T15:26:44.887990+00:00"]]',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'2026-11-22 15:26:44.829354','2026-11-22 15:26:46.872282','2026-11-23 15:26:44.912512',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('229ab721f4bd6236','call','d708fef8069324d8',9,'call_e18d83f78657cac3',0,'comment_issue','374392a2bf9118e6','{"number": 1, "body": "hello"}','Comment on issue #1 “Login fails after a password reset”','[["comment", null, "hello"]]','write','','Requested: “comment ''hello'' on #1”','http:local','you','{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/d"}',1,'policy writes',1,NULL,86400.0,'2026-11-23 10:38:45.192482',NULL,NULL,NULL,NULL,'','succeeded',NULL,1,4,'0098568616a973dc8931d32f40607107ccc0d192d41dd862155410aac2e9e564','nod-229ab721f4bd6236','[["http:local", "http:local", "you", "approve", null, "2026-11-22T15:26:45.227965+00:00"]]','you','http','2026-11-22 15:26:45.227965',NULL,NULL,NULL,0,'{"number": 1, "title": "Login fails after a password reset", "state": "open", "priority": "urgent", "assignee": "Ana", "labels": ["auth", "bug"], "created_at": "2026-11-13T15:26:41.634691+00:00", "updated_at": "2026-11-22T15:26:45.288304+00:00", "comment": "hello"}',NULL,NULL,'2026-11-22 15:26:45.192482','2026-11-22 15:26:45.313460','2026-11-23 15:26:45.192482','Commented on issue #1 “Login fails after a password reset”',NULL,NULL,'4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('f1a95024692d4b47','call','d708fef8069324d8',12,'call_5c59c97368230255',0,'comment_issue','374392a2bf9118e6','{"number": 3, "body": "again"}','Comment on issue #3 “Dark mode for the settings page”','[["comment", null, "again"]]','write','','Requested: “comment ''again'' on #3”','http:local','you','{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/d"}',1,'policy writes',1,1,86400.0,'2026-11-23 10:38:45.695099',NULL,NULL,NULL,NULL,'','succeeded',NULL,1,3,'43e7301592ecb4b366faea1aecdd4418836a80b76d083fcb375bf0b9a12c9890','nod-f1a95024692d4b47','[]','your grant G-1',NULL,'2026-11-22 15:26:45.695319',NULL,NULL,NULL,0,'{"number": 3, "title": "Dark mode for the settings page", "state": "open", "priority": "low", "assignee": null, "labels": ["design"], "created_at": "2026-11-15T15:26:41.634691+00:00", "updated_at": "2026-11-22T15:26:45.775735+00:00", "comment": "again"}',NULL,NULL,'2026-11-22 15:26:45.695099','2026-11-22 15:26:46.055583','2026-11-23 15:26:45.695099','Commented on issue #3 “Dark mode for the settings page”',NULL,NULL,'4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('9cba1f057dbd7c36','call','89588cced8fa29f2',15,'call_0f6eb2c3298460f9',0,'update_issue','0b02d8d032277b2c','{"number": 1, "assignee": "Zoe"}','Change assignee of issue #1 “Login fails after a password reset”','[["assignee", "Ana", "Zoe"]]','write','','Requested: “assign #1 to Sam”','http:local','you','{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/e"}',1,'policy writes',1,NULL,86400.0,'2026-11-23 10:38:46.505652',NULL,NULL,NULL,NULL,'','succeeded',NULL,2,5,'4bd1b88b1913b403a097a411057290546ecf2e4c428aedb786e714bbdd12e0bf','nod-9cba1f057dbd7c36','[["http:local", "http:local", "you", "approve", null, "2026-11-22T15:26:46.505652+00:00"]]','you','http','2026-11-22 15:26:46.505652',NULL,'you','[[2, "you", [["assignee", "Sam", "Zoe"]]]]',0,'{"number": 1, "title": "Login fails after a password reset", "state": "open", "priority": "urgent", "assignee": "Zoe", "labels": ["auth", "bug"], "created_at": "2026-11-13T15:26:41.634691+00:00", "updated_at": "2026-11-22T15:26:46.581084+00:00"}',NULL,NULL,'2026-11-22 15:26:46.433630','2026-11-22 15:26:46.618716','2026-11-23 15:26:46.505652','Changed assignee of issue #1 “Login fails after a password reset”',NULL,NULL,'4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('2dcff26fc604ea35','plan','400feafa49c1b548',23,'call_9b1fba22b6d579d7',0,'plan_submit','2eabd2e8bcb02b04','{"summary": "Give 2 open issues without an owner to the person with the least to do.", "steps": [{"description": "Look at the open issues and at who has how much to do", "tools": ["get_issue", "list_issues", "search_issues", "workload"], "estimated_tokens": null}, {"description": "Give #4 (Invoices are sent twice when the mail server is slow) to Ana", "tools": ["update_issue"], "estimated_tokens": 400}, {"description": "Give #3 (Dark mode for the settings page) to Zoe", "tools": ["update_issue"], "estimated_tokens": 400}], "risks": "They may know nothing about it yet.", "alternatives": "Ask in the team who wants it; that takes longer."}','issue-organiser''s plan, version 1: Give 2 open issues without an owner to the person with the least to do.','[["Summary", null, "Give 2 open issues without an owner to the person with the least to do."], ["Step 1", null, "Look at the open issues and at who has how much to do (tools: get_issue, list_issues, search_issues, workload)"], ["Step 2", null, "Give #4 (Invoices are sent twice when the mail server is slow) to Ana (tools: update_issue; about 400 tokens)"], ["Step 3", null, "Give #3 (Dark mode for the settings page) to Zoe (tools: update_issue; about 400 tokens)"], ["Risks", null, "They may know nothing about it yet."], ["Alternatives", null, "Ask in the team who wants it; that takes longer."]]','write','its approval unlocks the teammate''s tools','You asked to reorganise the open issues; these have no owner.','http:local','you','{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/team"}',1,'rule 2: plans human',1,NULL,86400.0,'2026-11-23 10:38:47.886795',NULL,NULL,NULL,NULL,'issue-organiser','proposed',NULL,1,1,'948a76d479a6c1eb04211e9831ec8744eb21f3d9bb7cb1ddb5ce0970d6d48708','nod-2dcff26fc604ea35','[]',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'2026-11-22 15:26:47.886795','2026-11-22 15:26:47.886795','2026-11-23 15:26:47.886795',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('039e6eee45418502','call','9db9e3d2696520bd',34,'call_d94422ada7b5c351',0,'update_issue','0b02d8d032277b2c','{"number": 6, "assignee": "Zoe"}','Change assignee of issue #6 “Upgrade the staging database”','[["assignee", "Priya", "Zoe"]]','write','','Requested: “assign #6 to Zoe”','http:local','you','{"requester": true, "roles": [], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/f"}',1,'policy writes',1,NULL,86400.0,'2026-11-23 10:39:47.886795',NULL,NULL,NULL,NULL,'','succeeded',NULL,1,4,'dd376aa8bf3df1bfb75ae596b74b2c886bbf83415b50326fd73ba125a3755683','nod-039e6eee45418502','[["http:local", "http:local", "you", "approve", null, "2026-11-22T15:27:48.886795+00:00"]]','you','http','2026-11-22 15:27:48.886795',NULL,NULL,NULL,0,'{"number": 6, "title": "Upgrade the staging database", "state": "closed", "priority": "normal", "assignee": "Zoe", "labels": ["operations"], "created_at": "2026-11-18T15:26:41.634691+00:00", "updated_at": "2026-11-22T15:27:48.886795+00:00"}',NULL,NULL,'2026-11-22 15:27:47.886795','2026-11-22 15:27:48.886795','2026-11-23 15:27:47.886795','Changed assignee of issue #6 “Upgrade the staging database”',NULL,NULL,'bcfaa53910d0b506','c235260c701e67f9ed7cbfbfa30bb610591492bc7ba5ff0fd518297d9db1f837',NULL,NULL,'[["assignee", "Zoe", "Zoe", true]]',1800.0,'{"reason": "", "tool_name": "update_issue", "digest": "c57c886561bec92040611a02988d5dd511a4dd2331e45e9d4ecd4bc38399301e", "left": "fa0ddd67a6357cb03b1d770d61ba5d60f97ded6c3b0b33539d82b6dd93fe35b4", "title": "Change assignee of issue #6 \u201cUpgrade the staging database\u201d", "fields": [["Assignee", "Zoe", "Priya"]]}',NULL,NULL,NULL,'2026-11-22 15:57:48.886795',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('b7fcff70745f0d90','call','e77f7bbb6122e4a9',37,'call_f357d48cc2a537af',0,'update_issue','0b02d8d032277b2c','{"number": 3, "priority": "urgent"}','Change priority of issue #3 “Dark mode for the settings page”','[["priority", "low", "urgent"]]','write','','Requested: “set the priority of #3, #5 and #6 to urgent”','http:local','you','{"requester": true, "roles": [], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/g"}',1,'policy writes',1,NULL,86400.0,'2026-11-23 10:39:48.886795',NULL,NULL,NULL,NULL,'','proposed',NULL,1,1,'dd074176cf44b679527188f365227377b1364baf0b7102fd70370b34ae642232','nod-b7fcff70745f0d90','[]',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'2026-11-22 15:27:48.886795','2026-11-22 15:27:48.886795','2026-11-23 15:27:48.886795',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1800.0,NULL,NULL,NULL,NULL,NULL,'b7fcff70745f0d90',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('80ae3d8397db6ed4','call','e77f7bbb6122e4a9',37,'call_76f8ba2b41490938',1,'update_issue','0b02d8d032277b2c','{"number": 5, "priority": "urgent"}','Change priority of issue #5 “Document the rate limits of the public API”','[["priority", "normal", "urgent"]]','write','','Requested: “set the priority of #3, #5 and #6 to urgent”','http:local','you','{"requester": true, "roles": [], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/g"}',1,'policy writes',1,NULL,86400.0,'2026-11-23 10:39:48.886795',NULL,NULL,NULL,NULL,'','proposed',NULL,1,1,'00ee0155eae8d719eb0b682f437eb2f1379820657dd89bcd170e29d34302a60c','nod-80ae3d8397db6ed4','[]',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'2026-11-22 15:27:48.886795','2026-11-22 15:27:48.886795','2026-11-23 15:27:48.886795',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1800.0,NULL,NULL,NULL,NULL,NULL,'b7fcff70745f0d90',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('d1fdc32f24506956','call','e77f7bbb6122e4a9',37,'call_02e035343a81ad0d',2,'update_issue','0b02d8d032277b2c','{"number": 6, "priority": "urgent"}','Change priority of issue #6 “Upgrade the staging database”','[["priority", "normal", "urgent"]]','write','','Requested: “set the priority of #3, #5 and #6 to urgent”','http:local','you','{"requester": true, "roles": [], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/g"}',1,'policy writes',1,NULL,86400.0,'2026-11-23 10:39:48.886795',NULL,NULL,NULL,NULL,'','proposed',NULL,1,1,'e4ecd5bca2b509bb09ddc69fa8b3c7836d3acf1f0a46702167872ca1bfe36446','nod-d1fdc32f24506956','[]',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'2026-11-22 15:27:48.886795','2026-11-22 15:27:48.886795','2026-11-23 15:27:48.886795',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1800.0,NULL,NULL,NULL,NULL,NULL,'b7fcff70745f0d90',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('6a77643374fa4365','call','ef0c227215fb4678',38,'',0,'shell_run','ec889daa780913d3','{"argv": ["sh", "-c", "echo two >> a.txt; echo new > b.txt"]}','Run “sh -c ''echo two >> a.txt; echo new > b.txt''”','[["command", null, "sh -c ''echo two >> a.txt; echo new > b.txt''"], ["folder", null, "/tmp/workspace"], ["when tried", null, "ended with code 0, 2 files would change"], ["content of a.txt", "one\n", "one\ntwo\n"], ["content of b.txt", null, "new\n"]]','destructive','> overwrites b.txt','','http:local','you','{"requester": true, "roles": [], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/h"}',1,'policy writes',1,NULL,86400.0,'2026-11-23 10:39:49.886795',NULL,NULL,NULL,NULL,'','proposed',NULL,1,1,'23357c83d264a06caf698d4e611ed8dd6e37573d0071da4f1814a46e315258d5','nod-6a77643374fa4365','[]',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'2026-11-22 15:27:49.886795','2026-11-22 15:27:49.886795','2026-11-23 15:27:49.886795',NULL,NULL,NULL,NULL,NULL,'{"tried": true, "cage": "bubblewrap 0.8.0, no network", "exit": 0, "files": [{"path": "a.txt", "change": "changed", "old_size": 4, "new_size": 8, "code": false, "field": "content of a.txt"}, {"path": "b.txt", "change": "added", "old_size": null, "new_size": 4, "code": false, "field": "content of b.txt"}], "token": "fa51438998c7a21a38a741ec66e62743677936e88d939f6ec106504c1f502035"}',NULL,NULL,1800.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'http:local/h',NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('cfe7a01f5c4c5d70','memory','38d348fa072ff785',40,'call_503fdca91803acda',0,'remember','f9ebcf8cbbb55de8','{"fact": "the printer is in room 4", "about": "team"}','Remember for the team','[["fact", null, "the printer is in room 4"]]','write','','Requested: “remember that the printer is in room 4”','http:local','you','{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/today0"}',1,'policy writes',1,NULL,86400.0,'2026-11-23 10:39:54.886795',NULL,NULL,NULL,NULL,'','proposed',NULL,1,1,'f1d1bfbc23bb445c42a94d576e59dcda4b0a3c2e4e51be47e042d117cd5fd958','nod-cfe7a01f5c4c5d70','[]',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'2026-11-22 15:27:54.886795','2026-11-22 15:27:54.886795','2026-11-23 15:27:54.886795',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1800.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('ee9524ae941d477d','call','1ed4f2dfa41be8ac',42,'call_c26889d04871c223',0,'schedule_task','17b6b931f9e47dae','{"task": "list the issues", "at": "2026-11-23 09:00", "time_zone": "UTC", "every": "monday"}','Schedule “list the issues”','[["task", null, "list the issues", true], ["when", null, "every Monday at 09:00 (UTC)"], ["until", null, "no end"], ["next_times", null, "Monday 23 Nov 2026, 09:00\nMonday 30 Nov 2026, 09:00\nMonday 7 Dec 2026, 09:00"], ["each_run", null, "in the name of who asks; its changes ask as always"]]','write','','Requested: “every monday at 9 list the issues”','http:local','you','{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/today1"}',1,'policy writes',1,NULL,86400.0,'2026-11-23 10:39:56.886795',NULL,NULL,NULL,NULL,'','proposed',NULL,1,1,'2d16a39b06ef91e61d6a857746cfa2a0f34f5ee4f4b8e9eeb18ac90e22c1e22b','nod-ee9524ae941d477d','[]',NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,'2026-11-22 15:27:56.886795','2026-11-22 15:27:56.886795','2026-11-23 15:27:56.886795',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1800.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "proposal" VALUES('5b07bddf00640447','call','09e6159207a8db48',44,'call_145932b166323ef0',0,'create_issue','c4bb526f3e189507','{"title": "Today", "body": "", "assignee": "", "priority": "normal", "labels": []}','Create issue “Today”','[["title", null, "Today", true], ["priority", null, "normal"]]','write','','Requested: “create an issue ''Today''”','http:local','you','{"requester": true, "roles": ["admin"], "people": [], "members": null, "four_eyes": false, "lead": null, "escalated": null, "place": "http:local/today2"}',1,'policy writes',1,NULL,86400.0,'2026-11-23 10:39:58.886795',NULL,NULL,NULL,NULL,'','succeeded',NULL,1,4,'a9e7e06017360c6155d89474eeaf26ebd468a7814b889bf3dad60d27009445a0','nod-5b07bddf00640447','[["http:local", "http:local", "you", "approve", null, "2026-11-22T15:28:00.886795+00:00"]]','you','http','2026-11-22 15:28:00.886795',NULL,NULL,NULL,0,'{"number": 7, "title": "Today", "state": "open", "priority": "normal", "assignee": null, "labels": [], "created_at": "2026-11-22T15:28:00.886795+00:00", "updated_at": "2026-11-22T15:28:00.886795+00:00"}',NULL,NULL,'2026-11-22 15:27:58.886795','2026-11-22 15:28:00.886795','2026-11-23 15:27:58.886795','Created issue #7 “Today”',NULL,NULL,'b798be6724aaa9cb',NULL,NULL,NULL,'[["title", "Today", "Today", true], ["priority", "normal", "normal", true]]',1800.0,'{"reason": "", "tool_name": "delete_issue", "digest": "2eaf892c600c74bcec19fd881f37587c5afcaa8cd43edb5deb0efd5ce9d9f5cd", "left": "38411da9b416ff0d291d8f1318cce138d4fe8c0e0b365b37b44bef7eb7c1062c", "title": "Delete issue #7 \u201cToday\u201d", "fields": [["Title", "Today", null], ["State", "open", null]]}',NULL,NULL,NULL,'2026-11-22 15:58:00.886795',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE push_again (
	card_id VARCHAR NOT NULL, 
	asked_at DATETIME NOT NULL, 
	PRIMARY KEY (card_id), 
	FOREIGN KEY(card_id) REFERENCES proposal (id)
);
CREATE TABLE push_device (
	id VARCHAR NOT NULL, 
	account VARCHAR NOT NULL, 
	account_name VARCHAR NOT NULL, 
	session VARCHAR, 
	until DATETIME, 
	name VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	endpoint VARCHAR NOT NULL, 
	secret VARCHAR NOT NULL, 
	public_key VARCHAR NOT NULL, 
	vapid VARCHAR NOT NULL, 
	is_detailed BOOLEAN NOT NULL, 
	created_at DATETIME NOT NULL, 
	sent_at DATETIME, 
	tested_at DATETIME, 
	crowded_at DATETIME, 
	next_at DATETIME NOT NULL, 
	failures INTEGER NOT NULL, 
	fault VARCHAR NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE push_notification (
	card_id VARCHAR NOT NULL, 
	device_id VARCHAR NOT NULL, 
	wanted INTEGER NOT NULL, 
	sent INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	is_shown BOOLEAN NOT NULL, 
	tries INTEGER NOT NULL, 
	next_at DATETIME NOT NULL, 
	PRIMARY KEY (card_id, device_id), 
	FOREIGN KEY(card_id) REFERENCES proposal (id), 
	FOREIGN KEY(device_id) REFERENCES push_device (id)
);
CREATE TABLE push_quiet (
	account VARCHAR NOT NULL, 
	begins VARCHAR NOT NULL, 
	ends VARCHAR NOT NULL, 
	zone VARCHAR NOT NULL, 
	set_at DATETIME NOT NULL, 
	PRIMARY KEY (account)
);
CREATE TABLE reached (
	account VARCHAR NOT NULL, 
	proposal_id VARCHAR NOT NULL, 
	reached_at DATETIME NOT NULL, 
	PRIMARY KEY (account, proposal_id), 
	FOREIGN KEY(proposal_id) REFERENCES proposal (id)
);
CREATE TABLE read_decision (
	id INTEGER NOT NULL, 
	proposal_id VARCHAR NOT NULL, 
	account VARCHAR NOT NULL, 
	at DATETIME NOT NULL, 
	rounds INTEGER NOT NULL, 
	words INTEGER NOT NULL, 
	shown_at DATETIME, 
	PRIMARY KEY (id), 
	CONSTRAINT read_decision_once UNIQUE (proposal_id, account, at)
);
CREATE TABLE revocation (
	id VARCHAR NOT NULL, 
	server VARCHAR NOT NULL, 
	url VARCHAR NOT NULL, 
	client VARCHAR NOT NULL, 
	tokens VARCHAR NOT NULL, 
	found VARCHAR NOT NULL, 
	tries INTEGER NOT NULL, 
	next_at DATETIME NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE rule (
	id INTEGER NOT NULL, 
	subject VARCHAR NOT NULL, 
	scope VARCHAR NOT NULL, 
	pattern VARCHAR NOT NULL, 
	value JSON NOT NULL, 
	set_by VARCHAR NOT NULL, 
	set_at DATETIME NOT NULL, 
	ended_by VARCHAR, 
	ended_at DATETIME, condition VARCHAR, who VARCHAR, hours JSON, until DATETIME, 
	PRIMARY KEY (id)
);
INSERT INTO "rule" VALUES(1,'quorum','*','delete_issue','[2, 0]','http:local','2026-11-22 15:26:41.796609',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "rule" VALUES(2,'plans','*','*','"human"','http:local','2026-11-22 15:26:41.866940',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "rule" VALUES(3,'deciders','*','delete_issue','["http:ana", "http:ben"]','http:local','2026-11-22 15:26:41.892034',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "rule" VALUES(4,'quorum','*','update_issue','[1, 0]','http:local','2026-11-22 15:27:47.886795',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "rule" VALUES(5,'deciders','*','update_issue','["requester"]','http:local','2026-11-22 15:27:47.886795',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "rule" VALUES(6,'quorum','*','shell_run','[1, 0]','http:local','2026-11-22 15:27:47.886795',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "rule" VALUES(7,'deciders','*','shell_run','["requester"]','http:local','2026-11-22 15:27:47.886795',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "rule" VALUES(8,'policy','*','update_issue','"never"','http:local','2026-11-22 15:27:49.886795',NULL,NULL,'priority in (low, normal)',NULL,NULL,NULL);
CREATE TABLE schedule (
	id VARCHAR NOT NULL, 
	conversation_id VARCHAR NOT NULL, 
	person VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	task VARCHAR NOT NULL, 
	start DATETIME, 
	repeats VARCHAR NOT NULL, 
	zone VARCHAR NOT NULL, 
	until DATETIME, 
	follows VARCHAR, 
	created_at DATETIME NOT NULL, 
	due_at DATETIME, 
	runs INTEGER NOT NULL, 
	ran_for DATETIME, 
	last_at DATETIME, 
	spent INTEGER NOT NULL, 
	paused_at DATETIME, 
	ended_at DATETIME, 
	ended_by VARCHAR NOT NULL, 
	why VARCHAR NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(conversation_id) REFERENCES conversation (id)
);
CREATE TABLE shown_copy (
	id INTEGER NOT NULL, 
	card_id VARCHAR NOT NULL, 
	channel VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	ref VARCHAR NOT NULL, 
	rounds INTEGER NOT NULL, 
	at DATETIME NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT shown_copy_once UNIQUE (channel, ref)
);
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
INSERT INTO "teammate" VALUES('827a2b98f3c7bb29','d9a120949c298ebd','http:local/team','issue-surveyor','issue surveyor','Survey the open issues','["get_issue", "list_issues", "search_issues", "workload"]',0,0,17,0,NULL,'done','4 issues are open: 2 urgent, 2 without an owner.

- **#5** Document the rate limits of the public API (open · Ana · normal · docs)
- **#4** Invoices are sent twice when the mail server is slow (open · no owner · urgent · billing, bug)
- **#3** Dark mode for the settings page (open · no owner · low · design)
- **#1** Login fails after a password reset (open · Zoe · urgent · auth, bug)','2026-11-22 15:26:47.128570','2026-11-22 15:26:49.579158');
INSERT INTO "teammate" VALUES('400feafa49c1b548','d9a120949c298ebd','http:local/team','issue-organiser','issue organiser','Reorganise the open issues','["get_issue", "list_issues", "search_issues", "workload", "update_issue"]',1,1,17,1,'2dcff26fc604ea35','working','','2026-11-22 15:26:47.128570',NULL);
CREATE TABLE token (
	label VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	hash VARCHAR NOT NULL, 
	made_by VARCHAR NOT NULL, 
	made_at DATETIME NOT NULL, 
	revoked_by VARCHAR, 
	revoked_at DATETIME, tools JSON, person VARCHAR, person_name VARCHAR, accounts JSON, servers JSON, until DATETIME, agreed_at DATETIME, known JSON, last_used_at DATETIME, 
	PRIMARY KEY (label)
);
CREATE TABLE tool_version (
	name VARCHAR NOT NULL, 
	version VARCHAR NOT NULL, 
	parameters JSON NOT NULL, 
	PRIMARY KEY (name, version)
);
INSERT INTO "tool_version" VALUES('create_issue','c4bb526f3e189507','{"additionalProperties": false, "properties": {"title": {"description": "one line, up to 200 characters", "maxLength": 200, "minLength": 1, "type": "string"}, "body": {"anyOf": [{"maxLength": 20000, "type": "string"}, {"type": "null"}], "description": "what is wrong or wanted, in Markdown", "default": ""}, "assignee": {"anyOf": [{"maxLength": 80, "type": "string"}, {"type": "null"}], "description": "who should do it; no one when not given", "default": ""}, "priority": {"anyOf": [{"enum": ["low", "normal", "high", "urgent"], "type": "string"}, {"type": "null"}], "description": "normal when not given", "default": "normal"}, "labels": {"anyOf": [{"items": {"maxLength": 40, "minLength": 1, "type": "string"}, "maxItems": 10, "type": "array"}, {"type": "null"}], "description": "up to 10 labels of up to 40 characters", "default": []}}, "required": ["title", "body", "assignee", "priority", "labels"], "type": "object"}');
INSERT INTO "tool_version" VALUES('close_issue','9fdf2ecc69129a3f','{"additionalProperties": false, "properties": {"number": {"description": "the issue''s number, without #", "maximum": 2147483647, "minimum": 1, "type": "integer"}, "reason": {"anyOf": [{"maxLength": 20000, "minLength": 1, "type": "string"}, {"type": "null"}], "description": "why; it is added as a comment"}}, "required": ["number", "reason"], "type": "object"}');
INSERT INTO "tool_version" VALUES('update_issue','0b02d8d032277b2c','{"additionalProperties": false, "properties": {"number": {"description": "the issue''s number, without #", "maximum": 2147483647, "minimum": 1, "type": "integer"}, "title": {"anyOf": [{"maxLength": 200, "minLength": 1, "type": "string"}, {"type": "null"}], "description": "the new title, one line"}, "body": {"anyOf": [{"maxLength": 20000, "type": "string"}, {"type": "null"}], "description": "the new body; it replaces the old one, \"\" empties it"}, "assignee": {"anyOf": [{"maxLength": 80, "type": "string"}, {"type": "null"}], "description": "who should do it; \"\" for no one"}, "priority": {"anyOf": [{"enum": ["low", "normal", "high", "urgent"], "type": "string"}, {"type": "null"}], "description": "the new priority"}, "labels": {"anyOf": [{"items": {"maxLength": 40, "minLength": 1, "type": "string"}, "maxItems": 10, "type": "array"}, {"type": "null"}], "description": "all labels it should have; they replace the old ones, [] removes all"}, "state": {"anyOf": [{"enum": ["open", "closed"], "type": "string"}, {"type": "null"}], "description": "open to reopen, closed to close"}}, "required": ["number", "title", "body", "assignee", "priority", "labels", "state"], "type": "object"}');
INSERT INTO "tool_version" VALUES('delete_issue','b95134ed94623b1e','{"additionalProperties": false, "properties": {"number": {"description": "the issue''s number, without #", "maximum": 2147483647, "minimum": 1, "type": "integer"}}, "required": ["number"], "type": "object"}');
INSERT INTO "tool_version" VALUES('comment_issue','374392a2bf9118e6','{"additionalProperties": false, "properties": {"number": {"description": "the issue''s number, without #", "maximum": 2147483647, "minimum": 1, "type": "integer"}, "body": {"description": "the comment, in Markdown", "maxLength": 20000, "minLength": 1, "type": "string"}}, "required": ["number", "body"], "type": "object"}');
INSERT INTO "tool_version" VALUES('plan_submit','2eabd2e8bcb02b04','{"additionalProperties": false, "properties": {"summary": {"description": "what will be different in the end, in a sentence or two", "maxLength": 2000, "minLength": 1, "type": "string"}, "steps": {"description": "what you will do, in order, each with the names of the tools it takes", "items": {"additionalProperties": false, "description": "One step of a plan.", "properties": {"description": {"maxLength": 2000, "minLength": 1, "type": "string"}, "tools": {"anyOf": [{"items": {"type": "string"}, "maxItems": 20, "type": "array"}, {"type": "null"}]}, "estimated_tokens": {"anyOf": [{"minimum": 0, "type": "integer"}, {"type": "null"}]}}, "required": ["description", "tools", "estimated_tokens"], "type": "object"}, "maxItems": 20, "minItems": 1, "type": "array"}, "risks": {"anyOf": [{"items": {"maxLength": 2000, "minLength": 1, "type": "string"}, "type": "array"}, {"maxLength": 2000, "minLength": 1, "type": "string"}, {"type": "null"}], "description": "what could go wrong"}, "alternatives": {"anyOf": [{"items": {"maxLength": 2000, "minLength": 1, "type": "string"}, "type": "array"}, {"maxLength": 2000, "minLength": 1, "type": "string"}, {"type": "null"}], "description": "what you decided against, and why"}}, "required": ["summary", "steps", "risks", "alternatives"], "type": "object"}');
INSERT INTO "tool_version" VALUES('shell_run','ec889daa780913d3','{"additionalProperties": false, "properties": {"argv": {"description": "the program and its arguments, for example [\"git\", \"status\"]", "items": {"maxLength": 20000, "type": "string"}, "maxItems": 200, "minItems": 1, "type": "array"}, "seconds": {"anyOf": [{"maximum": 600, "minimum": 1, "type": "integer"}, {"type": "null"}], "description": "how long it may run, at most 600; 60 where it is not given"}}, "required": ["argv", "seconds"], "type": "object"}');
INSERT INTO "tool_version" VALUES('remember','f9ebcf8cbbb55de8','{"additionalProperties": false, "properties": {"fact": {"description": "the fact as one full sentence that can be understood later", "minLength": 1, "type": "string"}, "about": {"description": "for whom: person (who asks, only in their private chats), place (this chat of several people), or team", "enum": ["person", "place", "team"], "type": "string"}, "until": {"anyOf": [{"format": "date", "type": "string"}, {"type": "null"}], "description": "the last day on which it holds, where it ends by itself"}}, "required": ["fact", "about", "until"], "type": "object"}');
INSERT INTO "tool_version" VALUES('schedule_task','17b6b931f9e47dae','{"additionalProperties": false, "properties": {"task": {"description": "all that is to be done then, such as list the issues that are overdue, or remind Ana to call", "maxLength": 2000, "minLength": 1, "type": "string"}, "at": {"anyOf": [{"maxLength": 100, "type": "string"}, {"type": "null"}], "description": "when first, such as tomorrow 16:00, friday 9:00, 09:00, 2026-12-01 18:00 or in 2h", "default": ""}, "every": {"anyOf": [{"maxLength": 100, "type": "string"}, {"type": "null"}], "description": "how often, such as day, weekday, week, month, monday and thursday, 2h, 3d; empty for once", "default": ""}, "until": {"anyOf": [{"maxLength": 100, "type": "string"}, {"type": "null"}], "description": "after when it ends, such as 2026-12-31; empty for no end", "default": ""}, "time_zone": {"anyOf": [{"maxLength": 100, "type": "string"}, {"type": "null"}], "description": "whose time that is, such as Europe/Berlin; empty for that of who asks", "default": ""}, "after_proposal": {"anyOf": [{"maxLength": 100, "type": "string"}, {"type": "null"}], "description": "the id of a proposal instead of a time: it runs once when that has ended", "default": ""}}, "required": ["task", "at", "every", "until", "time_zone", "after_proposal"], "type": "object"}');
CREATE TABLE trial_token (
	id VARCHAR NOT NULL, 
	content TEXT NOT NULL, 
	created_at DATETIME NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "trial_token" VALUES('fa51438998c7a21a38a741ec66e62743677936e88d939f6ec106504c1f502035','{"exit": 0, "stdout": "", "stderr": "", "changes": [{"path": "a.txt", "old": {"kind": "file", "mode": 420, "size": 4, "mark": "sha256:2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806"}, "new": {"kind": "file", "mode": 420, "size": 8, "mark": "sha256:c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8"}, "content": "eAHLz0vlKinP5wIADS8CsQ=="}, {"path": "b.txt", "old": null, "new": {"kind": "file", "mode": 420, "size": 4, "mark": "sha256:7aa7a5359173d05b63cfd682e3c38487f3cb4f7f1d60659fe59fab1505977d4c"}, "content": "eAHLSy3nAgAD4wFV"}]}','2026-11-22 15:27:49.886795');
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
	ended_at DATETIME, owner VARCHAR DEFAULT '' NOT NULL, retry_at DATETIME, cost FLOAT, model VARCHAR, asker VARCHAR, asked INTEGER, 
	PRIMARY KEY (id), 
	FOREIGN KEY(conversation_id) REFERENCES conversation (id)
);
INSERT INTO "turn" VALUES(1,'9856a2a6e19fb454','waiting',1,1,0,0,NULL,'2026-11-22 15:26:42.003677','2026-11-22 15:26:43.703130','4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "turn" VALUES(2,'e32ee20dbfd334e6','waiting',1,1,0,0,NULL,'2026-11-22 15:26:43.780017','2026-11-22 15:26:44.062263','4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "turn" VALUES(3,'e32ee20dbfd334e6','done',1,1,0,0,NULL,'2026-11-22 15:26:44.190085','2026-11-22 15:26:44.640954','4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "turn" VALUES(4,'290b182b1a880fb3','waiting',1,1,0,0,NULL,'2026-11-22 15:26:44.664917','2026-11-22 15:26:44.829624','4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "turn" VALUES(5,'d708fef8069324d8','waiting',1,1,0,0,NULL,'2026-11-22 15:26:44.937556','2026-11-22 15:26:45.192790','4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "turn" VALUES(6,'d708fef8069324d8','done',1,1,0,0,NULL,'2026-11-22 15:26:45.313460','2026-11-22 15:26:45.453018','4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "turn" VALUES(7,'d708fef8069324d8','waiting',1,1,0,0,NULL,'2026-11-22 15:26:45.477591','2026-11-22 15:26:45.695319','4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "turn" VALUES(8,'d708fef8069324d8','done',1,1,0,0,NULL,'2026-11-22 15:26:46.055583','2026-11-22 15:26:46.199280','4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "turn" VALUES(9,'89588cced8fa29f2','waiting',1,1,0,0,NULL,'2026-11-22 15:26:46.236384','2026-11-22 15:26:46.433802','4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "turn" VALUES(10,'89588cced8fa29f2','done',1,1,0,0,NULL,'2026-11-22 15:26:46.618716','2026-11-22 15:26:46.773475','4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "turn" VALUES(11,'d9a120949c298ebd','done',1,3,0,0,NULL,'2026-11-22 15:26:46.961993','2026-11-22 15:26:48.270913','4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "turn" VALUES(12,'827a2b98f3c7bb29','done',1,2,0,0,NULL,'2026-11-22 15:26:47.128570','2026-11-22 15:26:49.579158','4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "turn" VALUES(13,'400feafa49c1b548','waiting',1,2,0,0,NULL,'2026-11-22 15:26:47.128570','2026-11-22 15:26:47.887467','4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "turn" VALUES(14,'d9a120949c298ebd','done',1,1,0,0,NULL,'2026-11-22 15:26:49.579158','2026-11-22 15:26:51.617577','4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "turn" VALUES(15,'9856a2a6e19fb454','done',1,2,0,0,NULL,'2026-11-22 15:26:51.649421','2026-11-22 15:26:53.386840','4d7ac52514fd86b6',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "turn" VALUES(16,'9db9e3d2696520bd','waiting',0,1,0,0,NULL,'2026-11-22 15:27:47.886795','2026-11-22 15:27:47.886795','bcfaa53910d0b506',NULL,NULL,'offline demo model','http:local',33);
INSERT INTO "turn" VALUES(17,'9db9e3d2696520bd','done',0,1,0,0,NULL,'2026-11-22 15:27:48.886795','2026-11-22 15:27:48.886795','bcfaa53910d0b506',NULL,NULL,'offline demo model','http:local',33);
INSERT INTO "turn" VALUES(18,'e77f7bbb6122e4a9','waiting',0,1,0,0,NULL,'2026-11-22 15:27:48.886795','2026-11-22 15:27:48.886795','bcfaa53910d0b506',NULL,NULL,'offline demo model','http:local',36);
INSERT INTO "turn" VALUES(19,'38d348fa072ff785','waiting',0,1,0,0,NULL,'2026-11-22 15:27:54.886795','2026-11-22 15:27:54.886795','b798be6724aaa9cb',NULL,NULL,'offline demo model','http:local',39);
INSERT INTO "turn" VALUES(20,'1ed4f2dfa41be8ac','waiting',0,1,0,0,NULL,'2026-11-22 15:27:56.886795','2026-11-22 15:27:56.886795','b798be6724aaa9cb',NULL,NULL,'offline demo model','http:local',41);
INSERT INTO "turn" VALUES(21,'09e6159207a8db48','waiting',0,1,0,0,NULL,'2026-11-22 15:27:58.886795','2026-11-22 15:27:58.886795','b798be6724aaa9cb',NULL,NULL,'offline demo model','http:local',43);
INSERT INTO "turn" VALUES(22,'09e6159207a8db48','done',0,1,0,0,NULL,'2026-11-22 15:28:00.886795','2026-11-22 15:28:00.886795','b798be6724aaa9cb',NULL,NULL,'offline demo model','http:local',43);
CREATE INDEX ix_account_person_id ON account (person_id);
CREATE UNIQUE INDEX one_open_conversation ON conversation (channel, "key") WHERE ended_at IS NULL;
CREATE INDEX board_behind ON board (lead_id) WHERE rendered < wanted AND gone = 0;
CREATE INDEX teammate_place ON teammate (place);
CREATE INDEX event_unhandled ON event (channel, id) WHERE handled_at IS NULL;
CREATE INDEX ix_issue_state ON issue (state);
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
CREATE INDEX notice_due ON notice (next_at);
CREATE INDEX event_handled ON event (handled_at) WHERE handled_at IS NOT NULL;
CREATE INDEX turn_to_retry ON turn (retry_at) WHERE retry_at IS NOT NULL;
CREATE INDEX absence_now ON absence (id) WHERE ended_at IS NULL;
CREATE INDEX proposal_made ON proposal (created_at, id);
CREATE INDEX proposal_made_by ON proposal (requester, created_at, id);
CREATE INDEX proposal_batch ON proposal (batch) WHERE batch IS NOT NULL;
CREATE INDEX proposal_undo ON proposal (undo_until) WHERE undo_until IS NOT NULL;
CREATE INDEX ix_inverse_conversation_id ON inverse (conversation_id);
CREATE INDEX ix_inverse_created_at ON inverse (created_at);
CREATE INDEX trial_token_created ON trial_token (created_at);
CREATE INDEX ledger_trial ON ledger (actor, at) WHERE thing = 'trial';
CREATE INDEX turn_of_order ON turn (asked) WHERE cost IS NOT NULL;
CREATE INDEX memory_of_scope ON memory (about, scope);
CREATE INDEX output_created ON output (created_at);
CREATE INDEX output_unposted ON output (conversation_id, created_at, id) WHERE posted = 0;
CREATE INDEX ix_output_conversation_id ON output (conversation_id);
CREATE INDEX ledger_context ON ledger ("key", person) WHERE thing = 'context';
CREATE INDEX memory_due ON memory (until) WHERE until IS NOT NULL;
CREATE INDEX output_of_person ON output (actor, created_at) WHERE actor IS NOT NULL;
CREATE INDEX schedule_due ON schedule (due_at) WHERE ended_at IS NULL AND paused_at IS NULL AND due_at IS NOT NULL;
CREATE INDEX schedule_follows ON schedule (follows) WHERE ended_at IS NULL AND paused_at IS NULL AND follows IS NOT NULL AND runs = 0;
CREATE INDEX schedule_of_person ON schedule (person) WHERE ended_at IS NULL;
CREATE INDEX schedule_last ON schedule (last_at) WHERE ended_at IS NULL;
CREATE INDEX schedule_in ON schedule (conversation_id) WHERE ended_at IS NULL;
CREATE INDEX proposal_waiting ON proposal (id) WHERE NOT state <> 'proposed';
CREATE INDEX turn_begun ON turn (created_at);
CREATE INDEX connecting_of_person ON connecting (person);
CREATE INDEX connecting_until ON connecting (until);
CREATE UNIQUE INDEX connection_of_account ON connection (server, issuer, subject) WHERE subject <> '' AND identity = 'person';
CREATE INDEX connection_of_owner ON connection (server, identity, owner);
CREATE INDEX revocation_due ON revocation (next_at);
CREATE INDEX proposal_of_chat ON proposal (chat, tool_name, created_at) WHERE chat IS NOT NULL;
CREATE INDEX proposal_shared_by ON proposal (requester, tool_name, created_at) WHERE chat IS NOT NULL;
CREATE INDEX proposal_of_agent ON proposal (agent, state) WHERE agent IS NOT NULL;
CREATE INDEX token_of_person ON token (person) WHERE person IS NOT NULL;
CREATE INDEX agent_call_same ON agent_call (agent, digest, created_at);
CREATE INDEX ix_agent_call_created_at ON agent_call (created_at);
CREATE INDEX opinion_waiting ON opinion (asked_at) WHERE waits = 1;
CREATE INDEX proposal_notify ON proposal (notify_at) WHERE NOT state <> 'proposed' AND notify_at IS NOT NULL;
CREATE INDEX held_of_card ON held (proposal_id);
CREATE INDEX held_now ON held (account, until) WHERE released_at IS NULL;
CREATE INDEX held_unrecorded ON held (released_at) WHERE recorded = 0;
CREATE INDEX reached_lately ON reached (reached_at);
CREATE INDEX page_open ON page (next_at) WHERE is_over = 0;
CREATE INDEX push_device_of_account ON push_device (account);
CREATE INDEX push_notification_due ON push_notification (device_id, next_at) WHERE sent < wanted;
CREATE INDEX push_notification_shown ON push_notification (card_id) WHERE is_shown = 1;
CREATE INDEX ix_mute_account ON mute (account);
CREATE INDEX ix_shown_copy_card_id ON shown_copy (card_id);
CREATE INDEX ix_shown_copy_at ON shown_copy (at);
CREATE INDEX ix_opened_card_at ON opened_card (at);
CREATE INDEX ix_read_decision_at ON read_decision (at);
CREATE INDEX held_recorded ON held (released_at) WHERE recorded = 1;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('issue',7);
COMMIT;
