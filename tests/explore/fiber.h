/* fiber.h - stacks, and changing from one to another. */
#ifndef DUE__EXPLORE_FIBER_H
#define DUE__EXPLORE_FIBER_H

#define STACK_BYTES (256u << 10)

/* Where a stack stands while another one runs. */
struct stack {
    void *at;
    void *memory; /* STACK_BYTES; NULL: made when it is prepared */
};

/* A stack on which @entry begins when it is first changed to; @entry never returns. */
void stack_prepare(struct stack *s, void (*entry)(void));

/* Leave @from, go on where @to was left. */
void stack_change(struct stack *from, struct stack *to);

#endif
