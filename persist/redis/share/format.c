/* format.c - a part of an exchange as the words of its script. */
#include <string.h>

#include "redis/share/share.h"

/* What a part has of each kind of word. */
struct put_counts {
    size_t entries, longs, keys, groups, kept;
};

static const due_change *change_at(const struct due__share_plan *plan, size_t at)
{
    return &plan->changes[plan->order[at]];
}

static void put_id(struct due__redis *s, due_id id)
{
    due__link_bytes(s->link, id.byte, DUE_STORE_ID_BYTES);
}

static void put_entry(struct due__redis *s, const due_change *c)
{
    unsigned char entry[DUE__ENTRY_MOST];

    due__link_bytes(s->link, entry, due__entry_write(&c->record, entry));
}

static int64_t score_of(const due_change *c)
{
    return due__redis_score(c->record.until_ns);
}

/* The group's changes, one after the other, by what @put writes of each. */
static void put_group(struct due__redis *s, const struct due__share_plan *plan,
                      const struct due__share_group *g,
                      void (*put)(struct due__redis *s, const due_change *c))
{
    for (size_t i = 0; i < g->n; i++)
        put(s, change_at(plan, g->first + i));
}

/* ---- New jobs -------------------------------------------------------------------------------- */

/* How long its record is, if that is long; else 0. */
static size_t long_of(const due_record *r)
{
    unsigned char front[DUE__RECORD_FRONT];

    if (r->len + DUE__RECORD_FRONT <= DUE__SHARE_LONG)
        return 0;
    size_t len = due__record_front(r, front) + r->len;
    return len > DUE__SHARE_LONG ? len : 0;
}

static struct put_counts count_puts(const struct due__share_plan *plan, size_t part)
{
    struct put_counts k = { 0 };

    for (size_t g = due__share_next_group(plan, part, 0); g < plan->groups;
         g = due__share_next_group(plan, part, g + 1)) {
        for (size_t i = 0; i < plan->group[g].n; i++) {
            const due_record *r = &change_at(plan, plan->group[g].first + i)->record;
            k.entries += due__record_has_entry(r);
            k.longs += long_of(r) != 0;
            k.keys += r->key_len > 0;
            k.groups += r->group_len > 0;
            k.kept += change_at(plan, plan->group[g].first + i)->keeps_room != 0;
        }
    }
    return k;
}

static int put_record(struct due__redis *s, const due_change *c)
{
    size_t front = 0;
    size_t len = 0;
    int rc = due__scratch_record(&s->scratch, &c->record, &front, &len);

    if (rc != 0)
        return rc;
    put_id(s, c->record.id);
    due__link_bytes(s->link, s->scratch.bytes, len);
    return 0;
}

static void put_its_entry(struct due__redis *s, const due_change *c)
{
    if (due__record_has_entry(&c->record)) {
        put_id(s, c->record.id);
        put_entry(s, c);
    }
}

static void put_its_key(struct due__redis *s, const due_change *c)
{
    const due_id none = { { 0 } };

    if (c->record.key_len == 0)
        return;
    put_id(s, c->record.id);
    due__link_bytes(s->link, c->record.key, c->record.key_len);
    if (due_id_equal(c->from, none))
        due__link_text(s->link, "");
    else
        put_id(s, c->from);
}

/* As groups.lua has it: topic, 0, how long the name is, the name. */
static void put_its_group(struct due__redis *s, const due_change *c)
{
    unsigned char group[DUE_TOPIC_LENGTH + 2 + DUE_KEY_MAX];
    const due_record *r = &c->record;

    if (r->group_len == 0)
        return;
    size_t len = strlen(r->topic) + 1;
    memcpy(group, r->topic, len);
    group[len++] = (unsigned char)r->group_len;
    memcpy(group + len, r->group, r->group_len);
    put_id(s, r->id);
    due__link_bytes(s->link, group, len + r->group_len);
}

/* It has its room already. */
static void put_if_kept(struct due__redis *s, const due_change *c)
{
    if (c->keeps_room)
        put_id(s, c->record.id);
}

static void put_its_length(struct due__redis *s, const due_change *c)
{
    size_t len = long_of(&c->record);

    if (len != 0) {
        put_id(s, c->record.id);
        due__link_number(s->link, (int64_t)len);
    }
}

static void put_score(struct due__redis *s, const due_change *c)
{
    due__link_number(s->link, score_of(c));
    put_id(s, c->record.id);
}

/* One topic, of which this group is the only one of its kind in the part: the first to be due comes
 * first. */
static void put_places(struct due__redis *s, const struct due__share_plan *plan,
                       const struct due__share_group *g)
{
    size_t first = 0;

    for (size_t i = 1; i < g->n; i++)
        if (score_of(change_at(plan, g->first + i)) < score_of(change_at(plan, g->first + first)))
            first = i;
    put_score(s, change_at(plan, g->first + first));
    for (size_t i = 0; i < g->n; i++)
        if (i != first)
            put_score(s, change_at(plan, g->first + i));
}

/* As put_needs.lua has it. */
static struct due__pack pack_put(struct due__redis *s, const struct due__share_lane *lane, size_t p,
                                 const struct put_counts *k)
{
    const struct due__share_part *part = &lane->part[p];
    const struct due__share_plan *plan = &lane->plan;
    struct due__pack pack;

    pack.len = 0;
    due__pack_small(&pack, part->changes, 2);
    due__pack_small(&pack, k->entries, 2);
    due__pack_small(&pack, k->longs, 2);
    due__pack_small(&pack, k->keys, 2);
    due__pack_small(&pack, k->kept, 2);
    due__pack_small(&pack, k->groups, 2);
    due__pack_small(&pack, due__share_shut(lane, p), 1);
    for (size_t g = due__share_next_group(plan, p, 0); g < plan->groups;
         g = due__share_next_group(plan, p, g + 1)) {
        const char *name = part->topic[plan->group[g].topic - 1];
        const struct due__redis_topic *known = due__redis_topic(s, name, strlen(name));
        due__pack_small(&pack, known == NULL || !known->entered, 1);
        due__pack_small(&pack, plan->group[g].n, 2);
    }
    return pack;
}

static int put_records(struct due__redis *s, const struct due__share_plan *plan, size_t part)
{
    int rc = 0;

    for (size_t i = due__share_next_put(plan, part, 0); i < plan->n && rc == 0;
         i = due__share_next_put(plan, part, i + 1))
        rc = put_record(s, &plan->changes[i]);
    due__scratch_shrink(&s->scratch);
    return rc;
}

/* What @put writes of each job, if @n of them have any. */
static void put_all(struct due__redis *s, const struct due__share_plan *plan, size_t part, size_t n,
                    void (*put)(struct due__redis *s, const due_change *c))
{
    for (size_t i = due__share_next_put(plan, part, 0); i < plan->n && n > 0;
         i = due__share_next_put(plan, part, i + 1))
        put(s, &plan->changes[i]);
}

static int format_put(struct due__redis *s, const struct due__share_lane *lane, size_t p)
{
    const struct due__share_plan *plan = &lane->plan;
    const struct due__share_part *part = &lane->part[p];
    struct put_counts k = count_puts(plan, p);
    struct due__pack pack = pack_put(s, lane, p, &k);
    bool plain = k.keys == 0 && k.groups == 0;

    s->share->grouped = s->share->grouped || k.groups > 0;
    due__share_call_as(s, plain ? &due__script_put_plain : &due__script_put, lane, part->number,
                       part->topic, part->topics, &pack,
                       4 * part->changes + 2 * k.entries + 2 * k.longs + 3 * k.keys + k.kept +
                           2 * k.groups);
    int rc = put_records(s, plan, p);
    if (rc != 0)
        return rc;
    put_all(s, plan, p, k.entries, put_its_entry);
    put_all(s, plan, p, k.longs, put_its_length);
    for (size_t g = due__share_next_group(plan, p, 0); g < plan->groups;
         g = due__share_next_group(plan, p, g + 1))
        put_places(s, plan, &plan->group[g]);
    put_all(s, plan, p, k.keys, put_its_key);
    put_all(s, plan, p, k.kept, put_if_kept);
    put_all(s, plan, p, k.groups, put_its_group);
    return 0;
}

/* ---- What nobody holds ----------------------------------------------------------------------- */

/* Attempts and failures as an entry has them, or nothing for none: what the script compares. */
static void put_attempts(struct due__redis *s, const due_record *r)
{
    unsigned char counts[8];

    due__bytes_put(counts, r->attempts, 4);
    due__bytes_put(counts + 4, r->failures, 4);
    due__link_bytes(s->link, counts, r->attempts != 0 || r->failures != 0 ? sizeof counts : 0);
}

static void put_setting(struct due__redis *s, int64_t setting)
{
    if (setting < 0)
        due__link_text(s->link, "");
    else
        due__link_number(s->link, setting);
}

static bool amends(char letter)
{
    return strchr("uvw", letter) != NULL;
}

/* Is it dropped only as it was shown? */
static bool as_shown(char letter)
{
    return letter == 'l' || letter == 'z';
}

/* The key that has to be the job's, if the change says one. */
static void put_key(struct due__redis *s, const due_record *r)
{
    if (r->key_len > 0)
        due__link_bytes(s->link, r->key, r->key_len);
    else
        due__link_text(s->link, "");
}

/* What it is believed to have been, what it is to be, and how long that is, if it is long. */
static int put_content(struct due__redis *s, const due_change *c)
{
    size_t front = 0;
    size_t len = 0;
    int rc = due__scratch_record(&s->scratch, &c->record, &front, &len);

    if (rc != 0)
        return rc;
    due__link_bytes(s->link, c->record.mark, c->record.mark_len);
    due__link_bytes(s->link, s->scratch.bytes, len);
    if (len > DUE__SHARE_LONG)
        due__link_number(s->link, (int64_t)len);
    else
        due__link_text(s->link, "");
    put_key(s, &c->record);
    return 0;
}

/* In place of what it was there is to be nothing. */
static void put_shown(struct due__redis *s, const due_change *c)
{
    due__link_number(s->link, due__redis_score(c->was_ns));
    put_attempts(s, &c->record);
    due__link_text(s->link, c->revokes ? "1" : "");
    due__link_text(s->link, "");
    due__link_bytes(s->link, c->record.mark, c->record.mark_len);
    due__link_text(s->link, "");
    due__link_text(s->link, "");
    put_key(s, &c->record);
}

/* A dead one is dropped: if it died then, if more than so many are dead, and if the key is its. */
static void put_strike(struct due__redis *s, const due_change *c)
{
    if (c->was_ns != 0)
        due__link_number(s->link, due__redis_score(c->was_ns));
    else
        due__link_text(s->link, "");
    due__link_text(s->link, "");
    if (c->dead_max != 0)
        due__link_number(s->link, c->dead_max < INT64_MAX ? (int64_t)c->dead_max : INT64_MAX);
    else
        due__link_text(s->link, "");
    put_key(s, &c->record);
}

static int put_edit(struct due__redis *s, const due_change *c, char letter, size_t topic)
{
    bool moves = letter == 'm' || letter == 'k';
    due_change now = *c;

    due__link_bytes(s->link, &letter, 1);
    due__link_number(s->link, (int64_t)topic);
    put_id(s, c->record.id);
    if (letter == 's') {
        due__link_text(s->link, "");
        due__link_text(s->link, "");
        put_setting(s, c->paused);
        put_setting(s, c->held_max);
        return 0;
    }
    if (letter == 'x') {
        put_strike(s, c);
        return 0;
    }
    if (as_shown(letter)) {
        put_shown(s, c);
        return 0;
    }
    if (!moves && !amends(letter)) {
        due__link_text(s->link, "");
        due__link_text(s->link, "");
        due__link_text(s->link, c->revokes ? "1" : "");
        put_key(s, &c->record);
        return 0;
    }
    due__link_number(s->link, due__redis_score(c->was_ns));
    put_attempts(s, &c->record);
    due__link_number(s->link, score_of(c));
    if (c->anew)
        now.record.attempts = now.record.failures = 0;
    if (moves || due__record_has_entry(&now.record))
        put_entry(s, &now);
    else
        due__link_text(s->link, "");
    return amends(letter) ? put_content(s, c) : 0;
}

static int format_edit(struct due__redis *s, const struct due__share_lane *lane, size_t p)
{
    const struct due__share_plan *plan = &lane->plan;
    const struct due__share_part *part = &lane->part[p];
    size_t words = 0;
    int rc = 0;

    for (size_t g = due__share_next_group(plan, p, 0); g < plan->groups;
         g = due__share_next_group(plan, p, g + 1))
        words += plan->group[g].n *
                 (amends(plan->group[g].letter) || as_shown(plan->group[g].letter) ? 11 : 7);
    due__share_call_as(s, &due__script_edit, lane, part->number, part->topic, part->topics, NULL,
                       1 + words);
    due__link_number(s->link, (int64_t)part->changes);
    for (size_t g = due__share_next_group(plan, p, 0); g < plan->groups && rc == 0;
         g = due__share_next_group(plan, p, g + 1))
        for (size_t i = 0; i < plan->group[g].n && rc == 0; i++)
            rc = put_edit(s, change_at(plan, plan->group[g].first + i), plan->group[g].letter,
                          plan->group[g].topic);
    due__scratch_shrink(&s->scratch);
    return rc;
}

/* A number is used up by a cancel of a job that there is not: its answer tells that from what may
 * have come of the number before. */
static int format_void(struct due__redis *s, const struct due__share_lane *lane, size_t p)
{
    static const due_id none;

    due__share_call_as(s, &due__script_edit, lane, lane->part[p].number, NULL, 0, NULL, 8);
    due__link_number(s->link, 1);
    due__link_text(s->link, "c");
    due__link_number(s->link, 0);
    put_id(s, none);
    for (int i = 0; i < 4; i++)
        due__link_text(s->link, "");
    return 0;
}

/* ---- What is held ---------------------------------------------------------------------------- */

static void put_its_id(struct due__redis *s, const due_change *c)
{
    put_id(s, c->record.id);
}

/* The end of the lease with which the queue holds it; one that we do not know is none. */
static int64_t end_of(const struct due__redis *s, const due_change *c)
{
    const struct due__share_hold *hold = due__hold_find(&s->share->holds, c->record.id);

    return hold != NULL && hold->held == c->held ? hold->end_us : 0;
}

/* Jobs of one claim have one end, which is sent once: how many of them stand here in a run. */
static size_t run_from(const struct due__redis *s, const struct due__share_plan *plan,
                       const struct due__share_group *g, size_t from, int64_t *end_us)
{
    size_t n = 1;

    *end_us = end_of(s, change_at(plan, g->first + from));
    while (from + n < g->n && end_of(s, change_at(plan, g->first + from + n)) == *end_us)
        n++;
    return n;
}

/* How many runs there are, which are packed behind that number. */
static size_t pack_runs(const struct due__redis *s, const struct due__share_plan *plan,
                        const struct due__share_group *g, struct due__pack *pack)
{
    size_t at = pack->len;
    size_t runs = 0;
    int64_t end_us;

    due__pack_small(pack, 0, 2);
    for (size_t i = 0, n; i < g->n; i += n, runs++) {
        n = run_from(s, plan, g, i, &end_us);
        due__pack_small(pack, n, 2);
    }
    due__bytes_put(pack->bytes + at, runs, 2);
    return runs;
}

static void put_runs(struct due__redis *s, const struct due__share_plan *plan,
                     const struct due__share_group *g)
{
    int64_t end_us;

    for (size_t i = 0; i < g->n;) {
        i += run_from(s, plan, g, i, &end_us);
        due__link_number(s->link, end_us);
    }
}

static void put_kept(struct due__redis *s, const due_change *c)
{
    due__link_number(s->link, due__redis_score(c->key_kept_ns));
}

/* Not when the change says: its holder need not know. */
static void put_release(struct due__redis *s, const due_change *c)
{
    const struct due__share_hold *hold = due__hold_find(&s->share->holds, c->record.id);

    due__link_number(s->link, hold != NULL ? hold->until_us : score_of(c));
    put_id(s, c->record.id);
}

static void put_new_entry(struct due__redis *s, const due_change *c)
{
    put_id(s, c->record.id);
    put_entry(s, c);
}

static void put_death(struct due__redis *s, const due_change *c)
{
    due__link_number(s->link, due__redis_score(c->record.died_ns));
    put_id(s, c->record.id);
}

/* Words of each job, as work.lua has them; the ends of leases are by runs. */
static size_t words_of(char letter)
{
    if (strchr("nob", letter) != NULL)
        return 5;
    if (letter == 'O')
        return 6;
    return letter == 'r' || letter == 't' ? 3 : letter == 'K' ? 2 : 1;
}

static void put_ends(struct due__redis *s, const struct due__share_plan *plan,
                     const struct due__share_group *g)
{
    char letter = g->letter;

    put_group(s, plan, g, put_its_id);
    put_runs(s, plan, g);
    if (letter == 'e')
        due__link_number(s->link, g->lease_us);
    if (letter == 'K')
        put_group(s, plan, g, put_kept);
    if (strchr("noObt", letter) != NULL)
        put_group(s, plan, g, put_new_entry);
    if (strchr("noO", letter) != NULL)
        put_group(s, plan, g, put_score);
    if (letter == 'O')
        put_group(s, plan, g, put_kept);
    if (letter == 'r')
        put_group(s, plan, g, put_release);
    if (letter == 'b')
        put_group(s, plan, g, put_death);
}

/* Who waits, as work.lua has it. */
static char waits_of(const struct due_claim *claim)
{
    if (claim == NULL)
        return 'n';
    if (claim->topics == NULL)
        return claim->waits ? 'a' : 'h';
    return claim->waits ? 't' : 'n';
}

static void pack_claim(struct due__pack *pack, const struct due_claim *claim, size_t topics)
{
    size_t need = claim != NULL ? claim->need : 0;
    size_t extra = claim != NULL ? claim->extra : 0;

    need = need < DUE__SHARE_CLAIM ? need : DUE__SHARE_CLAIM;
    extra = extra < DUE__SHARE_CLAIM - need ? extra : DUE__SHARE_CLAIM - need;
    due__pack_small(pack, need, 2);
    due__pack_small(pack, extra, 2);
    due__pack_double(pack, claim != NULL ? (claim->lease_ns + 999) / 1000 : 0);
    due__pack_small(pack, (unsigned char)waits_of(claim), 1);
    due__pack_small(pack, claim != NULL && claim->topics != NULL ? claim->topic_count : topics, 1);
}

/* Has any of the jobs a key, or a group?  One that we do not know is nobody's by our lease. */
static bool is_tied(const struct due__redis *s, const struct due__share_plan *plan,
                    const struct due__share_group *g)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct due__share_hold *hold =
            due__hold_find(&s->share->holds, change_at(plan, g->first + i)->record.id);
        if (hold != NULL && hold->tied)
            return true;
    }
    return false;
}

static int format_work(struct due__redis *s, struct due__share_lane *lane, size_t p)
{
    const struct due__share_plan *plan = &lane->plan;
    struct due__share_part *part = &lane->part[p];
    bool tied = part->whole || (part->claims && s->share->grouped);
    struct due__pack pack;
    size_t groups = 0;
    size_t words = 0;

    for (size_t g = due__share_next_group(plan, p, 0); g < plan->groups;
         g = due__share_next_group(plan, p, g + 1))
        groups++;
    pack.len = 0;
    due__pack_small(&pack, groups, 2);
    pack_claim(&pack, part->claims ? plan->claim : NULL, part->topics);
    for (size_t g = due__share_next_group(plan, p, 0); g < plan->groups;
         g = due__share_next_group(plan, p, g + 1)) {
        const struct due__share_group *group = &plan->group[g];
        due__pack_small(&pack, (unsigned char)group->letter, 1);
        due__pack_small(&pack, group->topic, 1);
        due__pack_small(&pack, group->n, 2);
        words += pack_runs(s, plan, group, &pack);
        words += (size_t)(group->letter == 'e') + words_of(group->letter) * group->n;
        tied = tied || is_tied(s, plan, group);
    }
    part->plain = !tied;
    due__share_call_as(s, tied ? &due__script_work : &due__script_work_plain, lane, part->number,
                       part->topic, part->topics, &pack, words);
    for (size_t g = due__share_next_group(plan, p, 0); g < plan->groups;
         g = due__share_next_group(plan, p, g + 1))
        put_ends(s, plan, &plan->group[g]);
    return 0;
}

int due__share_format(struct due__redis *s, struct due__share_lane *lane, size_t p)
{
    const struct due__share_part *part = &lane->part[p];

    if (part->voids)
        return format_void(s, lane, p);
    if (part->kind == DUE__SHARE_PUT)
        return format_put(s, lane, p);
    return part->kind == DUE__SHARE_EDIT ? format_edit(s, lane, p) : format_work(s, lane, p);
}
