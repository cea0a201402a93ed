//! Damaged pages of postings lead to errors: no panic, no endless loop, no large allocation.

#[path = "hostile/postings.rs"]
mod hostile;

use hostile::pages::check;
use neardup::hash::{GOLDEN, split_mix};
use neardup::postings::{Leaf, PageKind, Segment, SegmentGroup};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;

/// Rejects requests for more memory than any page can require, which become [`hostile::pages::Failure::OutOfMemory`].
struct Frugal;

const LARGEST: usize = 64 << 20;

// SAFETY: requests are rejected, or passed on to the system's allocator.
unsafe impl GlobalAlloc for Frugal {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LARGEST {
            return null_mut();
        }
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, allocated: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(allocated, layout) }
    }
}

#[global_allocator]
static FRUGAL: Frugal = Frugal;

#[test]
fn every_byte_of_every_page_may_be_wrong() {
    let (sound, segments) = hostile::sound();
    let kinds = |kind| {
        sound
            .pages
            .iter()
            .flatten()
            .filter(|page| page.kind == kind)
            .count()
    };
    assert!(kinds(PageKind::Leaf) > 20 && kinds(PageKind::Directory) > 4);
    for page in 0..sound.pages.len() {
        let payload = &sound.pages[page].as_ref().expect("a page in use").payload;
        for place in 0..payload.len() {
            for flip in [1, 0x80, 0xFF] {
                let mut store = sound.clone();
                let damaged = store.pages[page].as_mut().expect("a page in use");
                damaged.payload[place] ^= flip;
                hostile::bear(store, segments);
            }
        }
        for len in 0..payload.len() {
            let mut store = sound.clone();
            let damaged = store.pages[page].as_mut().expect("a page in use");
            damaged.payload.truncate(len);
            hostile::bear(store, segments);
        }
    }
}

#[test]
fn random_bytes_are_no_pages() {
    let mut state = 0u64;
    let mut next = || {
        state = state.wrapping_add(GOLDEN);
        split_mix(state)
    };
    for _ in 0..20_000 {
        let len = next() % 400;
        let mut bytes: Vec<u8> = (0..len).map(|_| next() as u8).collect();
        hostile::damaged(&bytes[..bytes.len().min(30)]);
        // Small counts are more common than random ones.
        bytes
            .iter_mut()
            .skip(1)
            .take(3)
            .for_each(|byte| *byte &= (next() as u8) & 1);
        hostile::payload(&bytes);
    }
}

#[test]
fn a_metapage_may_be_wrong() {
    let (mut store, [segment, _]) = hostile::sound();
    let wrong = [
        Segment {
            lo: 5,
            hi: 4,
            ..segment
        },
        Segment {
            hi: u64::MAX,
            ..segment
        },
        Segment {
            depth: 0,
            ..segment
        },
        Segment {
            depth: 1,
            ..segment
        },
        Segment {
            depth: u8::MAX,
            ..segment
        },
        Segment {
            root: u32::MAX,
            ..segment
        },
        Segment { root: 0, ..segment },
        Segment {
            hi: segment.lo + 1,
            ..segment
        },
        Segment {
            number: 77,
            ..segment
        },
    ];
    for segment in wrong {
        assert!(
            store.find(&SegmentGroup::alone(&segment), &[7], 1).is_err(),
            "{segment:?}"
        );
        assert!(
            check(&mut store, &segment, None, &mut |_| ()).is_err(),
            "{segment:?}"
        );
    }
    let counts_wrong = Segment {
        postings: 1,
        ..segment
    };
    assert!(check(&mut store, &counts_wrong, None, &mut |_| ()).is_err());
}

#[test]
fn a_leaf_in_the_place_of_another_is_noticed() {
    let (sound, [segment, _]) = hostile::sound();
    let is_leaf = |page: &&usize| {
        let page = sound.pages[**page].as_ref().expect("a page in use");
        page.segment == segment.number && page.kind == PageKind::Leaf
    };
    let pages: Vec<usize> = (0..sound.pages.len()).collect();
    let leaves: Vec<usize> = pages.iter().filter(is_leaf).copied().collect();
    for neighbors in leaves.windows(2) {
        let mut store = sound.clone();
        let page = sound.pages[neighbors[0]].as_ref().expect("a page in use");
        let key = Leaf::parse(&page.payload)
            .expect("a sound leaf")
            .first()
            .key;
        store.pages[neighbors[0]] = sound.pages[neighbors[1]].clone();
        assert!(check(&mut store, &segment, None, &mut |_| ()).is_err());
        assert!(
            store
                .find(&SegmentGroup::alone(&segment), &[key], 1)
                .is_err()
        );
    }
}

#[test]
fn entries_of_directories_may_be_in_each_others_place() {
    const ENTRY: usize = 12;
    let (sound, segments) = hostile::sound();
    for page in 0..sound.pages.len() {
        let original = sound.pages[page].as_ref().expect("a page in use");
        if original.kind != PageKind::Directory {
            continue;
        }
        let entries = original.payload.len() / ENTRY;
        let of = |entry: usize| 4 + entry * ENTRY..4 + (entry + 1) * ENTRY;
        for (a, b) in (0..entries).flat_map(|a| (0..entries).map(move |b| (a, b))) {
            let mut swapped = original.payload.clone();
            swapped[of(a)].copy_from_slice(&original.payload[of(b)]);
            let repeated = swapped.clone();
            swapped[of(b)].copy_from_slice(&original.payload[of(a)]);
            for payload in [swapped, repeated] {
                let mut store = sound.clone();
                store.pages[page].as_mut().expect("a page in use").payload = payload;
                let segment = &segments[original.segment as usize];
                let is_sound = check(&mut store, segment, None, &mut |_| ()).is_ok();
                assert_eq!(is_sound, a == b, "{a} and {b}");
                hostile::bear(store, segments);
            }
        }
    }
}

/// Tests widths that no number has, on a page that is long enough for them.
#[test]
fn blocks_may_be_too_wide() {
    for (key_bits, offset_bits) in [(33u8, 0u8), (0, 33), (200, 255), (255, 255)] {
        let bits = 8 * (usize::from(key_bits) + usize::from(offset_bits));
        let [used_low, used_high] = (16 + bits as u16).to_le_bytes();
        let [end_low, end_high] = (bits as u16).to_le_bytes();
        let mut payload = vec![64, 0, used_low, used_high, 0, 0, 0, 0, 0, 0, 0, 0];
        payload.extend([end_low, end_high, key_bits, offset_bits]);
        payload.resize(16 + bits, 0);
        let leaf = Leaf::parse(&payload).expect("blocks are checked later");
        assert!(leaf.last().is_err(), "{key_bits} and {offset_bits} bits");
    }
}

#[test]
fn two_bytes_may_be_wrong_and_their_sum_right() {
    for page in hostile::sound().0.pages.into_iter().flatten() {
        for place in 1..page.payload.len() {
            for change in 1..=255 {
                let mut payload = page.payload.clone();
                payload[place - 1] = payload[place - 1].wrapping_add(change);
                payload[place] = payload[place].wrapping_sub(change);
                hostile::payload(&payload);
            }
        }
    }
}
