/* guest.h - one training process, seen through the file it shares.
 *
 * Nothing in the file is believed: its layout was checked and copied once, every
 * index is masked, what is read is copied before it is looked at, and each touch
 * is guarded against the file being cut short. Liveness is the guest's lock on
 * byte 0; a pidfd only where the kernel shows us the process.
 */
#pragma once

#include "batch.h"
#include "flight.h"
#include "procfs.h"
#include "spool.h"
#include "tick.h"
#include "../../proto/shm.h"

#include <sys/types.h>

struct guest_ring {
	uint64_t next;	    /* first event not yet in a batch */
	uint64_t published; /* the tail that the guest sees */
	uint64_t sealed;    /* first event not in the spool */
};

struct guest {
	char *path;
	dev_t dev;
	ino_t ino;
	int fd, pidfd; /* pidfd -1 = not visible */
	pid_t pid;     /* in our PID namespace, 0 = not visible */
	unsigned char *map;
	size_t n_bytes;
	struct shm_header lay;
	char run_id[FRAME_MAX_ID + 1], host[FRAME_MAX_ID + 1];
	uint32_t generation; /* of the identity that was read; 0 = none yet */

	struct guest_ring rings[SHM_MAX_RINGS];
	uint32_t first_ring; /* drained first: turns, so that none starves */
	uint32_t n_names;    /* in a batch so far */
	struct guest_ring text;

	struct frame_proc facts; /* .proc is our index for it */
	struct flight flight;
	struct procfs_seen seen;
	bool sampled; /* by procfs, at least once */
	int64_t found_ns;
	bool facts_due;	 /* something changed that only a batch tells durably */
	bool mentioned;	 /* by the batch under construction */
	bool barrier;	 /* the batch says something new: name or process */
	bool cut;	 /* the file was truncated under us */
	bool exit_known; /* or will never be */
	bool dry;	 /* dead, and everything it left is in a batch */
	bool ended;	 /* and sealed: final_seq holds its last word */
	uint64_t final_seq;
	uint64_t n_skipped; /* events of a ring whose indices made no sense */
	uint64_t n_bad_kind;
};

enum guest_outcome {
	GUEST_OK = 0,
	GUEST_SERVED, /* another agent drains it */
	GUEST_REFUSED, /* not a file that we can serve; *ret_why says why */
};

/* Open, lock against other agents, map and check. Rings begin where the file
 * says, or where the spool of an earlier agent ended. */
int guest_open(struct guest **ret, const char *path, const struct spool *spool,
	       const char **ret_why);
void guest_close(struct guest *g); /* NULL is fine */

/* Take over identity and counters from the file. True when the identity is new. */
bool guest_refresh(struct guest *g);
/* Did it say goodbye? */
bool guest_closed(struct guest *g);
/* Does its process live? Fills in pid and pidfd when they can be had. */
bool guest_alive(struct guest *g);
/* How it ended, when the kernel tells. */
void guest_exit_status(struct guest *g);

/* Let the guest write over what is sealed; note that we were here. */
void guest_publish(struct guest *g, int64_t now_ns);
void guest_set_level(struct guest *g, uint32_t level);
/* Give mapped pages back: they count as ours while they are mapped. */
void guest_trim(struct guest *g);
/* A name by its id into buf (SHM_MAX_STRING). Its length; 0 = no such name. */
size_t guest_string(struct guest *g, uint32_t id, char *buf);
