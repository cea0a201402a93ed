//! The arguments of a `near_dup_guard` trigger.

use crate::index::kind::{Bound, Kind};
use crate::options;
use crate::pg::error::OrRaise;
use neardup::bands::MAX_BLOCKS;
use neardup::{Error, quoted};
use pgrx::pg_sys;
use std::ffi::{CStr, CString};

/// The action on a row that has a near-duplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Reject,
    Skip,
    Mark,
}

/// `near_dup_guard(column, bound, action [, 'into=column'] [, 'scope=column,...'] [, 'verify=column'])`.
pub struct Options {
    pub column: CString,
    /// A similarity threshold for signatures, a distance for bit strings.
    pub bound: String,
    pub action: Action,
    pub into: Option<CString>,
    pub scope: Vec<CString>,
    pub verify: Option<CString>,
}

const SHAPE: &str = "Valid are the signature column, the threshold, 'reject', 'skip' or 'mark', and then 'into=column', 'scope=column,...' and 'verify=column', as in near_dup_guard('sig', '0.8', 'reject').";

fn invalid(message: String) -> ! {
    Err(Error::invalid(message, SHAPE)).or_raise()
}

impl Options {
    /// # Errors
    /// ERROR `invalid_parameter_value` that says what is valid.
    ///
    /// # Safety
    /// The trigger is that of the running call.
    pub unsafe fn parse(trigger: *const pg_sys::Trigger) -> Self {
        // SAFETY: the array has that many NUL-terminated strings.
        let arguments: Vec<&CStr> = unsafe {
            (0..(*trigger).tgnargs as usize)
                .map(|number| CStr::from_ptr(*(*trigger).tgargs.add(number)))
                .collect()
        };
        let [column, bound, action, rest @ ..] = arguments.as_slice() else {
            invalid(format!("near_dup_guard got {} arguments", arguments.len()));
        };
        let mut options = Self {
            column: (*column).to_owned(),
            bound: bound.to_string_lossy().into_owned(),
            action: match action.to_bytes() {
                b"reject" => Action::Reject,
                b"skip" => Action::Skip,
                b"mark" => Action::Mark,
                _ => invalid(format!(
                    "unknown action {}",
                    quoted(&action.to_string_lossy())
                )),
            },
            into: None,
            scope: Vec::new(),
            verify: None,
        };
        for option in rest {
            options.add(option);
        }
        if (options.action == Action::Mark) != options.into.is_some() {
            invalid("'mark' and 'into=column' need each other".to_owned());
        }
        options
    }

    fn add(&mut self, option: &CStr) {
        let bytes = option.to_bytes();
        let place = bytes.iter().position(|&byte| byte == b'=');
        let (name, value) = bytes.split_at(place.unwrap_or(bytes.len()));
        let column = |value: &[u8]| {
            CString::new(value.trim_ascii()).expect("a part of a string without NUL has none")
        };
        let value = value.strip_prefix(b"=").unwrap_or_default();
        match name {
            b"into" => self.into = Some(column(value)),
            b"scope" => self.scope = value.split(|&byte| byte == b',').map(column).collect(),
            b"verify" => self.verify = Some(column(value)),
            _ => invalid(format!(
                "unknown option {}",
                quoted(&option.to_string_lossy())
            )),
        }
    }

    /// Returns the bound of a kind.
    ///
    /// # Errors
    /// ERROR `invalid_parameter_value` for a threshold outside 0 < threshold <= 1, or a distance
    /// outside 0 to 63.
    pub fn bound(&self, kind: Kind) -> Bound {
        match kind {
            Kind::Minhash => Bound::Threshold(options::threshold_in(&self.bound)),
            Kind::Hamming => {
                let most = MAX_BLOCKS as u32 - 1;
                Bound::Distance(options::distance_in(&self.bound, most))
            }
        }
    }
}
