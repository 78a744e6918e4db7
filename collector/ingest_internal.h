/* ingest_internal.h - what the files of ingest share: its state, its answers and who does what. */
#pragma once

#include "ingest.h"
#include "peers.h"

#include "core.h"
#include "../proto/chunk.h"

#define SECOND_NS INT64_C(1000000000)
#define CONNECTED_NS (3 * SECOND_NS) /* heartbeats come four times a second */

struct ingest {
	struct ingest_config cfg;
	char run_id[FRAME_MAX_ID + 1]; /* "" = not known yet */
	char token[FRAME_MAX_ID + 1];
	char boot_id[40];
	int64_t fleet_minus_raw_ns;
	struct row_run run;
	struct peers peers;
	struct core *core;

	struct store_job *job; /* being filled; owned, never NULL */
	struct store_job *idle; /* owned, reused */
	uint64_t next_chunk;
	uint64_t low_water, n_late; /* as last handed over */

	unsigned n_held; /* batches that wait for their turn */
	bool stopping;
	int fatal;
	uint32_t probe_port; /* 0 = no probes are taken */

	/* agents that probe each other */
	unsigned n_peers; /* each so many; 0 = none */
	uint8_t peer_secret[FRAME_SECRET_BYTES];
	struct mesh_place {
		uint64_t key;
		uint32_t agent;
	} *circle; /* owned */
	uint32_t n_circle, n_circle_alloc;
	int64_t ordered_raw_ns;

	uint64_t n_events, n_gap, n_dropped, n_text_dropped, n_names_dropped;
	int64_t last_event_ns;
	uint32_t n_ranks_alive, n_ranks_seen;
	int64_t started_raw_ns; /* of this collector process */

	struct ingest_rank_change changes[256];
	size_t n_changes;

	/* Sentences a minute: a peer must not fill the log. */
	int64_t say_since_raw_ns;
	unsigned n_said;

	struct event decoded[CHUNK_MAX_EVENTS];
	struct frame_buf out;
};

/* ingest.c: small things, answers, rows. */

/* Half a turn's rows are in the job, the rest is not: nothing after this may be
 * acknowledged. The caller ends the process; agents keep what was not answered. */
void ingest_fail(struct ingest *g, int r);
void ingest_copy_id(char *out, size_t n_out, const char *text);
/* An instant that a clock can show: 0 to 73 years, so that sums do not overflow. */
static inline bool ingest_sane_raw(int64_t ns)
{
	return ns >= 0 && ns < INT64_C(1) << 61;
}

/* A host's time on the fleet's line, by the first guess while it is not aligned. */
void ingest_place(const struct ingest *g, uint32_t host, int64_t at_ns, struct fleet_point *ret);
/* A sentence to the collector's log and to the catalogue's. */
void ingest_notice(struct ingest *g, int64_t now_raw_ns, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

void ingest_answer(struct ingest *g, struct inbox_msg *m, const struct frame *f);
void ingest_refuse(struct ingest *g, struct inbox_msg *m, enum frame_refusal code,
		   const char *sentence);
void ingest_rehello(struct ingest *g, struct inbox_msg *m, uint64_t stream);
const char *ingest_trouble_text(int trouble);
void ingest_put_run(struct ingest *g);

/* procs.c: processes, and the run as they tell of it. */

/* May the list be taken? 0, or a refusal with a sentence in why. */
enum frame_refusal ingest_check_procs(struct ingest *g, const struct agent *a, uint32_t host,
				      const struct frame_proc *v, uint32_t n, int64_t now_raw_ns,
				      char *why, size_t n_why);
void ingest_learn_process(struct ingest *g, struct agent *a, const struct frame_proc *v,
			  int64_t now_raw_ns);
void ingest_learn_rank(struct ingest *g, const struct process *p);
void ingest_put_process(struct ingest *g, struct process *p);
int ingest_tell_process(struct ingest *g, const struct process *p);
int ingest_tell_state(struct ingest *g, const struct process *p);
/* The newest process of each rank says whether the run goes on. */
void ingest_count_ranks(struct ingest *g, bool told);

/* hello.c: admission and heartbeats. */
bool ingest_same_clock(const struct ingest *g, const char *boot_id, uint64_t time_ns_inode);
void ingest_hello(struct ingest *g, struct inbox_msg *m, const struct frame_hello *v,
		  int64_t now_raw_ns);
void ingest_heartbeat(struct ingest *g, struct inbox_msg *m, const struct frame_heartbeat *v,
		      int64_t now_raw_ns);

/* exchanges.c: what becomes of two-way exchanges. */
struct ingest_exchange {
	int64_t t0_ns, t1_ns, t2_ns, t3_ns; /* t0, t3 host; t1, t2 collector; all RAW */
	enum row_way way;
};
void ingest_exchange(struct ingest *g, uint32_t host, const struct ingest_exchange *x,
		     int64_t now_raw_ns);
/* Of seconds that began before then, the rows. */
void ingest_close_seconds(struct ingest *g, int64_t before_raw_ns);
/* Exchanges a second. */
unsigned ingest_probe_wish(const struct ingest *g, uint32_t host, int64_t now_raw_ns);
/* Heard of by this process, and not by its probes. */
bool ingest_goes_by_stream(const struct host *h, int64_t now_raw_ns);
void ingest_tell_path(struct ingest *g, const struct agent *a, int64_t now_raw_ns);

/* mesh.c: agents that probe each other. */
void ingest_order_peers(struct ingest *g, int64_t now_raw_ns);
uint32_t ingest_peers_of(const struct ingest *g, const struct agent *a,
			 struct frame_peer ret[FRAME_MAX_PEERS]);
void ingest_peer_exchange(struct ingest *g, const struct agent *a,
			  const struct frame_peer_exchange *x);

/* snapshots.c: a host's clocks among each other. */
void ingest_snapshot(struct ingest *g, const struct agent *a, const struct frame_snapshot *v);

/* batch.c: one batch. */

/* Everything that could be wrong, before anything of it counts. 0 or a refusal. */
enum frame_refusal ingest_check_batch(struct ingest *g, const struct agent *a,
				      const struct frame_batch *b, int64_t now_raw_ns, char *why,
				      size_t n_why);
void ingest_take_batch(struct ingest *g, struct agent *a, const struct frame_batch *b,
		       int64_t now_raw_ns);

/* turns.c: batches in the order of their numbers. */

/* Takes what waited for its turn; with skip, the first no longer waits for those
 * before it. */
void ingest_release_held(struct ingest *g, struct agent *a, bool skip, int64_t now_raw_ns);
/* The frame is closed by the caller unless it was held. */
bool ingest_batch(struct ingest *g, struct inbox_msg *m, const struct frame *f,
		  int64_t now_raw_ns);

/* texts.c: logs, exceptions, records. */
/* When it declares the members of a group; before the events of its batch. */
int ingest_group(struct ingest *g, const struct frame_text *t);
int ingest_text(struct ingest *g, struct process *p, const struct frame_text *t);
