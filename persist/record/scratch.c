/* scratch.c - where a record is put together in one piece. */
#include "record/scratch.h"

#include <stdlib.h>
#include <string.h>

/* What stands there is not needed any more, so nothing is copied. */
static bool scratch_grow(struct due__scratch *s, size_t need)
{
    if (s->room >= need)
        return true;
    due__scratch_free(s);
    size_t room = need < DUE__SCRATCH_KEEP ? DUE__SCRATCH_KEEP : need;
    s->bytes = malloc(room);
    if (s->bytes != NULL)
        s->room = room;
    return s->bytes != NULL;
}

int due__scratch_record(struct due__scratch *s, const due_record *record, size_t *front,
                        size_t *len)
{
    if (record->len > SIZE_MAX - DUE__RECORD_FRONT ||
        !scratch_grow(s, DUE__RECORD_FRONT + record->len))
        return DUE_ENOMEM;
    *front = due__record_front(record, s->bytes);
    if (record->len > 0)
        memcpy(s->bytes + *front, record->data, record->len);
    *len = *front + record->len;
    return 0;
}

void due__scratch_shrink(struct due__scratch *s)
{
    if (s->room > DUE__SCRATCH_KEEP)
        due__scratch_free(s);
}

void due__scratch_free(struct due__scratch *s)
{
    free(s->bytes);
    *s = (struct due__scratch){ 0 };
}
