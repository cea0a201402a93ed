/*
 * The partitions that transactions look at before their rows pass a guard (src/guard/passing.rs): three transactions,
 * each with one row in a partition of its own, which it may have attached itself, and all rows are similar. At most one
 * commits, and none waits forever. An atomic block reads or writes shared state once. guard.pml has the row numbers.
 *
 * NO_LOCK, LOCKS_LATE, NO_SECOND_LIST, LISTS_FIRST and SKIPS_ENDED insert a mistake that lets two transactions commit.
 */

#define N 3

mtype = { running, committed, aborted };
mtype = { silent, will_pass, passed };

mtype progress[N] = running;
bool is_attached[N]; /* by the transaction itself */
bool is_known[N]; /* others list the partition: some time after the commit */
bool has_row[N];
bool has_will_pass[N], has_passed[N], hides[N]; /* locks */
bool is_closed; /* the gate */

#define IS_LISTED(j) (j == me || is_known[j] || !is_attached[j])
#define OTHERS_HIDE (hides[(me + 1) % N] || hides[(me + 2) % N])

/* Whether others hide partitions, as a question that does not try to take the lock is answered. */
#define IN_PROGRESS_HIDE(j) (hides[j] && progress[j] == running)

inline open_tables() {
  !OTHERS_HIDE;
  atomic {
    listed[0] = IS_LISTED(0); listed[1] = IS_LISTED(1); listed[2] = IS_LISTED(2);
    seen[0] = false; seen[1] = false; seen[2] = false
  };
#ifndef LOCKS_LATE
  hide()
#endif
}

inline hide() {
#ifdef NO_LOCK
  skip
#else
  if
  :: atomic { is_attached[me] && !OTHERS_HIDE -> hides[me] = true }
  :: !is_attached[me]
  fi
#endif
}

inline ask_lock() {
#ifdef SKIPS_ENDED
  atomic { has_changed = has_changed || IN_PROGRESS_HIDE((me + 1) % N) || IN_PROGRESS_HIDE((me + 2) % N) }
#else
  atomic { has_changed = has_changed || OTHERS_HIDE }
#endif
}

inline list_again() {
  atomic {
    has_changed = has_changed || listed[0] != IS_LISTED(0) || listed[1] != IS_LISTED(1) || listed[2] != IS_LISTED(2)
  }
}

/* Checks whether the transaction looks at all partitions, in two steps. */
inline check_list() {
  has_changed = false;
#ifdef LISTS_FIRST
  list_again();
  ask_lock()
#else
  ask_lock();
#ifndef NO_SECOND_LIST
  list_again()
#endif
#endif
}

/* Compares the row with the rows not seen yet in the listed partitions. */
inline look() {
  do
  :: atomic { j < N && (j == me || !listed[j] || seen[j] || !has_row[j] || progress[j] == aborted) -> j++ }
  :: atomic { j < N && j != me && listed[j] && !seen[j] && has_row[j] && progress[j] == committed -> goto reject }
  :: atomic {
       j < N && j != me && listed[j] && !seen[j] && has_row[j] && progress[j] == running ->
       seen[j] = true;
       has_found = true
     };
     read_state();
     atomic {
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

/* Determines the progress of transaction j, in two steps. */
inline read_state() {
  atomic {
    if
    :: has_passed[j] -> state = passed
    :: !has_passed[j] && has_will_pass[j] -> state = will_pass
    :: else -> state = silent
    fi
  };
  is_running = progress[j] == running
}

/* Checks again the transactions to which the check was left. */
inline ask_again() {
  do
  :: atomic { j < N && !later[j] -> j++ }
  :: j < N && later[j] ->
     read_state();
     atomic {
       if
       :: wait == N && (!is_running || state == passed) -> wait = j
       :: else
       fi;
       j++
     }
  :: atomic { j == N -> j = 0; break }
  od
}

proctype transaction(byte me) {
  bool listed[N], seen[N], later[N], closes, has_found, has_changed, is_running;
  byte j, wait = N;
  mtype state;

  has_will_pass[me] = true;
  has_row[me] = true;
  open_tables();
  do
  :: atomic {
       later[0] = false; later[1] = false; later[2] = false;
       seen[0] = false; seen[1] = false; seen[2] = false;
       state = silent; is_running = false; has_changed = false
     };
     look();
     if
     :: wait == N ->
        atomic { !is_closed -> is_closed = true; closes = true };
        ask_again();
        check_list();
        has_found = false;
        if
        :: wait == N && !has_changed -> look()
        :: else
        fi;
        if
        :: wait == N && !has_changed && !has_found -> break
        :: else
        fi;
        atomic { is_closed = false; closes = false }
     :: else
     fi;
     if
     :: atomic { wait < N && progress[wait] != running -> wait = N }
     :: wait == N
     fi;
     check_list();
     if
     :: has_changed -> open_tables()
     :: else
     fi
  od;
  has_passed[me] = true;
  atomic { is_closed = false; closes = false };
#ifdef LOCKS_LATE
  hide();
#endif
  if
  :: atomic {
       progress[me] = committed;
       do
       :: j < N -> assert(j == me || progress[j] != committed); j++
       :: else -> j = 0; break
       od
     };
     is_known[me] = true;
     goto done
  :: goto abort
  fi;

reject:
  if
  :: atomic { closes -> is_closed = false }
  :: else
  fi;
abort:
  progress[me] = aborted;
done:
  atomic { has_will_pass[me] = false; has_passed[me] = false; hides[me] = false }
}

init {
  atomic {
    byte i;
    do
    :: i < N -> is_attached[i] = true; i++
    :: i < N -> is_attached[i] = false; i++
    :: else -> break
    od;
    run transaction(0);
    run transaction(1);
    run transaction(2)
  }
}
