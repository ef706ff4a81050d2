/* memory_share.c - the jobs of a memory disk that many stores share, and how to take back what was
 * done to them.
 */
#include "lab/memory_share.h"

#include <stdlib.h>
#include <string.h>

#include "lab/memory_disk.h"

#define UNDO_MOST 512 /* exchanges that can be taken back */

struct memory_job *memory_disk_job(struct memory_disk *disk, due_id id)
{
    struct memory_job *job = memory_jobs_find(&disk->jobs, id);

    return job != NULL ? job : memory_jobs_find(&disk->share.leased, id);
}

/* ---- Taking back ---- */

static void answer_free(struct memory_answer *answer)
{
    free(answer->results);
    free(answer->claimed);
    *answer = (struct memory_answer){ 0 };
}

static void undo_free(struct memory_share_undo *undo)
{
    for (size_t i = 0; i < undo->n; i++)
        memory_job_free(undo->was[i]);
    free(undo->was);
    free(undo->ids);
    free(undo->settings);
    memory_share_keys_back(NULL, undo);
    answer_free(&undo->answer);
}

void memory_share_undo_begin(struct memory_disk *disk, const struct memory_process *p, int lane)
{
    struct memory_share *share = &disk->share;
    const struct memory_answer *was = &p->lane[lane];

    if (share->undo == NULL)
        share->undo = memory_need(calloc(UNDO_MOST, sizeof *share->undo));
    if (share->n_undo == UNDO_MOST) {
        undo_free(&share->undo[0]);
        share->n_undo--;
        memmove(&share->undo[0], &share->undo[1], share->n_undo * sizeof *share->undo);
    }
    struct memory_share_undo *undo = &share->undo[share->n_undo++];
    *undo = (struct memory_share_undo){ .writer = p->writer, .lane = lane, .answer = *was };
    undo->settings = memory_settings_copy(disk, &undo->n_settings);
    undo->answer.results = memory_need(calloc(was->n + 1, sizeof *was->results));
    undo->answer.claimed = memory_need(calloc(was->n_claimed + 1, sizeof *was->claimed));
    if (was->n > 0)
        memcpy(undo->answer.results, was->results, was->n * sizeof *was->results);
    if (was->n_claimed > 0)
        memcpy(undo->answer.claimed, was->claimed, was->n_claimed * sizeof *was->claimed);
}

/* The job is about to be changed, or made. */
static void note(struct memory_disk *disk, due_id id)
{
    struct memory_share_undo *undo = &disk->share.undo[disk->share.n_undo - 1];
    const struct memory_job *job = memory_disk_job(disk, id);

    if (undo->n == undo->room) {
        undo->room = undo->room == 0 ? 8 : 2 * undo->room;
        undo->ids = memory_need(realloc(undo->ids, undo->room * sizeof *undo->ids));
        undo->was = memory_need(realloc(undo->was, undo->room * sizeof(struct memory_job *)));
    }
    undo->ids[undo->n] = id;
    undo->was[undo->n++] = job != NULL ? memory_job_copy(&disk->jobs, job) : NULL;
}

/* Out of where it is. */
static void take(struct memory_disk *disk, struct memory_job *job)
{
    memory_jobs_take(job->held != 0 ? &disk->share.leased : &disk->jobs, job);
}

static void add(struct memory_disk *disk, struct memory_job *job)
{
    memory_jobs_add(job->held != 0 ? &disk->share.leased : &disk->jobs, job);
    memory_share_note_pass(disk, job);
}

static void take_back(struct memory_disk *disk, struct memory_share_undo *undo)
{
    struct memory_process *p = memory_process_of(disk, undo->writer);

    for (size_t i = undo->n; i-- > 0;) {
        struct memory_job *job = memory_disk_job(disk, undo->ids[i]);

        if (job != NULL) {
            take(disk, job);
            memory_job_free(job);
        }
        if (undo->was[i] != NULL)
            add(disk, undo->was[i]);
        undo->was[i] = NULL;
    }
    memory_share_keys_back(disk, undo);
    memory_settings_back(disk, undo->settings, undo->n_settings);
    undo->settings = NULL;
    if (p != NULL) {
        answer_free(&p->lane[undo->lane]);
        p->lane[undo->lane] = undo->answer;
        undo->answer = (struct memory_answer){ 0 };
    }
    undo_free(undo);
}

void memory_share_lose(struct memory_disk *disk, size_t exchanges)
{
    struct memory_share *share = &disk->share;

    for (size_t i = 0; i < exchanges && share->n_undo > 0; i++)
        take_back(disk, &share->undo[--share->n_undo]);
    if (exchanges != SIZE_MAX)
        return;
    memory_jobs_clear(&share->leased);
    share->n_settings = 0;
    share->capacity = 0;
    share->by_rank = share->made = false;
    while (share->processes != NULL)
        memory_process_remove(disk, share->processes);
}

/* ---- Changes ---- */

/* It is nowhere any more: it was taken out. */
static void end_job(struct memory_disk *disk, struct memory_job *job, int64_t key_kept_ns)
{
    memory_share_end_key(disk, &job->record, key_kept_ns);
    memory_job_free(job);
}

/* Of a job that is held. */
static int change_held(struct memory_disk *disk, const due_change *change, int64_t now_ns)
{
    struct memory_job *job = memory_jobs_find(&disk->share.leased, change->record.id);
    due_record record = change->record;

    if (job == NULL || job->held != change->held)
        return DUE_ESTALE;
    bool stays = change->kind == DUE_CHANGE_BEGIN || change->kind == DUE_CHANGE_EXTEND;
    int rc = job->revoked ? DUE_REVOKED : 0;

    note(disk, job->place.id);
    take(disk, job);
    if (change->kind == DUE_CHANGE_DROP || (job->revoked && !stays)) {
        end_job(disk, job, change->key_kept_ns);
        return rc;
    }
    switch (change->kind) {
    case DUE_CHANGE_BEGIN:
        job->record.attempts = record.attempts;
        job->record.failures = record.failures;
        break;
    case DUE_CHANGE_EXTEND:
        job->place.until_ns = now_ns + change->lease_ns;
        break;
    case DUE_CHANGE_RELEASE:
        job->held = 0;
        job->place.until_ns = job->record.until_ns;
        break;
    default: /* MOVE, BURY */
        if (change->kind == DUE_CHANGE_MOVE)
            record.cause = 0;
        job->held = 0;
        job->passed = job->passed && change->kind == DUE_CHANGE_MOVE && change->keeps_pass != 0;
        memory_job_change(job, &record);
    }
    add(disk, job);
    return rc;
}

static int put_new(struct memory_disk *disk, const due_change *change, int64_t now_ns, bool full,
                   bool *shut)
{
    if (full)
        return DUE_ENOSPC;
    if (!change->keeps_room && (*shut || !memory_room_any(disk))) {
        if (!memory_share_key_free(disk, change, now_ns))
            return DUE_EEXIST;
        *shut = true;
        return DUE_EAGAIN;
    }
    if (!memory_share_take_key(disk, change, now_ns))
        return DUE_EEXIST;
    note(disk, change->record.id);
    add(disk, memory_job_new(&disk->jobs, &change->record));
    return 0;
}

/* How many are dead, counted no further than @most. */
static uint64_t count_dead(const struct memory_disk *disk, uint64_t most)
{
    struct memory_place dead = { .topic = MEMORY_DEAD, .until_ns = INT64_MIN };
    uint64_t n = 0;

    for (struct memory_job *job; n < most && (job = memory_jobs_behind(&disk->jobs, &dead)); n++)
        dead = job->place;
    return n;
}

/* Is it one that died then, and are there too many, if the change says so? */
static bool may_drop(const struct memory_disk *disk, const struct memory_job *job,
                     const due_change *change)
{
    if (!change->was_dead)
        return true;
    return (change->was_ns == 0 || job->place.until_ns == change->was_ns) &&
           (change->dead_max == 0 ||
            count_dead(disk, change->dead_max + 1) == change->dead_max + 1);
}

/* Is a job what the change says that it was? */
static bool unchanged(struct memory_disk *disk, const struct memory_job *job,
                      const due_change *change)
{
    const due_record *r = &change->record;

    if (change->kind != DUE_CHANGE_MOVE && r->key_len > 0 && !memory_share_has_key(disk, r))
        return false;
    if (change->kind == DUE_CHANGE_DROP && r->mark_len == 0)
        return may_drop(disk, job, change);
    if (job->place.until_ns != change->was_ns)
        return false;
    if (!change->was_dead &&
        (job->record.attempts != r->attempts || job->record.failures != r->failures))
        return false;
    return change->kind == DUE_CHANGE_MOVE ||
           (r->mark_len == sizeof job->content &&
            memcmp(r->mark, &job->content, sizeof job->content) == 0);
}

/* Other content, in place of the job; one that stays dead is so as before. */
static void amend(struct memory_disk *disk, struct memory_job *job, const due_change *change)
{
    due_record now = change->record;

    if (change->anew)
        now.attempts = now.failures = 0;
    if (now.key_len == 0) { /* that never changes */
        now.key = job->record.key;
        now.key_len = job->record.key_len;
    }
    if (now.cause != 0) {
        now.cause = job->record.cause;
        now.died_ns = job->record.died_ns;
        now.reason = job->record.reason;
    }
    struct memory_job *anew = memory_job_new(&disk->jobs, &now);
    anew->passed = job->passed && now.cause == 0 && anew->place.until_ns == job->place.until_ns;
    add(disk, anew);
    memory_job_free(job);
}

/* Of one that somebody holds, or held: its lease may be over. */
static int revoke(struct memory_disk *disk, struct memory_job *job, const due_change *change,
                  int64_t now_ns)
{
    const due_record *r = &change->record;

    if (change->kind != DUE_CHANGE_DROP || !change->revokes)
        return DUE_EBUSY;
    if (r->key_len > 0 && !memory_share_has_key(disk, r))
        return DUE_EAGAIN;
    note(disk, r->id);
    if (r->mark_len == 0 && job->place.until_ns <= now_ns) {
        take(disk, job);
        end_job(disk, job, 0);
        return 0;
    }
    job->revoked = true;
    return DUE_EBUSY;
}

/* Of a job that nobody holds. */
int memory_share_change(struct memory_disk *disk, const due_change *change, int64_t now_ns,
                        bool full, bool *shut)
{
    due_record record = change->record;

    if (change->held != 0)
        return change_held(disk, change, now_ns);
    if (change->kind == DUE_CHANGE_PUT)
        return put_new(disk, change, now_ns, full, shut);
    if (change->kind == DUE_CHANGE_TOPIC)
        return memory_settings_change(disk, change), 0;
    struct memory_job *job = memory_disk_job(disk, record.id);
    if (job == NULL || (job->record.cause != 0) != (change->was_dead != 0))
        return DUE_ENOENT;
    if (job->held != 0)
        return revoke(disk, job, change, now_ns);
    if (!unchanged(disk, job, change))
        return DUE_EAGAIN;
    note(disk, record.id);
    take(disk, job);
    if (change->kind == DUE_CHANGE_DROP) {
        end_job(disk, job, 0);
        return 0;
    }
    if (change->kind == DUE_CHANGE_AMEND) {
        amend(disk, job, change);
        return 0;
    }
    record.cause = 0;
    job->passed = false;
    memory_job_change(job, &record);
    add(disk, job);
    return 0;
}

/* ---- Claims ---- */

static struct memory_job *first_of(const struct memory_jobs *jobs, size_t topic)
{
    struct memory_place place = { .topic = topic, .until_ns = INT64_MIN };
    struct memory_job *job = memory_jobs_behind(jobs, &place);

    return job != NULL && job->place.topic == topic ? job : NULL;
}

static int64_t first_time(const struct memory_jobs *jobs, size_t topic)
{
    const struct memory_job *job = first_of(jobs, topic);

    return job != NULL ? job->place.until_ns : DUE_FOREVER;
}

/* How many more of a topic's jobs may be held. */
static size_t room_in(struct memory_disk *disk, size_t topic)
{
    struct memory_setting setting = memory_setting_of(disk, topic);
    struct memory_job *job = first_of(&disk->share.leased, topic);
    size_t held = 0;

    if (setting.paused || setting.held_max == 0)
        return setting.paused ? 0 : SIZE_MAX;
    for (; job != NULL && job->place.topic == topic && held < (size_t)setting.held_max; held++)
        job = memory_jobs_behind(&disk->share.leased, &job->place);
    return (size_t)setting.held_max - held;
}

int64_t memory_share_head(struct memory_disk *disk, size_t topic)
{
    int64_t head_ns = DUE_FOREVER;

    for (size_t i = 0; i < disk->jobs.n_topics; i++) {
        const struct memory_job *waits = memory_share_waiting(disk, i, NULL);
        int64_t waits_ns = waits != NULL ? waits->place.until_ns : DUE_FOREVER;
        int64_t over_ns = first_time(&disk->share.leased, i);

        if ((topic != MEMORY_ANY && topic != i) || memory_setting_of(disk, i).paused)
            continue;
        if (room_in(disk, i) > 0)
            head_ns = waits_ns < head_ns ? waits_ns : head_ns;
        head_ns = over_ns < head_ns ? over_ns : head_ns;
    }
    return head_ns;
}

/* A job that is due, from a lease that is over or not. */
static void claim_one(struct memory_disk *disk, struct memory_answer *answer,
                      struct memory_job *job, int64_t lease_ns)
{
    note(disk, job->place.id);
    take(disk, job);
    answer->claimed[answer->n_claimed++] = (struct memory_claimed){
        .id = job->place.id,
        .held = answer->stamp,
        .lapsed_ns = job->held != 0 ? job->place.until_ns : 0,
    };
    job->held = answer->stamp;
    job->passed = job->record.group_len > 0;
    job->place.until_ns = answer->now_ns + lease_ns;
    add(disk, job);
}

static size_t claim_by_rank(struct memory_disk *disk, struct memory_answer *answer, size_t topic,
                            size_t most, int64_t lease_ns)
{
    size_t n = 0;
    size_t done = 0;
    struct memory_job **jobs = memory_share_ranked(disk, topic, answer->now_ns, &n);

    for (size_t i = 0; i < n && done < most; i++) {
        if (jobs[i]->held == 0 && room_in(disk, topic) == 0)
            continue;
        claim_one(disk, answer, jobs[i], lease_ns);
        done++;
    }
    free(jobs);
    return done;
}

/* Those whose leases are over, and that were cancelled before that, are gone. */
static void end_revoked(struct memory_disk *disk, size_t topic, int64_t now_ns)
{
    struct memory_job *job = first_of(&disk->share.leased, topic);

    while (job != NULL && job->place.topic == topic && job->place.until_ns <= now_ns) {
        struct memory_place at = job->place;

        if (job->revoked) {
            note(disk, job->place.id);
            take(disk, job);
            end_job(disk, job, 0);
        }
        job = memory_jobs_behind(&disk->share.leased, &at);
    }
}

/* Leases that are over come first: such a job has waited longest. */
size_t memory_share_claim(struct memory_disk *disk, struct memory_answer *answer, size_t topic,
                          size_t most, int64_t lease_ns)
{
    struct memory_place behind = { .topic = topic, .until_ns = INT64_MIN };
    size_t n = 0;

    if (!memory_setting_of(disk, topic).paused)
        end_revoked(disk, topic, answer->now_ns);
    if (disk->share.by_rank)
        return memory_setting_of(disk, topic).paused
                   ? 0
                   : claim_by_rank(disk, answer, topic, most, lease_ns);
    for (int i = 0; i < 2 && !memory_setting_of(disk, topic).paused; i++)
        while (n < most) {
            struct memory_job *job = i == 0 ? first_of(&disk->share.leased, topic)
                                            : memory_share_waiting(disk, topic, &behind);

            if (job == NULL || job->place.until_ns > answer->now_ns ||
                (i == 1 && room_in(disk, topic) == 0))
                break;
            if (i == 1)
                behind = job->place;
            claim_one(disk, answer, job, lease_ns);
            n++;
        }
    return n;
}

size_t memory_share_due(struct memory_disk *disk, size_t topic, int64_t now_ns, size_t most)
{
    struct memory_job *job = first_of(&disk->jobs, topic);
    size_t n = 0;

    if (room_in(disk, topic) != SIZE_MAX)
        return 0;
    while (n < most && job != NULL && job->place.topic == topic && job->place.until_ns <= now_ns) {
        n++;
        job = memory_jobs_behind(&disk->jobs, &job->place);
    }
    return n;
}

void memory_share_census(struct memory_disk *disk, size_t topic, int64_t now_ns,
                         struct due_census_topic *count)
{
    const struct memory_jobs *in[] = { &disk->jobs, &disk->share.leased };

    *count =
        (struct due_census_topic){ .topic = disk->jobs.topics[topic], .oldest_ns = DUE_FOREVER };
    for (int i = 0; i < 2; i++) {
        struct memory_job *job = first_of(in[i], topic);

        if (job != NULL && job->place.until_ns <= now_ns && job->place.until_ns < count->oldest_ns)
            count->oldest_ns = job->place.until_ns;
        for (; job != NULL && job->place.topic == topic;
             job = memory_jobs_behind(in[i], &job->place)) {
            count->ready += job->place.until_ns <= now_ns;
            count->delayed += i == 0 && job->place.until_ns > now_ns;
            count->leased += i == 1 && job->place.until_ns > now_ns;
        }
    }
}

void memory_share_fold(struct memory_disk *disk)
{
    struct memory_job *job;

    disk->share.made = false;
    memory_share_fold_passes(disk);
    while ((job = memory_jobs_first(&disk->share.leased)) != NULL) {
        take(disk, job);
        job->held = 0;
        if (job->revoked) { /* an owner stores no such mark */
            if (memory_share_has_key(disk, &job->record))
                memory_keys_drop(&disk->keys, job->record.key, job->record.key_len);
            memory_job_free(job);
            continue;
        }
        job->place.until_ns = job->record.until_ns;
        add(disk, job);
    }
    while (disk->share.processes != NULL)
        memory_process_remove(disk, disk->share.processes);
    while (disk->share.n_undo > 0)
        undo_free(&disk->share.undo[--disk->share.n_undo]);
}

/* ---- Processes ---- */

struct memory_process *memory_process_new(struct memory_disk *disk, struct memory_store *s,
                                          int64_t now_ns)
{
    struct memory_process *p = memory_need(calloc(1, sizeof *p));

    *p = (struct memory_process){ .next = disk->share.processes,
                                  .store = s,
                                  .writer = s->writer,
                                  .started_ns = now_ns,
                                  .seen_ns = now_ns };
    return disk->share.processes = p;
}

struct memory_process *memory_process_of(struct memory_disk *disk, uint64_t writer)
{
    struct memory_process *p = disk->share.processes;

    while (p != NULL && p->writer != writer)
        p = p->next;
    return p;
}

void memory_process_remove(struct memory_disk *disk, struct memory_process *p)
{
    struct memory_process **at = &disk->share.processes;

    memory_wait_remove(disk, p);
    memory_room_remove(&disk->share, p);
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    answer_free(&p->lane[0]);
    answer_free(&p->lane[1]);
    free(p);
}

bool memory_share_turn(struct memory_disk *disk, const struct due_beat *beat)
{
    struct memory_share *share = &disk->share;
    int64_t now_ns = memory_boottime_ns();
    size_t i = 0;

    while (i < share->n_turns && (share->turns[i].dead_keep_ns != beat->dead_keep_ns ||
                                  share->turns[i].dead_max != beat->dead_max))
        i++;
    if (i < share->n_turns && now_ns - share->turns[i].taken_ns < beat->turn_ns)
        return false;
    if (i == share->n_turns)
        share->turns = memory_need(realloc(share->turns, ++share->n_turns * sizeof *share->turns));
    share->turns[i] = (struct memory_turn){ .dead_keep_ns = beat->dead_keep_ns,
                                            .dead_max = beat->dead_max,
                                            .taken_ns = now_ns };
    return true;
}

bool memory_share_alive(const struct memory_disk *disk)
{
    for (const struct memory_process *p = disk->share.processes; p != NULL; p = p->next)
        if (p->store != NULL)
            return true;
    return false;
}

void memory_share_free(struct memory_disk *disk)
{
    struct memory_share *share = &disk->share;

    while (share->processes != NULL)
        memory_process_remove(disk, share->processes);
    while (share->n_undo > 0)
        undo_free(&share->undo[--share->n_undo]);
    free(share->undo);
    free(share->waits);
    free(share->settings);
    free(share->turns);
    free(share->passes);
    free(share->room);
    memory_jobs_free(&share->leased);
}
