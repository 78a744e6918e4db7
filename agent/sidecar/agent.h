/* agent.h - what the parts of the running agent share. One thread. */
#pragma once

#include "batch.h"
#include "drain.h"
#include "guest.h"
#include "link.h"
#include "mesh.h"
#include "pinger.h"
#include "procfs.h"
#include "say.h"
#include "ship.h"
#include "spool.h"
#include "tick.h"

#define AGENT_MAX_REFUSED 128

struct options {
	const char *collector, *dir, *run, *spool; /* run NULL = from the first process */
	char token[4 * FRAME_MAX_ID + 1];
	uint64_t spool_bytes;
	int64_t wait_ns;   /* 0 = try for ever */
	int64_t linger_ns; /* -1 = by how the processes ended */
	int level;	   /* -1 = as the processes begin */
	bool keep, quiet;
};

enum agent_asked { ASKED_BEAT, ASKED_HELLO, ASKED_HELLO_AS_HEIR };

struct agent {
	struct options opt;
	char run_id[FRAME_MAX_ID + 1], host[FRAME_MAX_ID + 1], boot_id[FRAME_MAX_ID + 1];
	uint64_t time_ns_inode;
	uint8_t agent_id[16];
	int64_t started_ns;
	uint32_t level; /* UINT32_MAX = nobody has asked for one */

	struct link *link;
	struct ship ship; /* with the spool; ship.spool NULL = the run is not known yet */
	struct batch batch;
	struct procfs *procfs;
	struct pinger pinger; /* of the collector */
	struct mesh mesh;     /* of other agents */
	struct tick ticks[3]; /* by enum shm_tick */
	int64_t tick_due_ns[3];

	struct guest *guests[FRAME_MAX_PROCS]; /* by our index of the process; NULL = free */
	uint32_t n_guests, next_proc;
	bool seen_any;
	int64_t last_gone_ns, linger_ns;
	struct {
		dev_t dev;
		ino_t ino;
		int64_t changed_ns;
	} refused[AGENT_MAX_REFUSED];
	unsigned n_refused;
	struct say_limit scan_limit, dir_limit, cut_limit, spool_limit;

	struct {
		bool asking;	/* a control request is out */
		enum agent_asked asked;
		int64_t t0_ns, due_ns;
		struct frame_exchange last;
		struct frame_buf buf;
		bool was_connected, ever_answered;
		char notice[256];
	} beat;
};

/* scan.c: files that come, processes that die. */
void scan_directory(struct agent *a, int64_t now_ns);
/* Take over identities and deaths; unlink what is over and acknowledged. */
void scan_guests(struct agent *a, int64_t now_ns);
void scan_forget(struct agent *a, uint32_t proc);

/* beat.c: hello, heartbeat, and what the collector wants. */
void beat_tick(struct agent *a, int64_t now_ns);
void beat_answer(struct agent *a, const struct link_answer *answer);
