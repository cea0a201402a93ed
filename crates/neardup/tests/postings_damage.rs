//! Damaged pages of postings lead to errors: no panic, no endless loop, no large allocation.

#[path = "hostile/postings.rs"]
mod hostile;

use neardup::hash::{GOLDEN, split_mix};
use neardup::postings::{Group, PageKind, Segment, check};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;

/// Refuses memory that no page can ask for, which shows as [`hostile::pages::Failure::OutOfMemory`].
struct Frugal;

const LARGEST: usize = 4 << 20;

// SAFETY: refuses, or passes on to the system's allocator.
unsafe impl GlobalAlloc for Frugal {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LARGEST {
            return null_mut();
        }
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, allocated: *mut u8, layout: Layout) {
        // SAFETY: as the caller's.
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
        // Small counts are met more often than random ones.
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
            store.find(&Group::alone(&segment), &[7], 1).is_err(),
            "{segment:?}"
        );
        assert!(
            check(&mut store, &segment, &mut |_, _| ()).is_err(),
            "{segment:?}"
        );
    }
    let counts_wrong = Segment {
        postings: 1,
        ..segment
    };
    assert!(check(&mut store, &counts_wrong, &mut |_, _| ()).is_err());
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
        store.pages[neighbors[0]] = sound.pages[neighbors[1]].clone();
        assert!(check(&mut store, &segment, &mut |_, _| ()).is_err());
    }
}
