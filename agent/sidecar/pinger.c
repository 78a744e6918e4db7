#include "pinger.h"

#include "clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)
#define DEFAULT_WISH 12 /* exchanges a second */
#define MAX_WISH 50
#define PEER_WISH 2
#define IN_TRAIN 4	    /* beside the one that wakes */
#define START_TRAINS 16	    /* 64 exchanges … */
#define START_NS (62 * MS)  /* … in the first second */
#define APART_NS (100 * US)
#define LINGER_NS (300 * US) /* for the last answer, before the loop goes on */
#define SILENT_NS (5 * SECOND)
#define SILENT_PERIOD_NS (2 * SECOND)
#define LATE_NS SECOND /* an answer after that tells nothing */
#define RENUMBER_NS (200 * MS)
#define TIMER_SLACK_NS 1000UL

void pinger_init(struct pinger *p)
{
	memset(p, 0, sizeof *p);
	p->fd = -1;
}

void pinger_stop(struct pinger *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	p->stream = 0;
	p->state = PROBING_NOT;
}

static uint64_t next_random(struct pinger *p) /* splitmix64 */
{
	uint64_t z = p->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static int open_socket(const struct sockaddr_storage *peer, uint32_t port)
{
	struct sockaddr_storage to = *peer;
	socklen_t n = to.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						 sizeof(struct sockaddr_in);
	int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (to.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&to)->sin6_port = htons((uint16_t)port);
	else
		((struct sockaddr_in *)&to)->sin_port = htons((uint16_t)port);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, n) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

void pinger_aim(struct pinger *p, enum pinger_whom whom, const struct sockaddr_storage *peer,
		uint32_t port, uint64_t stream, const char *token,
		const uint8_t secret[FRAME_SECRET_BYTES])
{
	uint64_t random = p->random;
	struct ping_key key;

	if (!peer || port == 0 || port > UINT16_MAX) {
		pinger_stop(p);
		return;
	}
	ping_derive_key(&key, token, stream, secret);
	if (p->fd >= 0 && p->stream == stream && memcmp(&key, &p->key, sizeof key) == 0)
		return;
	pinger_stop(p);
	pinger_init(p);
	p->whom = whom;
	p->n_trains = whom == PINGER_PEER ? START_TRAINS : 0; /* no rush */
	p->wish = whom == PINGER_PEER ? PEER_WISH : 0;
	p->stream = stream;
	p->key = key;
	p->random = random;
	if (random == 0)
		(void)!getrandom(&p->random, sizeof p->random, 0);
	p->fd = open_socket(peer, port);
	p->state = p->fd >= 0 ? PROBING : PROBING_NO_PATH;
	if (p->fd < 0)
		return;
	p->kernel = stamp_enable(p->fd);
	/* This thread alone: 50 us of slack would be half of what lies between packets. */
	(void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	p->due_ns = p->began_ns = p->answered_ns = clock_true_raw();
}

static struct pinger_out *find(struct pinger *p, uint64_t seq)
{
	struct pinger_out *o = &p->out[seq % PINGER_N_OUT];

	return seq != 0 && o->seq == seq ? o : NULL;
}

/* ---- what an exchange tells */

static void report(struct pinger *p, const struct pinger_out *o)
{
	struct pinger_report *r;

	if (p->n_reports == PINGER_N_OUT) { /* the oldest is the least worth */
		p->first_report = (p->first_report + 1) % PINGER_N_OUT;
		p->n_reports--;
	}
	r = &p->reports[(p->first_report + p->n_reports++) % PINGER_N_OUT];
	*r = (struct pinger_report){
		.seq = o->seq,
		.flags = (uint8_t)(PING_HAS_REPORT | (o->placed_t0 ? PING_KERNEL_T0 : 0) |
				   (o->placed_t3 ? PING_KERNEL_T3 : 0)),
		.t0_ns = clock_bend(o->t0_ns),
		.t3_ns = clock_bend(o->t3_ns),
		.t1_ns = o->t1_ns,
		.t2_ns = o->t2_ns,
	};
	if (r->t3_ns < r->t0_ns || r->t0_ns <= 0)
		p->n_reports--; /* a clock that ran back meanwhile */
}

/* The kernel's time replaces ours where it lies inside of it: a stamp is never
 * tighter than its own error. A wall clock that was moved makes it void. */
static void place(struct pinger *p, struct pinger_out *o, int64_t real_ns, bool is_t0)
{
	int64_t raw_ns, err_ns;

	switch (stamp_to_raw(&p->line, real_ns, &raw_ns, &err_ns)) {
	case STAMP_NO_BRACKET:
		return;
	case STAMP_UNSURE:
		o->dropped = true;
		return;
	case STAMP_OK:
		break;
	}
	if (is_t0 && raw_ns + err_ns >= o->t0_ns &&
	    (!o->answered || raw_ns - err_ns <= o->t3_ns)) {
		o->t0_ns = raw_ns - err_ns > o->t0_ns ? raw_ns - err_ns : o->t0_ns;
		o->placed_t0 = true;
	} else if (!is_t0 && raw_ns - err_ns <= o->t3_ns && raw_ns + err_ns >= o->t0_ns) {
		o->t3_ns = raw_ns + err_ns < o->t3_ns ? raw_ns + err_ns : o->t3_ns;
		o->placed_t3 = true;
	} else {
		o->dropped = true; /* a stamp from outside the call that caused it is another's */
	}
}

/* A peer's own times lie between ours in length, and a warm-up tells nothing. */
static bool is_whole(const struct pinger_out *o)
{
	return !o->warm_up && o->t1_ns > 0 && o->t2_ns >= o->t1_ns &&
	       o->t3_ns - o->t0_ns >= o->t2_ns - o->t1_ns;
}

bool pinger_next(struct pinger *p, struct pinger_report *ret)
{
	if (p->whom != PINGER_PEER || p->n_reports == 0)
		return false;
	*ret = p->reports[p->first_report];
	p->first_report = (p->first_report + 1) % PINGER_N_OUT;
	p->n_reports--;
	return true;
}

/* After a bracket: place what was stamped before it. last: no stamp is waited for. */
static void settle(struct pinger *p, bool last)
{
	struct stamp_bracket now = stamp_bracket_now();

	stamp_add(&p->line, &now);
	for (unsigned i = 0; i < PINGER_N_OUT; i++) {
		struct pinger_out *o = &p->out[i];

		if (o->seq == 0)
			continue;
		if (o->t0_real_ns != 0)
			place(p, o, o->t0_real_ns, true);
		if (o->t3_real_ns != 0)
			place(p, o, o->t3_real_ns, false);
		o->t0_real_ns = o->t3_real_ns = 0;
		if (!o->answered || (!o->placed_t0 && p->kernel && !last && !o->dropped))
			continue;
		if (p->whom == PINGER_PEER && !o->dropped && !o->warm_up && o->t1_ns == 0)
			continue; /* its next answer tells */
		if (!o->dropped && (p->whom == PINGER_COLLECTOR || is_whole(o)))
			report(p, o);
		o->seq = 0;
	}
}

/* ---- sockets */

static void take_stamps(struct pinger *p)
{
	int64_t real_ns;
	uint32_t number;

	while (stamp_sent(p->fd, &number, &real_ns)) {
		if (p->unnumbered_until_ns != 0)
			continue;
		for (unsigned i = 0; i < PINGER_N_OUT; i++)
			if (p->out[i].seq != 0 && p->out[i].number == number)
				p->out[i].t0_real_ns = real_ns;
	}
}

static void take_answer(struct pinger *p, const uint8_t *data, size_t n, int64_t at_ns,
			int64_t real_ns)
{
	struct pinger_out *o;
	struct ping a;

	if (ping_parse(&a, data, n) != PING_OK || a.kind != PING_ANSWER ||
	    a.stream != p->stream || ping_verify(data, &p->key) != PING_OK) {
		p->n_refused++;
		return;
	}
	o = a.flags & PING_HAS_REPORT && p->whom == PINGER_PEER ? find(p, a.report_seq) : NULL;
	if (o && o->answered) {
		o->t1_ns = a.t0_ns;
		o->t2_ns = a.t3_ns;
	}
	o = find(p, a.seq);
	if (!o || o->answered || at_ns - o->t0_ns > LATE_NS) {
		p->n_refused++; /* a repeat, or older than what is waited for */
		return;
	}
	o->answered = true;
	o->t3_ns = at_ns;
	o->t3_real_ns = real_ns;
	p->n_answered++;
	p->answered_ns = at_ns;
	p->state = PROBING;
	p->wish = a.wish < MAX_WISH ? a.wish : MAX_WISH;
}

/* Bounded: whoever floods us gets no more than a turn of the loop. */
static bool take_answers(struct pinger *p)
{
	bool any = false;

	for (unsigned i = 0; i < PINGER_N_OUT; i++) {
		_Alignas(struct cmsghdr) char control[STAMP_CONTROL_BYTES];
		uint8_t data[PING_BYTES + 1];
		struct iovec iov = { data, sizeof data };
		struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
				    .msg_controllen = sizeof control };
		ssize_t n = recvmsg(p->fd, &m, MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			p->state = PROBING_NO_PATH; /* nobody listens there, says the network */
		if (n < 0)
			return any;
		take_answer(p, data, (size_t)n, clock_true_raw(), stamp_of(&m));
		any = true;
	}
	return any;
}

void pinger_receive(struct pinger *p)
{
	if (p->fd < 0)
		return;
	take_stamps(p);
	take_answers(p);
	settle(p, false);
}

/* ---- trains */

static void send_one(struct pinger *p, bool warm_up)
{
	struct ping q = { .kind = PING_REQUEST, .flags = warm_up ? PING_WARM_UP : 0,
			  .stream = p->stream, .seq = ++p->seq };
	struct pinger_out *o = &p->out[p->seq % PINGER_N_OUT];
	bool tells = p->whom == PINGER_COLLECTOR && p->n_reports > 0;
	uint8_t bytes[PING_BYTES];

	if (tells) {
		const struct pinger_report *r = &p->reports[p->first_report];

		q.flags |= r->flags;
		q.report_seq = r->seq;
		q.t0_ns = r->t0_ns;
		q.t3_ns = r->t3_ns;
	}
	ping_pack(bytes, &q, &p->key);
	*o = (struct pinger_out){ .seq = p->seq, .number = p->n_numbered, .warm_up = warm_up,
				   .t0_ns = clock_true_raw() };
	if (send(p->fd, bytes, sizeof bytes, MSG_DONTWAIT) != PING_BYTES) {
		if (errno != EAGAIN && errno != ENOBUFS)
			p->state = PROBING_NO_PATH;
		/* Whether the kernel counted it is not known: count anew. */
		o->seq = 0;
		stamp_restart(p->fd);
		p->n_numbered = 0;
		p->unnumbered_until_ns = clock_true_raw() + RENUMBER_NS;
		return;
	}
	p->n_numbered++;
	p->n_sent++;
	if (tells) {
		p->first_report = (p->first_report + 1) % PINGER_N_OUT;
		p->n_reports--;
	}
	take_stamps(p);
}

/* Answers are taken as they come: a thread that is awake is woken in the same time
 * in both directions. */
static void wait_until(struct pinger *p, int64_t until_ns, unsigned *n_waited_for)
{
	struct pollfd fd = { .fd = p->fd, .events = POLLIN };

	for (;;) {
		int64_t left_ns = until_ns - clock_true_raw();
		uint64_t n_before = p->n_answered;
		struct timespec ts = { 0, left_ns };

		if (left_ns <= 0 || (n_waited_for && *n_waited_for == 0))
			return;
		if (ppoll(&fd, 1, &ts, NULL) <= 0)
			return;
		take_stamps(p);
		take_answers(p);
		for (; n_waited_for && *n_waited_for > 0 && n_before < p->n_answered; n_before++)
			(*n_waited_for)--;
	}
}

static int64_t period_ns(struct pinger *p, int64_t now_ns, unsigned n)
{
	int64_t mean_ns = SECOND * n / (p->wish ? p->wish : DEFAULT_WISH);

	if (p->n_trains <= START_TRAINS)
		mean_ns = START_NS;
	if (now_ns - p->answered_ns > SILENT_NS)
		mean_ns = SILENT_PERIOD_NS;
	return mean_ns / 2 + (int64_t)(next_random(p) % (uint64_t)mean_ns);
}

static void train(struct pinger *p)
{
	unsigned n = p->wish > 0 && p->wish < IN_TRAIN ? p->wish : IN_TRAIN;
	uint64_t n_answered = p->n_answered;
	unsigned n_open;
	int64_t next_ns;

	if (p->unnumbered_until_ns != 0 && clock_true_raw() > p->unnumbered_until_ns) {
		take_stamps(p); /* of numbers that mean nothing any more */
		stamp_restart(p->fd);
		p->n_numbered = 0;
		p->unnumbered_until_ns = 0;
		for (unsigned i = 0; i < PINGER_N_OUT; i++)
			p->out[i].number = UINT32_MAX;
	}
	settle(p, true);
	next_ns = clock_true_raw();
	for (unsigned i = 0; i <= n; i++) {
		wait_until(p, next_ns, NULL);
		next_ns = clock_true_raw() + APART_NS;
		send_one(p, i == 0);
	}
	n_open = n + 1 - (unsigned)(p->n_answered - n_answered < n + 1 ? p->n_answered - n_answered : n + 1);
	wait_until(p, clock_true_raw() + LINGER_NS, &n_open);
	settle(p, false);
	p->n_trains++;
}

int64_t pinger_due_in_ns(const struct pinger *p)
{
	int64_t in_ns;

	if (p->fd < 0)
		return INT64_MAX;
	in_ns = p->due_ns - clock_true_raw();
	return in_ns > 0 ? in_ns : 0;
}

void pinger_tick(struct pinger *p)
{
	unsigned n = p->wish > 0 && p->wish < IN_TRAIN ? p->wish : IN_TRAIN;

	if (p->fd < 0 || pinger_due_in_ns(p) > 0)
		return;
	train(p);
	p->due_ns = clock_true_raw();
	p->due_ns += period_ns(p, p->due_ns, n);
}
