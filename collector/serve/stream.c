#include "stream.h"

#include "answer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* What the kernel may hold for a client that does not read. */
#define SEND_BUFFER_BYTES (64 << 10)

struct stream {
	struct streams *all;
	struct stream *next, **link;
	struct MHD_Connection *conn;
	int fd; /* MHD's */
	uint64_t seen; /* id of the last event given away */
	bool greeted, lost_some, suspended, beat, ended;
	const char *bye; /* say this and end; NULL = go on */
	int64_t took_ns; /* when the client last took something, or had taken all */
	int64_t now_ns;  /* of the last check: the reader has no clock */
	char out[FEED_MAX_DATA + 128];
	size_t n_out, at_out;
};

static void write_event(struct stream *st, uint64_t id, const char *event, const char *data)
{
	int n = snprintf(st->out, sizeof st->out, "id: %" PRIu64 "\nevent: %s\ndata: %s\n\n", id, event,
			 data);

	st->n_out = n < 0 ? 0 : (size_t)n < sizeof st->out ? (size_t)n : sizeof st->out - 1;
}

/* The next thing to say, if there is one. */
static void fill(struct stream *st)
{
	const struct feed_event *ev;
	uint64_t head = feed_head(st->all->feed);
	char data[128];

	st->at_out = st->n_out = 0;
	if (st->ended)
		return;
	if (!st->greeted) {
		st->greeted = true;
		st->n_out = (size_t)snprintf(st->out, sizeof st->out,
			"retry: 2000\nid: %" PRIu64 "\nevent: hello\n"
			"data: {\"cursor\":%" PRIu64 ",\"version\":\"%s\"}\n\n",
			st->seen, st->seen, SYNCLINE_VERSION);
		return;
	}
	if (st->lost_some) {
		st->lost_some = false;
		write_event(st, st->seen, "reset", "{}");
		return;
	}
	if (!st->bye && st->seen < head && !feed_covers(st->all->feed, st->seen))
		st->bye = "slow";
	if (!st->bye && st->seen < head) {
		ev = feed_get(st->all->feed, ++st->seen);
		write_event(st, st->seen, feed_kind_name(ev->kind), ev->data ? ev->data : "{}");
		return;
	}
	if (st->bye) {
		snprintf(data, sizeof data, "{\"reason\":\"%s\"}", st->bye);
		write_event(st, st->seen, "bye", data);
		st->ended = true;
		return;
	}
	if (st->beat) {
		st->beat = false;
		memcpy(st->out, ": \n\n", 4);
		st->n_out = 4;
	}
}

/* MHD asks for bytes when the socket has room. */
static ssize_t on_read(void *arg, uint64_t pos, char *buf, size_t max)
{
	struct stream *st = arg;
	size_t n = 0;

	(void)pos;
	st->took_ns = st->now_ns;
	while (n < max) {
		size_t part;

		if (st->at_out == st->n_out)
			fill(st);
		part = st->n_out - st->at_out < max - n ? st->n_out - st->at_out : max - n;
		if (part == 0)
			break;
		memcpy(buf + n, st->out + st->at_out, part);
		st->at_out += part;
		n += part;
	}
	if (n > 0)
		return (ssize_t)n;
	if (st->ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	st->suspended = true;
	MHD_suspend_connection(st->conn);
	return 0;
}

static void on_free(void *arg)
{
	struct stream *st = arg;

	*st->link = st->next;
	if (st->next)
		st->next->link = st->link;
	st->all->n--;
	free(st);
}

enum MHD_Result streams_open(struct streams *all, struct MHD_Connection *conn, bool has_cursor,
			     uint64_t cursor, int64_t now_ns)
{
	int send_buffer = SEND_BUFFER_BYTES;
	const union MHD_ConnectionInfo *info;
	struct MHD_Response *response;
	enum MHD_Result result;
	struct answer full;
	struct stream *st;

	if (all->n >= STREAM_MAX) {
		answer_problem(&full, 503, "64 event streams are open, which is the limit.",
			       "Close a tab, or poll api/v1/since?cursor=N instead.");
		full.retry_after_s = 5;
		return answer_send(conn, &full);
	}
	info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	st = calloc(1, sizeof *st);
	if (!st || !info) {
		free(st);
		return MHD_NO;
	}
	st->all = all;
	st->conn = conn;
	st->fd = info->connect_fd;
	st->took_ns = st->now_ns = now_ns;
	st->seen = feed_head(all->feed);
	if (has_cursor && feed_covers(all->feed, cursor))
		st->seen = cursor;
	else if (has_cursor)
		st->lost_some = true;

	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 2048, on_read, st, on_free);
	if (!response) {
		free(st);
		return MHD_NO;
	}
	st->next = all->first;
	st->link = &all->first;
	if (st->next)
		st->next->link = &st->next;
	all->first = st;
	all->n++;

	setsockopt(st->fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
	MHD_set_connection_option(conn, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
	answer_headers(response);
	MHD_add_response_header(response, "Content-Type", "text/event-stream");
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Accel-Buffering", "no");
	MHD_add_response_header(response, "Connection", "close"); /* no time-out to inherit */
	result = MHD_queue_response(conn, 200, response);
	MHD_destroy_response(response);
	return result;
}

static bool resume(struct stream *st)
{
	if (!st->suspended)
		return false;
	st->suspended = false;
	st->took_ns = st->now_ns; /* from here on it owes us a read */
	MHD_resume_connection(st->conn);
	return true;
}

bool streams_wake(struct streams *all)
{
	bool any = false;

	for (struct stream *st = all->first; st; st = st->next)
		any |= resume(st);
	return any;
}

/* A suspended connection is not watched; look whether the peer has closed it. */
static bool gone(const struct stream *st)
{
	char byte;
	ssize_t n = recv(st->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

bool streams_check(struct streams *all, int64_t now_ns)
{
	bool any = false;

	for (struct stream *st = all->first; st; st = st->next) {
		st->now_ns = now_ns;
		if (st->suspended && gone(st)) {
			st->ended = true;
			any |= resume(st);
		} else if (st->suspended && now_ns - st->took_ns >= all->heartbeat_ns) {
			st->beat = true;
			any |= resume(st);
		} else if (!st->suspended && now_ns - st->took_ns >= all->slow_ns) {
			/* It owes us a read for so long that even bye would not reach it:
			 * hang up, and MHD closes what is left. */
			shutdown(st->fd, SHUT_RDWR);
			any = true;
		}
	}
	return any;
}

bool streams_bye(struct streams *all, const char *reason)
{
	bool any = false;

	for (struct stream *st = all->first; st; st = st->next) {
		if (!st->bye)
			st->bye = reason;
		any |= resume(st);
	}
	return any;
}
