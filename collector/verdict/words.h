/* words.h - what the sentences of verdicts are made of. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stranger's text between the quotes of JSON, cut to fit. */
void words_json(const char *in, char *out, size_t n_out);
/* "11.6 s", "3.20 ms", "40 ns". */
void words_ns(int64_t ns, char *out, size_t n_out);
/* Upper and lower case are the same. False for no text. */
bool words_has(const char *text, const char *words);
