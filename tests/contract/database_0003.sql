-- A database that the program of revision 0003 has written: rounds hold their offers.
BEGIN TRANSACTION;
CREATE TABLE accounts (
	payer VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	reserved BIGINT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (payer)
);
INSERT INTO "accounts" VALUES('run-1',5,0,'{"payer":"run-1","limit":100,"needs_limit":true,"reserved":0,"spent":0,"soft":0.9}');
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0003');
CREATE TABLE budgets (
	project VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (project)
);
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
INSERT INTO "events" VALUES(2,0.0,'submitted','a',NULL,'{"at":0.0,"job":"a","kind":"submitted","first":{"id":"a","run":"run-1","spec":{"name":"train","project":"default","image":null,"workdir":null,"setup":null,"command":"true","env":{},"secrets":[],"resources":{"gpu":{"count":0,"count_most":null,"memory_gib":{"least":0.0,"most":null},"models":[],"share":1.0},"cpu":1.0,"memory_gib":null,"disk_gib":null,"shm_gib":null,"disk_io_mb_s":null,"network_mb_s":null},"mounts":{},"nodes":1,"duration_s":null,"reference":null,"max_duration_s":null,"deadline":null,"priority":50,"preemptible":true,"wait_max_s":null,"market":"auto","checkpoint":null,"retry":{"max":3,"on":["preemption","node-loss"],"backoff_s":30.0},"budget":null,"inputs":[],"outputs":[],"after":[],"array":{},"where":{"labels":{},"not_on":[]},"affinity":[],"notify":{"on":[],"webhook":null},"speeds":{},"value_of_time_usd_h":null},"state":"pending","submitted_at":0.0,"after":[],"workdir_key":null,"attempt":0,"placement":null,"order_posted":false,"stop_posted":false,"placed_at":null,"started_at":null,"first_started_at":null,"ended_at":null,"exit_code":null,"wish":null,"reason":null,"checkpoint":null,"late_said":false,"retries":0,"grown":null,"grows":0,"held_until":null,"peaks":{"gpu_gib":null,"sm":null,"memory_gib":null,"cpu":null,"disk_io_mb_s":null,"network_mb_s":null},"not_before":null,"run_s":0.0,"lost_s":0.0,"interruptions":0}}');
INSERT INTO "events" VALUES(3,0.0,'submitted','b',NULL,'{"at":0.0,"job":"b","kind":"submitted","first":{"id":"b","run":"run-1","spec":{"name":"train","project":"default","image":null,"workdir":null,"setup":null,"command":"true","env":{},"secrets":[],"resources":{"gpu":{"count":0,"count_most":null,"memory_gib":{"least":0.0,"most":null},"models":[],"share":1.0},"cpu":1.0,"memory_gib":null,"disk_gib":null,"shm_gib":null,"disk_io_mb_s":null,"network_mb_s":null},"mounts":{},"nodes":1,"duration_s":null,"reference":null,"max_duration_s":null,"deadline":null,"priority":50,"preemptible":true,"wait_max_s":null,"market":"auto","checkpoint":null,"retry":{"max":3,"on":["preemption","node-loss"],"backoff_s":30.0},"budget":null,"inputs":[],"outputs":[],"after":[],"array":{},"where":{"labels":{},"not_on":[]},"affinity":[],"notify":{"on":[],"webhook":null},"speeds":{},"value_of_time_usd_h":null},"state":"pending","submitted_at":0.0,"after":[],"workdir_key":null,"attempt":0,"placement":null,"order_posted":false,"stop_posted":false,"placed_at":null,"started_at":null,"first_started_at":null,"ended_at":null,"exit_code":null,"wish":null,"reason":null,"checkpoint":null,"late_said":false,"retries":0,"grown":null,"grows":0,"held_until":null,"peaks":{"gpu_gib":null,"sm":null,"memory_gib":null,"cpu":null,"disk_io_mb_s":null,"network_mb_s":null},"not_before":null,"run_s":0.0,"lost_s":0.0,"interruptions":0}}');
INSERT INTO "events" VALUES(4,0.0,'submitted','c',NULL,'{"at":0.0,"job":"c","kind":"submitted","first":{"id":"c","run":"run-1","spec":{"name":"train","project":"default","image":null,"workdir":null,"setup":null,"command":"true","env":{},"secrets":[],"resources":{"gpu":{"count":0,"count_most":null,"memory_gib":{"least":0.0,"most":null},"models":[],"share":1.0},"cpu":1.0,"memory_gib":null,"disk_gib":null,"shm_gib":null,"disk_io_mb_s":null,"network_mb_s":null},"mounts":{},"nodes":1,"duration_s":null,"reference":null,"max_duration_s":null,"deadline":null,"priority":50,"preemptible":true,"wait_max_s":null,"market":"auto","checkpoint":null,"retry":{"max":3,"on":["preemption","node-loss"],"backoff_s":30.0},"budget":null,"inputs":[],"outputs":[],"after":[],"array":{},"where":{"labels":{},"not_on":[]},"affinity":[],"notify":{"on":[],"webhook":null},"speeds":{},"value_of_time_usd_h":null},"state":"pending","submitted_at":0.0,"after":[],"workdir_key":null,"attempt":0,"placement":null,"order_posted":false,"stop_posted":false,"placed_at":null,"started_at":null,"first_started_at":null,"ended_at":null,"exit_code":null,"wish":null,"reason":null,"checkpoint":null,"late_said":false,"retries":0,"grown":null,"grows":0,"held_until":null,"peaks":{"gpu_gib":null,"sm":null,"memory_gib":null,"cpu":null,"disk_io_mb_s":null,"network_mb_s":null},"not_before":null,"run_s":0.0,"lost_s":0.0,"interruptions":0}}');
INSERT INTO "events" VALUES(5,0.0,'submitted','d',NULL,'{"at":0.0,"job":"d","kind":"submitted","first":{"id":"d","run":"run-1","spec":{"name":"train","project":"default","image":null,"workdir":null,"setup":null,"command":"true","env":{},"secrets":[],"resources":{"gpu":{"count":0,"count_most":null,"memory_gib":{"least":0.0,"most":null},"models":[],"share":1.0},"cpu":1.0,"memory_gib":null,"disk_gib":null,"shm_gib":null,"disk_io_mb_s":null,"network_mb_s":null},"mounts":{},"nodes":1,"duration_s":null,"reference":null,"max_duration_s":null,"deadline":null,"priority":50,"preemptible":true,"wait_max_s":null,"market":"auto","checkpoint":null,"retry":{"max":3,"on":["preemption","node-loss"],"backoff_s":30.0},"budget":null,"inputs":[],"outputs":[],"after":[],"array":{},"where":{"labels":{},"not_on":[]},"affinity":[],"notify":{"on":[],"webhook":null},"speeds":{},"value_of_time_usd_h":null},"state":"pending","submitted_at":0.0,"after":[],"workdir_key":null,"attempt":0,"placement":null,"order_posted":false,"stop_posted":false,"placed_at":null,"started_at":null,"first_started_at":null,"ended_at":null,"exit_code":null,"wish":null,"reason":null,"checkpoint":null,"late_said":false,"retries":0,"grown":null,"grows":0,"held_until":null,"peaks":{"gpu_gib":null,"sm":null,"memory_gib":null,"cpu":null,"disk_io_mb_s":null,"network_mb_s":null},"not_before":null,"run_s":0.0,"lost_s":0.0,"interruptions":0}}');
INSERT INTO "events" VALUES(6,1.0,'placed','a',1,'{"at":1.0,"job":"a","attempt":1,"kind":"placed","placement":{"node":"host","devices":[]},"reason":{"code":"placed","says":"host scores 1","change":""}}');
INSERT INTO "events" VALUES(7,1.0,'placed','b',1,'{"at":1.0,"job":"b","attempt":1,"kind":"placed","placement":{"node":"host","devices":[]},"reason":{"code":"placed","says":"host scores 1","change":""}}');
INSERT INTO "events" VALUES(8,1.0,'placed','c',1,'{"at":1.0,"job":"c","attempt":1,"kind":"placed","placement":{"node":"host","devices":[]},"reason":{"code":"placed","says":"host scores 1","change":""}}');
INSERT INTO "events" VALUES(9,1.0,'placed','d',1,'{"at":1.0,"job":"d","attempt":1,"kind":"placed","placement":{"node":"host","devices":[]},"reason":{"code":"placed","says":"host scores 1","change":""}}');
CREATE TABLE families (
	project VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	run_times TEXT NOT NULL, 
	PRIMARY KEY (project, name)
);
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
INSERT INTO "jobs" VALUES('a',2,6,'run-1','default','train','starting',0.0,'{"id":"a","run":"run-1","spec":{"name":"train","project":"default","image":null,"workdir":null,"setup":null,"command":"true","env":{},"secrets":[],"resources":{"gpu":{"count":0,"count_most":null,"memory_gib":{"least":0.0,"most":null},"models":[],"share":1.0},"cpu":1.0,"memory_gib":null,"disk_gib":null,"shm_gib":null,"disk_io_mb_s":null,"network_mb_s":null},"mounts":{},"nodes":1,"duration_s":null,"reference":null,"max_duration_s":null,"deadline":null,"priority":50,"preemptible":true,"wait_max_s":null,"market":"auto","checkpoint":null,"retry":{"max":3,"on":["preemption","node-loss"],"backoff_s":30.0},"budget":null,"inputs":[],"outputs":[],"after":[],"array":{},"where":{"labels":{},"not_on":[]},"affinity":[],"notify":{"on":[],"webhook":null},"speeds":{},"value_of_time_usd_h":null},"state":"starting","submitted_at":0.0,"after":[],"workdir_key":null,"attempt":1,"placement":{"node":"host","devices":[]},"order_posted":false,"stop_posted":false,"placed_at":1.0,"started_at":null,"first_started_at":null,"ended_at":null,"exit_code":null,"wish":null,"reason":{"code":"placed","says":"host scores 1","change":""},"checkpoint":null,"late_said":false,"retries":0,"grown":null,"grows":0,"held_until":null,"peaks":{"gpu_gib":null,"sm":null,"memory_gib":null,"cpu":null,"disk_io_mb_s":null,"network_mb_s":null},"not_before":null,"run_s":0.0,"lost_s":0.0,"interruptions":0}');
INSERT INTO "jobs" VALUES('b',3,7,'run-1','default','train','starting',0.0,'{"id":"b","run":"run-1","spec":{"name":"train","project":"default","image":null,"workdir":null,"setup":null,"command":"true","env":{},"secrets":[],"resources":{"gpu":{"count":0,"count_most":null,"memory_gib":{"least":0.0,"most":null},"models":[],"share":1.0},"cpu":1.0,"memory_gib":null,"disk_gib":null,"shm_gib":null,"disk_io_mb_s":null,"network_mb_s":null},"mounts":{},"nodes":1,"duration_s":null,"reference":null,"max_duration_s":null,"deadline":null,"priority":50,"preemptible":true,"wait_max_s":null,"market":"auto","checkpoint":null,"retry":{"max":3,"on":["preemption","node-loss"],"backoff_s":30.0},"budget":null,"inputs":[],"outputs":[],"after":[],"array":{},"where":{"labels":{},"not_on":[]},"affinity":[],"notify":{"on":[],"webhook":null},"speeds":{},"value_of_time_usd_h":null},"state":"starting","submitted_at":0.0,"after":[],"workdir_key":null,"attempt":1,"placement":{"node":"host","devices":[]},"order_posted":false,"stop_posted":false,"placed_at":1.0,"started_at":null,"first_started_at":null,"ended_at":null,"exit_code":null,"wish":null,"reason":{"code":"placed","says":"host scores 1","change":""},"checkpoint":null,"late_said":false,"retries":0,"grown":null,"grows":0,"held_until":null,"peaks":{"gpu_gib":null,"sm":null,"memory_gib":null,"cpu":null,"disk_io_mb_s":null,"network_mb_s":null},"not_before":null,"run_s":0.0,"lost_s":0.0,"interruptions":0}');
INSERT INTO "jobs" VALUES('c',4,8,'run-1','default','train','starting',0.0,'{"id":"c","run":"run-1","spec":{"name":"train","project":"default","image":null,"workdir":null,"setup":null,"command":"true","env":{},"secrets":[],"resources":{"gpu":{"count":0,"count_most":null,"memory_gib":{"least":0.0,"most":null},"models":[],"share":1.0},"cpu":1.0,"memory_gib":null,"disk_gib":null,"shm_gib":null,"disk_io_mb_s":null,"network_mb_s":null},"mounts":{},"nodes":1,"duration_s":null,"reference":null,"max_duration_s":null,"deadline":null,"priority":50,"preemptible":true,"wait_max_s":null,"market":"auto","checkpoint":null,"retry":{"max":3,"on":["preemption","node-loss"],"backoff_s":30.0},"budget":null,"inputs":[],"outputs":[],"after":[],"array":{},"where":{"labels":{},"not_on":[]},"affinity":[],"notify":{"on":[],"webhook":null},"speeds":{},"value_of_time_usd_h":null},"state":"starting","submitted_at":0.0,"after":[],"workdir_key":null,"attempt":1,"placement":{"node":"host","devices":[]},"order_posted":false,"stop_posted":false,"placed_at":1.0,"started_at":null,"first_started_at":null,"ended_at":null,"exit_code":null,"wish":null,"reason":{"code":"placed","says":"host scores 1","change":""},"checkpoint":null,"late_said":false,"retries":0,"grown":null,"grows":0,"held_until":null,"peaks":{"gpu_gib":null,"sm":null,"memory_gib":null,"cpu":null,"disk_io_mb_s":null,"network_mb_s":null},"not_before":null,"run_s":0.0,"lost_s":0.0,"interruptions":0}');
INSERT INTO "jobs" VALUES('d',5,9,'run-1','default','train','starting',0.0,'{"id":"d","run":"run-1","spec":{"name":"train","project":"default","image":null,"workdir":null,"setup":null,"command":"true","env":{},"secrets":[],"resources":{"gpu":{"count":0,"count_most":null,"memory_gib":{"least":0.0,"most":null},"models":[],"share":1.0},"cpu":1.0,"memory_gib":null,"disk_gib":null,"shm_gib":null,"disk_io_mb_s":null,"network_mb_s":null},"mounts":{},"nodes":1,"duration_s":null,"reference":null,"max_duration_s":null,"deadline":null,"priority":50,"preemptible":true,"wait_max_s":null,"market":"auto","checkpoint":null,"retry":{"max":3,"on":["preemption","node-loss"],"backoff_s":30.0},"budget":null,"inputs":[],"outputs":[],"after":[],"array":{},"where":{"labels":{},"not_on":[]},"affinity":[],"notify":{"on":[],"webhook":null},"speeds":{},"value_of_time_usd_h":null},"state":"starting","submitted_at":0.0,"after":[],"workdir_key":null,"attempt":1,"placement":{"node":"host","devices":[]},"order_posted":false,"stop_posted":false,"placed_at":1.0,"started_at":null,"first_started_at":null,"ended_at":null,"exit_code":null,"wish":null,"reason":{"code":"placed","says":"host scores 1","change":""},"checkpoint":null,"late_said":false,"retries":0,"grown":null,"grows":0,"held_until":null,"peaks":{"gpu_gib":null,"sm":null,"memory_gib":null,"cpu":null,"disk_io_mb_s":null,"network_mb_s":null},"not_before":null,"run_s":0.0,"lost_s":0.0,"interruptions":0}');
CREATE TABLE nodes (
	id VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE positions (
	node VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	PRIMARY KEY (node)
);
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
INSERT INTO "round_jobs" VALUES('a',1);
INSERT INTO "round_jobs" VALUES('b',2);
INSERT INTO "round_jobs" VALUES('c',3);
INSERT INTO "round_jobs" VALUES('d',4);
CREATE TABLE rounds (
	number INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	now FLOAT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "rounds" VALUES(1,5,1.0,'{"number":1,"version":5,"now":1.0,"seed":0,"epoch":1,"order":"fifo","score":"best-fit","settings":"{}","sightings":"{}","offers":"[]","wait":"","rent":"","answers":"","plan":{"version":5,"steps":[{"kind":"place","job":"a","attempt":1,"placement":{"node":"host","devices":[]},"reason":{"code":"placed","says":"host scores 1","change":""}}],"decisions":[],"tenders":[],"look_again_at":null}}');
INSERT INTO "rounds" VALUES(2,6,1.0,'{"number":2,"version":6,"now":1.0,"seed":0,"epoch":1,"order":"fifo","score":"best-fit","settings":"{}","sightings":"{}","offers":"[{\"billing_least_s\":60.0,\"billing_step_s\":1.0,\"boot_s\":20.0,\"cap_usd_h\":3600000,\"capacity\":null,\"egress_usd_gb\":null,\"estimated\":false,\"extras_usd_h\":0,\"facts\":{\"cpu\":8.0,\"devices\":[],\"disk_gib\":100.0,\"disk_io_mb_s\":null,\"images\":[],\"labels\":{},\"links\":[],\"memory_gib\":32.0,\"mounts\":[],\"network_mb_s\":null,\"runtimes\":[\"process\"],\"version\":\"\"},\"hazard_per_h\":null,\"id\":\"big\",\"market\":\"on-demand\",\"notice_s\":0.0,\"price_usd_h\":3600000,\"priced_at\":null,\"provider\":\"cloud\",\"quota\":\"\",\"quota_left\":null,\"quota_units\":0.0,\"region\":\"r\",\"source\":\"\",\"type\":\"\",\"zone\":\"r-a\"},{\"billing_least_s\":60.0,\"billing_step_s\":1.0,\"boot_s\":20.0,\"cap_usd_h\":900000,\"capacity\":null,\"egress_usd_gb\":null,\"estimated\":false,\"extras_usd_h\":0,\"facts\":{\"cpu\":8.0,\"devices\":[],\"disk_gib\":100.0,\"disk_io_mb_s\":null,\"images\":[],\"labels\":{},\"links\":[],\"memory_gib\":32.0,\"mounts\":[],\"network_mb_s\":null,\"runtimes\":[\"process\"],\"version\":\"\"},\"hazard_per_h\":null,\"id\":\"small\",\"market\":\"on-demand\",\"notice_s\":0.0,\"price_usd_h\":900000,\"priced_at\":null,\"provider\":\"cloud\",\"quota\":\"\",\"quota_left\":null,\"quota_units\":0.0,\"region\":\"r\",\"source\":\"\",\"type\":\"\",\"zone\":\"r-a\"}]","wait":"","rent":"","answers":"","plan":{"version":6,"steps":[{"kind":"place","job":"b","attempt":1,"placement":{"node":"host","devices":[]},"reason":{"code":"placed","says":"host scores 1","change":""}}],"decisions":[],"tenders":[],"look_again_at":null}}');
INSERT INTO "rounds" VALUES(3,7,1.0,'{"number":3,"version":7,"now":1.0,"seed":0,"epoch":1,"order":"fifo","score":"best-fit","settings":"{}","sightings":"{}","offers":"[{\"billing_least_s\":60.0,\"billing_step_s\":1.0,\"boot_s\":20.0,\"cap_usd_h\":3600000,\"capacity\":null,\"egress_usd_gb\":null,\"estimated\":false,\"extras_usd_h\":0,\"facts\":{\"cpu\":8.0,\"devices\":[],\"disk_gib\":100.0,\"disk_io_mb_s\":null,\"images\":[],\"labels\":{},\"links\":[],\"memory_gib\":32.0,\"mounts\":[],\"network_mb_s\":null,\"runtimes\":[\"process\"],\"version\":\"\"},\"hazard_per_h\":null,\"id\":\"big\",\"market\":\"on-demand\",\"notice_s\":0.0,\"price_usd_h\":3600000,\"priced_at\":null,\"provider\":\"cloud\",\"quota\":\"\",\"quota_left\":null,\"quota_units\":0.0,\"region\":\"r\",\"source\":\"\",\"type\":\"\",\"zone\":\"r-a\"},{\"billing_least_s\":60.0,\"billing_step_s\":1.0,\"boot_s\":20.0,\"cap_usd_h\":900000,\"capacity\":null,\"egress_usd_gb\":null,\"estimated\":false,\"extras_usd_h\":0,\"facts\":{\"cpu\":8.0,\"devices\":[],\"disk_gib\":100.0,\"disk_io_mb_s\":null,\"images\":[],\"labels\":{},\"links\":[],\"memory_gib\":32.0,\"mounts\":[],\"network_mb_s\":null,\"runtimes\":[\"process\"],\"version\":\"\"},\"hazard_per_h\":null,\"id\":\"small\",\"market\":\"on-demand\",\"notice_s\":0.0,\"price_usd_h\":900000,\"priced_at\":null,\"provider\":\"cloud\",\"quota\":\"\",\"quota_left\":null,\"quota_units\":0.0,\"region\":\"r\",\"source\":\"\",\"type\":\"\",\"zone\":\"r-a\"}]","wait":"","rent":"","answers":"","plan":{"version":7,"steps":[{"kind":"place","job":"c","attempt":1,"placement":{"node":"host","devices":[]},"reason":{"code":"placed","says":"host scores 1","change":""}}],"decisions":[],"tenders":[],"look_again_at":null}}');
INSERT INTO "rounds" VALUES(4,8,1.0,'{"number":4,"version":8,"now":1.0,"seed":0,"epoch":1,"order":"fifo","score":"best-fit","settings":"{}","sightings":"{}","offers":"[{\"billing_least_s\":60.0,\"billing_step_s\":1.0,\"boot_s\":20.0,\"cap_usd_h\":3600000,\"capacity\":null,\"egress_usd_gb\":null,\"estimated\":false,\"extras_usd_h\":0,\"facts\":{\"cpu\":8.0,\"devices\":[],\"disk_gib\":100.0,\"disk_io_mb_s\":null,\"images\":[],\"labels\":{},\"links\":[],\"memory_gib\":32.0,\"mounts\":[],\"network_mb_s\":null,\"runtimes\":[\"process\"],\"version\":\"\"},\"hazard_per_h\":null,\"id\":\"big\",\"market\":\"on-demand\",\"notice_s\":0.0,\"price_usd_h\":3600000,\"priced_at\":null,\"provider\":\"cloud\",\"quota\":\"\",\"quota_left\":null,\"quota_units\":0.0,\"region\":\"r\",\"source\":\"\",\"type\":\"\",\"zone\":\"r-a\"}]","wait":"","rent":"","answers":"","plan":{"version":8,"steps":[{"kind":"place","job":"d","attempt":1,"placement":{"node":"host","devices":[]},"reason":{"code":"placed","says":"host scores 1","change":""}}],"decisions":[],"tenders":[],"look_again_at":null}}');
CREATE TABLE runs (
	id VARCHAR NOT NULL, 
	seq INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	folder VARCHAR NOT NULL, 
	digest VARCHAR NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "runs" VALUES('run-1',1,5,'/lab','','{"id":"run-1","opened_at":0.0,"user":"ann","folder":"/lab","files":[],"digest":"","budget":100,"soft_share":0.9}');
CREATE TABLE secrets (
	run VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	sealed BLOB NOT NULL, 
	PRIMARY KEY (run, name)
);
CREATE TABLE uses (
	project VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	device_s FLOAT NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (project)
);
CREATE INDEX events_of_subject ON events (subject, seq);
CREATE INDEX jobs_of_project ON jobs (project, seq);
CREATE INDEX jobs_by_name ON jobs (name);
CREATE INDEX jobs_by_version ON jobs (version);
CREATE INDEX jobs_by_state ON jobs (state, seq);
CREATE INDEX jobs_of_run ON jobs (run, seq);
CREATE UNIQUE INDEX jobs_in_order ON jobs (seq);
CREATE INDEX jobs_of_run_by_state ON jobs (run, state);
CREATE INDEX runs_by_version ON runs (version);
CREATE INDEX runs_of_folder ON runs (folder, digest, seq);
CREATE INDEX rentals_by_version ON rentals (version);
CREATE INDEX rentals_by_state ON rentals (state);
CREATE INDEX accounts_by_reserved ON accounts (reserved);
CREATE INDEX accounts_by_version ON accounts (version);
CREATE INDEX charges_of_payer ON charges (payer, job);
CREATE INDEX families_by_version ON families (version);
CREATE INDEX uses_by_version ON uses (version);
CREATE INDEX budgets_by_version ON budgets (version);
COMMIT;
