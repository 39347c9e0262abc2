//! Shows values made of arbitrary bytes. No input may cause a panic, an endless loop or disproportionate memory use.

use debuginfo::value::Look;
use debuginfo::{FrameContext, Value};

use crate::{RenderOptions, cast, children, encode, float, render, writes};

/// Renders a value, looks inside it, and encodes texts for it: the function that [`debuginfo::fuzzing`] applies to
/// what it finds.
pub fn show(site: &FrameContext<'_>, value: &Value) {
    let options = RenderOptions {
        max_elements: 4,
        max_depth: 3,
        ..RenderOptions::default()
    };
    let look = Look {
        space: site.space,
        machine: site.machine,
    };
    assert!(!render(value, &options, site.machine, site.space).is_empty() || value.bytes.is_ok());
    for (_, inner) in children(value, &options, &look).iter().take(8) {
        let _ = (inner.as_integer(), float(inner), inner.address());
        let _ = (inner.deref(&look), inner.index(1, &look));
    }
    let _ = cast(value, &value.ty.pointer(), &look);
    for text in ["1", "-1", "1.5", "true", "'x'", "A|B"] {
        if let Ok(bytes) = encode(&value.ty, text) {
            let _ = writes(value, &bytes, site.machine);
        }
    }
}
