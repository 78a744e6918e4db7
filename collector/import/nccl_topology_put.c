/* nccl_topology_put.c - the devices of a machine as rows: how they hang together, and which
 * card is next to which GPU.
 */
#include "nccl_log.h"
#include "nccl_topology.h"
#include "row_files.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PATHS 65536

enum dist { DIST_PIX, DIST_PXB, DIST_PHB, DIST_SYS };
static const char *const dists[] = { "PIX", "PXB", "PHB", "SYS" };

/* One switch above both, several, the CPU, or the way between CPUs: NCCL's words. */
static enum dist dist_of(const struct topology *t, const struct topology_device *a, const struct topology_device *b)
{
	uint32_t n = 0;

	if (a->cpu != b->cpu)
		return DIST_SYS;
	for (;;) { /* up to the same depth, then both */
		if (a->parent == b->parent && a->depth == b->depth)
			break;
		if (a->depth >= b->depth && a->parent >= 0) {
			a = &t->v[a->parent];
			n++;
		} else if (b->parent >= 0) {
			b = &t->v[b->parent];
			n++;
		} else {
			break;
		}
	}
	if (a->parent < 0)
		return DIST_PHB;
	return n == 0 ? DIST_PIX : DIST_PXB;
}

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

static bool put_device(const struct topology *t, const struct topology_device *d)
{
	bool fine = true;

	if (d->is_gpu)
		fine = trace_row(t->trace, "topo_gpu", "tttiiiiirii", t->file, or_null(d->host), or_null(d->bus),
				 d->device, d->rank, d->sm, d->gdr, d->numa, d->speed_gts, d->width, d->n_nvlinks);
	else if (d->is_card)
		fine = trace_row(t->trace, "topo_nic", "ttttiiiiiri", t->file, or_null(d->host), or_null(d->bus),
				 or_null(d->name), d->device, d->port, d->speed_mbps, d->gdr, d->numa, d->speed_gts,
				 d->width);
	if (fine && d->bus[0])
		fine = trace_row(t->trace, "topo_link", "ttttiri", t->file, "pcie", d->bus, d->above, (int64_t)1,
				 d->speed_gts, d->width);
	return fine;
}

static bool put_paths(const struct topology *t, const struct topology_device *gpu)
{
	enum dist least = DIST_SYS;

	for (uint32_t i = 0; i < t->n; i++)
		if (t->v[i].is_card && !t->v[i].is_gpu && dist_of(t, gpu, &t->v[i]) < least)
			least = dist_of(t, gpu, &t->v[i]);
	for (uint32_t i = 0; i < t->n; i++) {
		const struct topology_device *card = &t->v[i];
		enum dist d;

		if (!card->is_card || card->is_gpu)
			continue;
		d = dist_of(t, gpu, card);
		if (!trace_row(t->trace, "topo_path", "tttti", t->file, gpu->bus,
			       card->name[0] ? card->name : card->bus, dists[d], (int64_t)(d == least)))
			return false;
	}
	return true;
}

bool topology_put(struct topology *t)
{
	uint64_t n_gpus = 0, n_cards = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		if (!put_device(t, &t->v[i]))
			return false;
		n_gpus += t->v[i].is_gpu;
		n_cards += t->v[i].is_card;
	}
	for (uint32_t i = 0; i < t->n && n_gpus * n_cards <= MAX_PATHS; i++)
		if (t->v[i].is_gpu && !put_paths(t, &t->v[i]))
			return false;
	return true;
}

/* ---- records ---- */

enum { GPU_FILE, GPU_HOST, GPU_BUS, GPU_DEVICE, GPU_RANK, GPU_SM, GPU_GDR, GPU_NUMA, GPU_SPEED, GPU_WIDTH };

static bool note(struct trace *t, const struct trace_row *r, const char *category, json_t *fields)
{
	struct trace_rank *rank = trace_find_rank(t, (int32_t)nccl_int(r, GPU_RANK));
	char *text = fields ? json_dumps(fields, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
	bool fine = !fields || (text && rank && trace_note(t, rank, 0, category, text)); /* no fields: a name that is no text */

	free(text);
	json_decref(fields);
	return fine;
}

/* The card next to it, where just one is. */
static bool note_card(struct trace *t, uint32_t n_rows, const struct trace_row *gpu)
{
	const char *nic = NULL, *dist = NULL;
	unsigned n = 0;

	for (uint32_t i = 0; i < n_rows; i++) {
		const struct trace_row *r = &t->rows[i];

		if (strcmp(r->table, "topo_path") != 0 || nccl_int(r, 4) != 1 ||
		    strcmp(nccl_text(r, 0), nccl_text(gpu, GPU_FILE)) != 0 ||
		    strcmp(nccl_text(r, 1), nccl_text(gpu, GPU_BUS)) != 0)
			continue;
		nic = nccl_text(r, 2);
		dist = nccl_text(r, 3);
		n++;
	}
	return n != 1 || note(t, gpu, "topo.gpu_nic", json_pack("{s:s+, s:s}", "nic", nic, "", "dist", dist));
}

static bool note_link(struct trace *t, const struct trace_row *gpu)
{
	double speed = row_real(gpu, GPU_SPEED);

	return isnan(speed) || nccl_int(gpu, GPU_WIDTH) == TRACE_NULL ||
	       note(t, gpu, "topo.link",
		    json_pack("{s:s, s:I, s:f}", "kind", "pcie", "width", (json_int_t)nccl_int(gpu, GPU_WIDTH),
			      "speed", speed));
}

/* Logs first: they say who is which rank. Its ranks are those of the communicator that wrote it. They are the job's where it is
 * one file with every rank of the job in it, each once. */
bool topology_join(struct trace *t, struct trace_input *inputs, uint32_t n_inputs)
{
	uint32_t n_rows = t->n_rows, n_gpus = 0; /* the log's join adds none of ours */
	bool fine = nccl_log_join(t, inputs, n_inputs), whole = true;
	bool *seen = calloc((size_t)t->n_ranks + 1, sizeof *seen);

	fine = fine && seen;
	for (uint32_t i = 0; i < n_rows && fine; i++) {
		const struct trace_row *r = &t->rows[i];
		const struct trace_rank *rank;

		if (strcmp(r->table, "topo_gpu") != 0)
			continue;
		n_gpus++;
		rank = nccl_int(r, GPU_RANK) != TRACE_NULL && n_gpus <= t->n_ranks ?
			       trace_find_rank(t, (int32_t)nccl_int(r, GPU_RANK)) : NULL;
		whole = whole && rank && !seen[rank - t->ranks];
		if (rank)
			seen[rank - t->ranks] = true;
	}
	whole = whole && n_gpus > 0 && n_gpus == t->n_ranks && (int64_t)n_gpus == t->world_size;
	for (uint32_t i = 0; i < n_rows && fine && whole; i++)
		if (strcmp(t->rows[i].table, "topo_gpu") == 0)
			fine = note_card(t, n_rows, &t->rows[i]) && note_link(t, &t->rows[i]);
	free(seen);
	t->no_memory |= !fine;
	return fine;
}
