/* stream.h - server-sent events: many clients, one ring (feed.h).
 *
 * A client is a cursor and two kilobytes. One that stops reading costs no more; it
 * is told bye when it fell out of the ring or took nothing for too long. Loop
 * thread only.
 */
#pragma once

#include "feed.h"

#include <microhttpd.h>

#define STREAM_MAX 64

struct stream;

struct streams {
	struct feed *feed;
	int64_t heartbeat_ns, slow_ns;
	struct stream *first;
	size_t n;
};

/* has_cursor: the client has seen everything up to cursor. Answers the request. */
enum MHD_Result streams_open(struct streams *all, struct MHD_Connection *conn, bool has_cursor,
			     uint64_t cursor, int64_t now_ns);

/* Each of these: true when a connection was resumed, so that the daemon must run. */
bool streams_wake(struct streams *all); /* the feed has grown */
bool streams_check(struct streams *all, int64_t now_ns); /* heartbeats, the slow, the gone */
bool streams_bye(struct streams *all, const char *reason); /* reason: static */
