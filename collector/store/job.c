#include "job.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (64u << 10)

struct job_block {
	struct job_block *next;
	size_t n_bytes;
	char data[];
};

struct store_job *job_new(void)
{
	struct store_job *j = calloc(1, sizeof *j);

	if (!j)
		return NULL;
	facts_init(&j->facts);
	job_clear(j);
	return j;
}

static void free_blocks(struct job_block *b)
{
	while (b) {
		struct job_block *next = b->next;

		free(b);
		b = next;
	}
}

void job_free(struct store_job *j)
{
	if (!j)
		return;
	facts_fini(&j->facts);
	free(j->hosts.v);
	free(j->agents.v);
	free(j->processes.v);
	free(j->names.v);
	free(j->chunks.v);
	free(j->rings.v);
	free(j->batches.v);
	free(j->exchanges.v);
	free(j->snapshots.v);
	free(j->clock_steps.v);
	free(j->clock_paths.v);
	free(j->peer_exchanges.v);
	free(j->logs.v);
	free(j->records.v);
	free(j->envs.v);
	free(j->gauges.v);
	free(j->inputs.v);
	free(j->imported.v);
	free(j->metas.v);
	free(j->core_state.v);
	free(j->owed.v);
	free(j->verdict_ids.v);
	free_blocks(j->blocks);
	free_blocks(j->spare);
	free(j);
}

void job_clear(struct store_job *j)
{
	facts_clear(&j->facts);
	j->run.set = false;
	j->hosts.n = j->agents.n = j->processes.n = j->names.n = j->chunks.n = j->rings.n = 0;
	j->batches.n = j->exchanges.n = j->logs.n = j->records.n = j->envs.n = j->gauges.n = 0;
	j->snapshots.n = j->clock_steps.n = j->clock_paths.n = j->peer_exchanges.n = 0;
	j->inputs.n = j->imported.n = j->metas.n = 0;
	j->owed.n = j->verdict_ids.n = 0;
	j->low_water = 0;
	j->n_late = 0;
	j->core_state.n = 0;
	j->failed = false;
	j->next = NULL;
	j->serial++;
	/* One plain block is kept for the next use; larger or more go back. */
	while (j->blocks) {
		struct job_block *b = j->blocks;

		j->blocks = b->next;
		if (!j->spare && b->n_bytes == BLOCK_BYTES) {
			b->next = NULL;
			j->spare = b;
		} else {
			free(b);
		}
	}
	j->n_used = 0;
}

bool job_empty(const struct store_job *j)
{
	const struct facts *f = &j->facts;

	return !j->run.set && j->hosts.n + j->agents.n + j->processes.n + j->names.n +
	       j->chunks.n + j->rings.n + j->batches.n + j->exchanges.n + j->logs.n +
	       j->records.n + j->envs.n + j->gauges.n + j->snapshots.n + j->clock_steps.n +
	       j->clock_paths.n + j->peer_exchanges.n + j->owed.n + f->steps.n +
	       f->rank_steps.n + f->collectives.n + f->groups.n + f->buckets.n + f->paths.n +
	       f->verdicts.n + f->clocks.n + f->contradictions.n + f->pairs.n +
	       f->comm_classes.n + f->stages.n + f->what_ifs.n + j->inputs.n +
	       j->imported.n + j->metas.n == 0;
}

char *job_bytes(struct store_job *j, size_t n)
{
	struct job_block *b = j->blocks;
	char *p;

	n = (n + 7) & ~(size_t)7;
	if (!b || b->n_bytes - j->n_used < n) {
		size_t n_block = n > BLOCK_BYTES ? n : BLOCK_BYTES;

		b = n_block == BLOCK_BYTES ? j->spare : NULL;
		if (b)
			j->spare = NULL;
		else
			b = malloc(sizeof *b + n_block);
		if (!b)
			return NULL;
		b->n_bytes = n_block;
		b->next = j->blocks;
		j->blocks = b;
		j->n_used = 0;
	}
	p = b->data + j->n_used;
	j->n_used += n;
	return p;
}

const char *job_text(struct store_job *j, const char *text)
{
	size_t n = strlen(text) + 1;
	char *p = job_bytes(j, n);

	return p ? memcpy(p, text, n) : NULL;
}

/* Length of the UTF-8 sequence at s, 0 when it is none. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
	unsigned c = s[0];
	size_t len;
	uint32_t v;

	if (c < 0x80)
		return 1;
	if (c >= 0xc2 && c <= 0xdf)
		len = 2;
	else if ((c & 0xf0) == 0xe0)
		len = 3;
	else if (c >= 0xf0 && c <= 0xf4)
		len = 4;
	else
		return 0;
	if (len > n)
		return 0;
	v = c & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		v = v << 6 | (s[i] & 0x3fu);
	}
	if (len == 3 && (v < 0x800 || (v >= 0xd800 && v <= 0xdfff)))
		return 0;
	if (len == 4 && (v < 0x10000 || v > 0x10ffff))
		return 0;
	return len;
}

const char *job_utf8(struct store_job *j, const char *text, size_t n_text)
{
	const unsigned char *s = (const unsigned char *)text;
	char *out = job_bytes(j, n_text * 3 + 1), *p = out;

	if (!out)
		return NULL;
	for (size_t i = 0; i < n_text;) {
		size_t len = utf8_length(s + i, n_text - i);

		if (len == 0 || (len == 1 && (s[i] < 0x20 || s[i] == 0x7f) && s[i] != '\t' &&
				 s[i] != '\n')) {
			memcpy(p, "\xef\xbf\xbd", 3);
			p += 3;
			i++;
		} else {
			memcpy(p, s + i, len);
			p += len;
			i += len;
		}
	}
	*p++ = '\0';
	/* Give back what the worst case did not need. */
	j->n_used -= ((n_text * 3 + 8) & ~(size_t)7) - (((size_t)(p - out) + 7) & ~(size_t)7);
	return out;
}
