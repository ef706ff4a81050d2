/* memory_share_keys.c - the unique keys of a memory disk whose jobs many stores share. */
#include <stdlib.h>
#include <string.h>

#include "lab/memory_disk.h"

/* The key is about to be another's, kept, or free. */
static void note(struct memory_disk *disk, const void *key, size_t len)
{
    struct memory_share_undo *undo = &disk->share.undo[disk->share.n_undo - 1];
    size_t n = undo->n_keys + 1;

    undo->keys = memory_need(realloc(undo->keys, n * sizeof(struct memory_key *)));
    undo->keys[undo->n_keys++] = memory_keys_note(&disk->keys, key, len);
}

void memory_share_keys_back(struct memory_disk *disk, struct memory_share_undo *undo)
{
    for (size_t i = undo->n_keys; disk != NULL && i-- > 0;)
        memory_keys_restore(&disk->keys, undo->keys[i]);
    for (size_t i = 0; i < undo->n_keys; i++)
        free(undo->keys[i]);
    free(undo->keys);
    undo->keys = NULL;
    undo->n_keys = 0;
}

int memory_share_holder(struct memory_disk *disk, const void *key, size_t len, int64_t now_ns,
                        due_id *id)
{
    const struct memory_key *found = memory_keys_find(&disk->keys, key, len);

    if (found == NULL || (found->until_ns != 0 && found->until_ns <= now_ns))
        return DUE_ENOENT;
    *id = found->id;
    return found->until_ns != 0;
}

bool memory_share_has_key(struct memory_disk *disk, const due_record *record)
{
    const struct memory_key *key = memory_keys_find(&disk->keys, record->key, record->key_len);

    return key != NULL && key->until_ns == 0 && due_id_equal(key->id, record->id);
}

bool memory_share_key_free(struct memory_disk *disk, const due_change *change, int64_t now_ns)
{
    const due_record *r = &change->record;
    due_id who;

    if (r->key_len == 0)
        return true;
    int kept = memory_share_holder(disk, r->key, r->key_len, now_ns, &who);
    return kept < 0 || due_id_equal(who, r->id) || (!kept && due_id_equal(who, change->from));
}

bool memory_share_take_key(struct memory_disk *disk, const due_change *change, int64_t now_ns)
{
    const due_record *r = &change->record;

    if (r->key_len == 0)
        return true;
    if (!memory_share_key_free(disk, change, now_ns))
        return false;
    note(disk, r->key, r->key_len);
    memory_keys_set(&disk->keys, r->key, r->key_len, r->id, 0);
    return true;
}

void memory_share_end_key(struct memory_disk *disk, const due_record *record, int64_t until_ns)
{
    if (record->key_len == 0 || !memory_share_has_key(disk, record))
        return;
    note(disk, record->key, record->key_len);
    if (until_ns > 0)
        memory_keys_set(&disk->keys, record->key, record->key_len, record->id, until_ns);
    else
        memory_keys_drop(&disk->keys, record->key, record->key_len);
}

static int64_t store_now(const struct memory_store *s)
{
    const struct memory_disk_options *o = &s->disk->options;

    return o->now != NULL ? o->now(o->clock) : s->now(s->clock);
}

int memory_share_verb_holder(due_store *store, const void *key, size_t len, due_id *id,
                             int64_t until_ns)
{
    struct memory_store *s = memory_store_lock(store);
    struct memory_call call = memory_call_begin(s, MEMORY_FIND, MEMORY_LANE_PUT, until_ns);
    int rc = memory_before(s, &call);

    if (rc == 0 && memory_share_lost(s))
        rc = DUE_ELOST;
    if (rc == 0)
        rc = memory_share_holder(s->disk, key, len, store_now(s), id);
    (void)memory_after(s, &call);
    return memory_call_end(s, MEMORY_LANE_PUT, rc);
}
