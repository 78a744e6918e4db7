/* megatron.h - a training log of Megatron, DeepSpeed or one of their kin, between its reader
 * and what is made of its numbers.
 */
#pragma once

#include "format.h"

#define MEGATRON_MAX_STEPS (1u << 20)
#define MEGATRON_MAX_NAMES 256 /* of timers */
#define MEGATRON_MAX_SAMPLES (1u << 20)

/* Numbers of the job, as its arguments or its start say; 0 = not said. */
enum megatron_number {
	MEGATRON_WORLD, MEGATRON_DP, MEGATRON_PP, MEGATRON_TP, MEGATRON_VIRTUAL, /* model chunks a stage */
	MEGATRON_MICRO_SIZE, MEGATRON_GLOBAL_SIZE, MEGATRON_N_MICRO, /* of a step */
	MEGATRON_INTERVAL, /* iterations a line */
	MEGATRON_N_NUMBERS,
};

struct megatron_step { /* of one line: a mean over n of them. NaN = not said */
	int64_t step, n;
	double elapsed_ms, skipped, nan, loss, loss_scale, grad_norm, learning_rate, batch_size;
};

struct megatron_sample {
	uint32_t step; /* index; UINT32_MAX = before the first */
	uint32_t name; /* index */
	int32_t rank;  /* -1 = of the one that logs, or over all */
	double ms, least_ms; /* least: NaN where it is of one rank */
};

struct megatron {
	struct trace *trace;
	int64_t numbers[MEGATRON_N_NUMBERS];
	int strength[MEGATRON_N_NUMBERS]; /* of who said it: arguments before the command line */
	struct megatron_step *steps;
	uint32_t n_steps, n_steps_alloc;
	char (*names)[64];
	uint32_t n_names, n_names_alloc;
	struct megatron_sample *samples;
	uint32_t n_samples, n_samples_alloc;
	uint64_t n_left_out; /* lines beyond the limits */
};

/* Its numbers of one line, if it has any. */
void megatron_take_argument(struct megatron *m, const char *line);
/* A line of the log. False only without memory. */
bool megatron_take_line(struct megatron *m, const char *line, size_t n, int *listing, uint32_t *listed);

enum import_outcome megatron_read(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
				  size_t n_why);
/* Rows: its steps and timers, and what its pipeline does by its own numbers. */
bool megatron_tell(struct megatron *m, const char *path, char *why, size_t n_why);
/* Numbers the logs; the first one's pipeline is told to the rules, and where nothing else tells of the job, its steps. */
bool megatron_join(struct trace *t, struct trace_input *inputs, uint32_t n_inputs);
void megatron_free(struct megatron *m);
