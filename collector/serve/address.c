#include "address.h"

#include "serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int address_parse(const char *text, struct address *ret)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	const char *colon = strrchr(text, ':'), *name = text;
	struct addrinfo *list;
	size_t n;
	char *end;
	long port;

	if (!colon || colon[1] < '0' || colon[1] > '9')
		return SERVE_BAD_ADDRESS;
	port = strtol(colon + 1, &end, 10);
	if (*end != '\0' || port > 65535)
		return SERVE_BAD_ADDRESS;
	n = (size_t)(colon - text);
	if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
		name++;
		n -= 2;
	} else if (memchr(text, ':', n)) {
		return SERVE_BAD_ADDRESS; /* an IPv6 address wants brackets */
	}
	if (n == 0 || n >= sizeof ret->name)
		return SERVE_BAD_ADDRESS;
	memcpy(ret->name, name, n);
	ret->name[n] = '\0';
	if (strcmp(ret->name, "localhost") == 0) /* the same on every host */
		memcpy(ret->name, "127.0.0.1", sizeof "127.0.0.1");
	if (getaddrinfo(strcmp(ret->name, "*") == 0 ? "0.0.0.0" : ret->name, colon + 1, &hints, &list) != 0)
		return SERVE_BAD_ADDRESS;
	if (list->ai_addrlen > sizeof ret->u) {
		freeaddrinfo(list);
		return SERVE_BAD_ADDRESS;
	}
	memcpy(&ret->u, list->ai_addr, list->ai_addrlen);
	ret->n = list->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}

bool address_is_loopback(const struct address *a)
{
	if (a->u.any.sa_family == AF_INET)
		return ntohl(a->u.v4.sin_addr.s_addr) >> 24 == 127;
	return a->u.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a->u.v6.sin6_addr);
}

bool address_is_wildcard(const struct address *a)
{
	if (a->u.any.sa_family == AF_INET)
		return a->u.v4.sin_addr.s_addr == htonl(INADDR_ANY);
	return a->u.any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&a->u.v6.sin6_addr);
}

int address_listen(struct address *a, int *ret_fd)
{
	int fd = socket(a->u.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1, r = 0;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, &a->u.any, a->n) != 0 || listen(fd, 128) != 0) {
		r = -errno;
		if (r == -EADDRINUSE)
			r = SERVE_IN_USE;
	} else if (getsockname(fd, &a->u.any, &a->n) != 0) {
		r = -errno;
	}
	if (r != 0) {
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}
