/* Steps through a call with a trap after each instruction, and acts there. */
#ifndef STEPS_H
#define STEPS_H

#include "driver.h"

#define OUTER 10
#define INNER 20
/* More instructions than a traced call takes on any way. */
#define MOST_STEPS 4000

extern uint64_t steps, only_at; /* 0: `act` is called at every step */
extern int acted;
/* What the handler does at a step. */
extern void (* act) (uint64_t pc);

/* A traced function that handlers call, and where its calls were. */
extern void * inner_stub;
extern uint64_t inner_slots[MOST_STEPS];
void call_inner (uint64_t pc);

/* `flags` of sigaction, for the handler of the traps. */
void handle_traps (int flags);

/* Gives this thread another stack for its handlers. */
void make_other_stack (void);

/* Calls `stub`, which leads to `work`; returns the call's slot. */
uint64_t step_through (void * stub);

/* Calls `body` deeper than stacks are by default, where the runtime does not
 * know the bounds, in a thread of its own. */
void run_deep_down (void (* body) (void *), void * argument);

/* With how much room in the lap a call is stepped through: its enter, or its
 * leave, is the record that does not fit any more. */
static const uint64_t lefts[2] = { 0, HS_ENTER_BYTES + 8 };

/* Takes and forgets what is in this thread's ring. */
void forget (struct tape * tape);

#endif
