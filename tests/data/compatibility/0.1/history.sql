PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE configurations (time_ns, rm, change, who, checksum, text);
INSERT INTO "configurations" VALUES(946684950000000000,'rm','registered','a test','E4D82A663D4AB1125665FB8F2288DAB70D9F778A2EA1F37B1F0E8CBBE8D4B3D2','partitions:
  - name: default
    preemption: {enabled: true, victims: least-work, jobs: whole}
    nodesortpolicy: {type: binpacking, resourceweights: {vcore: 1, memory: 1}}
    placementrules:
      - {name: tag, value: namespace, create: true, parent: {name: fixed, value: spaces}}
      - {name: provided, filter: {type: deny, users: ["^bot-"]}}
    queues:
      - name: root
        submitacl: "*"
        properties: {fair.half-life: 1d, fair.count: all}
        queues:
          - name: production
            properties: {preemption.delay: 10s, fair.weight: "3", preemption.victims-max: 5/1h}
            resources: {guaranteed: {memory: 20, vcore: 2}, max: {memory: 60, vcore: 8000m}, lend: {memory: 20}}
          - name: research
            maxapplications: 100
            properties:
              application.sort.policy: users
              preemption.within: lower-priority
              runtime.max: 2d
              runtime.default: 1h
              runtime.overrun: extend
            limits:
              - {limit: heavy, users: [eve, "*"], maxresources: {memory: 50}, maxapplications: 20, weight: 2}
          - name: gangs
            properties: {gang.placing: whole}
          - name: spaces
            parent: true
            childtemplate: {maxapplications: 20, properties: {preemption.min-runtime: 1m}, resources: {max: {vcore: 4}}}
');
CREATE TABLE ended (time_ns, application, partition, queue, user, "group", project, state, submitted_ns, reason);
INSERT INTO "ended" VALUES(946684800000000000,'lost','[rm]default','','joe','joe','','Rejected',946684800000000000,'failed to place application lost: application rejected: no placement rule matched');
CREATE TABLE holders (id INTEGER PRIMARY KEY, partition, queue, user, "group", project, UNIQUE (partition, queue, user, "group", project));
INSERT INTO "holders" VALUES(1,'[rm]default','root.research','eve','lab','');
INSERT INTO "holders" VALUES(2,'[rm]default','root.production','bob','bob','');
INSERT INTO "holders" VALUES(3,'[rm]default','root.spaces.blue','ada','ada','blue');
INSERT INTO "holders" VALUES(4,'[rm]default','root.gangs','ann','ann','');
CREATE TABLE preempted (time_ns, partition, cause, queue, application, allocation, victim_queue, victim_user, victim_application, victim_allocation, node, resource, reason, lost_ns);
INSERT INTO "preempted" VALUES(946684890000000000,'[rm]default','GUARANTEE','root.production','shop','p1','root.research','eve','study','r2','n1','{"memory": 20}','nothing is guaranteed to root.research; priority 0, it allows preemption; the willing go first, then what loses the least (1m of work since its checkpoint), and n1 would not fit the ask without it',60000000000);
CREATE TABLE uses (time_ns, holder, type, used_seconds, waiting_seconds, PRIMARY KEY (time_ns, holder, type));
INSERT INTO "uses" VALUES(946684800000000000,1,'memory',1200.0,0.0);
INSERT INTO "uses" VALUES(946684800000000000,2,'memory',1200.0,0.0);
INSERT INTO "uses" VALUES(946684800000000000,3,'vcore',0.0,300000.0);
INSERT INTO "uses" VALUES(946684800000000000,4,'vcore',120000.0,0.0);
CREATE TABLE waits (time_ns, partition, queue, placed, seconds, within_1s, within_10s, within_60s, within_600s, within_3600s, within_21600s, within_86400s, within_604800s, longer, PRIMARY KEY (time_ns, partition, queue));
INSERT INTO "waits" VALUES(946684800000000000,'[rm]default','root.spaces.blue',1,0.0,1,0,0,0,0,0,0,0,0);
INSERT INTO "waits" VALUES(946684800000000000,'[rm]default','root.gangs',2,0.0,2,0,0,0,0,0,0,0,0);
INSERT INTO "waits" VALUES(946684800000000000,'[rm]default','root.research',2,0.0,2,0,0,0,0,0,0,0,0);
INSERT INTO "waits" VALUES(946684800000000000,'[rm]default','root.production',1,30.0,0,0,1,0,0,0,0,0,0);
CREATE INDEX uses_by_time ON uses (time_ns);
CREATE INDEX waits_by_time ON waits (time_ns);
CREATE INDEX ended_by_time ON ended (time_ns);
CREATE INDEX preempted_by_time ON preempted (time_ns);
CREATE INDEX configurations_by_time ON configurations (time_ns);
COMMIT;
