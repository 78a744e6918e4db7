/* inbox.h - messages from agents, handed to the loop thread one at a time.
 *
 * The transport ends here: NNG appears in inbox.c only, behind these functions,
 * so that another carrier of request and reply can take its place.
 *
 * Two request/reply pairs. Control is small, prompt and delivered first; data is
 * answered when it is on the disk. A data message that has no answer yet holds
 * one of n_data places; with all taken nothing more is received, the connection
 * pushes back, the agent keeps its events and the guest's ring drops and counts.
 * That is the whole admission control.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define INBOX_DATA_PLACES 64
#define INBOX_CONTROL_PLACES 16
#define INBOX_MAX_URL 256

enum inbox_outcome {
	INBOX_OK = 0,
	INBOX_BAD_URL, /* neither tcp://ADDR:PORT nor ipc:///PATH */
	INBOX_IN_USE,  /* the address (or the next port, for data) is taken */
	INBOX_DENIED,  /* no right to listen there, or no such address or directory */
};

/* One request, alive until inbox_reply(). */
struct inbox_msg {
	const unsigned char *data;
	size_t n_bytes;
	int64_t at_raw_ns; /* CLOCK_MONOTONIC_RAW as it came off the wire */
	bool control;
};

struct inbox_config {
	uv_loop_t *loop;
	const char *url;	     /* of the control pair; port 0 picks a free pair of ports */
	unsigned n_data, n_control; /* 0 = the defaults */
	/* Loop thread. Every message delivered is owed exactly one inbox_reply(). */
	void (*deliver)(void *arg, struct inbox_msg *m);
	/* Loop thread: a turn's messages have all been delivered. */
	void (*turn_over)(void *arg);
	void *arg;
};

struct inbox;

/* Listens; nothing is delivered before inbox_start(). 0, an enum inbox_outcome or
 * a negative errno. */
int inbox_open(struct inbox **ret, const struct inbox_config *cfg);
void inbox_start(struct inbox *in);
const char *inbox_url(const struct inbox *in); /* with the port that was picked */
/* Where agents' control connections come to; false: not by an internet address. */
struct sockaddr_storage;
bool inbox_address(const struct inbox *in, struct sockaddr_storage *ret);
/* Data messages that could be taken now. Loop thread. */
unsigned inbox_n_free(const struct inbox *in);

/* Answers m and gives it back. Bytes are copied. Loop thread. */
void inbox_reply(struct inbox *in, struct inbox_msg *m, const void *data, size_t n_bytes);
/* Takes m back without an answer: the peer sends it again. Loop thread. */
void inbox_drop(struct inbox *in, struct inbox_msg *m);

/* Nothing more is delivered; what was delivered can still be answered. Messages
 * that came and were not delivered stay unanswered: their senders keep them. */
void inbox_pause(struct inbox *in);
/* After inbox_pause(): waits until the answers given are out, at most that long. */
void inbox_drain(struct inbox *in, unsigned deadline_ms);
/* Ends all receiving and sending. Messages still owed are freed. NULL is fine. */
void inbox_close(struct inbox *in);

/* May this URL be reached from this host alone? */
bool inbox_is_local(const char *url);
void inbox_explain(char *out, size_t n_out, int outcome, const char *url);
