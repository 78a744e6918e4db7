/* A network that misbehaves on purpose: a relay between agents and a collector
 * whose delays, losses and tricks are drawn from a seed, so that a test knows
 * what it put its clocks through.
 *
 *   relay LISTEN_ADDRESS TARGET_ADDRESS PORT SEED [key=value …]
 *
 * PORT and the next one are relayed over TCP, as they are; PORT over UDP:
 *   there=US back=US   least delay in each direction
 *   jitter=US          mean of an exponential one on top
 *   crowd=SECONDS:US   every other period of that length, so much more there
 *   dup=N forge=N replay=N drop=N   of a million packets
 * SIGUSR1 stops answers until the next one, SIGUSR2 requests. At the end, on
 * SIGTERM, one line of counts. */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define MAX_FLOWS 64
#define MAX_LATE 4096
#define MAX_BYTES 2048
#define MAX_PIPES 256
#define MILLION 1000000

/* A client of the UDP port, with a socket of its own towards the target. */
struct flow {
	struct sockaddr_in from;
	int fd;
};

struct late {
	int64_t due_ns;
	struct flow *flow;
	bool there, used;
	size_t n;
	unsigned char data[MAX_BYTES];
};

struct pipe {
	int from, to;
};

static struct flow flows[MAX_FLOWS];
static unsigned n_flows;
static struct late late[MAX_LATE];
static struct pipe pipes[MAX_PIPES];
static unsigned n_pipes;
static int ep, udp, timer, listeners[2];
static struct sockaddr_in target;
static uint16_t port;
static uint64_t rng;
static double there_us, back_us, jitter_us, crowd_s, crowd_us;
static unsigned dup_ppm, forge_ppm, replay_ppm, drop_ppm;
static bool stop_there, stop_back;
static uint64_t n_passed, n_dropped, n_dup, n_forged, n_replayed;

static void fail(const char *what)
{
	perror(what);
	exit(3);
}

static uint64_t draw(void) /* splitmix64 */
{
	uint64_t z = rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static bool chance(unsigned ppm)
{
	return draw() % MILLION < ppm;
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void watch(int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) != 0)
		fail("epoll_ctl");
}

static int open_at(int type, const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, type, 0), one = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
	    bind(fd, (const struct sockaddr *)at, sizeof *at) != 0)
		fail("bind");
	if (type == SOCK_STREAM && listen(fd, 64) != 0)
		fail("listen");
	watch(fd);
	return fd;
}

/* ---- delayed packets */

static void arm(void)
{
	int64_t due_ns = INT64_MAX;
	struct itimerspec t = { 0 };

	for (unsigned i = 0; i < MAX_LATE; i++)
		if (late[i].used && late[i].due_ns < due_ns)
			due_ns = late[i].due_ns;
	if (due_ns != INT64_MAX) {
		t.it_value.tv_sec = due_ns / 1000000000;
		t.it_value.tv_nsec = due_ns % 1000000000;
	}
	timerfd_settime(timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static void pass_on(const struct late *p)
{
	if (p->there)
		(void)!send(p->flow->fd, p->data, p->n, MSG_DONTWAIT);
	else
		(void)!sendto(udp, p->data, p->n, MSG_DONTWAIT, (struct sockaddr *)&p->flow->from,
			      sizeof p->flow->from);
	n_passed++;
}

static void release(void)
{
	for (;;) {
		struct late *first = NULL;

		for (unsigned i = 0; i < MAX_LATE; i++)
			if (late[i].used && (!first || late[i].due_ns < first->due_ns))
				first = &late[i];
		if (!first || first->due_ns > now_ns())
			break;
		pass_on(first);
		first->used = false;
	}
	arm();
}

static int64_t delay_ns(bool there, int64_t at_ns)
{
	double u = (double)(draw() >> 11) / 9007199254740992.0;
	double us = (there ? there_us : back_us) - log(1 - u) * jitter_us;

	if (there && crowd_s > 0 && (int64_t)((double)at_ns / 1e9 / crowd_s) % 2 == 1)
		us += crowd_us * (0.5 + u);
	return (int64_t)(us * 1000);
}

static void hold(struct flow *f, bool there, const unsigned char *data, size_t n, int64_t extra_ns)
{
	int64_t at_ns = now_ns();

	for (unsigned i = 0; i < MAX_LATE; i++) {
		if (late[i].used)
			continue;
		late[i].used = true;
		late[i].due_ns = at_ns + delay_ns(there, at_ns) + extra_ns;
		late[i].flow = f;
		late[i].there = there;
		late[i].n = n;
		memcpy(late[i].data, data, n);
		return;
	}
	n_dropped++;
}

static void take(struct flow *f, bool there, unsigned char *data, size_t n)
{
	if ((there ? stop_there : stop_back) || chance(drop_ppm)) {
		n_dropped++;
		return;
	}
	hold(f, there, data, n, 0);
	if (chance(dup_ppm)) {
		n_dup++;
		hold(f, there, data, n, 0);
	}
	if (chance(replay_ppm)) { /* once more, long after */
		n_replayed++;
		hold(f, there, data, n, INT64_C(1500000000));
	}
	if (chance(forge_ppm) && n > 0) {
		n_forged++;
		data[draw() % n] ^= (unsigned char)(1u << draw() % 8);
		hold(f, there, data, n, 0);
	}
}

/* ---- sockets */

static struct flow *flow_of(const struct sockaddr_in *from)
{
	struct sockaddr_in to = target;
	struct flow *f;

	for (unsigned i = 0; i < n_flows; i++)
		if (flows[i].from.sin_addr.s_addr == from->sin_addr.s_addr &&
		    flows[i].from.sin_port == from->sin_port)
			return &flows[i];
	if (n_flows == MAX_FLOWS)
		return NULL;
	f = &flows[n_flows++];
	f->from = *from;
	f->fd = socket(AF_INET, SOCK_DGRAM, 0);
	to.sin_port = htons(port);
	if (f->fd < 0 || connect(f->fd, (struct sockaddr *)&to, sizeof to) != 0)
		fail("connect");
	watch(f->fd);
	return f;
}

static void take_requests(void)
{
	unsigned char data[MAX_BYTES];
	struct sockaddr_in from;

	for (;;) {
		socklen_t n_from = sizeof from;
		ssize_t n = recvfrom(udp, data, sizeof data, MSG_DONTWAIT, (struct sockaddr *)&from,
				     &n_from);
		struct flow *f = n < 0 ? NULL : flow_of(&from);

		if (n < 0)
			return;
		if (f)
			take(f, true, data, (size_t)n);
	}
}

static bool take_answers(int fd)
{
	unsigned char data[MAX_BYTES];
	ssize_t n;

	for (unsigned i = 0; i < n_flows; i++) {
		if (flows[i].fd != fd)
			continue;
		while ((n = recv(fd, data, sizeof data, MSG_DONTWAIT)) >= 0)
			take(&flows[i], false, data, (size_t)n);
		return true;
	}
	return false;
}

static void accept_one(unsigned which)
{
	struct sockaddr_in to = target;
	int from = accept(listeners[which], NULL, NULL), fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_port = htons((uint16_t)(port + which));
	if (from < 0 || fd < 0)
		fail("accept");
	if (n_pipes + 2 > MAX_PIPES || connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
		close(from);
		close(fd);
		return;
	}
	pipes[n_pipes++] = (struct pipe){ from, fd };
	pipes[n_pipes++] = (struct pipe){ fd, from };
	watch(from);
	watch(fd);
}

static void forget(int a, int b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < n_pipes; i++)
		if (pipes[i].from != a && pipes[i].from != b)
			pipes[n++] = pipes[i];
	n_pipes = n;
	close(a);
	close(b);
}

static void carry(int fd)
{
	static unsigned char data[65536];

	for (unsigned i = 0; i < n_pipes; i++) {
		int to = pipes[i].to;
		ssize_t n;

		if (pipes[i].from != fd)
			continue;
		n = recv(fd, data, sizeof data, MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			return;
		for (ssize_t at = 0, k; n > 0 && at < n; at += k) {
			k = send(to, data + at, (size_t)(n - at), MSG_NOSIGNAL);
			if (k < 0)
				n = -1;
		}
		if (n <= 0)
			forget(fd, to);
		return;
	}
}

static void on_signal(int fd)
{
	struct signalfd_siginfo si;

	if (read(fd, &si, sizeof si) != sizeof si)
		return;
	if (si.ssi_signo == SIGUSR1)
		stop_back = !stop_back;
	if (si.ssi_signo == SIGUSR2)
		stop_there = !stop_there;
	if (si.ssi_signo != SIGTERM)
		return;
	printf("{\"passed\":%llu,\"dropped\":%llu,\"dup\":%llu,\"forged\":%llu,\"replayed\":%llu}\n",
	       (unsigned long long)n_passed, (unsigned long long)n_dropped, (unsigned long long)n_dup,
	       (unsigned long long)n_forged, (unsigned long long)n_replayed);
	exit(0);
}

static void read_option(const char *arg)
{
	if (sscanf(arg, "there=%lf", &there_us) == 1 || sscanf(arg, "back=%lf", &back_us) == 1 ||
	    sscanf(arg, "jitter=%lf", &jitter_us) == 1 ||
	    sscanf(arg, "crowd=%lf:%lf", &crowd_s, &crowd_us) == 2 ||
	    sscanf(arg, "dup=%u", &dup_ppm) == 1 || sscanf(arg, "forge=%u", &forge_ppm) == 1 ||
	    sscanf(arg, "replay=%u", &replay_ppm) == 1 || sscanf(arg, "drop=%u", &drop_ppm) == 1)
		return;
	fprintf(stderr, "relay: what is %s?\n", arg);
	exit(2);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct epoll_event e[64];
	sigset_t set;
	int sigfd;

	if (argc < 5 || inet_pton(AF_INET, argv[1], &at.sin_addr) != 1 ||
	    inet_pton(AF_INET, argv[2], &target.sin_addr) != 1)
		return 2;
	target.sin_family = AF_INET;
	port = (uint16_t)atoi(argv[3]);
	rng = strtoull(argv[4], NULL, 10);
	for (int i = 5; i < argc; i++)
		read_option(argv[i]);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ep = epoll_create1(0);
	sigfd = signalfd(-1, &set, 0);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	watch(sigfd);
	watch(timer);
	at.sin_port = htons(port);
	udp = open_at(SOCK_DGRAM, &at);
	listeners[0] = open_at(SOCK_STREAM, &at);
	at.sin_port = htons((uint16_t)(port + 1));
	listeners[1] = open_at(SOCK_STREAM, &at);
	puts("ready");
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(ep, e, 64, -1);
		uint64_t n_expired;

		for (int i = 0; i < n; i++) {
			int fd = e[i].data.fd;

			if (fd == sigfd)
				on_signal(fd);
			else if (fd == timer)
				(void)!read(timer, &n_expired, sizeof n_expired);
			else if (fd == udp)
				take_requests();
			else if (fd == listeners[0] || fd == listeners[1])
				accept_one(fd == listeners[1]);
			else if (!take_answers(fd))
				carry(fd);
		}
		release();
	}
}
