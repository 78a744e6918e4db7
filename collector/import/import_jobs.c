/* import_jobs.c - several files read at once, in the order in which they were named.
 *
 * Workers take the next file, read it into a trace of its own and leave that in a slot;
 * the caller's thread merges slot after slot in the files' order. So what comes out does
 * not depend on how many there are or who is first. A file whose format needs what other
 * files said is left to the caller's thread, at its turn. Workers run ahead of the merging
 * by a few files only: that is all the memory that is used for more than one.
 */
#include "import.h"

#include "format.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define MAX_JOBS 256
#define AHEAD 2 /* slots a job */

enum slot_state { SLOT_FREE, SLOT_READ, SLOT_IN_TURN };

struct slot {
	struct trace part;
	enum slot_state state;
};

struct jobs {
	/* set before the first worker, then read-only */
	struct trace *t;
	struct trace_input *inputs; /* each its worker's until its slot is full */
	uint32_t n_inputs, n_slots;
	const struct import_progress *progress;
	uint64_t *n_bytes, n_all_bytes; /* by input: of its file */

	/* shared, under lock */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t next, n_merged;
	struct slot *slots; /* of input i: i % n_slots; its part is the worker's while it is free */
	double *shares;	    /* by input: how much of it was read */
	double done_bytes;
	bool stop;
};

struct telling {
	struct jobs *j;
	uint32_t input;
};

/* Any thread. */
static void on_read(void *arg, const char *path, double share)
{
	const struct telling *tell = arg;
	struct jobs *j = tell->j;

	pthread_mutex_lock(&j->lock);
	if (share > j->shares[tell->input]) {
		j->done_bytes += (share - j->shares[tell->input]) * (double)j->n_bytes[tell->input];
		j->shares[tell->input] = share;
	}
	if (path)
		j->progress->fn(j->progress->arg, path, j->n_all_bytes ? j->done_bytes / (double)j->n_all_bytes : 0);
	pthread_mutex_unlock(&j->lock);
}

static struct import_progress progress_of(struct telling *tell)
{
	return (struct import_progress){ tell->j->progress->fn ? on_read : NULL, tell };
}

/* ---- workers ---- */

/* The next input that has a slot; false when there is none left. */
static bool take_input(struct jobs *j, uint32_t *ret)
{
	bool fine;

	pthread_mutex_lock(&j->lock);
	while (!j->stop && j->next < j->n_inputs && j->next - j->n_merged >= j->n_slots)
		pthread_cond_wait(&j->changed, &j->lock);
	fine = !j->stop && j->next < j->n_inputs;
	if (fine)
		*ret = j->next++;
	pthread_mutex_unlock(&j->lock);
	return fine;
}

static void *work(void *arg)
{
	struct jobs *j = arg;
	uint32_t i;

	while (take_input(j, &i)) {
		struct slot *slot = &j->slots[i % j->n_slots];
		struct telling tell = { j, i };
		struct import_progress progress = progress_of(&tell);
		bool apart;

		trace_init_beside(&slot->part, j->t);
		apart = import_file_apart(&slot->part, &j->inputs[i], &progress);
		if (apart)
			on_read(&tell, NULL, 1);
		pthread_mutex_lock(&j->lock);
		slot->state = apart ? SLOT_READ : SLOT_IN_TURN;
		pthread_cond_broadcast(&j->changed);
		pthread_mutex_unlock(&j->lock);
	}
	return NULL;
}

/* ---- the caller's thread ---- */

static enum slot_state wait_for(struct jobs *j, const struct slot *slot)
{
	enum slot_state state;

	pthread_mutex_lock(&j->lock);
	while (slot->state == SLOT_FREE)
		pthread_cond_wait(&j->changed, &j->lock);
	state = slot->state;
	pthread_mutex_unlock(&j->lock);
	return state;
}

static void merge_all(struct jobs *j)
{
	for (uint32_t i = 0; i < j->n_inputs && !j->t->no_memory; i++) {
		struct slot *slot = &j->slots[i % j->n_slots];

		if (wait_for(j, slot) == SLOT_READ) {
			(void)trace_merge(j->t, &slot->part, &j->inputs[i]);
		} else {
			struct telling tell = { j, i };
			struct import_progress progress = progress_of(&tell);

			trace_fini(&slot->part);
			(void)import_file(j->t, &j->inputs[i], &progress);
			on_read(&tell, NULL, 1);
		}
		pthread_mutex_lock(&j->lock);
		slot->state = SLOT_FREE;
		j->n_merged = i + 1;
		pthread_cond_broadcast(&j->changed);
		pthread_mutex_unlock(&j->lock);
	}
}

static void run(struct jobs *j, unsigned n_jobs)
{
	pthread_t threads[MAX_JOBS];
	unsigned n = 0;

	while (n < n_jobs && pthread_create(&threads[n], NULL, work, j) == 0)
		n++;
	if (n > 0)
		merge_all(j);
	else
		j->t->no_memory = true;
	pthread_mutex_lock(&j->lock);
	j->stop = true;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
	for (unsigned i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < j->n_slots; i++)
		trace_fini(&j->slots[i].part);
}

static unsigned n_cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

bool import_files(struct trace *t, struct trace_input *inputs, uint32_t n_inputs, unsigned n_jobs,
		  const struct import_progress *p)
{
	struct jobs j = { .t = t, .inputs = inputs, .n_inputs = n_inputs, .progress = p };

	n_jobs = n_jobs ? n_jobs : n_cores();
	n_jobs = n_jobs < MAX_JOBS ? n_jobs : MAX_JOBS;
	n_jobs = n_jobs < n_inputs ? n_jobs : n_inputs;
	if (n_jobs == 0)
		return true;
	j.n_slots = AHEAD * n_jobs;
	j.slots = calloc(j.n_slots, sizeof *j.slots);
	j.n_bytes = calloc(n_inputs, sizeof *j.n_bytes);
	j.shares = calloc(n_inputs, sizeof *j.shares);
	if (j.slots && j.n_bytes && j.shares && trace_spill(t)) {
		for (uint32_t i = 0; i < n_inputs; i++) {
			j.n_bytes[i] = inputs[i].settled ? 0 : inputs[i].n_file_bytes;
			j.n_all_bytes += j.n_bytes[i];
		}
		pthread_mutex_init(&j.lock, NULL);
		pthread_cond_init(&j.changed, NULL);
		run(&j, n_jobs);
		pthread_cond_destroy(&j.changed);
		pthread_mutex_destroy(&j.lock);
	} else {
		t->no_memory = true;
	}
	free(j.slots);
	free(j.n_bytes);
	free(j.shares);
	return !t->no_memory;
}
