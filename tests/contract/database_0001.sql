-- A database that the program of revision 0001 has written.
BEGIN TRANSACTION;
CREATE TABLE accounts (
	payer VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	reserved BIGINT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (payer)
);
INSERT INTO "accounts" VALUES('run-1',2,0,'{"payer":"run-1","limit":100,"reserved":0,"spent":0,"soft":0.9}');
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE charges (
	seq INTEGER NOT NULL, 
	payer VARCHAR NOT NULL, 
	rental VARCHAR NOT NULL, 
	job VARCHAR, 
	project VARCHAR NOT NULL, 
	amount BIGINT NOT NULL, 
	PRIMARY KEY (seq)
);
CREATE TABLE epochs (
	number INTEGER NOT NULL, 
	holder VARCHAR NOT NULL, 
	began_at FLOAT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "epochs" VALUES(1,'host',1.0);
CREATE TABLE events (
	seq INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	kind VARCHAR NOT NULL, 
	subject VARCHAR NOT NULL, 
	epoch INTEGER, 
	body TEXT NOT NULL, 
	PRIMARY KEY (seq)
);
INSERT INTO "events" VALUES(1,0.0,'run-opened','run-1',NULL,'{"at":0.0,"kind":"run-opened","run":{"id":"run-1","opened_at":0.0,"user":"ann","folder":"/lab","files":[],"digest":"","budget":100,"soft_share":0.9}}');
INSERT INTO "events" VALUES(2,1.0,'node-joined','host',NULL,'{"at":1.0,"kind":"node-joined","node":{"id":"host","facts":{"cpu":2.0,"memory_gib":16.0,"disk_gib":100.0,"devices":[{"id":"gpu-0","model":"A100-40GB","memory_gib":40.0,"declared":false}],"labels":{},"mounts":[],"runtimes":["process"]},"state":"ready","owned":true,"provider":"local","agent":"","public_key":"","joined_at":null,"lost_at":null}}');
INSERT INTO "events" VALUES(3,0.0,'submitted','done',NULL,'{"at":0.0,"job":"done","kind":"submitted","first":{"id":"done","run":"run-1","spec":{"name":"train","project":"nlp","image":null,"workdir":null,"setup":null,"command":"true","env":{},"secrets":[],"resources":{"gpu":{"count":1,"count_most":null,"memory_gib":{"least":0.0,"most":null},"models":[],"share":0.5},"cpu":1.0,"memory_gib":null,"disk_gib":null,"shm_gib":null,"disk_io_mb_s":null,"network_mb_s":null},"mounts":{},"nodes":1,"duration_s":null,"reference":null,"max_duration_s":null,"deadline":null,"priority":50,"preemptible":true,"wait_max_s":null,"market":"auto","checkpoint":null,"retry":{"max":3,"on":["preemption","node-loss"],"backoff_s":30.0},"budget":null,"inputs":[],"outputs":[],"after":[],"array":{},"where":{"labels":{},"not_on":[]},"affinity":["llama"],"notify":{"on":[],"webhook":null},"speeds":{},"value_of_time_usd_h":null},"state":"pending","submitted_at":0.0,"after":[],"workdir_key":null,"attempt":0,"placement":null,"order_posted":false,"stop_posted":false,"placed_at":null,"started_at":null,"first_started_at":null,"ended_at":null,"exit_code":null,"wish":null,"reason":null,"checkpoint":null,"late_said":false,"retries":0,"not_before":null,"run_s":0.0,"lost_s":0.0,"interruptions":0}}');
INSERT INTO "events" VALUES(4,0.0,'submitted','running',NULL,'{"at":0.0,"job":"running","kind":"submitted","first":{"id":"running","run":"run-1","spec":{"name":"train","project":"nlp","image":null,"workdir":null,"setup":null,"command":"true","env":{},"secrets":[],"resources":{"gpu":{"count":1,"count_most":null,"memory_gib":{"least":0.0,"most":null},"models":[],"share":0.5},"cpu":1.0,"memory_gib":null,"disk_gib":null,"shm_gib":null,"disk_io_mb_s":null,"network_mb_s":null},"mounts":{},"nodes":1,"duration_s":null,"reference":null,"max_duration_s":null,"deadline":null,"priority":50,"preemptible":true,"wait_max_s":null,"market":"auto","checkpoint":null,"retry":{"max":3,"on":["preemption","node-loss"],"backoff_s":30.0},"budget":null,"inputs":[],"outputs":[],"after":[],"array":{},"where":{"labels":{},"not_on":[]},"affinity":["bert"],"notify":{"on":[],"webhook":null},"speeds":{},"value_of_time_usd_h":null},"state":"pending","submitted_at":0.0,"after":[],"workdir_key":null,"attempt":0,"placement":null,"order_posted":false,"stop_posted":false,"placed_at":null,"started_at":null,"first_started_at":null,"ended_at":null,"exit_code":null,"wish":null,"reason":null,"checkpoint":null,"late_said":false,"retries":0,"not_before":null,"run_s":0.0,"lost_s":0.0,"interruptions":0}}');
INSERT INTO "events" VALUES(5,0.0,'submitted','waiting',NULL,'{"at":0.0,"job":"waiting","kind":"submitted","first":{"id":"waiting","run":"run-1","spec":{"name":"train","project":"vision","image":null,"workdir":null,"setup":null,"command":"true","env":{},"secrets":[],"resources":{"gpu":{"count":1,"count_most":null,"memory_gib":{"least":0.0,"most":null},"models":[],"share":0.5},"cpu":1.0,"memory_gib":null,"disk_gib":null,"shm_gib":null,"disk_io_mb_s":null,"network_mb_s":null},"mounts":{},"nodes":1,"duration_s":null,"reference":null,"max_duration_s":null,"deadline":null,"priority":50,"preemptible":true,"wait_max_s":null,"market":"auto","checkpoint":null,"retry":{"max":3,"on":["preemption","node-loss"],"backoff_s":30.0},"budget":null,"inputs":[],"outputs":[],"after":[],"array":{},"where":{"labels":{},"not_on":[]},"affinity":[],"notify":{"on":[],"webhook":null},"speeds":{},"value_of_time_usd_h":null},"state":"pending","submitted_at":0.0,"after":[],"workdir_key":null,"attempt":0,"placement":null,"order_posted":false,"stop_posted":false,"placed_at":null,"started_at":null,"first_started_at":null,"ended_at":null,"exit_code":null,"wish":null,"reason":null,"checkpoint":null,"late_said":false,"retries":0,"not_before":null,"run_s":0.0,"lost_s":0.0,"interruptions":0}}');
INSERT INTO "events" VALUES(6,10.0,'placed','done',1,'{"at":10.0,"job":"done","attempt":1,"kind":"placed","placement":{"node":"host","devices":["gpu-0"]},"reason":{"code":"placed","says":"host scores 1","change":""}}');
INSERT INTO "events" VALUES(7,12.0,'started','done',1,'{"at":12.0,"job":"done","attempt":1,"kind":"started","resumed_from":null}');
INSERT INTO "events" VALUES(8,112.0,'finished','done',1,'{"at":112.0,"job":"done","ran_s":null,"attempt":1,"kind":"finished","exit_code":0}');
INSERT INTO "events" VALUES(9,113.0,'placed','running',1,'{"at":113.0,"job":"running","attempt":1,"kind":"placed","placement":{"node":"host","devices":["gpu-0"]},"reason":{"code":"placed","says":"host scores 1","change":""}}');
INSERT INTO "events" VALUES(10,114.0,'started','running',1,'{"at":114.0,"job":"running","attempt":1,"kind":"started","resumed_from":null}');
INSERT INTO "events" VALUES(11,114.0,'read','host',1,'{"at":114.0,"kind":"read","node":"host","number":5}');
CREATE TABLE families (
	project VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	run_times TEXT NOT NULL, 
	PRIMARY KEY (project, name)
);
INSERT INTO "families" VALUES('nlp','train',11,'[100.0]');
CREATE TABLE jobs (
	id VARCHAR NOT NULL, 
	seq INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	run VARCHAR NOT NULL, 
	project VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	submitted_at FLOAT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "jobs" VALUES('done',3,11,'run-1','nlp','train','completed',0.0,'{"id":"done","run":"run-1","spec":{"name":"train","project":"nlp","image":null,"workdir":null,"setup":null,"command":"true","env":{},"secrets":[],"resources":{"gpu":{"count":1,"count_most":null,"memory_gib":{"least":0.0,"most":null},"models":[],"share":0.5},"cpu":1.0,"memory_gib":null,"disk_gib":null,"shm_gib":null,"disk_io_mb_s":null,"network_mb_s":null},"mounts":{},"nodes":1,"duration_s":null,"reference":null,"max_duration_s":null,"deadline":null,"priority":50,"preemptible":true,"wait_max_s":null,"market":"auto","checkpoint":null,"retry":{"max":3,"on":["preemption","node-loss"],"backoff_s":30.0},"budget":null,"inputs":[],"outputs":[],"after":[],"array":{},"where":{"labels":{},"not_on":[]},"affinity":["llama"],"notify":{"on":[],"webhook":null},"speeds":{},"value_of_time_usd_h":null},"state":"completed","submitted_at":0.0,"after":[],"workdir_key":null,"attempt":1,"placement":{"node":"host","devices":["gpu-0"]},"order_posted":true,"stop_posted":false,"placed_at":10.0,"started_at":12.0,"first_started_at":12.0,"ended_at":112.0,"exit_code":0,"wish":null,"reason":{"code":"finished","says":"its process ended with 0","change":""},"checkpoint":null,"late_said":false,"retries":0,"not_before":null,"run_s":100.0,"lost_s":0.0,"interruptions":0}');
INSERT INTO "jobs" VALUES('running',4,11,'run-1','nlp','train','running',0.0,'{"id":"running","run":"run-1","spec":{"name":"train","project":"nlp","image":null,"workdir":null,"setup":null,"command":"true","env":{},"secrets":[],"resources":{"gpu":{"count":1,"count_most":null,"memory_gib":{"least":0.0,"most":null},"models":[],"share":0.5},"cpu":1.0,"memory_gib":null,"disk_gib":null,"shm_gib":null,"disk_io_mb_s":null,"network_mb_s":null},"mounts":{},"nodes":1,"duration_s":null,"reference":null,"max_duration_s":null,"deadline":null,"priority":50,"preemptible":true,"wait_max_s":null,"market":"auto","checkpoint":null,"retry":{"max":3,"on":["preemption","node-loss"],"backoff_s":30.0},"budget":null,"inputs":[],"outputs":[],"after":[],"array":{},"where":{"labels":{},"not_on":[]},"affinity":["bert"],"notify":{"on":[],"webhook":null},"speeds":{},"value_of_time_usd_h":null},"state":"running","submitted_at":0.0,"after":[],"workdir_key":null,"attempt":1,"placement":{"node":"host","devices":["gpu-0"]},"order_posted":true,"stop_posted":false,"placed_at":113.0,"started_at":114.0,"first_started_at":114.0,"ended_at":null,"exit_code":null,"wish":null,"reason":{"code":"placed","says":"host scores 1","change":""},"checkpoint":null,"late_said":false,"retries":0,"not_before":null,"run_s":0.0,"lost_s":0.0,"interruptions":0}');
INSERT INTO "jobs" VALUES('waiting',5,5,'run-1','vision','train','pending',0.0,'{"id":"waiting","run":"run-1","spec":{"name":"train","project":"vision","image":null,"workdir":null,"setup":null,"command":"true","env":{},"secrets":[],"resources":{"gpu":{"count":1,"count_most":null,"memory_gib":{"least":0.0,"most":null},"models":[],"share":0.5},"cpu":1.0,"memory_gib":null,"disk_gib":null,"shm_gib":null,"disk_io_mb_s":null,"network_mb_s":null},"mounts":{},"nodes":1,"duration_s":null,"reference":null,"max_duration_s":null,"deadline":null,"priority":50,"preemptible":true,"wait_max_s":null,"market":"auto","checkpoint":null,"retry":{"max":3,"on":["preemption","node-loss"],"backoff_s":30.0},"budget":null,"inputs":[],"outputs":[],"after":[],"array":{},"where":{"labels":{},"not_on":[]},"affinity":[],"notify":{"on":[],"webhook":null},"speeds":{},"value_of_time_usd_h":null},"state":"pending","submitted_at":0.0,"after":[],"workdir_key":null,"attempt":0,"placement":null,"order_posted":false,"stop_posted":false,"placed_at":null,"started_at":null,"first_started_at":null,"ended_at":null,"exit_code":null,"wish":null,"reason":null,"checkpoint":null,"late_said":false,"retries":0,"not_before":null,"run_s":0.0,"lost_s":0.0,"interruptions":0}');
CREATE TABLE nodes (
	id VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "nodes" VALUES('host',2,'{"id":"host","facts":{"cpu":2.0,"memory_gib":16.0,"disk_gib":100.0,"devices":[{"id":"gpu-0","model":"A100-40GB","memory_gib":40.0,"declared":false}],"labels":{},"mounts":[],"runtimes":["process"]},"state":"ready","owned":true,"provider":"local","agent":"","public_key":"","joined_at":1.0,"lost_at":null}');
CREATE TABLE positions (
	node VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	PRIMARY KEY (node)
);
INSERT INTO "positions" VALUES('host',11,5);
CREATE TABLE rentals (
	id VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	payer VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE round_jobs (
	job VARCHAR NOT NULL, 
	round INTEGER NOT NULL, 
	PRIMARY KEY (job, round)
);
INSERT INTO "round_jobs" VALUES('done',1);
CREATE TABLE rounds (
	number INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	now FLOAT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "rounds" VALUES(1,5,1.0,'{"number":1,"version":5,"now":1.0,"seed":0,"epoch":1,"order":"fifo","score":"best-fit","settings":"{}","sightings":"[]","plan":{"version":5,"steps":[{"kind":"place","job":"done","attempt":1,"placement":{"node":"host","devices":[]},"reason":{"code":"placed","says":"host scores 1","change":""}}],"decisions":[],"look_again_at":null}}');
CREATE TABLE runs (
	id VARCHAR NOT NULL, 
	seq INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	folder VARCHAR NOT NULL, 
	digest VARCHAR NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "runs" VALUES('run-1',1,2,'/lab','','{"id":"run-1","opened_at":0.0,"user":"ann","folder":"/lab","files":[],"digest":"","budget":100,"soft_share":0.9}');
CREATE TABLE secrets (
	run VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	sealed BLOB NOT NULL, 
	PRIMARY KEY (run, name)
);
CREATE INDEX events_of_subject ON events (subject, seq);
CREATE INDEX jobs_by_state ON jobs (state, seq);
CREATE INDEX jobs_of_run ON jobs (run, seq);
CREATE INDEX jobs_of_run_by_state ON jobs (run, state);
CREATE INDEX jobs_of_project ON jobs (project, seq);
CREATE INDEX jobs_by_name ON jobs (name);
CREATE UNIQUE INDEX jobs_in_order ON jobs (seq);
CREATE INDEX jobs_by_version ON jobs (version);
CREATE INDEX runs_by_version ON runs (version);
CREATE INDEX runs_of_folder ON runs (folder, digest, seq);
CREATE INDEX rentals_by_version ON rentals (version);
CREATE INDEX rentals_by_state ON rentals (state);
CREATE INDEX accounts_by_version ON accounts (version);
CREATE INDEX accounts_by_reserved ON accounts (reserved);
CREATE INDEX charges_of_payer ON charges (payer, job);
CREATE INDEX families_by_version ON families (version);
COMMIT;
