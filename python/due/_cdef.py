"""Made by make_cdef from the headers of libdue: do not change it by hand."""

VERSION = (0, 1, 0)

CDEF = """
int due_version(void);
const char *due_version_text(void);
enum due_errno { DUE_EINVAL = (-22), DUE_ENOMEM = (-12), DUE_EAGAIN = (-11), DUE_ETIMEDOUT =
    (-110), DUE_ECLOSED = (-108), DUE_ENOENT = (-2), DUE_EBUSY = (-16), DUE_EEXIST = (-17),
    DUE_EDEADLK = (-35), DUE_EFORK = (-10), DUE_ENOTSUP = (-95), DUE_ELIMIT = (-75), DUE_ESYS =
    (-5), DUE_ESTALE = (-116), DUE_EINDOUBT = (-115), DUE_EFENCED = (-130), DUE_ESTORE = (-107),
    DUE_ENOSPC = (-28), DUE_EDURABILITY = (-37), DUE_EACCES = (-13), DUE_EVERSION = (-71),
    DUE_ELOST = (-61), DUE_ECORRUPT = (-74), };
const char *due_error_name(int code);
const char *due_error_text(int code);
typedef struct due_error { char text[192]; char hint[192]; } due_error;
enum due_clock_kind { DUE_CLOCK_MONOTONIC = 0, DUE_CLOCK_BOOTTIME, DUE_CLOCK_REALTIME };
typedef struct due_clock due_clock;
due_clock *due_clock_manual(int64_t start_ns) ;
int due_clock_advance(due_clock *clock, int64_t by_ns) ;
int due_clock_turn_to(due_clock *clock, int64_t to_ns) ;
int64_t due_clock_now(const due_clock *clock) ;
int due_clock_free(due_clock *clock);
typedef struct due_queue due_queue;
typedef struct due_id { unsigned char byte[16]; } due_id;
int due_id_equal(due_id a, due_id b);
char *due_id_format(due_id id, char text[33]) ;
int due_id_parse(const char *text, due_id *id) ;
enum due_retry_kind { DUE_RETRY_INHERIT = 0, DUE_RETRY_FIXED, DUE_RETRY_EXPONENTIAL,
    DUE_RETRY_LADDER };
typedef struct due_retry { enum due_retry_kind kind; uint32_t attempts_max; int64_t delay_ns;
    int64_t cap_ns; uint32_t rungs; uint32_t reserved[3]; int64_t rung_ns[16]; } due_retry;
enum due_key_policy { DUE_KEY_REFUSE = 0, DUE_KEY_REPLACE, DUE_KEY_EARLIEST, DUE_KEY_DEBOUNCE };
enum due_repeat { DUE_REPEAT_SKIP = 0, DUE_REPEAT_ONCE, DUE_REPEAT_AFTER };
enum due_spec_flag { DUE_SPEC_AT = 1 };
typedef struct due_extra { size_t size; const void *headers; size_t headers_len; const due_retry
    *retry; int64_t ttl_ns; int64_t expires_ns; const void *key; size_t key_len; int64_t
    keep_key_ns; enum due_key_policy on_key; enum due_repeat repeat; int64_t every_ns; const void
    *group; size_t group_len; } due_extra;
typedef struct due_spec { size_t size; int64_t delay_ns; int64_t at_ns; const void *data; size_t
    len; void *ptr; int topic; int priority; unsigned flags; const due_extra *more; } due_spec;
typedef struct due_job { due_id id; const void *data; size_t len; void *ptr; int64_t deadline_ns;
    int64_t lateness_ns; int topic; int priority; due_queue *queue; uint32_t attempts; uint32_t
    failures; uint64_t token; const void *headers; size_t headers_len; void *pool; uint64_t round;
    uint64_t place; uint64_t reserved[2]; } due_job;
typedef struct due_info { due_id id; int64_t deadline_ns; size_t len; int topic; int priority; int
    ready; uint32_t reserved[7]; } due_info;
enum due_cause { DUE_CAUSE_BURIED = 1, DUE_CAUSE_ATTEMPTS, DUE_CAUSE_EXPIRED };
typedef struct due_dead { due_id id; int64_t deadline_ns; int64_t died_ns; size_t len; int topic;
    int priority; uint32_t attempts; uint32_t failures; enum due_cause cause; char reason[48];
    uint32_t reserved[3]; } due_dead;
typedef struct due_allocator { void *(*alloc)(void *ctx, size_t size); void (*free)(void *ctx,
    void *memory, size_t size); void *ctx; } due_allocator;
enum due_proxies { DUE_PROXIES_ADAPTIVE = 0, DUE_PROXIES_ALWAYS, DUE_PROXIES_NEVER };
enum due_order { DUE_ORDER_DEADLINE = 0, DUE_ORDER_PRIORITY };
enum due_log_level { DUE_LOG_INFO = 0, DUE_LOG_WARNING, DUE_LOG_ERROR };
struct due_store;
struct due_event;
enum due_confirm { DUE_CONFIRM_SYNC = 0, DUE_CONFIRM_ASYNC };
enum due_share { DUE_OWNED = 0, DUE_SHARED };
typedef struct due_options { size_t size; const char *name; size_t capacity; size_t reserve; enum
    due_clock_kind clock; due_clock *manual; enum due_proxies proxies; enum due_order order;
    int64_t spin_ns; const due_allocator *allocator; void (*on_log)(void *ctx, enum due_log_level
    level, const char *text); void (*on_thread_start)(void *ctx, const char *name); void
    (*on_discard)(void *ctx, const due_job *job); void *ctx; void *log_ctx; void *thread_ctx; void
    *discard_ctx; void *event_ctx; void *settled_ctx; void *restore_ctx; int metrics; void
    (*on_event)(void *ctx, const struct due_event *event); int64_t lease_ns; due_retry retry;
    int64_t dead_keep_ns; size_t dead_max; int attempts_lazy; struct due_store *store; enum
    due_confirm confirm; int64_t store_timeout_ns; int64_t open_timeout_ns; size_t unsettled_max;
    size_t unsettled_bytes_max; void (*on_settled)(void *ctx, due_id id, int rc); void
    (*on_restore)(void *ctx, uint64_t restored, int finished); enum due_share share; size_t
    prefetch_max; } due_options;
int due_open(due_queue **queue, const due_options *options, due_error *error) ;
enum due_close_mode { DUE_CLOSE_DRAIN = 0, DUE_CLOSE_DISCARD };
int due_close(due_queue *q, enum due_close_mode mode, int64_t timeout_ns) ;
int due_free(due_queue *q);
int due_topic(due_queue *q, const char *name) ;
const char *due_topic_name(due_queue *q, int topic) ;
int64_t due_now(const due_queue *q) ;
int due_enqueue(due_queue *q, const due_spec *spec, int64_t timeout_ns, due_id *id) ;
int due_enqueue_at(due_queue *q, int64_t at_ns, void *ptr, due_id *id) ;
int due_enqueue_after(due_queue *q, int64_t delay_ns, void *ptr, due_id *id) ;
int due_enqueue_batch(due_queue *q, const due_spec *specs, size_t n, int64_t timeout_ns, due_id
    *ids) ;
const char *due_spec_error(const due_queue *q, const due_spec *spec) ;
int due_dequeue(due_queue *q, due_job *job, int64_t timeout_ns) ;
int due_reserve(due_queue *q, due_job *job, int64_t timeout_ns) ;
typedef struct due_take_options { size_t size; const int *topics; size_t topic_count; int64_t
    lease_ns; } due_take_options;
int due_take(due_queue *q, const due_take_options *options, due_job *jobs, size_t max, int64_t
    timeout_ns) ;
void due_job_done(due_job *job) ;
void due_jobs_done(due_job *jobs, size_t n) ;
int due_ack(due_job *job) ;
int due_ack_batch(due_job *jobs, size_t n, int *results) ;
int due_nack(due_job *job, int64_t delay_ns) ;
int due_snooze(due_job *job, int64_t delay_ns) ;
int due_bury(due_job *job, const char *reason) ;
int due_extend(due_job *job, int64_t lease_ns) ;
int due_topic_retry(due_queue *q, int topic, const due_retry *retry) ;
int due_kick(due_queue *q, due_id id) ;
int due_kick_all(due_queue *q, int topic, uint64_t *kicked) ;
int due_list_dead(due_queue *q, uint64_t *cursor, due_dead *dead, size_t max) ;
int due_clear_dead(due_queue *q, int topic, uint64_t *cleared) ;
int due_cancel(due_queue *q, due_id id, due_job *job) ;
int due_cancel_batch(due_queue *q, const due_id *ids, size_t n, int *results) ;
int due_id_of_key(due_queue *q, const void *key, size_t len, due_id *id) ;
int due_cancel_key(due_queue *q, const void *key, size_t len, due_job *job) ;
int due_reschedule(due_queue *q, due_id id, int64_t at_ns) ;
int due_promote(due_queue *q, due_id id) ;
enum due_set { DUE_SET_DATA = 1, DUE_SET_HEADERS = 2, DUE_SET_TIME = 4, DUE_SET_PRIORITY = 8,
    DUE_SET_RETRY = 16, DUE_SET_LIMIT = 32 };
int due_update(due_queue *q, due_id id, const void *data, size_t len) ;
int due_amend(due_queue *q, due_id id, const due_spec *spec, unsigned what) ;
int due_find(due_queue *q, due_id id, due_info *info) ;
int due_remaining(due_queue *q, due_id id, int64_t *ns) ;
int due_read(due_queue *q, due_id id, void *buffer, size_t size, size_t *len) ;
int due_peek(due_queue *q, due_info *info) ;
int due_list(due_queue *q, uint64_t *cursor, due_info *infos, size_t max) ;
int due_clear(due_queue *q, int topic, uint64_t *cleared) ;
int due_pause(due_queue *q, int topic) ;
int due_resume(due_queue *q, int topic) ;
int due_topic_limit(due_queue *q, int topic, size_t max_running) ;
int due_trim(due_queue *q) ;
int due_flush(due_queue *q, int64_t timeout_ns) ;
struct due_stats { uint64_t enqueued; uint64_t dequeued; uint64_t cancelled; uint64_t discarded;
    uint64_t waiting; uint64_t ready; uint64_t lent; uint64_t direct; uint64_t delegated; uint64_t
    proxy_calls; uint64_t rings; uint64_t heartbeats; uint64_t mended; uint64_t slots; uint64_t
    memory_bytes; uint64_t tenure_max_ns; uint64_t kept_bytes; uint64_t leased; uint64_t restored;
    uint64_t unsettled; uint64_t settled; uint64_t batches; uint64_t mirrored; uint64_t kept;
    uint64_t acked; uint64_t nacked; uint64_t retried; uint64_t lapsed; uint64_t buried; uint64_t
    kicked; uint64_t dead; uint64_t passed; uint64_t kept_back; int32_t loading; int32_t
    store_state; uint64_t repeated; uint64_t unsettled_bytes; uint64_t counter; uint64_t
    reserved[4]; };
int due_stats_read(due_queue *q, struct due_stats *stats) ;
int due_fd(due_queue *q) ;
int due_poll(due_queue *q, int64_t *next_ns) ;
int64_t due_next_deadline(due_queue *q) ;
int due_cron_next(const char *expression, const char *zone, int64_t after_ns, int64_t *next_ns) ;
const char *due_cron_error(const char *expression, const char *zone, size_t *at) ;
typedef struct due_record { due_id id; int64_t deadline_ns; int64_t until_ns; const char *topic;
    const void *data; size_t len; uint32_t attempts; uint32_t failures; int priority; const void
    *headers; size_t headers_len; const due_retry *retry; int64_t ttl_ns; int64_t expires_ns;
    const void *key; size_t key_len; int64_t keep_key_ns; const void *group; size_t group_len;
    int64_t every_ns; enum due_repeat repeat; enum due_cause cause; int64_t died_ns; const char
    *reason; const void *mark; size_t mark_len; } due_record;
enum due_change_kind { DUE_CHANGE_PUT = 1, DUE_CHANGE_MOVE, DUE_CHANGE_BURY, DUE_CHANGE_DROP,
    DUE_CHANGE_KEEP, DUE_CHANGE_FORGET, DUE_CHANGE_BEGIN, DUE_CHANGE_EXTEND, DUE_CHANGE_RELEASE,
    DUE_CHANGE_AMEND, DUE_CHANGE_TOPIC };
typedef struct due_change { enum due_change_kind kind; int is_new; int64_t was_ns; int was_dead;
    int was_kept; int64_t key_kept_ns; due_record record; uint64_t held; int64_t lease_ns; due_id
    from; int anew; int64_t paused; int64_t held_max; uint64_t dead_max; int keeps_pass; int
    keeps_room; int revokes; } due_change;
enum due_durability { DUE_DURABLE_UNKNOWN = 0, DUE_DURABLE_NONE, DUE_DURABLE_EVERYSEC,
    DUE_DURABLE_ALWAYS };
struct due_store_open { const char *name; int64_t until_ns; int64_t (*now)(void *clock); void
    *clock; void (*log)(void *queue, enum due_log_level level, const char *text); void *queue;
    uint64_t writer_min; uint64_t capacity; uint64_t by_priority; uint64_t reserved[1]; };
struct due_store_info { uint64_t writer; size_t batch_changes; size_t batch_bytes; int64_t
    renew_ns; enum due_durability durability; uint64_t jobs; size_t payload_max; int put_again;
    int64_t held_ns; uint64_t capacity; uint64_t by_priority; uint64_t reserved[2]; };
typedef int due_store_visit(void *ctx, const due_record *record);
typedef int due_store_visit_key(void *ctx, const void *key, size_t len, due_id id, int64_t
    until_ns);
typedef int due_store_visit_topic(void *ctx, const char *topic, int paused, int64_t held_max);
struct due_store_stats { uint64_t batches; uint64_t resent; uint64_t connects; uint64_t bytes_out;
    uint64_t bytes_in; uint64_t quarantined; int64_t round_trip_ns; enum due_durability
    durability; int connected; uint64_t reserved[4]; };
typedef struct due_store due_store;
struct due_shared_verbs;
struct due_store_verbs { size_t size; int (*open)(due_store *s, const struct due_store_open *how,
    struct due_store_info *info, due_error *error); int (*ready)(due_store *s, int64_t until_ns);
    int (*commit)(due_store *s, const due_change *changes, size_t n, uint64_t number, int64_t
    until_ns); int (*prepare)(due_store *s, const due_change *changes, size_t n, uint64_t number);
    int (*send)(due_store *s, uint64_t number, int64_t until_ns); int (*load)(due_store *s, int
    rewind, size_t max, due_store_visit *visit, void *ctx, int64_t until_ns); int
    (*find)(due_store *s, due_id id, due_store_visit *visit, void *ctx, int64_t until_ns); int
    (*keys)(due_store *s, int rewind, size_t max, due_store_visit_key *visit, void *ctx, int64_t
    until_ns); int (*renew)(due_store *s, int64_t *held_ns, int64_t until_ns); int
    (*close)(due_store *s, int64_t until_ns); void (*interrupt)(due_store *s); void
    (*stats)(due_store *s, struct due_store_stats *stats); void (*free)(due_store *s); const
    struct due_shared_verbs *shared; size_t change_size; int (*topics)(due_store *s,
    due_store_visit_topic *visit, void *ctx, int64_t until_ns); };
struct due_store { const struct due_store_verbs *verbs; };
typedef struct due_histogram { uint64_t count; uint64_t sum_ns; uint64_t bucket[297]; }
    due_histogram;
int64_t due_histogram_bound(unsigned bucket);
unsigned due_histogram_bucket(int64_t ns);
int64_t due_histogram_quantile(const due_histogram *h, double part) ;
void due_histogram_add(due_histogram *to, const due_histogram *from) ;
struct due_topic_stats { uint64_t enqueued; uint64_t restored; uint64_t delivered; uint64_t
    dequeued; uint64_t acked; uint64_t nacked; uint64_t retried; uint64_t died; uint64_t expired;
    uint64_t kicked; uint64_t cancelled; uint64_t discarded; uint64_t kept; uint64_t delayed;
    uint64_t ready; uint64_t leased; uint64_t dead; int64_t oldest_ns; uint64_t reserved[4]; };
int due_topic_stats_read(due_queue *q, int topic, struct due_topic_stats *stats) ;
int due_topic_measure(due_queue *q, int topic) ;
int due_topic_durations(due_queue *q, int topic, due_histogram *late, due_histogram *held) ;
struct due_metrics { struct due_stats stats; int64_t now_ns; int64_t oldest_ns; int64_t next_ns;
    int64_t heartbeat_ns; due_histogram late; due_histogram held; int stored; struct
    due_store_stats store; uint64_t delivered; uint64_t expired; uint64_t reserved[2]; };
int due_metrics_read(due_queue *q, struct due_metrics *metrics) ;
int due_metrics_write(due_queue *q, char *buffer, size_t size) ;
struct due_queue_census { uint64_t delayed; uint64_t ready; uint64_t leased; uint64_t dead;
    int64_t now_ns; int64_t oldest_ns; int64_t head_ns; uint64_t processes; uint64_t reserved[6];
    };
int due_census(due_queue *q, int topic, struct due_queue_census *census, int64_t timeout_ns) ;
typedef struct due_process { uint64_t number; char host[128]; int64_t pid; int64_t started_ns;
    int64_t seen_ns; uint64_t held; int32_t waits; int32_t self; uint64_t reserved[4]; }
    due_process;
int due_processes(due_queue *q, uint64_t *cursor, due_process *processes, size_t max, int64_t
    timeout_ns) ;
int due_census_write(due_queue *q, char *buffer, size_t size, int64_t timeout_ns) ;
enum due_event_kind { DUE_EVENT_PRODUCED = 1, DUE_EVENT_RESTORED, DUE_EVENT_READY,
    DUE_EVENT_DELIVERED, DUE_EVENT_ACKED, DUE_EVENT_CANCELLED, DUE_EVENT_DISCARDED,
    DUE_EVENT_KEPT, DUE_EVENT_RETRIED, DUE_EVENT_DEAD, DUE_EVENT_KICKED, DUE_EVENT_REPEATED };
typedef struct due_event { enum due_event_kind kind; due_id id; int topic; int priority; int64_t
    at_ns; int64_t deadline_ns; uint32_t attempts; uint32_t failures; enum due_cause cause; int
    leased; uint32_t reserved[4]; } due_event;
const char *due_event_name(enum due_event_kind kind);
enum due_answer_kind { DUE_ANSWER_NONE = 0, DUE_ANSWER_ACK, DUE_ANSWER_NACK, DUE_ANSWER_SNOOZE,
    DUE_ANSWER_BURY };
typedef struct due_answer { enum due_answer_kind kind; int64_t delay_ns; char why[48]; uint64_t
    reserved[2]; } due_answer;
typedef void due_handler(void *ctx, const due_job *job, due_answer *answer);
typedef struct due_workers due_workers;
typedef struct due_workers_options { size_t size; int64_t lease_ns; int64_t extend_max_ns; size_t
    in_flight_max; const char *name; } due_workers_options;
int due_workers_start(due_workers **workers, due_queue *q, const int *topics, size_t topic_count,
    size_t threads, due_handler *handler, void *ctx, const due_workers_options *options) ;
int due_workers_stop(due_workers *workers, int64_t timeout_ns) ;
int due_workers_free(due_workers *workers);
struct due_workers_stats { uint64_t threads; uint64_t running; uint64_t idle; uint64_t ahead;
    uint64_t handled; uint64_t acked; uint64_t retried; uint64_t buried; uint64_t lost; uint64_t
    unanswered; uint64_t extended; uint64_t given_back; uint64_t reserved[8]; };
int due_workers_stats_read(due_workers *workers, struct due_workers_stats *stats) ;
int due_job_stopping(const due_job *job) ;
struct due_figures_head { char magic[8]; uint32_t version; uint32_t head_bytes; uint64_t
    set_bytes; uint64_t number; uint64_t reserved[4]; };
struct due_figures_topic { char name[256]; struct due_topic_stats stats; };
struct due_figures_pool { char name[72]; struct due_workers_stats stats; };
struct due_figures { uint64_t number; int64_t pid; int64_t opened_ns; int64_t written_ns; int64_t
    monotonic_ns; int64_t next_ns; int64_t now_ns; int64_t oldest_ns; uint32_t closed; uint32_t
    measured; uint32_t stored; uint32_t topics; uint32_t topics_here; uint32_t pools_here;
    uint64_t reserved[8]; char queue[72]; struct due_stats stats; due_histogram late;
    due_histogram held; struct due_figures_pool pool[16]; struct due_figures_topic topic[128]; };
int due_figures_open(due_queue *q, const char *path) ;
typedef struct due_store due_store;
int due_sqlite_open(due_store **store, const char *path, const void *options, due_error *error);
void due_sqlite_free(due_store *store);
int due_redis_open(due_store **store, const char *url, const void *options, due_error *error);
void due_redis_free(due_store *store);
"""
