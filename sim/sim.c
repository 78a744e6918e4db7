#include "sim_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define TICK_NS (100 * MS)	  /* of the collector while something happens … */
#define QUIET_TICK_NS (10 * SECOND) /* … and when nothing did … */
#define QUIET_AFTER_NS (20 * SECOND) /* … for so long */
#define BEAT_NS (250 * MS)
#define BEFORE_NS (2 * SECOND) /* agents with clocks to compare are there before the job */
#define AFTER_NS SECOND
#define AFTER_STUCK_NS (60 * SECOND) /* long enough to say that it hangs */
#define MAX_WINDOWS 5000 /* of a case; each is a commit */

bool sim_fail(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (s->failed)
		return false;
	s->failed = true;
	va_start(ap, fmt);
	vsnprintf(s->why, s->n_why, fmt, ap);
	va_end(ap);
	return false;
}

/* ---- the collector's surroundings ---- */

static void free_message(struct sim *s, struct sim_msg *m)
{
	if (m->before)
		m->before->next = m->next;
	else
		s->unanswered = m->next;
	if (m->next)
		m->next->before = m->before;
	frame_buf_fini(&m->buf);
	free(m);
}

static void on_reply(void *arg, struct inbox_msg *m, const void *data, size_t n_bytes)
{
	struct sim_msg *msg = (struct sim_msg *)m;
	struct sim *s = arg;
	struct frame f;

	if (!data) {
		sim_fail(s, "the collector took a message without an answer");
	} else if (frame_open(&f, data, n_bytes) != FRAME_OK) {
		sim_fail(s, "an answer of the collector cannot be read");
	} else {
		agents_answer(s, msg->agent, &f);
		frame_close(&f);
	}
	free_message(s, msg);
}

static void on_submit(void *arg, struct store_job *j)
{
	struct sim *s = arg;
	struct store_job **at = &s->jobs;

	while (*at)
		at = &(*at)->next;
	j->next = NULL;
	*at = j;
}

static int on_trouble(void *arg)
{
	(void)arg;
	return 0; /* a disk that refuses ends the simulation */
}

static unsigned on_n_free(void *arg)
{
	(void)arg;
	return INBOX_DATA_PLACES;
}

static void on_say(void *arg, const char *sentence)
{
	struct sim *s = arg;

	if (s->cfg->say)
		s->cfg->say(sentence);
}

/* What the collector wants written is written now, and answered. */
static bool settle(struct sim *s)
{
	while (s->jobs) {
		struct store_job *j = s->jobs;
		char why[400];
		int r;

		s->jobs = j->next;
		j->next = NULL;
		r = s->failed ? 0 : store_write(s->store, j);
		if (r != 0) {
			store_explain(why, sizeof why, r, s->cfg->db);
			sim_fail(s, "%s", why);
		}
		j->failed = s->failed;
		ingest_done(s->ingest, j);
	}
	s->no_memory |= ingest_fatal(s->ingest) != 0;
	return !s->failed && !s->no_memory;
}

static int64_t raw_ns(const struct sim *s)
{
	return SIM_RAW0_NS + s->now_ns;
}

bool sim_send(struct sim *s, struct sim_agent *a, const struct frame *f, int64_t late_ns)
{
	struct sim_msg *m = calloc(1, sizeof *m);

	if (!m || frame_pack(&m->buf, f) != 0) {
		if (m)
			frame_buf_fini(&m->buf);
		free(m);
		s->no_memory = true;
		return false;
	}
	m->agent = a;
	m->msg = (struct inbox_msg){
		.data = m->buf.data, .n_bytes = m->buf.n_bytes, .at_raw_ns = raw_ns(s) + late_ns,
		.control = f->type == FRAME_HELLO || f->type == FRAME_HEARTBEAT,
	};
	m->next = s->unanswered;
	if (m->next)
		m->next->before = m;
	s->unanswered = m;
	/* An exchange spends a moment in the collector. */
	ingest_message(s->ingest, &m->msg, raw_ns(s) + late_ns + (late_ns ? 15000 : 0));
	return !s->failed;
}

static int open_collector(struct sim *s)
{
	char why[400];
	int r = store_open(&s->store, &(struct store_config){ .path = s->cfg->db });

	if (r > 0) {
		store_explain(why, sizeof why, r, s->cfg->db);
		sim_fail(s, "%s", why);
		return SIM_FAILED;
	}
	if (r == 0)
		r = core_new(&s->core, NULL, NULL);
	if (r == 0)
		r = ingest_new(&s->ingest,
			       &(struct ingest_config){
				       .core = s->core, .run_id = s->spec->id, .level = LEVEL_GPU,
				       .boot_id = "case", .time_ns_inode = 1, .raw_ns = raw_ns(s),
				       .real_ns = SIM_REAL0_NS + s->now_ns, .reply = on_reply,
				       .submit = on_submit, .trouble = on_trouble,
				       .n_free = on_n_free, .say = on_say, .arg = s });
	return r;
}

/* ---- time ---- */

/* The collector's timer until then. */
static bool pass_until(struct sim *s, int64_t until_ns)
{
	while (s->now_ns < until_ns) {
		bool quiet = s->now_ns - s->spoke_ns >= QUIET_AFTER_NS;
		int64_t next_ns = s->now_ns + (quiet ? QUIET_TICK_NS : TICK_NS);

		s->now_ns = next_ns < until_ns ? next_ns : until_ns;
		if (s->now_ns - s->beat_ns >= BEAT_NS) {
			s->beat_ns = s->now_ns;
			if (!agents_beat(s))
				return false;
		}
		ingest_tick(s->ingest, raw_ns(s));
		if (!settle(s))
			return false;
	}
	return true;
}

static bool tell_all(struct sim *s)
{
	int64_t window_ns = s->play->end_ns / MAX_WINDOWS / TICK_NS * TICK_NS, next_ns;

	if (window_ns < TICK_NS)
		window_ns = TICK_NS;
	while ((next_ns = agents_next_ns(s)) != PLAY_NEVER) {
		int64_t until_ns = (next_ns / window_ns + 1) * window_ns;

		if (!pass_until(s, until_ns) || !agents_ship(s, until_ns))
			return false;
		s->spoke_ns = s->now_ns;
		ingest_turn_over(s->ingest);
		if (!settle(s))
			return false;
	}
	return true;
}

static bool run(struct sim *s)
{
	bool stuck;

	if (!agents_hello(s))
		return false;
	ingest_turn_over(s->ingest);
	if (!settle(s) || !pass_until(s, 0) || !tell_all(s))
		return false;
	stuck = s->result->n_left < s->spec->world;
	if (!pass_until(s, s->now_ns + (stuck ? AFTER_STUCK_NS : AFTER_NS)))
		return false;
	s->result->end_ns = s->now_ns;
	ingest_finish(s->ingest, raw_ns(s));
	if (!settle(s))
		return false;
	return !s->unanswered || sim_fail(s, "the collector did not acknowledge a message");
}

/* ---- all of it ---- */

static void forget_catalogue(const char *path)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	char name[4096 + 8];

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
		unlink(name);
	}
}

int sim_tell(struct sim_result *ret, const struct play *p, const struct sim_config *cfg, char *why,
	     size_t n_why)
{
	struct sim s = { .play = p, .spec = p->spec, .cfg = cfg, .result = ret, .why = why,
			 .n_why = n_why, .rng = cfg->seed };
	bool fine;
	int r, fd;

	*ret = (struct sim_result){ 0 };
	/* Ours from here on, and nobody else's before. */
	fd = open(cfg->db, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0 && errno == EEXIST) {
		sim_fail(&s, "%s is there already. Remove it, or name another file with --db", cfg->db);
		return SIM_FAILED;
	}
	if (fd >= 0)
		close(fd);
	s.now_ns = s.spec->probes ? -BEFORE_NS : 0;
	s.spoke_ns = s.beat_ns = s.now_ns;
	r = open_collector(&s);
	fine = r == 0 && agents_make(&s) && run(&s);
	if (s.ingest) { /* what is left is given back as failed */
		s.failed |= !fine;
		settle(&s);
	}
	while (s.unanswered)
		free_message(&s, s.unanswered);
	ingest_free(s.ingest);
	core_free(s.core);
	store_close(s.store);
	agents_free(&s);
	if (!fine && fd >= 0)
		forget_catalogue(cfg->db);
	if (fine)
		return SIM_OK;
	return s.no_memory || r < 0 ? -ENOMEM : SIM_FAILED;
}
