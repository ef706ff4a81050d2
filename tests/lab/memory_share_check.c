/* memory_share_check.c - whether a queue keeps its side of store.h, exchange by exchange. */
#include <stdlib.h>
#include <string.h>

#include "lab/memory_disk.h"

enum memory_lane_of memory_exchange_lane(const due_change *changes, size_t n,
                                         const struct due_claim *claim)
{
    for (size_t i = 0; i < n; i++)
        if (changes[i].held != 0)
            return MEMORY_LANE_WORK;
    return claim != NULL ? MEMORY_LANE_WORK : MEMORY_LANE_PUT;
}

/* What is asked for, to be compared when it is asked once more. */
static uint64_t hash_exchange(const due_change *changes, size_t n, const struct due_claim *claim)
{
    uint64_t hash = memory_hash(changes, n);

    for (size_t i = 0; i < n; i++)
        hash = hash * 31 + changes[i].held * 7 + (uint64_t)changes[i].lease_ns +
               (uint64_t)changes[i].paused * 3 + (uint64_t)changes[i].held_max * 5 +
               changes[i].dead_max * 11 + (uint64_t)changes[i].keeps_pass * 19 +
               (uint64_t)changes[i].anew * 17 + changes[i].from.byte[13] * 13u;
    if (claim == NULL)
        return hash;
    hash = hash * 31 + claim->need;
    hash = hash * 31 + claim->extra;
    hash = hash * 31 + (uint64_t)claim->lease_ns;
    hash = hash * 31 + (claim->waits != 0);
    for (size_t i = 0; claim->topics != NULL && i < claim->topic_count; i++)
        for (const char *c = claim->topics[i]; *c != '\0'; c++)
            hash = hash * 31 + (unsigned char)*c;
    return hash;
}

/* What is wrong with a change, whatever the disk holds, or NULL. */
static const char *change_wrong(const struct memory_store *s, const due_change *change)
{
    bool amends = change->kind == DUE_CHANGE_AMEND;
    bool of_holder = (change->kind >= DUE_CHANGE_BEGIN && change->kind < DUE_CHANGE_AMEND) ||
                     change->kind == DUE_CHANGE_BURY;

    if (of_holder && change->held == 0)
        return "a change that only the holder of a job makes, without a lease";
    if ((change->kind == DUE_CHANGE_PUT || amends) && change->held != 0)
        return "a PUT or an AMEND with a lease";
    if (amends && change->record.cause != 0 && !change->was_dead)
        return "an AMEND that kills";
    if (change->was_dead != (change->was_dead != 0) || change->anew != (change->anew != 0))
        return "what is neither 0 nor 1";
    if (change->was_dead && change->held != 0)
        return "a dead job with a lease";
    if (change->kind == DUE_CHANGE_EXTEND && change->lease_ns <= 0)
        return "an EXTEND by nothing";
    if (change->kind == DUE_CHANGE_EXTEND && change->lease_ns > DUE_CLAIM_LEASE_MAX)
        return "an EXTEND by too much";
    if (change->kind == DUE_CHANGE_TOPIC)
        return change->held == 0 && change->record.topic != NULL ? NULL : "a TOPIC of none";
    if (change->keeps_pass && (change->kind != DUE_CHANGE_MOVE || change->held == 0))
        return "a pass that is kept by no MOVE of who has it";
    if (change->anew && !amends)
        return "counts that begin anew, and no AMEND";
    if (change->kind == DUE_CHANGE_KEEP || change->kind == DUE_CHANGE_FORGET)
        return "a key of a shared queue";
    return memory_record_wrong(s, change);
}

static const char *claim_wrong(const struct due_claim *claim)
{
    if (claim->need + claim->extra > 0 && claim->lease_ns <= 0)
        return "a claim without a lease";
    if (claim->lease_ns > DUE_CLAIM_LEASE_MAX)
        return "a claim with too long a lease";
    if (claim->topics != NULL && (claim->topic_count == 0 || claim->topic_count > DUE_CLAIM_TOPICS))
        return "a claim of no topic, or of too many";
    for (size_t i = 0; claim->topics != NULL && i < claim->topic_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(claim->topics[i], claim->topics[j]) == 0)
                return "a claim that names a topic twice";
    return NULL;
}

/* A number that was refused may be used again. */
static const char *number_wrong(const struct memory_lane *lane, uint64_t number, uint64_t hash)
{
    if (lane->doubt)
        return number == lane->given && hash == lane->given_hash
                   ? NULL
                   : "another exchange, while one is in doubt";
    if (number == lane->acked + 1)
        return NULL;
    if (number != 0 && number == lane->acked)
        return hash == lane->given_hash ? NULL : "the number of an exchange, for another one";
    return "a gap in the numbers of exchanges";
}

bool memory_check_exchange(struct memory_store *s, const due_change *changes, size_t n,
                           uint64_t number, const struct due_claim *claim)
{
    struct memory_lane *lane = &s->lanes[memory_exchange_lane(changes, n, claim)];
    uint64_t hash = hash_exchange(changes, n, claim);
    const char *wrong = number_wrong(lane, number, hash);
    size_t bytes = 0;

    if (wrong == NULL && !s->joined)
        wrong = "an exchange of who has not joined";
    if (wrong == NULL && (n > s->disk->options.batch_changes || (n == 0 && claim == NULL)))
        wrong = "an exchange of nothing, or of too many changes";
    if (wrong == NULL && memory_any_id_twice(changes, n))
        wrong = "two changes of one job";
    for (size_t i = 0; i < n && wrong == NULL; i++) {
        wrong = change_wrong(s, &changes[i]);
        bytes += changes[i].kind == DUE_CHANGE_PUT ? changes[i].record.len : 0;
    }
    if (wrong == NULL && n > 1 && bytes > s->disk->options.batch_bytes)
        wrong = "an exchange of too many bytes";
    if (wrong == NULL && claim != NULL)
        wrong = claim_wrong(claim);
    if (wrong != NULL)
        memory_wrong(s->disk, "%s (writer %llu, exchange %llu of %zu changes)", wrong,
                     (unsigned long long)s->writer, (unsigned long long)number, n);
    if (wrong == NULL)
        lane->given = number;
    lane->given_hash = wrong == NULL ? hash : lane->given_hash;
    return wrong == NULL;
}
