/* redis_share_faults.h - faults in the scripts of a shared queue, each of which redis_share_model
 * has to see.
 *
 * What half of a torn script leaves is not seen there, since a script is done as a whole (see
 * test_share_group_torn), nor that more are rung than need be.  That an alarm which is over counts
 * takes two who fail.
 */
#ifndef REDIS_SHARE_FAULTS_H
#define REDIS_SHARE_FAULTS_H

#include "lab/redis/share_lab.h"

#define COVERS "if wakes then\ncover_all(1)\nend\n"

static const struct share_fault share_faults[] = {
    { "a put rings nobody", { { COVERS, "" } } },
    { "a put rings before it writes",
      { { COVERS, "" },
        { "if n_refused == jobs then\ncall('HDEL'",
          COVERS "if n_refused == jobs then\ncall('HDEL'" } } },
    { "no chain: who claims rings nobody for the next", { { "cover_all(many)", "" } } },
    { "an edit rings nobody", { { "set_moved_heads()\ncover_all(1)\n", "set_moved_heads()\n" } } },
    { "no guard: nobody is told that he rang",
      { { "return {stamp, now, status, rang}", "return {stamp, now, status, 0}" } } },
    { "who was rung counts as coming for ever",
      { { "form('(%.0f', GRACE - clock))\nif under_way", "'(0')\nif under_way" } } },
    { "no leader is appointed", { { "ring(w, head, head)\n", "" } } },
    { "no deputy is appointed", { { "ring(w, head + GRACE, head + GRACE)\n", "" } } },
    { "who waits does not stand in w",
      { { "call('ZADD', w, form('%.0f', alarm or SLEEP + clock), me)\n", "" } } },
    { "who comes stays in w",
      { { "if others then\ncall('ZREM', KEYS[5], me)\nfor i = W + 1, T do\n"
          "call('ZREM', KEYS[i], me)\nend\nend\n",
          "" },
        { "if not others and\n", "if false and\n" } } },
    { "the end of a lease is not compared",
      { { "ends[i] ~= lease_end and\nnot (ends[i] and tonumber(ends[i]) == tonumber(lease_end))",
          "not ends[i]" } } },
    { "the number is not compared",
      { { "tonumber(writer[2] or 0), number == last, nil", "tonumber(writer[2] or 0), false, nil" },
        { "if number < last then\n", "if false then\n" } } },
    { "a stamp is only the clock",
      { { "math.max(highest + 1, seen, now)", "math.max(seen, now)" } } },
    { "a job that is claimed waits still",
      { { "if #due > 0 then\nunstand_chosen(topic, due)\nend\n", "" } } },
    { "a lease is over a millisecond early",
      { { "if not first or first > clock then\nreturn ids, over\nend",
          "if not first or first > clock + 1000 then\nreturn ids, over\nend" },
        { "call('ZRANGEBYSCORE', l, '-inf', clock_text,",
          "call('ZRANGEBYSCORE', l, '-inf', form('%.0f', clock + 1000)," } } },
    { "a lease that is over is no head",
      { { "head = first_lease[topic] or first_of(KEYS[L + topic]) or math.huge",
          "head = math.huge" } } },
    { "an earlier job does not lower the head",
      { { "if first and not (head and tonumber(head) <= tonumber(first)) then",
          "if first and not head then" } } },
    { "an edit does not lower the head", { { "lower_head(where, ARGV[at + 5])\n", "" } } },
    { "who follows in a group is no news", { { "return again or #places > 0", "return false" } } },
    { "nobody follows in a group",
      { { "return groups, follow(topic, led, by)", "return groups, false" } } },
    { "a pass is given back by whoever waits again",
      { { "call('HSET', gh, unpack(named))\n", "" } } },
    { "a claim does not look at the limit",
      { { "limit and limit - call('ZCARD', l) or math.huge, nil", "math.huge, nil" } } },
    { "a claim does not look at a pause", { { "if paused then\nreturn 0\nend\n", "" } } },
    { "who ends a job of a limited topic rings nobody",
      { { "touched[topic] or limit or followed or", "touched[topic] or followed or" } } },
    { "a topic that is opened rings nobody",
      { { "settings[topic])\nset_exact_head(topic)\n", "settings[topic])\n" } } },
    { "a lease is not extended", { { "call('ZADD', l, 'XX', unpack(args))\n", "" } } },
    { "by priority, leases that are over come first",
      { { "if i and not (place and is_behind(rank(over[i], ids[i]), place)) then",
          "if i then" } } },
};

#endif
