/* collector_load.c - a fake agent as a command, for test_collector.py.
 *
 *   collector_load URL --log FILE [--ranks FIRST:N] [--world N] [--seconds S]
 *                  [--window W] [--id N] [--run ID] [--token T] [--protocol N]
 *                  [--hello] [--leave] [--resend MS] [--rate BATCHES_A_SECOND]
 *
 * Sends steps of its ranks until the time is over. For each acknowledged batch
 * one line "seq n_events" goes to the log after the answer came, so the log never
 * says more than the collector did. Ends with one line of JSON. Exit status: 0
 * all acknowledged, 1 some not, 3 refused.
 */
#include "fake_agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_COLL 4
#define STEPS_PER_BATCH 20
#define BATCH_EVENTS (STEPS_PER_BATCH * FAKE_STEP_EVENTS(N_COLL))

static struct {
	struct fake_agent agent;
	uint32_t first_rank;
	pthread_mutex_t lock;
	uint64_t next_seq;
	uint32_t step;
	int64_t until_ns, t0_ns, gap_ns, next_ns;
	FILE *log;
	_Atomic uint64_t n_acked, n_failed;
} b;

static void *sender(void *arg)
{
	struct frame_chunk chunks[64];
	struct frame_buf buf = { 0 };
	unsigned char *arena = malloc(64 * CHUNK_MAX_BYTES(BATCH_EVENTS));
	static _Thread_local struct event ev[BATCH_EVENTS];
	nng_ctx ctx;

	(void)arg;
	if (!arena || nng_ctx_open(&ctx, b.agent.data) != 0)
		exit(1);
	for (;;) {
		struct frame_batch batch = { .chunks = chunks };
		unsigned char *at = arena;
		uint32_t step;

		pthread_mutex_lock(&b.lock);
		if (fake_now_ns() >= b.until_ns) {
			pthread_mutex_unlock(&b.lock);
			break;
		}
		if (b.gap_ns) {
			int64_t wait_ns = b.next_ns - fake_now_ns();

			b.next_ns += b.gap_ns;
			if (wait_ns > 0)
				usleep((useconds_t)(wait_ns / 1000));
		}
		batch.seq = b.next_seq++;
		step = b.step;
		b.step += STEPS_PER_BATCH;
		pthread_mutex_unlock(&b.lock);
		for (uint32_t p = 0; p < b.agent.n_procs; p++) {
			size_t n = 0;

			for (uint32_t k = step; k < step + STEPS_PER_BATCH; k++)
				n += fake_step(ev + n, k, b.first_rank + p, N_COLL,
					       b.t0_ns + k * FAKE_STEP_NS(N_COLL));
			chunks[p] = (struct frame_chunk){
				.proc = p, .first = (uint64_t)step * FAKE_STEP_EVENTS(N_COLL),
				.data = at, .n_bytes = chunk_encode(ev, n, at) };
			at += (chunks[p].n_bytes + 7) & ~(size_t)7;
		}
		batch.n_chunks = b.agent.n_procs;
		if (fake_agent_send(&b.agent, ctx, &batch, &buf, 30000)) {
			pthread_mutex_lock(&b.lock);
			fprintf(b.log, "%llu %u\n", (unsigned long long)batch.seq,
				b.agent.n_procs * BATCH_EVENTS);
			fflush(b.log);
			pthread_mutex_unlock(&b.lock);
			b.n_acked++;
		} else {
			b.n_failed++;
		}
	}
	nng_ctx_close(ctx);
	frame_buf_fini(&buf);
	free(arena);
	return NULL;
}

static bool send_one(struct frame_batch *batch)
{
	struct frame_buf buf = { 0 };
	nng_ctx ctx;
	bool ok = nng_ctx_open(&ctx, b.agent.data) == 0 &&
		  fake_agent_send(&b.agent, ctx, batch, &buf, 10000);

	nng_ctx_close(ctx);
	frame_buf_fini(&buf);
	return ok;
}

static int finish(int status)
{
	printf("{\"acked\":%llu,\"failed\":%llu,\"refused\":%u,\"why\":\"%s\",\"steps\":%u}\n",
	       (unsigned long long)b.n_acked, (unsigned long long)b.n_failed, b.agent.refused,
	       b.agent.why, b.step);
	return status;
}

int main(int argc, char **argv)
{
	char text[512] = "{\"c\":\"meta.group\",\"f\":{\"name\":\"world\",\"ranks\":[";
	struct frame_name names[64];
	struct frame_text group = { .kind = 3, .text = text };
	struct frame_batch first = { .seq = 1, .names = names, .texts = &group, .n_texts = 1 };
	unsigned window = 4, n_ranks = 2, world = 0, id = 1;
	bool only_hello = false, leave = false;
	pthread_t threads[16];
	double seconds = 2;
	int resend_ms = 1000;

	for (int i = 2; i < argc; i++) {
		const char *v = i + 1 < argc ? argv[i + 1] : "";

		if (strcmp(argv[i], "--hello") == 0) {
			only_hello = true;
			continue;
		}
		if (strcmp(argv[i], "--leave") == 0) {
			leave = true;
			continue;
		}
		if (strcmp(argv[i], "--log") == 0)
			b.log = fopen(v, "w");
		else if (strcmp(argv[i], "--ranks") == 0)
			sscanf(v, "%u:%u", &b.first_rank, &n_ranks);
		else if (strcmp(argv[i], "--world") == 0)
			world = (unsigned)atoi(v);
		else if (strcmp(argv[i], "--seconds") == 0)
			seconds = atof(v);
		else if (strcmp(argv[i], "--window") == 0)
			window = (unsigned)atoi(v);
		else if (strcmp(argv[i], "--id") == 0)
			id = (unsigned)atoi(v);
		else if (strcmp(argv[i], "--run") == 0)
			b.agent.run_id = v;
		else if (strcmp(argv[i], "--token") == 0)
			b.agent.token = v;
		else if (strcmp(argv[i], "--host") == 0)
			b.agent.host = v;
		else if (strcmp(argv[i], "--protocol") == 0)
			b.agent.protocol = (uint32_t)atoi(v);
		else if (strcmp(argv[i], "--resend") == 0)
			resend_ms = atoi(v);
		else if (strcmp(argv[i], "--rate") == 0)
			b.gap_ns = (int64_t)(1e9 / atof(v));
		else
			return 2;
		i++;
	}
	if (n_ranks > 64 || window > 16 || (!b.log && !only_hello))
		return 2;
	if (!world)
		world = n_ranks;
	pthread_mutex_init(&b.lock, NULL);
	memset(b.agent.agent_id, (int)id, sizeof b.agent.agent_id);
	if (!fake_agent_share_clock(&b.agent))
		return 1;
	for (uint32_t p = 0; p < n_ranks; p++)
		fake_proc(&b.agent.procs[p], p, (int32_t)(b.first_rank + p), (int32_t)world);
	/* Another process of this rank on another host, for --host. */
	if (b.agent.host)
		for (uint32_t p = 0; p < n_ranks; p++)
			b.agent.procs[p].unique += 1000000 * id;
	b.agent.n_procs = n_ranks;
	if (fake_agent_open(&b.agent, argv[1], resend_ms) != 0 || !fake_agent_hello(&b.agent, 10000))
		return finish(b.agent.refused ? 3 : 1);
	if (only_hello)
		return finish(0);
	for (uint32_t r = 0; r < world; r++)
		sprintf(text + strlen(text), "%s%u", r ? "," : "", r);
	strcat(text, "]}}");
	group.n_text = (uint32_t)strlen(text);
	group.at_ns = fake_now_ns();
	for (uint32_t p = 0; p < n_ranks; p++)
		names[p] = (struct frame_name){ .proc = p, .id = 1, .text = "world", .n_text = 5 };
	first.n_names = n_ranks;
	if (!send_one(&first))
		return finish(b.agent.refused ? 3 : 1);
	b.next_seq = 2;
	b.t0_ns = b.next_ns = fake_now_ns();
	b.until_ns = b.t0_ns + (int64_t)(seconds * 1e9);
	for (unsigned i = 0; i < window; i++)
		pthread_create(&threads[i], NULL, sender, NULL);
	for (unsigned i = 0; i < window; i++)
		pthread_join(threads[i], NULL);
	if (leave) {
		struct frame_batch last = { .seq = b.next_seq++, .procs = b.agent.procs,
					    .n_procs = n_ranks };

		for (uint32_t p = 0; p < n_ranks; p++) {
			b.agent.procs[p].state = PROC_LEFT;
			b.agent.procs[p].state_at_ns = fake_now_ns();
		}
		if (!send_one(&last))
			b.n_failed++;
	}
	fake_agent_close(&b.agent);
	return finish(b.n_failed ? 1 : 0);
}
