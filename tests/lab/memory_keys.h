/* memory_keys.h - the unique keys of a memory disk: whose each is, and until when it is kept. */
#ifndef MEMORY_KEYS_H
#define MEMORY_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "due/store.h"

struct memory_key {
    struct memory_key *next; /* in its chain of the table */
    due_id id;               /* the job that has it, or had it */
    int64_t until_ns;        /* kept until then; 0: of a live job */
    uint64_t number;         /* of its last change: the order of a listing */
    bool stray;              /* a test says so: no queue knows that the job has it; until it does */
    size_t len;
    unsigned char bytes[];
};

struct memory_keys {
    struct memory_key **table;
    size_t slots; /* a power of two, or none yet */
    size_t count;
    size_t kept;
    uint64_t number; /* the last one given */
};

const struct memory_key *memory_keys_find(const struct memory_keys *keys, const void *key,
                                          size_t len);
/* As it is from now on, whatever it was. */
void memory_keys_set(struct memory_keys *keys, const void *key, size_t len, due_id id,
                     int64_t until_ns);
void memory_keys_drop(struct memory_keys *keys, const void *key, size_t len);
/* The kept one with the lowest number above @number; NULL: the end. */
const struct memory_key *memory_keys_behind(const struct memory_keys *keys, uint64_t number);

/* A copy of what is known of a key, also that it is not there (number 0), and back to that. */
struct memory_key *memory_keys_note(const struct memory_keys *keys, const void *key, size_t len);
void memory_keys_restore(struct memory_keys *keys, const struct memory_key *was);
/* Its mark, if it is there. */
void memory_keys_mark(struct memory_keys *keys, const struct memory_key *which, bool stray);

void memory_keys_clear(struct memory_keys *keys);
void memory_keys_free(struct memory_keys *keys);

#endif
