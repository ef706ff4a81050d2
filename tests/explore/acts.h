/* acts.h - what the threads of scenarios do; @arg from as_arg(). */
#ifndef DUE__EXPLORE_ACTS_H
#define DUE__EXPLORE_ACTS_H

#include "lab.h"

void *as_arg(unsigned n);

void act_put_now(void *arg);
void act_put_two(void *arg);
void act_put_later(void *arg);
void act_take_now(void *arg);
void act_take_one(void *arg);
void act_take_two(void *arg);
void act_take_within(void *arg);
void act_take_of_within(void *arg);
void act_cancel(void *arg);
void act_move_later(void *arg);
void act_move_sooner(void *arg);
void act_call_proxy(void *arg);

#endif
