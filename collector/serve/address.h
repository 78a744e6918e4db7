/* address.h - ADDRESS:PORT for HTTP, and a socket that listens there. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

struct address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} u;
	socklen_t n;
	char name[256]; /* as given, without brackets */
};

/* 0 or SERVE_BAD_ADDRESS. */
int address_parse(const char *text, struct address *ret);
bool address_is_loopback(const struct address *a);
bool address_is_wildcard(const struct address *a);
/* A listening socket of our own, so that what went wrong can be told apart: 0,
 * SERVE_IN_USE or a negative errno. */
int address_listen(struct address *a, int *ret_fd);
