/* job.h - one turn's rows on their way from the loop thread to the disk.
 *
 * The loop thread fills a job, gives it to store_submit() and does not touch it
 * until the store's done callback gives it back: there is no lock on a row.
 * Jobs are reused, arrays keep their memory, and strings live in an arena, so
 * a steady stream allocates nothing.
 *
 * Bytes of chunks are not copied: they borrow from messages that stay unanswered
 * (and so alive) until the job is done.
 */
#pragma once

#include "../facts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct row_run {
	bool set;
	char run_id[65];
	int32_t world_size; /* 0 = unknown */
	int64_t started_ns, ended_ns; /* ended FACT_NONE while it runs */
	int64_t fleet_minus_raw_ns;
	char boot_id[40];
	uint64_t time_ns_inode;
};
struct row_host {
	uint32_t host;
	const char *name, *boot_id;
	uint64_t time_ns_inode;
	bool same_clock;
	int64_t offset_ns;
};
struct row_agent {
	uint32_t agent, host;
	uint8_t agent_id[16];
	const char *version;
	int64_t seen_ns;
	uint64_t n_given_up, cpu_ns, rss_bytes;
};
struct row_batch {
	uint32_t agent;
	uint64_t seq;
};
enum row_state { ROW_ALIVE, ROW_LEFT, ROW_DIED };
struct row_process {
	uint32_t process, host, agent;
	uint64_t unique;
	uint32_t pid;
	int32_t rank, local_rank, world_size, restart_count; /* rank -1 = unknown */
	int64_t host_started_ns;
	uint32_t tick_source, tick_error_ns;
	enum row_state state;
	int64_t state_at_ns; /* host */
	int32_t exit_code, signal; /* -1 = cannot be known */
	uint64_t n_dropped, n_text_dropped, n_names_dropped, n_gap;
};
struct row_name {
	uint32_t process, id;
	const char *text;
};
struct row_chunk {
	uint64_t chunk;
	uint32_t process, ring;
	uint64_t first, kinds;
	unsigned n_events;
	int64_t t_min_ns, t_max_ns; /* host */
	const unsigned char *data; /* borrowed */
	size_t n_bytes;
};
struct row_ring {
	uint32_t process, ring;
	uint64_t lo, hi;
	bool merged; /* ranges behind it are part of it now */
};
enum row_way { ROW_WAY_STREAM, ROW_WAY_UDP, ROW_WAY_UDP_KERNEL };
struct row_exchange {
	uint32_t host;
	int64_t t0_ns, t1_ns, t2_ns, t3_ns; /* t0, t3 host; t1, t2 fleet */
	enum row_way way;
};
struct row_snapshot {
	uint32_t host;
	int64_t host_ns, half_ns, mono_ns, real_ns, boot_ns;
	uint32_t tick_source; /* UINT32_MAX = no tick */
	uint64_t tick;
};
struct row_clock_step {
	uint32_t host;
	int64_t from_ns, to_ns; /* host */
	const char *kind;	/* static: wall, suspend, raw */
	int64_t step_ns, err_ns;
};
struct row_peer_exchange {
	uint32_t host, peer;
	int64_t t0_ns, t1_ns, t2_ns, t3_ns; /* t0, t3 host; t1, t2 peer */
	int64_t at_ns, surplus_ns, err_ns;  /* fleet; FACT_NONE = not placed */
	bool contradicts;
};
struct row_clock_path {
	uint32_t host;
	int64_t at_ns;
	enum row_way way;
	const char *why; /* static */
	uint64_t n_sent, n_received, n_answered, n_exchanges, n_refused;
	uint32_t wish;
};
struct row_log {
	int64_t at_ns, err_ns;
	int64_t process; /* -1 = the collector's own */
	int32_t rank;	 /* -1 = unknown */
	const char *kind; /* static */
	uint32_t level;
	const char *logger, *text;
};
struct row_record {
	int64_t at_ns;
	uint32_t process;
	int32_t rank;
	const char *category, *fields;
};
struct row_env {
	uint32_t process;
	int32_t rank;
	const char *key, *value;
};
struct row_gauge {
	int64_t at_ns;
	uint32_t host;
	int32_t rank; /* -1 = the host's own */
	const char *name;
	double value;
};

struct row_meta { /* a fact about the file */
	const char *key, *value;
};
struct row_input { /* a file of an import */
	const char *file, *format, *outcome; /* format NULL = not known */
	int64_t rank;			     /* -1 = none, or several */
	uint64_t n_events;
};

/* Of a table that only imports fill. */
struct row_value {
	char type; /* i, r, t, or 0: NULL */
	int64_t integer;
	double real;
	const char *text;
};
struct row_imported {
	const char *table; /* static, without its raw_ */
	const struct row_value *values;
	uint32_t n_values;
};

struct job_block;

struct store_job {
	struct row_run run;
	FACT_ARRAY(struct row_host) hosts;
	FACT_ARRAY(struct row_agent) agents;
	FACT_ARRAY(struct row_process) processes;
	FACT_ARRAY(struct row_name) names;
	FACT_ARRAY(struct row_chunk) chunks;
	FACT_ARRAY(struct row_ring) rings;
	FACT_ARRAY(struct row_batch) batches;
	FACT_ARRAY(struct row_exchange) exchanges;
	FACT_ARRAY(struct row_snapshot) snapshots;
	FACT_ARRAY(struct row_clock_step) clock_steps;
	FACT_ARRAY(struct row_clock_path) clock_paths;
	FACT_ARRAY(struct row_peer_exchange) peer_exchanges;
	FACT_ARRAY(struct row_log) logs;
	FACT_ARRAY(struct row_record) records;
	FACT_ARRAY(struct row_env) envs;
	FACT_ARRAY(struct row_gauge) gauges;
	FACT_ARRAY(struct row_input) inputs;
	FACT_ARRAY(struct row_imported) imported;
	FACT_ARRAY(struct row_meta) metas;
	struct facts facts;
	uint64_t low_water; /* chunk number that a replay must start from */
	uint64_t n_late;    /* events so far that came when their step was closed */
	/* core_save() as of these facts; n 0 = as before. */
	FACT_ARRAY(unsigned char) core_state;

	/* The owner's: answers that wait for the commit. */
	FACT_ARRAY(void *) owed;

	/* The store's answer: raw_verdict's ids of facts.verdicts, in that order. */
	FACT_ARRAY(int64_t) verdict_ids;

	/* job.c's and the store's */
	struct job_block *blocks, *spare;
	size_t n_used;
	struct store_job *next;
	uint64_t serial; /* grows with each use */
	bool failed;	 /* given back without being stored: the store was stopped */
};

struct store_job *job_new(void);
void job_free(struct store_job *j); /* NULL is fine */
void job_clear(struct store_job *j);
/* Anything worth a commit? */
bool job_empty(const struct store_job *j);

/* Zero-terminated copies that live as long as the job's use. NULL without memory.
 * job_utf8 replaces what is not UTF-8, and control characters but tab and newline
 * by U+FFFD: what comes from a peer must not break a reader of the file. */
char *job_bytes(struct store_job *j, size_t n);
const char *job_text(struct store_job *j, const char *text);
const char *job_utf8(struct store_job *j, const char *text, size_t n_text);

/* Room for one more row, zeroed; NULL without memory. */
#define JOB_PUSH(j, field) FACTS_PUSH(j, field)
