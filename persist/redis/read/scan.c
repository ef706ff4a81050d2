/* scan.c - all records, wherever they stand: shown while we are unsure (torn_log.c). */
#include <string.h>

#include "redis/read/read.h"

/* A cursor, and names with their values. */
static bool is_page(const struct due__redis_load *l, const redisReply *r)
{
    return due__reply_is_array(r, 2) && due__reply_is_text(r->element[0]) &&
           (size_t)r->element[0]->len < sizeof l->scan_next && due__reply_is_texts(r->element[1]) &&
           r->element[1]->elements % 2 == 0;
}

/* Leave the names only. */
static redisReply *names_of(redisReply *r)
{
    redisReply *page = r->element[1];

    for (size_t i = 0; i < page->elements / 2; i++) {
        freeReplyObject(page->element[2 * i + 1]);
        page->element[i] = page->element[2 * i];
    }
    page->elements /= 2;
    r->element[1] = NULL;
    freeReplyObject(r);
    return page;
}

int due__redis_scan(struct due__redis *s, int64_t until_ns)
{
    struct due__redis_load *l = s->load;
    uint64_t link = due__link_count(s->link).connects;

    if (l->scan_link != link) /* to another server, perhaps: there the cursor means nothing */
        l->scan[0] = '\0';
    l->scan_link = link;
    int ready = due__flight_ready(s, DUE__FLIGHT_SCAN, 0, until_ns);
    if (ready == 0) {
        l->stale = false;
        due__redis_word(s, s->keys.jobs, 3, "HSCAN");
        due__link_text(s->link, l->scan[0] != '\0' ? l->scan : "0");
        due__link_text(s->link, "COUNT");
        due__link_number(s->link, (int64_t)l->page);
    }
    int rc = due__redis_fly(s, DUE__FLIGHT_SCAN, 0, 1, ready, until_ns);
    if (rc != 0)
        return rc;
    if (due__reply_classify(s->air.kept[0]) == DUE__REPLY_DENIED) { /* it is only a leak */
        memcpy(l->scan_next, "0", 2);
        l->last = true;
        due__flight_end(s);
        return 0;
    }
    if (!is_page(l, s->air.kept[0]))
        return due__redis_mistaken(s);
    const redisReply *cursor = s->air.kept[0]->element[0];
    memcpy(l->scan_next, cursor->str, (size_t)cursor->len + 1);
    l->next_ids = names_of(due__flight_take(s, 0));
    l->next_asked = SIZE_MAX; /* this is the last page of what is behind it by rank */
    due__flight_end(s);
    return 0;
}

void due__redis_scanned(struct due__redis_load *l)
{
    memcpy(l->scan, l->scan_next, sizeof l->scan);
    l->scanned = strcmp(l->scan, "0") == 0;
}
