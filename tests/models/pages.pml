/*
 * The pages of an index (docs/index-format.md): one session inserts rows into the log, another makes segments from it
 * and merges them leaf by leaf, and reuses their pages, while a third looks a key up. It finds every row that existed
 * when it began. Each row has two keys, and fills a page of the log. An atomic block is one WAL record, or the
 * reading of one page.
 *
 * KIND_ONLY, LEAF_LATER, FREES_EARLY and LOG_LAST insert a mistake that makes the lookup miss a row.
 */

#define ROWS 3
#define BLOCKS 7
#define SEGMENTS 3

mtype = { FREE, TAIL, LEAF };

/* A page is recognized by its kind and number. */
typedef Place { byte block; byte number };
typedef Segment { Place leaves[2] };
typedef Metapage {
  Place tail;
  byte segments;
  Segment segment[SEGMENTS];
  bool merges; /* the first two segments */
  byte split; /* keys below it are in the output */
  Segment output
};

Metapage meta;
mtype kind[BLOCKS] = FREE;
byte number[BLOCKS];
byte rows[BLOCKS]; /* bits */
bool is_used[BLOCKS]; /* an unused page keeps its contents until it is taken */
byte numbers = 1;
byte inserted; /* bits of rows */

inline take(place, its_kind, its_rows) {
  place.block = 0;
  do
  :: is_used[place.block] -> place.block++
  :: else -> break
  od;
  place.number = numbers;
  numbers++;
  is_used[place.block] = true;
  kind[place.block] = its_kind;
  number[place.block] = place.number;
  rows[place.block] = its_rows
}

#define IS(place, its_kind) (kind[place.block] == its_kind && number[place.block] == place.number)
#define HAS(block, bit) (rows[block] & (1 << bit))

inline free_inputs() {
  is_used[meta.segment[0].leaves[0].block] = false;
  is_used[meta.segment[0].leaves[1].block] = false;
  is_used[meta.segment[1].leaves[0].block] = false;
  is_used[meta.segment[1].leaves[1].block] = false
}

inline copy_place(to, from) {
  to.block = from.block;
  to.number = from.number
}

inline copy_segment(to, from) {
  copy_place(to.leaves[0], from.leaves[0]);
  copy_place(to.leaves[1], from.leaves[1])
}

init {
  atomic {
    take(meta.tail, TAIL, 0);
    run insert();
    run merge();
    run look_up()
  }
}

proctype insert() {
  Place place;
  byte row;

  do
  :: row < ROWS ->
     atomic { copy_place(place, meta.tail) };
     if
     :: atomic {
          IS(place, TAIL) && rows[place.block] == 0 ->
          rows[place.block] = 1 << row;
          inserted = inserted | (1 << row);
          row++
        }
     :: atomic { !IS(place, TAIL) || rows[place.block] != 0 -> skip };
        /* The log is full. */
        meta.tail.number != place.number || rows[meta.tail.block] == 0
     fi
  :: else -> break
  od
}

proctype merge() {
  Place place;
  byte old, both;

end:
  do
  :: atomic {
       rows[meta.tail.block] != 0 && meta.segments < SEGMENTS ->
       old = meta.tail.block;
       take(place, LEAF, rows[old]);
       copy_place(meta.segment[meta.segments].leaves[0], place);
       copy_place(meta.segment[meta.segments].leaves[1], place);
       meta.segments++;
       take(meta.tail, TAIL, 0);
       is_used[old] = false;
       old = 0
     }
  :: atomic {
       meta.segments >= 2 && !meta.merges ->
       meta.merges = true;
       meta.split = 0;
#ifdef FREES_EARLY
       free_inputs()
#endif
     }
  :: atomic {
       meta.merges && meta.split < 2 ->
       both = rows[meta.segment[0].leaves[meta.split].block] | rows[meta.segment[1].leaves[meta.split].block];
#ifdef LEAF_LATER
       take(place, LEAF, 0);
#else
       take(place, LEAF, both);
#endif
       copy_place(meta.output.leaves[meta.split], place);
       meta.split++
     };
#ifdef LEAF_LATER
     atomic { rows[place.block] = both };
#endif
     both = 0
  :: atomic {
       meta.merges && meta.split == 2 ->
       free_inputs();
       copy_segment(meta.segment[0], meta.output);
       copy_segment(meta.segment[1], meta.segment[2]);
       meta.segments--;
       meta.merges = false
     }
  od
}

inline read(place, its_kind) {
  atomic {
    if
#ifdef KIND_ONLY
    :: kind[place.block] == its_kind -> found = found | rows[place.block]
#else
    :: IS(place, its_kind) -> found = found | rows[place.block]
#endif
    :: else -> goto again
    fi
  }
}

proctype look_up() {
  Metapage copy;
  byte key, segment, found, wanted;

  if
  :: key = 0
  :: key = 1
  fi;
  wanted = inserted;
again:
  atomic {
    found = 0;
    copy_place(copy.tail, meta.tail);
    copy.segments = meta.segments;
    copy_segment(copy.segment[0], meta.segment[0]);
    copy_segment(copy.segment[1], meta.segment[1]);
    copy_segment(copy.segment[2], meta.segment[2]);
    copy.merges = meta.merges;
    copy.split = meta.split;
    copy_segment(copy.output, meta.output);
    segment = 0
  };
#ifndef LOG_LAST
  read(copy.tail, TAIL);
#endif
  do
  :: segment < copy.segments ->
     if
     :: copy.merges && key < copy.split && segment == 0 -> read(copy.output.leaves[key], LEAF); segment = 2
     :: else -> read(copy.segment[segment].leaves[key], LEAF); segment++
     fi
  :: else -> break
  od;
#ifdef LOG_LAST
  /* Uses a later metapage. */
  atomic { copy_place(copy.tail, meta.tail) };
  read(copy.tail, TAIL);
#endif
  assert((found & wanted) == wanted)
}
