/* memory_keys.c - a table of chains by key. */
#include "lab/memory_keys.h"

#include <stdlib.h>
#include <string.h>

#include "lab/memory_jobs.h"

static size_t slot_of(const struct memory_keys *keys, const void *key, size_t len)
{
    const unsigned char *byte = key;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < len; i++)
        sum = (sum ^ byte[i]) * UINT64_C(0x100000001b3);
    return (size_t)(sum ^ (sum >> 32)) & (keys->slots - 1);
}

static void grow(struct memory_keys *keys)
{
    struct memory_key **old = keys->table;
    size_t n = keys->slots;

    keys->slots = n == 0 ? 64 : 2 * n;
    keys->table = memory_need(calloc(keys->slots, sizeof(struct memory_key *)));
    for (size_t i = 0; i < n; i++)
        while (old[i] != NULL) {
            struct memory_key *key = old[i];
            struct memory_key **slot = &keys->table[slot_of(keys, key->bytes, key->len)];

            old[i] = key->next;
            key->next = *slot;
            *slot = key;
        }
    free(old);
}

/* Where the pointer to it stands, or would stand. */
static struct memory_key **at(const struct memory_keys *keys, const void *key, size_t len)
{
    struct memory_key **link = &keys->table[slot_of(keys, key, len)];

    while (*link != NULL && ((*link)->len != len || memcmp((*link)->bytes, key, len) != 0))
        link = &(*link)->next;
    return link;
}

const struct memory_key *memory_keys_find(const struct memory_keys *keys, const void *key,
                                          size_t len)
{
    return keys->slots == 0 ? NULL : *at(keys, key, len);
}

static struct memory_key *made(const void *key, size_t len)
{
    struct memory_key *fresh = memory_need(calloc(1, sizeof *fresh + len));

    fresh->len = len;
    memcpy(fresh->bytes, key, len);
    return fresh;
}

void memory_keys_set(struct memory_keys *keys, const void *key, size_t len, due_id id,
                     int64_t until_ns)
{
    if (keys->count >= keys->slots)
        grow(keys);
    struct memory_key **link = at(keys, key, len);
    if (*link == NULL) {
        *link = made(key, len);
        keys->count++;
    }
    keys->kept += (size_t)(until_ns != 0) - (size_t)((*link)->until_ns != 0);
    (*link)->id = id;
    (*link)->until_ns = until_ns;
    (*link)->number = ++keys->number;
    (*link)->stray = false;
}

void memory_keys_drop(struct memory_keys *keys, const void *key, size_t len)
{
    if (keys->slots == 0)
        return;
    struct memory_key **link = at(keys, key, len);
    struct memory_key *gone = *link;
    if (gone == NULL)
        return;
    *link = gone->next;
    keys->count--;
    keys->kept -= gone->until_ns != 0;
    free(gone);
}

const struct memory_key *memory_keys_behind(const struct memory_keys *keys, uint64_t number)
{
    const struct memory_key *found = NULL;

    for (size_t i = 0; i < keys->slots && keys->kept > 0; i++)
        for (const struct memory_key *key = keys->table[i]; key != NULL; key = key->next)
            if (key->until_ns != 0 && key->number > number &&
                (found == NULL || key->number < found->number))
                found = key;
    return found;
}

struct memory_key *memory_keys_note(const struct memory_keys *keys, const void *key, size_t len)
{
    const struct memory_key *is = memory_keys_find(keys, key, len);
    struct memory_key *note = made(key, len);

    if (is != NULL) {
        note->id = is->id;
        note->until_ns = is->until_ns;
        note->number = is->number;
        note->stray = is->stray;
    }
    return note;
}

void memory_keys_restore(struct memory_keys *keys, const struct memory_key *was)
{
    if (was->number == 0)
        memory_keys_drop(keys, was->bytes, was->len);
    else
        memory_keys_set(keys, was->bytes, was->len, was->id, was->until_ns);
    memory_keys_mark(keys, was, was->stray);
}

void memory_keys_mark(struct memory_keys *keys, const struct memory_key *which, bool stray)
{
    struct memory_key *key = keys->slots > 0 ? *at(keys, which->bytes, which->len) : NULL;

    if (key != NULL)
        key->stray = stray;
}

void memory_keys_clear(struct memory_keys *keys)
{
    for (size_t i = 0; i < keys->slots; i++)
        while (keys->table[i] != NULL) {
            struct memory_key *key = keys->table[i];

            keys->table[i] = key->next;
            free(key);
        }
    keys->count = keys->kept = 0;
}

void memory_keys_free(struct memory_keys *keys)
{
    memory_keys_clear(keys);
    free(keys->table);
    *keys = (struct memory_keys){ 0 };
}
