/* The ring's protocol (docs/ring.md) for the checker spin. A label is a place where a claimant may stop or die, by its name in
   src/ring/steps.h; the comments name the function of src/ring or src/loader that a piece stands for.

   Sizes:    S slots, R runs a batch, X extents, NB batches, two workers.
   Budgets:  DEATHS, STOPS, ABANDONS, RESTARTS, TRIMS. BOTH: faults hit worker 1 too (else worker 0: the two are alike).
   Filling:  cooperative; WHOLE: one run, the claimant binds the extent; ASSIGNED: whole, and only worker q % 2 may start q.
   FINE:     a claimant looks at one slot at a time.
   M_...:    mutants, see CMakeLists.txt. Each must be caught. */

#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef STOPS
#define STOPS 0
#endif
#ifndef ABANDONS
#define ABANDONS 0
#endif
#ifndef TRIMS
#define TRIMS 0
#endif
#ifndef RESTARTS
#define RESTARTS DEATHS
#endif
#ifndef NB
#define NB 2
#endif
#ifndef S
#define S 2
#endif
#ifndef X
#define X 2
#endif
#ifdef ASSIGNED
#define WHOLE
#endif
#ifdef WHOLE
#define R 1
#endif
#ifndef R
#define R 2
#endif
#define FULL ((1 << R) - 1)
#define NONE X /* no extent */
#define ANY 2  /* no worker in particular */
#define HALF 200

/* owner.h: who is 0 free, w + 1 held by w, 4 + w assigned to w, 7 cancelled */
#ifdef M_no_seq
#define WORD(q, who) (who)
#else
#define WORD(q, who) ((q) * 8 + (who))
#endif
#define FREE(q) WORD(q, 0)
#define HELD(q, w) WORD(q, (w) + 1)
#define CANCELLED(q) WORD(q, 7)
#define OFFERED(q, to) WORD(q, ((to) == ANY -> 0 : 4 + (to)))
#define UNSTARTED(word, q) ((word) == FREE(q) || (word) == OFFERED(q, 0) || (word) == OFFERED(q, 1))
#define OF_CONSUMER 1
#ifdef M_bind_without_batch
#define BOUND(q) 2
#else
#define BOUND(q) (8 * (q) + 2)
#endif

/* Shared memory. */
byte seq[S], todo[S], done[S], draining[S], sext[S], own[S * R];
byte xown[X];
bool wanted, consumer_waits, eventfd;
bool changed[2]; /* the bell moved since w read it */
bool sleeper[2]; /* w's bit in the sleepers' mask */
bool asleep[2];  /* w is queued in the kernel */
#ifdef ASSIGNED
byte assigned[S];
#define MAY_START(s, w) (assigned[s] == ANY || assigned[s] == w)
#define ASSIGNEE(s) assigned[s]
#else
#define MAY_START(s, w) true
#define ASSIGNEE(s) ANY
#endif

/* The consumer's own memory: armed_, in order of batches. */
byte aseq[S], next_seq = 1, expect = 1, head = S;
bool adrain[S];
byte waiting; /* 1: for head, 2: for a slot to drain */
bool finished;

/* Ghosts: what is in an extent, and whose it is. */
byte filling[X]; /* batch being written or drained in it */
byte lent[X];    /* batch that the user holds in it */
byte data[X * R];
byte reports[S * R]; /* each run reports one row */
bool vain[2];        /* woke by its limit, for nothing: once after each ring must do */
bool quiet;          /* a returned run was ended without a ring: publish(claim, -1) */

/* Processes. dead: takes no further step. gone: the kernel took it down. stopped: dead, and no descriptor says so. That it may
   run again is in the model without: any worker may pause for ever so long between two steps. */
bool dead[2], gone[2], stopped[2], lost[2];
byte deaths, stops, abandons, trims, restarts;
#define READABLE(w) (dead[w] && gone[w] && !stopped[w])

#ifdef M_counter
byte count[S];
#define COMPLETE(s) (count[s] == R)
#else
#ifdef M_published_flag
bool published[S];
#define COMPLETE(s) published[s]
#else
#define COMPLETE(s) (done[s] == FULL)
#endif
#endif

#if S == 2
#define SOME(p) (p(0) || p(1))
#define USED_SLOTS ((aseq[0] != 0) + (aseq[1] != 0))
#else
#define SOME(p) (p(0) || p(1) || p(2))
#define USED_SLOTS ((aseq[0] != 0) + (aseq[1] != 0) + (aseq[2] != 0))
#endif
#define IN_FLIGHT(s) (aseq[s] != 0 && !adrain[s])
#define DRAINING(s) (aseq[s] != 0 && adrain[s])
#define DRAINED(s) (DRAINING(s) && done[s] == FULL)
#define UNUSED(s) (aseq[s] == 0)
#define OPEN(s) (IN_FLIGHT(s) && todo[s] != 0)
#define HEAD_READY (waiting == 1 && head < S && COMPLETE(head))
#if X == 1
#define FREE_EXTENTS (xown[0] == 0)
#define ANY_EXTENT(p) p(0)
#elif X == 2
#define FREE_EXTENTS ((xown[0] == 0) + (xown[1] == 0))
#define ANY_EXTENT(p) (p(0) || p(1))
#else
#define FREE_EXTENTS ((xown[0] == 0) + (xown[1] == 0) + (xown[2] == 0))
#define ANY_EXTENT(p) (p(0) || p(1) || p(2))
#endif
#ifdef WHOLE /* Engine::shortage: each batch in flight may still bind one */
#define CAN_ARM (next_seq <= NB && SOME(UNUSED) && FREE_EXTENTS > USED_SLOTS)
#else
#define CAN_ARM (next_seq <= NB && SOME(UNUSED) && FREE_EXTENTS > 0)
#endif
#if TRIMS > 0
#define CAN_GO_ON (FREE_EXTENTS > 0)
#else
#define CAN_GO_ON true
#endif
#define LENT(x) (lent[x] != 0)
#define OURS(x) (xown[x] == OF_CONSUMER)
#define IN_USE(x) (xown[x] != 0)

/* Waits are bounded. A limit is enabled only where the protocol needs it, so that it hides no lost wake-up of another kind:
   the consumer's where a stopped worker did not ring, or a returned run was ended; a worker's where the one that was woken
   is stopped. */
#ifdef M_consumer_waits_for_ever
#define CONSUMER_LIMIT false
#else
#define CONSUMER_LIMIT ((stopped[0] || stopped[1] || quiet) && (HEAD_READY || SOME(DRAINED)))
#endif
#ifdef M_worker_waits_for_ever
#define WORKER_LIMIT(w) false
#else
#define WORKER_LIMIT(w) ((stopped[0] || stopped[1]) && !vain[w] && SOME(OPEN))
#endif

/* doorbell.cpp: [rung], then the sleepers */
inline ring_all() {
  d_step { changed[0] = true; changed[1] = true; vain[0] = false; vain[1] = false };
  d_step { if :: sleeper[0] || sleeper[1] -> asleep[0] = false; asleep[1] = false :: else fi }
}
inline ring_some(n) {
  d_step { changed[0] = true; changed[1] = true; vain[0] = false; vain[1] = false };
  atomic {
    if
    :: n >= 2 && (sleeper[0] || sleeper[1]) -> asleep[0] = false; asleep[1] = false
    :: n == 1 && asleep[0] -> asleep[0] = false
    :: n == 1 && asleep[1] -> asleep[1] = false
    :: else
    fi;
    n = 0
  }
}

/* extents.cpp: release_extent */
inline release_extent(e) {
  atomic { assert(xown[e] == OF_CONSUMER); clear_extent(e); xown[e] = 0 };
#ifdef WHOLE
  if
  :: atomic { wanted -> wanted = false }; ring_all()
  :: atomic { !wanted -> skip }
  fi
#endif
}
inline clear_extent(e) { filling[e] = 0; lent[e] = 0; r = 0; do :: r < R -> data[e * R + r] = 0; r++ :: else -> break od; r = 0 }

/* A row is written only into an extent that is being filled for this very batch. */
inline write_row(value) { assert(filling[x] == q); data[x * R + r] = value }

#ifdef FINE
#define MISSED missed
#else
#define MISSED before_cas
#endif
proctype worker(byte w) {
  byte s, q, r, x, bits, after;
  bool last;
begin: {
  goto look;
#ifdef FINE
look:
  changed[w] = false;
scan: /* oldest_open_slot */
  do
  :: atomic { s < S -> if :: seq[s] > after && (q == 0 || seq[s] < q) && todo[s] != 0 && MAY_START(s, w) -> q = seq[s]; x = s :: else fi; s++ }
  :: atomic { s == S -> s = x; x = 0; break }
  od;
  atomic {
#else
look: /* the bell first; with the scan in one step only wake-ups for nothing are lost to the search */
  atomic {
    changed[w] = false;
scan: /* oldest_open_slot */
    do
    :: s < S -> if :: seq[s] > after && (q == 0 || seq[s] < q) && todo[s] != 0 && MAY_START(s, w) -> q = seq[s]; x = s :: else fi; s++
    :: else -> s = x; x = 0; break
    od;
#endif
    after = 0;
    if :: q == 0 -> s = 0; goto sleep :: else -> bits = todo[s] fi
  };
before_cas: /* claim_in, start_run */
  atomic {
    if
    :: bits == 0 ->
#ifdef M_stale_hides_next
      s = 0; q = 0; goto sleep
#else
      after = q; s = 0; q = 0; goto scan /* a stale slot does not hide the next one */
#endif
    :: else
    fi;
    do :: bits & (1 << r) -> break :: else -> r++ od;
    bits = bits & (255 - (1 << r));
#ifdef M_ticket
    if
    :: seq[s] == q && (todo[s] & (1 << r)) -> todo[s] = todo[s] & (255 - (1 << r)); bits = 0
    :: else -> r = 0; goto MISSED
    fi
#else
    if
    :: own[s * R + r] == FREE(q) || own[s * R + r] == OFFERED(q, w) -> own[s * R + r] = HELD(q, w); bits = 0; vain[w] = false
    :: else -> r = 0; goto MISSED
    fi
#endif
  };
after_cas:
#ifdef M_ticket
  own[s * R + r] = HELD(q, w);
#endif
#ifdef WHOLE
  todo[s] = todo[s] & (255 - (1 << r));
after_todo: /* bind_extent, bind_lowest_extent */
  do
  :: atomic { x < X && xown[x] == 0 -> xown[x] = BOUND(q); filling[x] = q; break }
  :: atomic { x < X && xown[x] != 0 -> x++ }
#ifdef M_one_look_for_extents
  :: atomic { x == X -> wanted = true; x = 0; goto before_return }
#else
  :: atomic { x == X && last -> x = 0; last = false; goto before_return }
  :: atomic { x == X && !last -> x = 0; last = true; wanted = true } /* look once more */
#endif
  od;
after_bind:
  atomic { sext[s] = x; last = false };
#else
  atomic { todo[s] = todo[s] & (255 - (1 << r)); x = sext[s] };
#ifdef M_done_before_rows
  atomic { done[s] = done[s] | (1 << r); last = (done[s] == FULL) };
#endif
after_todo:
#endif
  atomic { write_row(HALF); reports[s * R + r]++ };
mid_rows:
  atomic { write_row(q) };
before_done: /* publish */
#ifdef M_done_before_rows
  atomic { x = 0; q = 0 };
#else
#ifdef M_counter
  done[s] = done[s] | (1 << r);
  atomic { count[s]++; last = (count[s] == R); x = 0; q = 0 };
#else
  atomic { done[s] = done[s] | (1 << r); last = (done[s] == FULL); x = 0; q = 0 };
#endif
#endif
#ifdef M_published_flag
  if :: last -> published[s] = true :: else fi;
#endif
after_done:
  atomic {
    s = 0; r = 0;
    if :: last && consumer_waits -> last = false :: else -> last = false; goto look fi
  };
before_ring:
  eventfd = true;
  goto look;

#ifdef WHOLE
before_return: /* return_run: the hint, then the word [offered], then draining */
  todo[s] = todo[s] | (1 << r);
  own[s * R + r] = OFFERED(q, ASSIGNEE(s));
#ifdef M_return_into_drain
  atomic { s = 0; q = 0; r = 0; goto sleep };
#endif
  atomic { if :: draining[s] == q :: else -> s = 0; q = 0; r = 0; goto sleep fi };
  atomic { if :: own[s * R + r] == OFFERED(q, ASSIGNEE(s)) -> own[s * R + r] = HELD(q, w) :: else -> s = 0; q = 0; r = 0; goto sleep fi };
  atomic { done[s] = done[s] | (1 << r); s = 0; q = 0; r = 0; quiet = true; goto sleep };
#endif
#ifdef FINE
missed:
  skip;
  goto before_cas;
#endif

sleep: /* Doorbell::wait */
#ifdef M_bell_read_late
  changed[w] = false;
#endif
  sleeper[w] = true;
before_sleep:
  atomic { if :: !changed[w] -> asleep[w] = true :: else -> sleeper[w] = false; goto look fi }; /* the kernel compares */
#ifdef FINE
  atomic { !asleep[w] || WORKER_LIMIT(w) -> vain[w] = asleep[w]; asleep[w] = false };
woken:
  sleeper[w] = false;
#else
  atomic { !asleep[w] || WORKER_LIMIT(w) -> vain[w] = asleep[w]; asleep[w] = false; sleeper[w] = false };
#endif
  goto look
  } unless { atomic { dead[w] -> gone[w] = true; s = 0; q = 0; r = 0; x = 0; bits = 0; after = 0; last = false } };
  atomic { !dead[w] -> goto begin }
}

/* SIGKILL and SIGSTOP at any time; a stopped worker may be killed later. */
proctype faults() {
  atomic { if :: deaths = DEATHS :: skip fi; if :: stops = STOPS :: skip fi }; /* or never */
  do
  :: atomic { deaths < DEATHS && !dead[0] -> dead[0] = true; asleep[0] = false; deaths++ }
  :: atomic { stops < STOPS && !dead[0] -> dead[0] = true; stopped[0] = true; stops++ }
  :: atomic { stopped[0] && deaths < DEATHS -> stopped[0] = false; asleep[0] = false; deaths++ }
#ifdef BOTH
  :: atomic { deaths < DEATHS && !dead[1] -> dead[1] = true; asleep[1] = false; deaths++ }
  :: atomic { stops < STOPS && !dead[1] -> dead[1] = true; stopped[1] = true; stops++ }
  :: atomic { stopped[1] && deaths < DEATHS -> stopped[1] = false; asleep[1] = false; deaths++ }
#endif
  od
}

#if TRIMS > 0
/* The user gives batches back in any thread at any time; BatchMemory::trim borrows a free extent for a while. */
proctype user() {
  byte x, r;
  do
  :: atomic { ANY_EXTENT(LENT) -> if :: LENT(0) -> x = 0 :: LENT(X - 1) -> x = X - 1 fi; assert(data[x] == lent[x]) }; release_extent(x); x = 0
  :: atomic { trims < TRIMS && FREE_EXTENTS > 0 -> trims++; if :: xown[0] == 0 -> x = 0 :: xown[X - 1] == 0 -> x = X - 1 fi; xown[x] = OF_CONSUMER };
     release_extent(x); x = 0
  od
}
#endif

/* consumer.cpp: take. Frees slot t, leaves its extent, now the consumer's, in x. */
inline take(t) {
  x = sext[t];
#ifdef WHOLE
  if :: x != NONE && xown[x] == BOUND(aseq[t]) -> xown[x] = OF_CONSUMER :: else -> x = NONE fi;
#endif
  seq[t] = 0; aseq[t] = 0; adrain[t] = false; done[t] = 0; todo[t] = 0; draining[t] = 0; sext[t] = NONE;
#ifdef M_counter
  count[t] = 0;
#endif
#ifdef M_published_flag
  published[t] = false;
#endif
  r = 0;
  do
  :: r < R ->
    reports[t * R + r] = 0;
#ifndef M_no_seq
    own[t * R + r] = 0;
#endif
    r++
  :: else -> break
  od;
  r = 0
}

/* One run of slot s is ended by the consumer, or offered again: the word, then the mask. */
inline cancel_run() {
  own[s * R + r] = CANCELLED(aseq[s]);
#ifndef M_cancelled_not_done
  done[s] = done[s] | (1 << r);
#endif
}
#define DEAD_RUN(s, r, w) (aseq[s] != 0 && own[(s) * R + r] == HELD(aseq[s], w) && !(done[s] & (1 << r)))
#define LEFT_IN_DRAIN(s, r) (DRAINING(s) && UNSTARTED(own[(s) * R + r], aseq[s]))

#if TRIMS == 0
inline give_back() {
  do :: r < R -> assert(data[x * R + r] == lent[x]); r++ :: else -> break od;
  r = 0; xown[x] = 0; clear_extent(x);
  if :: wanted -> wanted = false; changed[0] = true; changed[1] = true; vain[0] = false; vain[1] = false; asleep[0] = false; asleep[1] = false :: else fi
}
#endif

#ifdef ASSIGNED
inline reassign() { /* Ring::reassign: the word, then the hint */
  do
  :: atomic { s < S && !(IN_FLIGHT(s) && own[s] == OFFERED(aseq[s], w)) -> s++ }
  :: atomic { s < S && IN_FLIGHT(s) && own[s] == OFFERED(aseq[s], w) -> own[s] = FREE(aseq[s]) }; assigned[s] = ANY; s++
  :: atomic { s == S -> s = 0; break }
  od
}
#endif

proctype consumer() {
  byte s, x, r, w, n;
  if :: abandons = ABANDONS :: skip fi; /* or it never will */
next: /* Engine::next_source: drain_cancelled */
  atomic { waiting = 0; head = S };
  do
  :: atomic { SOME(DRAINED) -> do :: DRAINED(s) -> break :: else -> s++ od; take(s); s = 0 };
#ifndef M_leak_of_drained
     if :: atomic { x != NONE -> skip }; release_extent(x) :: atomic { x == NONE -> skip } fi;
#endif
     x = 0
  :: atomic { !SOME(DRAINED) -> break }
  od;
#if TRIMS == 0 /* when a batch comes back matters to the arming below only */
  atomic { do :: x < X && LENT(x) -> give_back(); x++ :: x < X -> x++ :: x == X -> x = 0; break od };
#endif
  do /* top_up, arm */
  :: atomic { CAN_ARM -> do :: UNUSED(s) -> break :: else -> s++ od;
#ifndef WHOLE
       do :: xown[x] == 0 -> break :: else -> x++ od;
       xown[x] = OF_CONSUMER; filling[x] = next_seq; sext[s] = x; x = 0;
#else
       sext[s] = NONE;
#endif
       aseq[s] = next_seq; adrain[s] = false;
       done[s] = 0; draining[s] = 0; todo[s] = FULL;
#ifdef ASSIGNED
       assigned[s] = (lost[next_seq % 2] -> 1 - next_seq % 2 : next_seq % 2);
#endif
       do :: r < R -> own[s * R + r] = OFFERED(next_seq, ASSIGNEE(s)); r++ :: else -> break od; r = 0 };
     atomic { seq[s] = next_seq; next_seq++; s = 0; n = 1 } /* [armed] */
  :: atomic { !CAN_ARM -> break }
  od;
  if
  :: atomic { n == 0 -> skip }
  :: atomic { n == 1 -> n = 0; do :: s < S -> if :: IN_FLIGHT(s) -> n = n + (todo[s] & 1) + (todo[s] >> 1 & 1) :: else fi; s++ :: else -> break od; s = 0 };
#ifdef ASSIGNED
    ring_all(); n = 0
#else
    ring_some(n)
#endif
  fi;
  if
  :: atomic { !SOME(IN_FLIGHT) && next_seq > NB && !SOME(DRAINING) -> goto end_of_data }
  :: atomic { !SOME(IN_FLIGHT) && SOME(DRAINING) -> waiting = 2 }; goto block
  :: atomic { !SOME(IN_FLIGHT) && !SOME(DRAINING) && next_seq <= NB && CAN_GO_ON -> goto next } /* MemoryError: the user's turn */
  :: atomic { SOME(IN_FLIGHT) && abandons < ABANDONS -> goto abandon }
  :: atomic { SOME(IN_FLIGHT) -> waiting = 1; head = 0; do :: IN_FLIGHT(head) && aseq[head] == expect -> break :: else -> head++; assert(head < S) od }
  fi;
find_ready:
  atomic { if :: COMPLETE(head) -> goto deliver :: else fi };
block: /* Engine::block: begin_wait, look again, poll */
#ifdef M_look_then_wait
  atomic { if :: HEAD_READY || SOME(DRAINED) -> goto after_poll :: else fi };
  consumer_waits = true;
#else
  consumer_waits = true;
#ifdef M_drained_keeps_awake
  atomic { if :: waiting == 1 && SOME(DRAINED) -> consumer_waits = false; goto busy :: else fi };
#endif
  atomic { if :: HEAD_READY || SOME(DRAINED) -> goto after_poll :: else fi };
#endif
  if
  :: atomic { eventfd || READABLE(0) || READABLE(1) || CONSUMER_LIMIT -> skip }
  :: atomic { waiting == 1 && abandons < ABANDONS -> consumer_waits = false; goto abandon } /* TimeoutError, then reset() */
  fi;
after_poll:
  consumer_waits = false;
  atomic {
    eventfd = false;
    if :: READABLE(0) -> w = 0; goto bury :: !READABLE(0) && READABLE(1) -> w = 1; goto bury :: else fi
  };
block_over:
  atomic { if :: waiting == 1 && !SOME(DRAINED) -> goto find_ready :: else -> goto next fi };
#ifdef M_drained_keeps_awake
busy: /* does not sleep, so does not poll: sees no death */
  atomic { COMPLETE(head) -> goto deliver };
#endif

bury: /* Ring::bury */
#ifdef M_replacement_before_bury
  atomic { dead[w] = false; gone[w] = false };
#endif
  do
  :: atomic {
       do
       :: s < S && (DEAD_RUN(s, r, w) || LEFT_IN_DRAIN(s, r)) -> break
       :: s < S && !(DEAD_RUN(s, r, w) || LEFT_IN_DRAIN(s, r)) -> r++; if :: r == R -> r = 0; s++ :: else fi
       :: s == S -> break
       od;
       if :: s == S -> s = 0; r = 0; break :: else fi;
       if
       :: DEAD_RUN(s, r, w) -> /* void_reports, free_extents_of */
#ifndef M_bury_keeps_reports
         reports[s * R + r] = 0;
#endif
#ifdef WHOLE
         sext[s] = NONE;
         do :: x < X -> if :: xown[x] == 8 * aseq[s] + 2 -> xown[x] = 0; filling[x] = 0; data[x] = 0 :: else fi; x++ :: else -> break od; x = 0
#endif
       :: else -> /* cancel_unstarted_runs: a claimant that gave it back died; another may be about to claim it */
#ifndef M_cancel_without_compare
         own[s * R + r] = CANCELLED(aseq[s])
#else
         skip
#endif
       fi
     };
     if
     :: atomic { DRAINING(s) -> skip }; cancel_run()
     :: atomic { !DRAINING(s) -> own[s * R + r] = OFFERED(aseq[s], ASSIGNEE(s)) }; /* [offered] */
#ifndef M_bury_keeps_todo
       todo[s] = todo[s] | (1 << r)
#endif
     fi
  od;
  atomic {
    sleeper[w] = false;
#ifndef M_replacement_before_bury
    if :: restarts < RESTARTS -> dead[w] = false; gone[w] = false; restarts++ :: else -> lost[w] = true; gone[w] = false fi
#endif
  };
#ifdef ASSIGNED
  if :: atomic { lost[w] -> skip }; reassign() :: atomic { !lost[w] -> skip } fi;
#endif
#ifndef M_no_ring_after_death
  ring_all();
#endif
  atomic { w = 0; if :: lost[0] && lost[1] -> goto failed :: else -> goto block_over fi };

deliver:
  atomic {
    s = head;
    r = 0; do :: r < R -> assert(reports[s * R + r] == 1); r++ :: else -> break od; r = 0;
    take(s); assert(x != NONE && filling[x] == expect);
    do :: r < R -> assert(data[x * R + r] == expect); r++ :: else -> break od; r = 0;
    filling[x] = 0; lent[x] = expect; x = 0; s = 0; expect++;
    goto next
  };

abandon: /* Engine::drop_epoch: cancel each */
  atomic { abandons++; waiting = 0; head = S; s = 0 };
  do
  :: atomic { s < S && !IN_FLIGHT(s) -> s++ }
  :: atomic { s < S && IN_FLIGHT(s) -> adrain[s] = true };
#ifdef M_extent_back_before_drained
     atomic { x = sext[s]; seq[s] = 0; aseq[s] = 0; adrain[s] = false; filling[x] = 0; xown[x] = 0; x = 0 };
#else
#ifndef M_draining_after_words
     draining[s] = aseq[s];
#endif
     todo[s] = 0;
     do
     :: atomic { r < R && !UNSTARTED(own[s * R + r], aseq[s]) -> r++ }
     :: atomic { r < R && UNSTARTED(own[s * R + r], aseq[s]) -> own[s * R + r] = CANCELLED(aseq[s]) };
        atomic {
#ifndef M_cancelled_not_done
          done[s] = done[s] | (1 << r);
#endif
          r++
        }
     :: atomic { r == R -> r = 0; break }
     od;
#ifdef M_draining_after_words
     draining[s] = aseq[s];
#endif
#endif
     s++
  :: atomic { s == S -> s = 0; expect = next_seq; break }
  od;
  goto next;

end_of_data:
  atomic {
#if TRIMS > 0
    !ANY_EXTENT(OURS);
#else
    do :: x < X -> if :: LENT(x) -> give_back() :: else fi; x++ :: x == X -> x = 0; break od;
#endif
    assert(!ANY_EXTENT(IN_USE)) /* nothing leaked */
  };
failed:
  finished = true
}

#ifdef M_bury_the_living
proctype impatient() {
  atomic { IN_FLIGHT(0) && own[0] == HELD(aseq[0], 0) && !(done[0] & 1) && !dead[0] -> own[0] = OFFERED(aseq[0], ANY); todo[0] = todo[0] | 1 };
  ring_all()
}
#endif

/* When nothing can move: only a stopped worker may be the cause, and then nothing is left that a live one could do. */
#define HOLDS(w, s, r) (stopped[w] && own[(s) * R + r] == HELD(aseq[s], w))
#define HELD_UP(s, r) (HOLDS(0, s, r) || HOLDS(1, s, r))
#define OUT(w) (stopped[w] || lost[w])
#ifdef ASSIGNED
#define NOBODY_STARTS(s) (assigned[s] == ANY -> OUT(0) && OUT(1) : OUT(assigned[s]))
#else
#define NOBODY_STARTS(s) (OUT(0) && OUT(1))
#endif
proctype watchdog() {
  byte s, r;
  bool pinned;
  timeout -> d_step {
    if
    :: finished
    :: !finished && waiting == 1 ->
      assert(done[head] != FULL);
      do
      :: s < S && !IN_FLIGHT(s) -> s++
      :: s < S && IN_FLIGHT(s) ->
        r = 0;
        do
        :: r < R -> assert((done[s] & (1 << r)) || HELD_UP(s, r) || (UNSTARTED(own[s * R + r], aseq[s]) && NOBODY_STARTS(s))); r++
        :: else -> break
        od;
        s++
      :: else -> break
      od
    :: !finished && waiting == 2 ->
      do
      :: s < S ->
        if
        :: DRAINING(s) ->
          pinned = false; r = 0;
          do
          :: r < R -> if :: !(done[s] & (1 << r)) && (HELD_UP(s, r) || (UNSTARTED(own[s * R + r], aseq[s]) && (stopped[0] || stopped[1]))) -> pinned = true :: else fi; r++
          :: else -> break
          od;
          assert(pinned)
        :: else
        fi;
        s++
      :: else -> break
      od
    :: !finished && waiting == 0 -> assert(false)
    fi
  }
}

init {
  atomic {
    run worker(0); run worker(1); run faults(); run consumer(); run watchdog();
#if TRIMS > 0
    run user();
#endif
#ifdef M_bury_the_living
    run impatient();
#endif
  }
}
