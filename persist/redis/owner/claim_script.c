/* claim_script.c - taking over a queue on a full server, which refuses whatever stands in a MULTI
 * (script.c).  It looks at the fence itself.
 */
#include "redis/owner/owner.h"

static const char claim_script[] =
    "if (redis.call('GET',KEYS[1]) or '')~=ARGV[1] or (redis.call('GET',KEYS[2]) or '')~=ARGV[2] "
    "then return 0 end "
    "local unpack=unpack or table.unpack "
    "redis.call('DEL',KEYS[2]) "
    "redis.call('SET',KEYS[1],ARGV[3]) "
    "redis.call('SET',KEYS[2],ARGV[4],'PX',ARGV[5]) "
    "redis.call('HSET',KEYS[3],unpack(ARGV,8)) "
    "redis.call('HSET',KEYS[4],ARGV[6],ARGV[7]) "
    "return 1";

void due__script_claim(struct due__redis *s, const struct due__redis_survey *was,
                       const char *const *meta, size_t n_meta)
{
    due__link_command(s->link, 3 + 4 + 7 + n_meta);
    due__link_text(s->link, "EVAL");
    due__link_text(s->link, claim_script);
    due__link_number(s->link, 4);
    due__link_text(s->link, s->keys.fence);
    due__link_text(s->link, s->keys.owner);
    due__link_text(s->link, s->keys.meta);
    due__link_text(s->link, s->keys.writers);
    due__link_text(s->link, was->fence);
    due__link_text(s->link, was->owner);
    due__link_text(s->link, s->fence);
    due__link_text(s->link, s->owner);
    due__link_number(s->link, s->set.lease_ns / 1000000);
    due__link_number(s->link, (int64_t)s->writer);
    due__link_number(s->link, (int64_t)s->landed);
    for (size_t i = 0; i < n_meta; i++)
        due__link_text(s->link, meta[i]);
    due__redis_guard(s);
}
