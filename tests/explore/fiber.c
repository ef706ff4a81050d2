/* fiber.c - stacks of simulated threads.
 *
 * Changing stacks is most of what an execution costs, so on x86-64 it is a dozen instructions: the
 * registers a function must keep are pushed, the stack pointers exchanged, the registers popped.
 * Elsewhere it is the C library's swapcontext(), which makes system calls.
 */
#define _GNU_SOURCE
#include "fiber.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static void *stack_memory(struct stack *s)
{
    if (s->memory == NULL) {
        s->memory = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (s->memory == MAP_FAILED) {
            perror("explore: stack");
            exit(2);
        }
    }
    return s->memory;
}

#ifdef __x86_64__

void stack_exchange(void **from, void **to);

__asm__(".text\n"
        ".p2align 4\n"
        ".globl stack_exchange\n"
        ".type stack_exchange, @function\n"
        "stack_exchange:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq (%rsi), %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size stack_exchange, . - stack_exchange\n");

void stack_prepare(struct stack *s, void (*entry)(void))
{
    uintptr_t *top = (uintptr_t *)((char *)stack_memory(s) + STACK_BYTES);

    *--top = 0; /* where a return address would be: the stack is aligned as after a call */
    *--top = (uintptr_t)entry;
    for (int i = 0; i < 6; i++)
        *--top = 0;
    s->at = top;
}

void stack_change(struct stack *from, struct stack *to)
{
    stack_exchange(&from->at, &to->at);
}

#else

#include <ucontext.h>

static ucontext_t *context(struct stack *s)
{
    if (s->at == NULL)
        s->at = calloc(1, sizeof(ucontext_t));
    if (s->at == NULL)
        exit(2);
    return s->at;
}

void stack_prepare(struct stack *s, void (*entry)(void))
{
    ucontext_t *c = context(s);

    getcontext(c);
    c->uc_stack.ss_sp = stack_memory(s);
    c->uc_stack.ss_size = STACK_BYTES;
    c->uc_link = NULL;
    makecontext(c, entry, 0);
}

void stack_change(struct stack *from, struct stack *to)
{
    swapcontext(context(from), context(to));
}

#endif
