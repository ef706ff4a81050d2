/* memory_share.h - a memory disk whose jobs many stores share: what it keeps besides the jobs.
 *
 * What is claimed lies in a heap of its own, where a job's time is the end of its lease; when that
 * is over it is due again like any other.  Nothing here waits, and no thread runs.
 *
 * Guards  all of it is guarded by the disk's lock.
 */
#ifndef MEMORY_SHARE_H
#define MEMORY_SHARE_H

#include "due/store_shared.h"
#include "lab/memory_jobs.h"
#include "lab/memory_keys.h"

struct memory_disk;
struct memory_store;

#define MEMORY_ANY (SIZE_MAX - 1) /* the topic of who waits for whichever comes */

/* One job that was claimed. */
struct memory_claimed {
    due_id id;
    uint64_t held;
    int64_t lapsed_ns;
};

/* What a lane was answered last. */
struct memory_answer {
    uint64_t number; /* 0: nothing yet */
    uint64_t stamp;
    int64_t now_ns;
    int *results;
    size_t n;
    struct memory_claimed *claimed;
    size_t n_claimed;
};

/* One who has joined.  Stays when its store is gone, unless that has left. */
struct memory_process {
    struct memory_process *next;
    struct memory_store *store; /* NULL: killed, or gone without leaving */
    uint64_t writer;
    int64_t started_ns;
    int64_t seen_ns;
    struct memory_answer lane[2];
};

/* What holds back the jobs of a topic. */
struct memory_setting {
    bool paused;
    int64_t held_max; /* 0: any number */
};

enum memory_wait_kind {
    MEMORY_RUNG,  /* then, and has not come since */
    MEMORY_ALARM, /* comes by itself then */
    MEMORY_SLEEPS /* since then, and until it is rung */
};

/* One who waits, in the order in which they came. */
struct memory_wait {
    struct memory_process *who;
    size_t topic;
    enum memory_wait_kind kind;
    int64_t at_ns;
};

/* How to take one exchange back. */
struct memory_share_undo {
    uint64_t writer;
    int lane;
    struct memory_answer answer;     /* the one before it */
    struct memory_setting *settings; /* as they were */
    size_t n_settings;
    size_t n;
    size_t room;
    due_id *ids;
    struct memory_job **was;  /* NULL: was not there */
    struct memory_key **keys; /* as they were, one after the other */
    size_t n_keys;
};

/* What those who ask for the same do one after the other. */
struct memory_turn {
    int64_t dead_keep_ns;
    uint64_t dead_max;
    int64_t taken_ns; /* on the boottime clock */
};

/* One who waits for room, in the order in which they came. */
struct memory_room {
    struct memory_process *who;
    bool rung; /* at that time, and has not come since */
    int64_t at_ns;
};

struct memory_share {
    struct memory_jobs leased; /* a job's place: its topic, the end of its lease */
    struct memory_process *processes;
    uint64_t stamp;
    struct memory_wait *waits;
    size_t n_waits;
    size_t waits_room;
    struct memory_share_undo *undo;
    size_t n_undo;
    struct memory_setting *settings; /* by topic; those behind the end hold back nothing */
    size_t n_settings;
    struct memory_turn *turns;
    size_t n_turns;
    due_id *passes; /* jobs that may have their groups' passes: memory_share_groups.c */
    size_t n_passes;
    uint64_t capacity;        /* 0: none */
    bool by_rank;             /* the order in which it is shared is by priority */
    bool made;                /* it is shared, or was last */
    struct memory_room *room; /* who waits for it */
    size_t n_room;
};

/* ---- Jobs ---- */

/* A job wherever it is; NULL: there is none. */
struct memory_job *memory_disk_job(struct memory_disk *disk, due_id id);
/* One change at this time.  Its answer; @full: no more jobs are taken; *shut: an earlier one of the
 * exchange found no room. */
int memory_share_change(struct memory_disk *disk, const due_change *change, int64_t now_ns,
                        bool full, bool *shut);
/* Up to @most due jobs of a topic, with a lease, added to the answer. */
size_t memory_share_claim(struct memory_disk *disk, struct memory_answer *answer, size_t topic,
                          size_t most, int64_t lease_ns);
/* When the next job of a topic (MEMORY_ANY: of all) is due; DUE_FOREVER: never. */
int64_t memory_share_head(struct memory_disk *disk, size_t topic);
/* How many of a topic's jobs that nobody holds are due; counts no further than @most. */
size_t memory_share_due(struct memory_disk *disk, size_t topic, int64_t now_ns, size_t most);
void memory_share_census(struct memory_disk *disk, size_t topic, int64_t now_ns,
                         struct due_census_topic *count);
/* Leases and processes are forgotten: somebody owns the jobs alone. */
void memory_share_fold(struct memory_disk *disk);

/* ---- Keys ---- */

/* Whose it is, as the verb holder() answers. */
int memory_share_holder(struct memory_disk *disk, const void *key, size_t len, int64_t now_ns,
                        due_id *id);
int memory_share_verb_holder(due_store *store, const void *key, size_t len, due_id *id,
                             int64_t until_ns);
/* Is the key that the record names its job's? */
bool memory_share_has_key(struct memory_disk *disk, const due_record *record);
/* Could it have its key? */
bool memory_share_key_free(struct memory_disk *disk, const due_change *change, int64_t now_ns);
/* A job that is put has its key from here on, if it has one.  False: that is another's. */
bool memory_share_take_key(struct memory_disk *disk, const due_change *change, int64_t now_ns);
/* A job is gone: its key is kept until then, or free (0). */
void memory_share_end_key(struct memory_disk *disk, const due_record *record, int64_t until_ns);
/* As they were before; without a disk they are only forgotten. */
void memory_share_keys_back(struct memory_disk *disk, struct memory_share_undo *undo);

/* ---- What holds back topics: for an owner, too ---- */

struct memory_setting memory_setting_of(const struct memory_disk *disk, size_t topic);
/* As a change says. */
void memory_settings_change(struct memory_disk *disk, const due_change *change);
/* All as they are, to be put back or freed. */
struct memory_setting *memory_settings_copy(const struct memory_disk *disk, size_t *n);
void memory_settings_back(struct memory_disk *disk, struct memory_setting *settings, size_t n);

/* ---- Groups ---- */

/* A job enters, perhaps with a pass. */
void memory_share_note_pass(struct memory_disk *disk, const struct memory_job *job);
/* The first job of a topic that waits, behind a place (NULL: from the beginning), and that none of
 * its group keeps back; NULL: there is none. */
struct memory_job *memory_share_waiting(struct memory_disk *disk, size_t topic,
                                        const struct memory_place *behind);
bool memory_share_same_group(const struct memory_job *a, const struct memory_job *b);
void memory_share_fold_passes(struct memory_disk *disk);

/* ---- By priority ---- */

/* It is shared from now on in the order that is asked for, or as it is.  DUE_EINVAL: it is so
 * already, in the other, and somebody shares it or it has jobs. */
int memory_share_order(struct memory_disk *disk, const struct due_store_open *how,
                       due_error *error);
/* The jobs of a topic that may be claimed, but for a limit, of the highest priority first: those of
 * leases that are over, too.  Their number in *n; the array is the caller's. */
struct memory_job **memory_share_ranked(struct memory_disk *disk, size_t topic, int64_t now_ns,
                                        size_t *n);

/* ---- Taking back ---- */

void memory_share_undo_begin(struct memory_disk *disk, const struct memory_process *p, int lane);
void memory_share_lose(struct memory_disk *disk, size_t exchanges);

/* ---- Processes ---- */

struct memory_process *memory_process_new(struct memory_disk *disk, struct memory_store *s,
                                          int64_t now_ns);
/* Its own; NULL: the disk has lost it. */
struct memory_process *memory_process_of(struct memory_disk *disk, uint64_t writer);
void memory_process_remove(struct memory_disk *disk, struct memory_process *p);
/* Takes the turn, if nobody has in that time. */
bool memory_share_turn(struct memory_disk *disk, const struct due_beat *beat);
bool memory_share_alive(const struct memory_disk *disk); /* anybody is there */
void memory_share_free(struct memory_disk *disk);

/* ---- Who waits ---- */

void memory_wait_remove(struct memory_disk *disk, const struct memory_process *who);
/* Somebody waits who can be counted on. */
bool memory_wait_others(const struct memory_disk *disk, size_t topic, int64_t now_ns);
/* @who waits for a topic whose head is that.  Answers its alarm; 0: until rung. */
int64_t memory_wait_enter(struct memory_disk *disk, struct memory_process *who, size_t topic,
                          int64_t head_ns, int64_t now_ns);
/* Sees to it that somebody comes for each head, but rings no more than so many for one.  Answers
 * how many were rung. */
uint32_t memory_wait_cover(struct memory_disk *disk, int64_t now_ns, size_t most);
/* Rings somebody.  False: nobody hears it, and he is struck off. */
bool memory_ring(struct memory_disk *disk, struct memory_process *who, int64_t alarm_ns,
                 int64_t now_ns);

/* ---- Room ---- */

/* As due_store_open.capacity says. */
void memory_room_set(struct memory_share *share, uint64_t capacity);
bool memory_room_any(const struct memory_disk *disk);
void memory_room_remove(struct memory_share *share, const struct memory_process *who);
/* A job of @who has got in: it has come, if it was rung. */
void memory_room_came(struct memory_share *share, const struct memory_process *who);
/* As the beat says.  How many were rung. */
uint32_t memory_room_beat(struct memory_disk *disk, struct memory_process *who,
                          struct due_beat *beat, int64_t now_ns);
/* As many are rung as there is room for: how many. */
uint32_t memory_room_cover(struct memory_disk *disk, const struct memory_process *by,
                           int64_t now_ns);

#endif
