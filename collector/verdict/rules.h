/* rules.h - the rules that reason from what was called, said and left undone.
 *
 * They look when time passes and the words have settled, causes before
 * consequences: what kept the job from starting, calls that differ, members that
 * stay away. Whatever holds a job up is told once a life; what comes after it in
 * the same life is its consequence.
 */
#pragma once

#include "config.h"
#include "gathers.h"
#include "beats.h"
#include "clock_stamps.h"
#include "gauges.h"
#include "latecomers.h"
#include "ledger.h"
#include "once.h"
#include "contrast.h"
#include "dumped.h"
#include "ledger.h"
#include "losses.h"
#include "paths.h"
#include "rates.h"
#include "measures.h"
#include "pace.h"
#include "lanes.h"
#include "ledger.h"
#include "pauses.h"
#include "placement.h"
#include "replayed.h"
#include "side.h"
#include "step_times.h"
#include "transfers.h"
#include "silent.h"

#define RULES_MAX_RANKS 64 /* named in one verdict */

/* What a rule has found. Texts may be of the caller's stack. */
struct finding {
	const char *class_name;
	const char *key; /* of what may be told anew by another class; NULL = the class */
	enum fact_severity severity;
	enum fact_confidence confidence;
	int32_t ranks[RULES_MAX_RANKS];
	uint32_t n_ranks;
	const char *group, *host, *link, *setting, *module, *detail; /* NULL = not named */
	bool has_call, has_stage, has_bucket;
	uint64_t call;
	uint32_t stage, bucket;
	uint32_t step, last_step; /* last below step: the same one */
	int64_t onset_ns; /* FACT_NONE: now */
	double cost_ratio; /* time that it adds / time without; 0 = it has no price in time */
	int64_t margin_ns, error_ns;
	enum fact_error_kind error_kind;
	const char *sentence;
	const char *evidence_json, *rules_out_json;
};

#define RULES_MAX_SLOW 32

struct rules_slow { /* what was told to make the job slow */
	const char *class_name;
	int32_t ranks[RULES_MAX_RANKS];
	uint32_t n_ranks; /* 0 = a host, a link, everyone */
	uint32_t first_step;
};

struct rules {
	struct ledger ledger;
	struct side side;
	struct replayed replayed;
	const struct dumped *dumped; /* NULL = no dumps; of who fed them */
	struct gauges gauges;
	struct latecomers latecomers;
	struct transfers transfers;
	struct gathers gathers;
	struct step_times step_times;
	struct config config;
	struct onces once;
	struct rates rates;
	struct losses losses;
	struct paths paths;
	struct contrasts contrasts; /* of this look */
	struct pulse pulse;
	struct numbers numbers;
	struct silent silent;
	struct measures measures;
	struct pace pace;
	struct beats beats;
	bool by_calls; /* the pace is that of beats */
	struct lanes lanes;
	struct pauses pauses;
	struct placement placement;
	struct lateness_places places; /* scratch of the newest call */
	struct clock_stamps stamps;
	struct facts *facts; /* of this look */
	int64_t fleet_ns, looked_ns;
	int64_t base_ns, now_ns; /* now: since the first look; what was heard before it is of its time */
	uint32_t life;	/* the newest process's */
	uint32_t world_size;
	bool finishing;
	uint32_t stages_below; /* steps of pipelines that are told */
	bool held; /* a cause of the standstill of this life is told */
	struct rules_slow slow[RULES_MAX_SLOW]; /* of this life, the first of each class */
	uint32_t n_slow;
	uint64_t n_lost; /* events of all processes */
	uint32_t n_above; /* causes told above a notice, in this life */
	/* A standstill without a cause was told: it may yet prove to be a busy rank. */
	bool waits;
	uint32_t wait_group, wait_proc;
	uint64_t wait_call;
	struct line wait_line; /* of it, once all have come; unused before */
	char wait_work[160];
	struct finding start; /* what was told of start-up; no class: nothing */
	char start_sentence[700];
};

void rules_init(struct rules *r, struct roster *roster, struct match *match);
void rules_fini(struct rules *r);
/* Once a second at most. finishing: nothing more will come. 0 or -ENOMEM. */
int rules_look(struct rules *r, int64_t now_ns, uint32_t world_size, bool finishing,
	       struct facts *facts);

/* What the analysis took, in its order; each gives it to the collectors of evidence
 * that rules.c lists. 0 or -ENOMEM. */
int rules_event(struct rules *r, struct proc *p, const struct event *ev, uint32_t restart_count);
/* What a process said besides; of the categories that rules ask for. */
/* A record of a process. */
int rules_record(struct rules *r, const struct proc *p, int64_t at_ns, const char *category,
		 const char *fields_json, size_t n_fields);
/* n events are gone, of that process (NULL: of one that nobody knows). 0 or -ENOMEM. */
int rules_lost(struct rules *r, const struct proc *p, uint64_t n);
/* A collective is final; its arrivals are there. */
int rules_call(struct rules *r, const struct match *m, uint32_t group, const struct coll *c);
/* The part of it that is counted: losses and copies. */
int counts_record(struct rules *r, const struct proc *p, int64_t at_ns, const char *category,
		  const char *fields_json, size_t n_fields);
/* A step is told, once, in order; its ranks in order. */
int rules_step(struct rules *r, const struct fact_step *step, const struct fact_rank_step *v,
	       size_t n, struct facts *facts);

void finding_rank(struct finding *f, int32_t rank); /* once each, in order */
/* "Rank 3", "Ranks 1, 2 and 5", "Ranks 0, 1, 2 and 61 more". */
void words_ranks(const int32_t *ranks, uint32_t n, char *out, size_t n_out);
int rules_tell(struct rules *r, const struct finding *f);
/* Has a cause been told that explains why this rank (-1: the job) is slow? Slow rules
 * look in the order of how much they explain; one that finds less asks first. */
bool rules_explained(const struct rules *r, int32_t rank);
/* The same for slow.fixed_rank, whose own telling of it does not count. */
bool rules_explained_else(const struct rules *r, int32_t rank);
/* It tells by itself; that it did is kept for the others. */
void rules_named(struct rules *r, const char *class_name, const int32_t *ranks, uint32_t n,
		 uint32_t first_step);

/* How many causes of slowness of that class are told in this life. */
uint32_t rules_n_told(const struct rules *r, const char *class_name);

/* The rules. 0 or -ENOMEM; each tells at most one cause. */
int data_dependent_look(struct rules *r);
int mismatch_look(struct rules *r);
int p2p_order_look(struct rules *r);
int absent_look(struct rules *r);
int dumped_look(struct rules *r);
int shared_nic_look(struct rules *r);
int host_p2p_path_look(struct rules *r);
int ring_nic_look(struct rules *r);
int link_look(struct rules *r);
int jitter_look(struct rules *r);
int retransmits_look(struct rules *r);
int lossy_class_look(struct rules *r);
int start_look(struct rules *r);
int endpoint_look(struct rules *r);
int interface_look(struct rules *r);
int resolution_look(struct rules *r);
int port_look(struct rules *r);
int dataplane_look(struct rules *r);
int missing_look(struct rules *r);
int route_look(struct rules *r);
int version_look(struct rules *r);
int setting_look(struct rules *r);
int device_look(struct rules *r);
int adapters_look(struct rules *r);
int qp_retry_look(struct rules *r);
int corruption_look(struct rules *r);
bool corruption_is_said(const struct rules *r); /* by the transport; whose fault it is, is open */
int deferred_free_look(struct rules *r);
int prefetch_look(struct rules *r);
int shard_boundary_look(struct rules *r);
int fragmentation_look(struct rules *r);
int growth_look(struct rules *r);
int device_slow_look(struct rules *r);
int setting_slow_look(struct rules *r);
int version_slow_look(struct rules *r);
int pace_look(struct rules *r);
int stages_look(struct rules *r);
int stage_imbalance_look(struct rules *r);
int amplified_look(struct rules *r);
int bubble_look(struct rules *r);
int timers_look(struct rules *r);
int checkpoint_look(struct rules *r);
int rotating_pause_look(struct rules *r);
int rotating_placement_look(struct rules *r);
int clock_stamps_look(struct rules *r);
int replayed_look(struct rules *r);
