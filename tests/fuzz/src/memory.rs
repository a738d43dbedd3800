//! No input costs more memory than its length allows.

use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// How many bytes a run may have allocated at once in addition to those for its input.
const FREE_BYTES: usize = 4 << 20;
/// How many bytes a run may have allocated at once for each byte of input: inputs are expanded,
/// kept in several forms, and compared.
const BYTES_A_BYTE: usize = 64;

/// Runs a target, and panics if it had too much memory allocated at once.
pub(crate) fn bounded(input: &[u8], run: fn(&[u8]) -> usize) {
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let bytes = run(input);
    let used = ALLOCATED.peak_usage().saturating_sub(before);
    assert!(used <= FREE_BYTES + BYTES_A_BYTE * bytes, "{used} bytes of memory for {bytes} bytes of input");
}
