/* spec_ops.c - the operations of a program, one reader a kind. */
#include "calls.h"
#include "json_text.h"
#include "spec_internal.h"

#include "../proto/frame.h"
#include "../proto/shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What Python would take for true. */
static bool is_set(const json_t *options, const char *key)
{
	const json_t *v = json_object_get(options, key);

	return json_is_true(v) || (json_is_number(v) && json_number_value(v) != 0) ||
	       json_string_length(v) > 0 || json_array_size(v) > 0 || json_object_size(v) > 0;
}

static bool get_options(struct parser *p, const json_t *v, const json_t **ret)
{
	static const char *const keys[] = { "nowait", "block", "on", "never", "mismatch", "name", "root" };
	const char *key;
	json_t *value;

	if (v && !json_is_object(v))
		return spec_refuse(p, "what follows the duration is an object of options");
	json_object_foreach((json_t *)v, key, value) {
		bool known = false;

		for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
			known |= strcmp(key, keys[i]) == 0;
		if (!known && !p->spec->remark[0])
			snprintf(p->spec->remark, sizeof p->spec->remark,
				 "the option \"%.60s\" has no meaning here and is passed over", key);
	}
	*ret = v;
	return true;
}

static bool get_group(struct parser *p, const json_t *v, uint32_t *ret)
{
	const char *name = json_string_value(v);
	const json_t *number = name ? json_object_get(p->groups, name) : NULL;

	if (number) {
		*ret = (uint32_t)json_integer_value(number);
		return true;
	}
	return spec_refuse(p, "there is no group \"%.60s\"; pg names the groups, and dp is all ranks",
			   name ? name : "?");
}

/* A group's calls run on a stream of its own, unless they say on which. */
static bool get_stream(struct parser *p, const json_t *on, uint32_t group, uint32_t *ret)
{
	char own[FRAME_MAX_ID + 8];
	const char *name = own;
	const json_t *number;

	snprintf(own, sizeof own, "comm:%s", p->spec->groups[group].name);
	if (on && !spec_get_name(p, on, "on", FRAME_MAX_ID, &name))
		return false;
	number = json_object_get(p->streams, name);
	if (!number && p->spec->n_streams == SPEC_MAX_STREAMS)
		return spec_refuse(p, "there are more than %d streams", SPEC_MAX_STREAMS);
	*ret = number ? (uint32_t)json_integer_value(number) : p->spec->n_streams++;
	if (!number && json_object_set_new(p->streams, name, json_integer(*ret)) != 0)
		p->no_memory = true;
	return !p->no_memory;
}

static bool get_step(struct parser *p, const json_t *v, struct spec_op *op)
{
	uint64_t number;

	if (json_array_size(v) < 2)
		return true;
	if (!spec_get_whole(p, json_array_get(v, 1), "the number of a step", 0, UINT32_MAX / 2,
			    &number))
		return false;
	op->step.has_number = true;
	op->step.number = (uint32_t)number;
	return true;
}

/* ["cpu", ms, name] and ["k", ms, name] */
static bool get_timed(struct parser *p, const json_t *v, struct spec_op *op)
{
	return spec_get_ms(p, json_array_get(v, 1), "the duration", &op->ms) &&
	       spec_get_name(p, json_array_get(v, 2), "the name", SHM_MAX_STRING, &op->name);
}

static bool get_stall(struct parser *p, const json_t *v, struct spec_op *op)
{
	return spec_get_name(p, json_array_get(v, 1), "the name", SHM_MAX_STRING, &op->name);
}

static bool get_sync(struct parser *p, const json_t *v, struct spec_op *op)
{
	(void)p, (void)v, (void)op;
	return true;
}

static bool get_repeat(struct parser *p, const json_t *v, struct spec_op *op)
{
	uint64_t n;

	if (!spec_get_whole(p, json_array_get(v, 1), "how often it is repeated", 0,
			    SPEC_MAX_REPEAT, &n))
		return false;
	op->repeat.n = (uint32_t)n;
	return spec_get_ops(p, json_array_get(v, 2), &op->repeat.body);
}

static bool get_only(struct parser *p, const json_t *v, struct spec_op *op)
{
	return spec_get_ranks(p, json_array_get(v, 1), "only", &op->only.ranks) &&
	       spec_get_ops(p, json_array_get(v, 2), &op->only.body);
}

/* As events have it. What they have no number for is still one of its own here. */
static void get_wire_call(struct parser *p, struct spec_op *op)
{
	struct spec_coll *c = &op->coll;
	char *remark = p->spec->remark;

	c->op = (uint8_t)call_op(op->name);
	c->type = (uint8_t)call_dtype(c->dtype);
	c->element_bytes = (uint8_t)call_dtype_bytes((enum event_dtype)c->type);
	if (c->op == OP_UNKNOWN && !remark[0])
		snprintf(remark, sizeof p->spec->remark,
			 "the operation \"%.60s\" is kept as \"unknown\"", op->name);
	if (c->type == DTYPE_UNKNOWN && !remark[0])
		snprintf(remark, sizeof p->spec->remark,
			 "the type \"%.60s\" is kept as \"unknown\", its sizes count elements",
			 c->dtype);
}

/* ["coll", group, operation, count, dtype, ms, {options}] */
static bool get_coll(struct parser *p, const json_t *v, struct spec_op *op)
{
	struct spec_coll *c = &op->coll;
	const json_t *options = NULL, *tensor, *mismatch, *root;
	uint64_t root_rank = 0;

	if (!get_group(p, json_array_get(v, 1), &c->group) ||
	    !spec_get_name(p, json_array_get(v, 2), "the operation", FRAME_MAX_ID, &op->name) ||
	    !spec_get_whole(p, json_array_get(v, 3), "the count", 0, SPEC_MAX_COUNT, &c->count) ||
	    !spec_get_name(p, json_array_get(v, 4), "the type", FRAME_MAX_ID, &c->dtype) ||
	    !spec_get_ms(p, json_array_get(v, 5), "the transfer", &op->ms) ||
	    !get_options(p, json_array_get(v, 6), &options))
		return false;
	tensor = json_object_get(options, "name");
	mismatch = json_object_get(options, "mismatch");
	root = json_object_get(options, "root");
	if (!get_stream(p, json_object_get(options, "on"), c->group, &c->stream) ||
	    (tensor && !spec_get_name(p, tensor, "name", SHM_MAX_STRING, &c->tensor)) ||
	    (root && !spec_get_whole(p, root, "root", 0, p->spec->world - 1, &root_rank)))
		return false;
	c->root = root ? (int32_t)root_rank : -1;
	get_wire_call(p, op);
	c->nowait = is_set(options, "nowait");
	c->block = is_set(options, "block");
	c->never = is_set(options, "never");
	c->complete = json_is_string(mismatch) &&
		      strcmp(json_string_value(mismatch), "complete") == 0;
	if (mismatch && !c->complete)
		return spec_refuse(p, "mismatch can only be \"complete\"");
	return true;
}

static bool get_wait(struct parser *p, const json_t *v, struct spec_op *op)
{
	uint64_t call = 0;

	if (!get_group(p, json_array_get(v, 1), &op->wait.group) ||
	    (json_array_size(v) > 2 && !spec_get_whole(p, json_array_get(v, 2),
						       "the call that is waited for", 1,
						       UINT32_MAX, &call)))
		return false;
	op->wait.call = (uint32_t)call;
	return true;
}

static bool get_pair(struct parser *p, const json_t *v, struct spec_pair *ret)
{
	const char *way = json_string_value(json_array_get(v, 0));
	uint64_t peer;

	if (!way || (strcmp(way, "s") != 0 && strcmp(way, "r") != 0))
		return spec_refuse(p, "each message is [\"s\" or \"r\", peer, count]");
	ret->send = way[0] == 's';
	if (!spec_get_whole(p, json_array_get(v, 1), "the peer", 0, p->spec->world - 1, &peer) ||
	    !spec_get_whole(p, json_array_get(v, 2), "the count", 0, SPEC_MAX_COUNT, &ret->count))
		return false;
	ret->peer = (uint32_t)peer;
	return true;
}

/* ["p2p", [["s", peer, count], …], ms, {options}] */
static bool get_p2p(struct parser *p, const json_t *v, struct spec_op *op)
{
	const json_t *pairs = json_array_get(v, 1), *options = NULL;
	size_t n = json_array_size(pairs);

	if (n == 0)
		return spec_refuse(p, "it has a list of messages, each [\"s\" or \"r\", peer, count]");
	op->p2p.pairs = spec_alloc(p, n, sizeof *op->p2p.pairs);
	if (!op->p2p.pairs)
		return false;
	op->p2p.n_pairs = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		if (!get_pair(p, json_array_get(pairs, i), &op->p2p.pairs[i]))
			return false;
	if (!spec_get_ms(p, json_array_get(v, 2), "the transfer", &op->ms) ||
	    !get_options(p, json_array_get(v, 3), &options))
		return false;
	op->p2p.block = is_set(options, "block");
	return true;
}

/* A number for all stages, or a list with one for each. */
static bool get_stage_ms(struct parser *p, const json_t *v, const char *what, uint32_t n_stages,
			 double **ret, uint32_t *ret_n)
{
	size_t n = json_is_array(v) ? json_array_size(v) : 1;

	if (json_is_array(v) && n < n_stages)
		return spec_refuse(p, "%s is one number or a list of %u, one a stage", what,
				   n_stages);
	*ret = spec_alloc(p, n, sizeof **ret);
	if (!*ret)
		return false;
	*ret_n = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		if (!spec_get_ms(p, json_is_array(v) ? json_array_get(v, i) : v, what, &(*ret)[i]))
			return false;
	return true;
}

/* ["1f1b", [ranks], micro-batches, forward, backward, count, ms] */
static bool get_1f1b(struct parser *p, const json_t *v, struct spec_op *op)
{
	const json_t *peers = json_array_get(v, 1), *ms = json_array_get(v, 6);
	uint64_t seen[SPEC_MAX_WORLD / 64] = { 0 }, n_micro;
	struct spec_1f1b *f = &op->f1b;

	if (json_array_size(peers) == 0 || json_array_size(peers) > p->spec->world)
		return spec_refuse(p, "it begins with the list of the stages' ranks");
	f->peers = spec_alloc(p, json_array_size(peers), sizeof *f->peers);
	if (!f->peers)
		return false;
	for (size_t i = 0; i < json_array_size(peers); i++) {
		uint64_t rank;

		if (!spec_get_whole(p, json_array_get(peers, i), "a stage's rank", 0,
				    p->spec->world - 1, &rank))
			return false;
		if (seen[rank / 64] >> rank % 64 & 1)
			return spec_refuse(p, "rank %u is two stages", (unsigned)rank);
		seen[rank / 64] |= UINT64_C(1) << rank % 64;
		f->peers[f->n_peers++] = (uint32_t)rank;
	}
	if (!spec_get_whole(p, json_array_get(v, 2), "the number of micro-batches", 0,
			    SPEC_MAX_REPEAT, &n_micro) ||
	    !get_stage_ms(p, json_array_get(v, 3), "forward", f->n_peers, &f->fwd_ms, &f->n_fwd) ||
	    !get_stage_ms(p, json_array_get(v, 4), "backward", f->n_peers, &f->bwd_ms,
			  &f->n_bwd) ||
	    !spec_get_whole(p, json_array_get(v, 5), "the count", 0, SPEC_MAX_COUNT, &f->count))
		return false;
	f->n_micro = (uint32_t)n_micro;
	op->ms = 0.05;
	return !ms || spec_get_ms(p, ms, "the transfer", &op->ms);
}

static int32_t level_of(const char *name)
{
	static const struct {
		const char *name;
		int32_t level;
	} levels[] = { { "debug", 10 }, { "info", 20 },	 { "warn", 30 },
		       { "warning", 30 }, { "error", 40 }, { "critical", 50 } };

	for (size_t i = 0; name && i < sizeof levels / sizeof *levels; i++)
		if (strcasecmp(name, levels[i].name) == 0)
			return levels[i].level;
	return 20;
}

/* ["ev", category, name, {fields}] */
static bool get_record(struct parser *p, const json_t *v, struct spec_op *op)
{
	const json_t *fields = json_array_get(v, 3);

	op->record.log_level = -1;
	if (!spec_get_name(p, json_array_get(v, 1), "the category", FRAME_MAX_ID,
			   &op->record.category) ||
	    !spec_get_name(p, json_array_get(v, 2), "the name", FRAME_MAX_ID, &op->name))
		return false;
	if (fields && !json_is_object(fields))
		return spec_refuse(p, "the fields of a record are an object");
	if (strcmp(op->record.category, "log") == 0 && strcmp(op->name, "line") == 0) {
		const json_t *level = json_object_get(fields, "level");

		op->record.log_text = json_string_value(json_object_get(fields, "text"));
		if (op->record.log_text && strlen(op->record.log_text) <= SHM_MAX_TEXT - 32)
			op->record.log_level = json_is_integer(level) ?
						       (int32_t)json_integer_value(level) % 100 :
						       level_of(json_string_value(level));
	}
	op->record.fields = fields ? json_text(fields, JSON_COMPACT) : strdup("{}");
	if (!op->record.fields) {
		p->no_memory = true;
		return false;
	}
	if (strlen(op->record.fields) > SHM_MAX_TEXT - 3 * FRAME_MAX_ID)
		return spec_refuse(p, "a record has at most %d bytes",
				   SHM_MAX_TEXT - 3 * FRAME_MAX_ID);
	return true;
}

static bool get_gauge(struct parser *p, const json_t *v, struct spec_op *op)
{
	return spec_get_name(p, json_array_get(v, 1), "the name", FRAME_MAX_ID, &op->name) &&
	       spec_get_real(p, json_array_get(v, 2), "the value", -1e300, 1e300, &op->gauge);
}

static const struct {
	const char *name;
	bool (*get)(struct parser *p, const json_t *v, struct spec_op *op);
} readers[SPEC_N_KINDS] = {
	[SPEC_STEP] = { "step", get_step },    [SPEC_CPU] = { "cpu", get_timed },
	[SPEC_KERNEL] = { "k", get_timed },    [SPEC_REPEAT] = { "rep", get_repeat },
	[SPEC_ONLY] = { "only", get_only },    [SPEC_STALL] = { "stall", get_stall },
	[SPEC_SYNC] = { "sync", get_sync },    [SPEC_COLL] = { "coll", get_coll },
	[SPEC_WAIT] = { "wait", get_wait },    [SPEC_P2P] = { "p2p", get_p2p },
	[SPEC_1F1B] = { "1f1b", get_1f1b },    [SPEC_RECORD] = { "ev", get_record },
	[SPEC_GAUGE] = { "gauge", get_gauge },
};

static bool get_op(struct parser *p, const json_t *v, struct spec_op *op)
{
	const char *name = json_string_value(json_array_get(v, 0));
	unsigned kind = 0;

	while (name && kind < SPEC_N_KINDS && strcmp(readers[kind].name, name) != 0)
		kind++;
	p->what = NULL;
	if (!name || kind == SPEC_N_KINDS)
		return spec_refuse(p, name ? "\"%.40s\" is not one of step, cpu, k, rep, only, stall, "
					     "sync, coll, wait, p2p, 1f1b, ev, gauge" :
					     "an operation is a list that begins with its name%s",
				   name ? name : "");
	op->kind = (enum spec_kind)kind;
	p->what = readers[kind].name;
	return readers[kind].get(p, v, op);
}

bool spec_get_ops(struct parser *p, const json_t *v, struct spec_list *ret)
{
	uint32_t depth = p->n_path;

	if (!json_is_array(v))
		return spec_refuse(p, "a program is a list of operations");
	if (depth == SPEC_MAX_DEPTH)
		return spec_refuse(p, "it is nested too deep");
	ret->v = spec_alloc(p, json_array_size(v), sizeof *ret->v);
	if (!ret->v)
		return false;
	p->n_path = depth + 1;
	for (size_t i = 0; i < json_array_size(v); i++) {
		p->path[depth] = (uint32_t)i;
		ret->n++;
		if (!get_op(p, json_array_get(v, i), &ret->v[i]))
			return false;
	}
	p->n_path = depth;
	return true;
}

void spec_free_ops(struct spec_list *list)
{
	for (uint32_t i = 0; i < list->n; i++) {
		struct spec_op *op = &list->v[i];

		if (op->kind == SPEC_REPEAT) {
			spec_free_ops(&op->repeat.body);
		} else if (op->kind == SPEC_ONLY) {
			free(op->only.ranks.bits);
			spec_free_ops(&op->only.body);
		} else if (op->kind == SPEC_P2P) {
			free(op->p2p.pairs);
		} else if (op->kind == SPEC_1F1B) {
			free(op->f1b.peers);
			free(op->f1b.fwd_ms);
			free(op->f1b.bwd_ms);
		} else if (op->kind == SPEC_RECORD) {
			free(op->record.fields);
		}
	}
	free(list->v);
	*list = (struct spec_list){ 0 };
}
