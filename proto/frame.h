/* frame.h - what agent and collector say to each other, one msgpack map a message.
 *
 * Two REQ/REP pairs. The control pair (the URL a person gives) carries hello
 * and heartbeat and is answered at once; the data pair (frame_data_url())
 * carries batches and the reply is the acknowledgement, sent after the commit.
 * A slow disk must not look like a dead agent.
 *
 * Every pointer in a decoded frame borrows from the message or from the frame's
 * zone and is valid until frame_close(). All times are host
 * CLOCK_MONOTONIC_RAW ns unless the name says real (CLOCK_REALTIME).
 */
#pragma once

#include "wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_PROTOCOL 1
#define FRAME_MAX_BYTES WIRE_MAX_FRAME_BYTES
#define FRAME_BATCH_BYTES (256u << 10) /* what an agent aims at */
#define FRAME_MAX_ID 64   /* run id, host name, token: bytes */
#define FRAME_MAX_PROCS 256
#define FRAME_DEFAULT_PORT 7788 /* control; data is the next one */

enum frame_type {
	FRAME_HELLO = 1,     /* agent: who I am; also again when processes change */
	FRAME_HEARTBEAT = 2, /* agent, 4 Hz: clock sample, in-flight state */
	FRAME_BATCH = 3,     /* agent, data pair */
	FRAME_WELCOME = 16,  /* answer to hello */
	FRAME_BEAT = 17,     /* answer to heartbeat, with control */
	FRAME_ACK = 18,      /* answer to batch: durable */
	FRAME_REHELLO = 19,  /* stream unknown: say hello, keep the batch */
	FRAME_REFUSE = 20,   /* code and a sentence for a person */
};

enum frame_refusal {
	REFUSE_VERSION = 1,    /* agent's protocol is newer than the collector's */
	REFUSE_TOKEN = 2,      /* missing or wrong */
	REFUSE_OTHER_RUN = 3,  /* this collector serves another run id */
	REFUSE_RANK_TAKEN = 4, /* two jobs under one run id */
	REFUSE_MALFORMED = 5,  /* the frame or a chunk in it */
	REFUSE_BUSY = 6,       /* try again later: disk full, shutting down */
};

enum frame_proc_state {
	PROC_ALIVE = 1,
	PROC_LEFT = 2, /* in order: atexit ran */
	PROC_DIED = 3, /* the lock is gone without it */
};

/* A training process as its agent knows it. */
struct frame_proc {
	uint32_t proc; /* the agent's index for it, from 0 */
	uint64_t unique;
	int64_t started_ns;
	uint32_t pid;
	int32_t rank, local_rank, world_size, restart_count; /* rank -1 = unknown yet */
	uint32_t tick_source;
	uint32_t tick_error_ns; /* of the conversion tick -> host ns */
	uint32_t level;
	uint32_t state; /* enum frame_proc_state */
	int64_t state_at_ns; /* when the agent saw it */
	int32_t exit_code, signal; /* -1 when it cannot be known */
	uint64_t n_dropped; /* events the guest had no room for, all rings */
	uint64_t n_text_dropped, n_names_dropped;
};

struct frame_hello {
	uint32_t protocol;
	uint8_t agent_id[16]; /* random, one a run of the agent */
	const char *run_id, *host, *boot_id, *token, *version; /* token may be "" */
	uint64_t time_ns_inode; /* of /proc/self/ns/time: same boot and this = same clock */
	int64_t raw_ns, real_ns;
	uint32_t n_procs;
	const struct frame_proc *procs;
};

#define FRAME_SECRET_BYTES 32
struct frame_welcome {
	uint64_t stream; /* names every later frame of this agent */
	uint32_t level;
	const char *run_id, *version;
	const char *notice; /* "" or a sentence for the agent's log */
	/* Where clock probes go (ping.h), on the host of the control URL; 0 = nowhere. */
	uint32_t probe_port;
	uint8_t probe_secret[FRAME_SECRET_BYTES]; /* of this stream */
	/* Agents probe each other under this one; all zero: they do not. */
	uint8_t peer_secret[FRAME_SECRET_BYTES];
};

/* Another agent to probe. */
#define FRAME_MAX_PEERS 8
struct frame_peer {
	uint32_t host; /* the collector's number for it, said again in what is reported */
	uint32_t port;
	uint8_t n_address; /* 4 or 16 bytes of it */
	uint8_t address[16];
};

/* One round trip of the control pair: agent sent t0, collector got t1 and
 * answered t2, agent got t3. t0 and t3 on the agent's clock. 0 = none yet. */
struct frame_exchange {
	int64_t t0_ns, t1_ns, t2_ns, t3_ns;
};

struct frame_inflight {
	uint32_t proc;
	int32_t rank;
	uint32_t step, phase; /* EVENT_STEP_UNKNOWN, enum event_phase */
	const char *group;    /* "" = in no collective */
	uint32_t seq, op;
	int64_t since_ns; /* of the last event */
	int64_t last_event_ns;
};

/* How the agent's clock probes fare: what tells a lost request from a lost answer. */
enum frame_probing {
	PROBING_NOT = 0,     /* not asked to, or the clock is the collector's own */
	PROBING = 1,
	PROBING_NO_PATH = 2, /* no such host, no socket, or the network refuses it */
};
struct frame_probing_state {
	uint32_t state; /* enum frame_probing */
	uint64_t n_sent, n_answered, n_refused; /* refused: forged, repeated, late or malformed */
	uint32_t peer_port; /* where other agents' probes are answered, 0 = nowhere */
};

struct frame_heartbeat {
	uint64_t stream;
	int64_t t0_ns, real_ns;
	struct frame_exchange last;
	uint64_t n_spooled_bytes, n_spool_dropped; /* batches kept, events given up */
	uint64_t oldest_seq; /* of the batches still kept; what is below never comes (again) */
	uint64_t cpu_ns, rss_bytes; /* the agent's own cost */
	struct frame_probing_state probing;
	uint32_t n_inflight;
	const struct frame_inflight *inflight;
};

struct frame_beat {
	int64_t t1_ns, t2_ns;
	uint32_t level;  /* beyond LEVEL_MAX = no opinion */
	uint32_t credit; /* batches the collector would take now */
	const char *notice;
	uint32_t n_peers;
	struct frame_peer peers[FRAME_MAX_PEERS];
};

struct frame_chunk {
	uint32_t proc, ring;
	uint64_t first; /* index of the first event in its ring */
	const unsigned char *data;
	size_t n_bytes;
};
struct frame_name {
	uint32_t proc, id;
	const char *text; /* not terminated */
	uint32_t n_text;
};
struct frame_text {
	uint32_t proc, kind, level; /* shm.h: enum shm_text_kind */
	int64_t at_ns;
	const char *text; /* not terminated */
	uint32_t n_text;
};
#define FRAME_HOST_PROC UINT32_MAX
struct frame_gauge {
	uint32_t proc; /* or FRAME_HOST_PROC */
	int64_t at_ns;
	const char *name;
	double value;
};

/* One instant on every clock of the host: what a foreign stamp is converted by. All
 * of them were read within half_ns of raw_ns. */
#define FRAME_NO_TICK UINT32_MAX
struct frame_snapshot {
	int64_t raw_ns, mono_ns, real_ns, boot_ns;
	uint32_t half_ns;
	uint32_t tick_source; /* enum shm_tick, or FRAME_NO_TICK */
	uint64_t tick;
};

/* An exchange with another agent's host: t0, t3 on our clock, t1, t2 on its own. */
struct frame_peer_exchange {
	uint32_t host;
	int64_t t0_ns, t1_ns, t2_ns, t3_ns;
};

/* The unit of durability. Order of use: procs, names, chunks, texts, gauges, snapshots.
 * States every process that it mentions (procs), so that it is understood by
 * itself; .proc is an index that is used again after its process is over. A
 * stream speaks for one agent_id: what an earlier agent left in its spool goes
 * under a hello and a stream of that agent. Names come again on a new stream. */
struct frame_batch {
	uint64_t stream, seq; /* seq from 1, per agent_id */
	uint8_t agent_id[16];
	uint64_t n_given_up; /* events that the spool had no room for, so far */
	uint32_t n_procs, n_names, n_chunks, n_texts, n_gauges, n_snapshots;
	uint32_t n_peer_exchanges;
	const struct frame_proc *procs;
	const struct frame_name *names;
	const struct frame_chunk *chunks;
	const struct frame_text *texts;
	const struct frame_gauge *gauges;
	const struct frame_snapshot *snapshots;
	const struct frame_peer_exchange *peer_exchanges;
};

struct frame_ack {
	uint64_t seq;
	uint32_t credit;
};
struct frame_refuse {
	uint32_t code; /* enum frame_refusal */
	const char *text;
};

struct frame {
	enum frame_type type;
	uint32_t protocol;
	union {
		struct frame_hello hello;
		struct frame_heartbeat heartbeat;
		struct frame_batch batch;
		struct frame_welcome welcome;
		struct frame_beat beat;
		struct frame_ack ack;
		struct frame_refuse refuse;
		struct { uint64_t stream; } rehello;
	};
	void *zone; /* frame.c's */
};

enum frame_outcome {
	FRAME_OK = 0,
	FRAME_BAD_SHAPE, /* wire_check() refused it, or not a map */
	FRAME_BAD_TYPE,  /* a type that this build does not know */
	FRAME_BAD_FIELD, /* a field is missing, of another type or too large */
	FRAME_NEWER,     /* protocol newer than FRAME_PROTOCOL; only .protocol is set */
};

/* Bytes that frame_pack() made; grows by malloc, owned by the caller. */
struct frame_buf {
	unsigned char *data;
	size_t n_bytes, n_alloc;
};
void frame_buf_fini(struct frame_buf *b); /* zeroed is fine */

/* Append f to b (b is cleared first). 0 or -ENOMEM. */
int frame_pack(struct frame_buf *b, const struct frame *f);

/* Decode one message. On FRAME_OK the caller owes a frame_close(). Never
 * allocates by a declared size. -ENOMEM is the only negative answer. */
int frame_open(struct frame *ret, const void *data, size_t n_bytes);
void frame_close(struct frame *f);
const char *frame_outcome_text(int outcome);

/* tcp://h:7788 -> tcp://h:7789; ipc:///p -> ipc:///p.data. 0, or -EINVAL for a
 * URL that is neither. */
int frame_data_url(const char *control_url, char *out, size_t n_out);
