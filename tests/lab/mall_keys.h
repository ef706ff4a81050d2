/* mall_keys.h - what the tests of unique keys in a mall share: jobs with the key "k". */
#ifndef LAB_MALL_KEYS_H
#define LAB_MALL_KEYS_H

#include "lab/mall.h"

/* The policies that change a job. */
static const enum due_key_policy others[] = { DUE_KEY_REPLACE, DUE_KEY_EARLIEST, DUE_KEY_DEBOUNCE };

static inline int put_at(struct lab *lab, int64_t at_ns, const char *text, due_extra more,
                         due_id *id)
{
    due_spec spec = { DUE_SPEC_INIT, .at_ns = at_ns,      .flags = DUE_SPEC_AT,
                      .data = text,  .len = strlen(text), .more = &more };

    return due_enqueue(lab->q, &spec, 0, id);
}

#define KEY(...)                                              \
    (due_extra)                                               \
    {                                                         \
        DUE_EXTRA_INIT, .key = "k", .key_len = 1, __VA_ARGS__ \
    }

static inline bool is_free(struct lab *lab)
{
    due_id id;
    int rc = due_id_of_key(lab->q, "k", 1, &id);

    cr_expect(rc == 0 || rc == DUE_ENOENT, "%s", due_error_name(rc));
    return rc == DUE_ENOENT;
}

#endif
