/* read.h - reading back what is stored. */
#ifndef DUE__REDIS_READ_H
#define DUE__REDIS_READ_H

#include "record/record.h"
#include "redis/owner/owner.h"

/* Where in a topic: just behind the member of this score and id. */
struct due__redis_cursor {
    bool set;
    int64_t score;
    due_id id;
};

struct due__redis_stray {
    due_id id;
};

/* A member of the page that cannot be shown where it stands. */
struct due__redis_bad {
    size_t at;     /* its position in the page */
    bool nonsense; /* its bytes are whole, and the queue can do nothing with what they say */
};

/* The search for records that stand nowhere, once everything was shown. */
struct due__redis_sweep {
    bool over;          /* nothing is left to be done */
    bool counted;       /* there are more records than members */
    unsigned tries;     /* counts that were begun; then, how often the page was asked for */
    uint64_t stamp;     /* of the last batch before the count */
    redisReply *topics; /* their names */
    size_t at;          /* the next one to count */
    long long records;  /* */
    long long placed;   /* members so far */
    uint64_t link;      /* the connection that the cursor is of */
    char cursor[24];    /* of the scan; empty: it begins */
    size_t found;       /* and set aside, to be told */
};

/* How far the reading back has come. */
struct due__redis_load {
    bool begun;
    bool ended;
    uint64_t losses;               /* those that had been when it began: since then, it is over */
    uint64_t writes;               /* those that had been at the last call */
    bool stale;                    /* something was committed since the page was asked for */
    bool calm;                     /* nothing was committed during the last call */
    redisReply *topics;            /* their names */
    size_t topic;                  /* which one */
    struct due__redis_topic *line; /* its zset */
    struct due__redis_cursor cursor;
    uint64_t rank;        /* members up to the cursor */
    uint64_t asked;       /* rank of the page of ids that was asked for last */
    size_t page;          /* members asked for */
    redisReply *ids;      /* the page that is being shown, */
    redisReply *jobs;     /* its records, */
    redisReply *entries;  /* their entries, or NULL, */
    redisReply *owners;   /* the ids that the keys of its records lead to; NULL: none names one, */
    bool whose;           /* or they were not asked for yet, */
    size_t owner;         /* the next of them, */
    size_t at;            /* and the next one to show */
    bool last;            /* it is the topic's last page */
    redisReply *next_ids; /* the page after it, its records asked for or not */
    size_t next_asked;    /* how many it could have been */
    size_t seen_bytes, seen_jobs;
    size_t newer;  /* records of a newer version that were passed over */
    size_t passed; /* members behind the cursor that were not shown, up to the rank */
    struct due__redis_bad *bad;
    size_t n_bad, bad_room;
    size_t bad_passed; /* those of them that are behind the cursor */
    struct {
        struct due__redis_cursor cursor;
        uint64_t rank;
        size_t passed;
    } before;                           /* the page: there it begins again if it is given up */
    int blocked;                        /* why a topic could not be read; 0: all could */
    size_t damaged;                     /* of those of the page */
    size_t set_aside;                   /* in this load */
    size_t put_back;                    /* likewise */
    struct due__redis_topic **unlisted; /* topics to be read besides, once the sweep is over */
    size_t n_unlisted, unlisted_room;
    size_t hidden;                   /* jobs of other openings that stood there */
    bool scanned;                    /* all records were looked through */
    char scan[24];                   /* how far; empty: it begins */
    char scan_next[24];              /* and once the page was shown */
    uint64_t scan_link;              /* the connection that it is of */
    struct due__redis_stray *strays; /* jobs moved behind the cursor before they were shown */
    size_t n_strays, stray_room, stray;
    struct due__redis_sweep sweep;
};

/* How far the showing of kept keys has come. */
struct due__redis_kept {
    bool ended;
    uint64_t losses;  /* as in the load */
    char cursor[24];  /* of the scan; empty: it begins */
    uint64_t link;    /* the connection that it is of: on another server it means nothing */
    uint64_t stamp;   /* of the last batch before the page */
    redisReply *page; /* keys and scores of the scan, until they have been shown */
    size_t at;        /* the first that was not */
};

/* ---- load.c */
int due__redis_load(struct due__redis *s, int rewind, size_t max, due_store_visit *visit, void *ctx,
                    int64_t until_ns);
void due__redis_load_forget(struct due__redis *s);

/* ---- show.c */
/* Show the page from where it stands.  0: all of it is done. */
int due__redis_show_page(struct due__redis *s, size_t *shown, due_store_visit *visit, void *ctx);

/* ---- end.c */
/* All topics were read.  0: the load is over; 1: more is left, perhaps topics. */
int due__redis_load_end(struct due__redis *s, size_t *shown, size_t max, due_store_visit *visit,
                        void *ctx, int64_t until_ns);

/* ---- cursor.c */
/* The job is to be shown at the end.  False: no memory. */
bool due__redis_load_stray(struct due__redis *s, due_id id);
int due__cursor_compare(int64_t score, const unsigned char *id, const struct due__redis_cursor *c);
void due__redis_load_count(struct due__redis *s, const due_change *changes, size_t n,
                           uint64_t number);

/* ---- find.c */
/* Of the topic @line, or one of the dead, if it is not NULL. */
int due__redis_read_job(const struct due__redis *s, const struct due__redis_topic *line,
                        due_record *record, struct due__record_room *room, const redisReply *id,
                        const redisReply *job, const redisReply *entry);
int due__redis_find(struct due__redis *s, due_id id, due_store_visit *visit, void *ctx,
                    int64_t until_ns);

/* ---- key_holder.c */
/* Have what the keys of the page lead to.  0; as a flight. */
int due__redis_whose(struct due__redis *s, int64_t until_ns);
/* Of the page's next job what its key leads to; NULL: it names none. */
const redisReply *due__redis_next_owner(const struct due__redis_load *l);
/* The record has no key unless that leads to its job. */
void due__redis_judge_key(due_record *record, const redisReply *owner);

/* ---- scan.c */
/* Ask for the next page of the names of all records.  0: they are in the load's next_ids; and then
 * they were shown. */
int due__redis_scan(struct due__redis *s, int64_t until_ns);
void due__redis_scanned(struct due__redis_load *l);

/* ---- retained_keys.c */
int due__redis_kept(struct due__redis *s, int rewind, size_t max, due_store_visit_key *visit,
                    void *ctx, int64_t until_ns);
void due__redis_kept_forget(struct due__redis *s);

/* ---- topic_settings.c */
/* As topics() of store.h, but that a loss is left to s->lost, and then nothing is shown. */
int due__redis_settings(struct due__redis *s, due_store_visit_topic *visit, void *ctx,
                        int64_t until_ns);

/* ---- quarantine.c */
/* Set the page's damaged members aside, and put the others that it does not show back into their
 * place.  Moves nothing if that is refused. */
int due__redis_set_aside(struct due__redis *s, int64_t until_ns);

/* ---- orphans.c */
/* Go on with it by one step: the count, or a page.  1: more is left; 0: it is over, done or given
 * up.  DUE_EAGAIN, DUE_ESTORE, DUE_ENOMEM: to be called again. */
int due__redis_sweep(struct due__redis *s, int64_t until_ns);
void due__redis_sweep_forget(struct due__redis *s);

/* ---- stranded.c */
/* A job that stands where only a shared queue has any. */
struct due__redis_stranded {
    const redisReply *id, *record, *entry;
};
/* Is it one?  Three commands, to be asked for each. */
void due__redis_ask_stranded(struct due__redis *s, const struct due__redis_topic *t,
                             const redisReply *id);
bool due__redis_is_stranded(redisReply *const *answers);
/* They wait again, and are to be read.  0, also if it is refused; or an error: call it again. */
int due__redis_put_back(struct due__redis *s, const struct due__redis_stranded *jobs, size_t n,
                        int64_t until_ns);

/* ---- unlisted.c */
/* If the load has not read the topic, it is to do so at its end.  0, or DUE_ENOMEM. */
int due__redis_unread(struct due__redis *s, struct due__redis_topic *t);
/* Enter those into `topics`.  0, also if it is refused; or an error: to be called again. */
int due__redis_enter_unlisted(struct due__redis *s, int64_t until_ns);

#endif
