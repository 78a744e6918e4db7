/* spec.h - a case: a small script per rank, as a person writes it in JSON.
 *
 * Times stay in milliseconds as the file has them, because noise multiplies the
 * written number; the player turns them into nanoseconds once. What a file can
 * make us do is limited before it is parsed (bytes, depth, values) and while it
 * is (ranks, names, repeats); how long its programs get is the player's limit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPEC_MAX_BYTES (4u << 20)
#define SPEC_MAX_DEPTH 32
#define SPEC_MAX_VALUES 400000 /* of JSON, before it is parsed */
#define SPEC_MAX_WORLD 4096
#define SPEC_MAX_GROUPS 4096
#define SPEC_MAX_HOSTS 4096
#define SPEC_MAX_STREAMS 8192
#define SPEC_MAX_PROGS 16384
#define SPEC_MAX_RANKS_TEXT 65536 /* bytes of "0,1,2,…" */
#define SPEC_MAX_REPEAT 1000000
#define SPEC_MAX_COUNT (UINT64_C(1) << 50) /* elements of a call */
#define SPEC_MAX_MS 2592000000.0	   /* 30 days, of one duration */
#define SPEC_MAX_OFFSET_US 1e12
#define SPEC_MAX_DRIFT_PPM 10000.0

struct spec_ranks { /* a set */
	uint64_t *bits;
	uint32_t n; /* how many are in it */
};

enum spec_kind {
	SPEC_STEP,
	SPEC_CPU,
	SPEC_KERNEL,
	SPEC_REPEAT,
	SPEC_ONLY,
	SPEC_STALL,
	SPEC_SYNC,
	SPEC_COLL,
	SPEC_WAIT,
	SPEC_P2P,
	SPEC_1F1B,
	SPEC_RECORD,
	SPEC_GAUGE,
	SPEC_N_KINDS,
};

struct spec_list {
	struct spec_op *v;
	uint32_t n;
};

struct spec_pair { /* one half of a message */
	bool send;
	uint32_t peer;
	uint64_t count;
};

enum { SPEC_STREAM_COMPUTE, SPEC_STREAM_P2P };

struct spec_coll {
	uint32_t group, stream;
	int32_t root; /* -1 = not said */
	uint64_t count;
	const char *dtype, *tensor; /* tensor: NULL = not said */
	uint8_t op, type, element_bytes; /* event.h: enum event_op, enum event_dtype */
	bool nowait, block, never, complete;
};

struct spec_1f1b {
	uint32_t *peers, n_peers, n_micro;
	double *fwd_ms, *bwd_ms; /* one, or one a stage */
	uint32_t n_fwd, n_bwd;
	uint64_t count;
};

/* Strings borrow from the file's JSON, which the spec keeps. */
struct spec_op {
	enum spec_kind kind;
	double ms;	  /* cpu, kernel, coll, p2p, 1f1b (of its messages) */
	const char *name; /* cpu, kernel, stall, gauge; a collective's operation */
	union {
		struct {
			bool has_number;
			uint32_t number;
		} step;
		struct {
			uint32_t n;
			struct spec_list body;
		} repeat;
		struct {
			struct spec_ranks ranks;
			struct spec_list body;
		} only;
		struct spec_coll coll;
		struct {
			uint32_t group, call; /* call 0 = the last one */
		} wait;
		struct {
			struct spec_pair *pairs;
			uint32_t n_pairs;
			bool block;
		} p2p;
		struct spec_1f1b f1b;
		struct {
			const char *category; /* name is the rest */
			char *fields;	      /* JSON text; owned */
			int32_t log_level;    /* of a log line, else -1 */
			const char *log_text;
		} record;
		double gauge;
	};
};

/* One key may be there more than once: its programs run in the order written. */
struct spec_prog {
	const char *who;
	uint32_t last; /* the last program of the same key */
	bool is_first; /* of its key */
	struct spec_ranks ranks;
	struct spec_list ops;
};

struct spec_group {
	const char *name;
	struct spec_ranks ranks;
	bool declared; /* "dp" is there without being named */
};

struct spec_host {
	const char *name;
	struct spec_ranks ranks;
};

struct spec_clock {
	uint32_t rank;
	double offset_us, drift_ppm;
	double set_ms, set_by_us; /* at set_ms it is set by so much; 0 = it is not */
};

struct spec {
	const char *id;
	uint32_t world;
	struct spec_group *groups;
	struct spec_prog *progs; /* in the file's order */
	struct spec_host *hosts; /* together they hold every rank once */
	struct spec_clock *clocks;
	uint32_t n_groups, n_progs, n_hosts, n_clocks, n_streams;
	double watchdog_ms; /* 0 = none */
	bool probes;
	char remark[256]; /* of keys and types that mean nothing here, "" = none */
	void *json, *json_progs;
};

enum spec_outcome {
	SPEC_OK = 0,
	SPEC_REFUSED, /* why says where and what */
};

/* 0, SPEC_REFUSED with a sentence in why, or -ENOMEM. */
int spec_parse(struct spec **ret, const char *text, size_t n_bytes, char *why, size_t n_why);
void spec_free(struct spec *s); /* NULL is fine */

static inline bool spec_has(const struct spec_ranks *r, uint32_t rank)
{
	return r->bits[rank / 64] >> rank % 64 & 1;
}

/* Multiplies every duration by 1 + u, u uniform in [-amount, amount), drawn in
 * the order of the file as the reference interpreter does. 0 <= amount < 1. */
void spec_add_noise(struct spec *s, double amount, uint64_t seed);
