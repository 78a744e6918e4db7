/* serve.h - the collector over HTTP: page, JSON, tiles, server-sent events.
 *
 * Everything here runs on the loop thread; a request that reads SQLite is
 * suspended, answered by a libuv worker on a read-only connection and resumed.
 * The interface is docs/api.md. Nothing over HTTP changes what is stored, and
 * nothing a client does (slow, gone, hostile) makes memory grow without bound.
 */
#pragma once

#include "../facts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uv_loop_s;
struct heat;
struct serve;

enum serve_outcome {
	SERVE_OK = 0,
	SERVE_BAD_ADDRESS,  /* not ADDR:PORT, or a name that does not resolve */
	SERVE_IN_USE,       /* somebody else listens there */
	SERVE_NOT_ALLOWED,  /* the system refuses this address or port */
	SERVE_NEEDS_TOKEN,  /* reachable from outside this host, and no token */
	SERVE_BAD_TOKEN,    /* empty, too long, or not fit for a cookie */
	SERVE_BAD_DATABASE, /* read-only: cannot open it, or not syncline's */
};

/* What only the running collector knows. Unknown: FACT_NONE for times, NaN for
 * ratios, NULL for texts. */
struct serve_live {
	int64_t now_ns;        /* fleet */
	int64_t last_event_ns; /* fleet; of the newest event that arrived */
	const char *listen;    /* URL agents connect to; read before the call returns */
	uint32_t n_agents;     /* connected now */
	uint32_t n_agents_lost; /* were here, not ended, and are silent */
	uint32_t n_ranks;      /* alive now */
	uint32_t n_ranks_seen, n_ranks_expected; /* expected 0 = not known */
	uint64_t n_events, n_events_lost;
	uint64_t n_drops; /* everything dropped anywhere: rings, texts, gaps, spool */
	int64_t clock_error_ns; /* largest over aligned hosts */
	uint32_t n_hosts, n_hosts_unaligned;
	uint32_t n_hosts_by_stream; /* whose clock probes do not get through */
	uint64_t n_probes_refused;  /* forged, repeated, of nobody, or no probes at all */
	double agent_cpu_ratio; /* 1 = one core, mean over agents */
	bool ended; /* every rank of the run has left */
};

struct serve_config {
	const char *http;       /* "127.0.0.1:0", "[::1]:8080", "0.0.0.0:8080" */
	const char *token;      /* NULL: none wanted; only allowed on loopback */
	const char *db_path;    /* the catalogue */
	bool read_only;         /* a finished run: live facts come from the catalogue */
	const char *const *hosts; /* further names a browser may use in Host; n_hosts */
	size_t n_hosts;

	/* Live only. live() is called whenever an answer needs it. heat belongs to
	 * the caller and outlives serve; read-only serve fills one of its own. */
	void (*live)(void *arg, struct serve_live *ret);
	void *arg;
	struct heat *heat;

	/* 0 = the default. Tests make time short. */
	unsigned event_gap_ms;  /* 250: least time between two events of a kind */
	unsigned heartbeat_ms;  /* 15000 */
	unsigned slow_ms;       /* 60000: a stream that takes nothing for so long is dropped */
	unsigned query_ms;      /* 1000: longest read transaction */
};

/* Listens and answers from here on. The config's texts are copied. On a positive
 * outcome or a negative errno, error (if not NULL) holds a sentence: what, why
 * and what to do next. */
int serve_start(struct serve **ret, struct uv_loop_s *loop, const struct serve_config *cfg,
		char *error, size_t n_error);

/* Says goodbye to the streams, waits for the workers, closes every handle; then
 * calls done (may be NULL) on the loop and the object is gone. The loop must run
 * until then. NULL is fine: done is called at once. */
void serve_stop(struct serve *s, void (*done)(void *arg), void *arg);

const char *serve_url(const struct serve *s); /* "http://127.0.0.1:40123/" */

/* Something changed and is committed: the page asks for what it shows. Call as
 * often as it happens; at most four a second of a kind go out, folded. */
void serve_notify_step(struct serve *s, uint32_t step);
void serve_notify_finding(struct serve *s, int64_t id, const char *class_name,
			  const char *severity);
void serve_notify_rank(struct serve *s, int32_t rank, const char *state);
void serve_notify_drop(struct serve *s, uint64_t n_total);
void serve_notify_clock(struct serve *s, int64_t error_ns);
