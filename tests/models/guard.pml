/*
 * The protocol with which rows pass a guard (src/guard/passing.rs): three transactions, each with one row, and all rows
 * are similar. At most one commits, and none waits forever. An atomic block reads or writes shared state once.
 *
 * ASKS_PROGRESS_FIRST, NO_SECOND_QUESTION, NO_LAST_LOOK, RELEASES_FIRST and ANNOUNCES_LATE insert a mistake that lets
 * two transactions commit.
 */

#define N 3

mtype = { unborn, running, committed, aborted };
mtype = { silent, will_pass, passed };

mtype progress[N] = unborn;
bool has_will_pass[N], has_passed[N]; /* locks */
byte number[N]; /* the number of the row in the index, from 1; 0 before it exists */
byte numbers; /* how many have been drawn so far */
bool is_closed; /* the gate */

inline read_locks() {
  if
  :: has_passed[j] -> state = passed
  :: !has_passed[j] && has_will_pass[j] -> state = will_pass
  :: else -> state = silent
  fi
}

inline read_progress() {
  is_running = progress[j] == running
}

/* Determines the progress of transaction j, in two steps. */
#ifdef ASKS_PROGRESS_FIRST
#define FIRST_STEP read_progress()
#define SECOND_STEP read_locks()
#else
#define FIRST_STEP read_locks()
#define SECOND_STEP read_progress()
#endif

/* Compares the row with the rows that have numbers above `least`. */
inline look(least) {
  do
  :: atomic { j < N && (j == _pid || number[j] <= least || progress[j] == aborted) -> j++ }
  :: atomic { j < N && j != _pid && number[j] > least && progress[j] == committed -> goto reject }
  :: atomic { j < N && j != _pid && number[j] > least && progress[j] == running -> has_found = true };
     atomic { FIRST_STEP };
     atomic {
       SECOND_STEP;
       if
       :: is_running && state == will_pass -> later[j] = true
       :: (!is_running || state != will_pass) && wait == N -> wait = j
       :: else
       fi;
       j++
     }
  :: atomic { j == N -> j = 0; break }
  od
}

/* Checks again the transactions to which the check was left. */
inline ask_again() {
  do
  :: atomic { j < N && !later[j] -> j++ }
  :: atomic { j < N && later[j] -> FIRST_STEP };
     atomic {
       SECOND_STEP;
       if
       :: wait == N && (!is_running || state == passed) -> wait = j
       :: else
       fi;
       j++
     }
  :: atomic { j == N -> j = 0; break }
  od
}

inline release() {
  atomic { has_will_pass[_pid] = false; has_passed[_pid] = false }
}

active [N] proctype transaction() {
  bool later[N], looks_at_all = true, closes, has_found, is_running;
  byte j, wait = N, before, upto;
  mtype state;

  /* An INSERT announces that it will pass before its row exists, an UPDATE after that. */
  if
  :: atomic { progress[_pid] = running; has_will_pass[_pid] = true }
  :: atomic { progress[_pid] = running }
  fi;
  atomic { numbers++; number[_pid] = numbers };
  atomic { has_will_pass[_pid] = true };
  do
  :: atomic {
       before = upto;
       upto = numbers;
       has_found = false;
       state = silent;
       is_running = false;
       later[0] = false; later[1] = false; later[2] = false
     };
     if
     :: looks_at_all -> look(0)
     :: else -> look(before)
     fi;
     if
     :: atomic { wait < N -> looks_at_all = true };
        atomic { progress[wait] != running -> wait = N };
        goto again
     :: else
     fi;
     atomic { !is_closed -> is_closed = true; closes = true };
#ifndef NO_SECOND_QUESTION
     ask_again();
#endif
     if
     :: wait == N ->
        atomic { looks_at_all = has_found; has_found = false; before = upto; upto = numbers };
#ifndef NO_LAST_LOOK
        look(before)
#endif
     :: else -> looks_at_all = true
     fi;
     if
     :: wait == N && !has_found -> break
     :: else
     fi;
     atomic { is_closed = false; closes = false };
     looks_at_all = true;
     if
     :: atomic { wait < N && progress[wait] != running -> wait = N }
     :: wait == N
     fi;
again:
     skip
  od;
#ifdef ANNOUNCES_LATE
  atomic { is_closed = false; closes = false };
  has_passed[_pid] = true;
#else
  has_passed[_pid] = true;
  atomic { is_closed = false; closes = false };
#endif
  if
  :: skip;
#ifdef RELEASES_FIRST
     release();
#endif
     atomic {
       progress[_pid] = committed;
       do
       :: j < N -> assert(j == _pid || progress[j] != committed); j++
       :: else -> j = 0; break
       od
     };
     goto done
  :: goto abort
  fi;

reject:
  if
  :: atomic { is_closed && closes -> is_closed = false }
  :: else
  fi;
abort:
  progress[_pid] = aborted;
done:
  release()
}
